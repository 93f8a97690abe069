"""Ctrl-C, a full disk, mixed precision, and when checkpoints are written."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from tests.tables import rest_slow

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from crosslens.core import CrosslensError  # noqa: E402
from crosslens.engine import SilentProgress  # noqa: E402
from crosslens.train import Trained, TrainingData, TrainingRecipe, train_model, training  # noqa: E402
from crosslens.train.stored.checkpoint import SaveTimes, load_checkpoint  # noqa: E402
from crosslens.train.training import Training, uninterrupted  # noqa: E402

from .conftest import SMALL_RECIPE, changed, small_recipe, write_flickr8k  # noqa: E402
from .test_trainer import partial, stop_after, weights  # noqa: E402

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def whole(data: TrainingData, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """The training in one go."""
    return train_model(small_recipe(), data, tmp_path_factory.mktemp("whole") / "model")


def press_during(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Ctrl-C in the middle of the step of that number, counted from 1."""
    take, taken = Training._take, list[int]()

    def pressed(self: Any, number: int) -> float:
        taken.append(number)
        if len(taken) == step:
            signal.raise_signal(signal.SIGINT)
        return take(self, number)

    monkeypatch.setattr(Training, "_take", pressed)


class Notes(SilentProgress):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.mark.parametrize("step", rest_slow([8, 1, 10, 15]))
def test_ctrl_c_leaves_a_checkpoint_of_a_whole_step(
    tmp_path: Path,
    recipe: TrainingRecipe,
    data: TrainingData,
    whole: Trained,
    monkeypatch: pytest.MonkeyPatch,
    step: int,
) -> None:
    with monkeypatch.context() as patch:
        press_during(patch, step)
        with pytest.raises(KeyboardInterrupt, match=f"stopped after step {step} of 15; the same command resumes"):
            train_model(recipe, data, tmp_path / "model")
    assert load_checkpoint(partial(tmp_path / "model")).step == step
    watching = Notes()
    resumed = train_model(recipe, data, tmp_path / "model", progress=watching)
    assert watching.notes == [f"training: resumed at step {step} of 15"]
    assert weights(resumed.path) == weights(whole.path)
    assert resumed.card["history"] == whole.card["history"], "losses of the interrupted epoch included"


def test_only_the_second_ctrl_c_ends_a_block_at_once() -> None:
    done = list[int]()

    def press(times: int) -> None:
        with uninterrupted():
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)
            done.append(times)

    for times in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            press(times)
    assert done == [1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_during_validation(
    tmp_path: Path, recipe: TrainingRecipe, data: TrainingData, whole: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    score, calls = training.score_matrix, list[int]()

    def pressed(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return score(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(training, "score_matrix", pressed)
        with pytest.raises(KeyboardInterrupt, match="stopped after step 10 of 15"):
            train_model(recipe, data, tmp_path / "model")
    kept = load_checkpoint(partial(tmp_path / "model"))
    assert (kept.step, len(kept.history), kept.losses[1]) == (10, 1, 5)
    resumed = train_model(recipe, data, tmp_path / "model")
    assert weights(resumed.path) == weights(whole.path)
    assert resumed.card["history"] == whole.card["history"]


def test_a_full_disk_keeps_the_last_checkpoint(tmp_path: Path, recipe: TrainingRecipe, data: TrainingData) -> None:
    recipe = changed(recipe, checkpoint_share=1.0)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(row: dict[str, Any]) -> None:
        if row["epoch"] == 2:
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))

    try:
        with pytest.raises(CrosslensError, match=r"checkpoint of step 10: .*the one before it is kept") as error:
            train_model(recipe, data, tmp_path / "model", watch=fill)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "free space" in str(error.value)
    assert load_checkpoint(partial(tmp_path / "model")).step == 5
    resumed, whole = (train_model(recipe, data, tmp_path / name) for name in ("model", "whole"))
    assert weights(resumed.path) == weights(whole.path)


@pytest.mark.parametrize("losses", rest_slow([["infonce", "sam"], ["triplet"]]), ids="+".join)
def test_half_precision_learns_and_resumes(
    tmp_path: Path, recipe: TrainingRecipe, data: TrainingData, losses: list[str]
) -> None:
    recipe = replace(changed(recipe, precision="bf16", epochs=2), losses=tuple({"kind": kind} for kind in losses))
    whole = train_model(recipe, data, tmp_path / "whole")
    rows = whole.card["history"]
    assert rows[-1]["loss"] < rows[0]["loss"]
    with pytest.raises(KeyboardInterrupt):
        train_model(recipe, data, tmp_path / "resumed", watch=stop_after(0))
    assert weights(train_model(recipe, data, tmp_path / "resumed").path) == weights(whole.path)
    exact = train_model(changed(recipe, precision="fp32"), data, tmp_path / "exact")
    assert weights(exact.path) != weights(whole.path)


def test_checkpoints_take_at_most_their_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    saved, always = SaveTimes(0.1), SaveTimes(1.0)
    assert saved.is_due(), "the first one"
    for times in (saved, always):
        with times.saving():
            now[0] += 2
    now[0] += 17.0
    assert (saved.is_due(), always.is_due()) == (False, True)
    now[0] += 3.0
    assert saved.is_due()


@pytest.mark.slow
def test_the_command_says_how_to_resume(tmp_path: Path, data: TrainingData) -> None:
    folder = write_flickr8k(tmp_path / "data", data)
    (folder / "small.toml").write_text(SMALL_RECIPE.replace("epochs = 2", "epochs = 5000"))
    command = [sys.executable, "-m", "crosslens", "train", str(folder / "small.toml"), "--data", str(folder)]
    command += ["--device", "cpu", "--threads", "1", "-o", str(tmp_path / "model")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=dict(os.environ), text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("epoch 2:"):
                break
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130
    step = load_checkpoint(partial(tmp_path / "model")).step
    assert f"stopped after step {step:,} of 50,000; the same command resumes there" in rest
    assert "Traceback" not in rest
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=dict(os.environ), text=True) as process:
        assert process.stderr is not None
        assert f"note: training: resumed at step {step:,} of 50,000\n" in process.stderr
        process.send_signal(signal.SIGINT)
        process.stderr.read()


def test_neither_load_nor_what_ran_before_changes_how_a_training_computes(
    tmp_path: Path, recipe: TrainingRecipe, data: TrainingData, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenMP may not take fewer threads on a busy machine, and oneDNN is used also after a product has failed."""
    openmp = ThreadpoolController().select(user_api="openmp").lib_controllers
    libraries = [library.dynlib for library in openmp if hasattr(library.dynlib, "omp_set_dynamic")]

    def state() -> tuple[Any, ...]:
        return torch.backends.mkldnn.enabled, torch.get_num_threads(), *(each.omp_get_dynamic() for each in libraries)

    take, states = Training._take, set[tuple[Any, ...]]()

    def noted(self: Any, step: int) -> float:
        states.add(state())
        return take(self, step)

    monkeypatch.setattr(Training, "_take", noted)
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
    for library in libraries:
        library.omp_set_dynamic(1)
    try:
        before = state()
        train_model(changed(recipe, epochs=1), data, tmp_path / "model")
        assert state() == before, "what else runs in the process is as it was"
    finally:
        for library in libraries:
            library.omp_set_dynamic(0)
    assert states == {(True, 1, *(0 for _ in libraries))}


def test_a_training_is_resumed_with_its_number_of_threads(
    tmp_path: Path, recipe: TrainingRecipe, data: TrainingData, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the recipe names none: another shell, container or machine would give torch another number."""
    take, threads, default = Training._take, set[int](), torch.get_num_threads()

    def noted(self: Any, step: int) -> float:
        threads.add(torch.get_num_threads())
        return take(self, step)

    recipe = changed(recipe, threads=None)
    try:
        torch.set_num_threads(3)
        with pytest.raises(KeyboardInterrupt):
            train_model(recipe, data, tmp_path / "model", watch=stop_after(0))
        assert load_checkpoint(partial(tmp_path / "model")).threads == 3
        torch.set_num_threads(1)
        monkeypatch.setattr(Training, "_take", noted)
        train_model(recipe, data, tmp_path / "model")
        assert threads == {3}
        assert torch.get_num_threads() == 1, "for the training only"
    finally:
        torch.set_num_threads(default)


SCRIPT = """
import sys
sys.path.insert(0, {root!r})
from tests.train.conftest import changed, made_data, small_recipe
from crosslens.train import train_model
train_model(changed(small_recipe(), epochs=40, checkpoint_share=1), made_data(), {output!r})
"""


@pytest.mark.slow
def test_killed_wherever_a_checkpoint_may_be_half_written(
    tmp_path: Path, recipe: TrainingRecipe, data: TrainingData, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = SCRIPT.format(root=str(ROOT), output=str(tmp_path / "killed"))
    for seed in range(3):
        with subprocess.Popen([sys.executable, "-c", script]) as process:
            before = partial(tmp_path / "killed").exists() and load_checkpoint(partial(tmp_path / "killed")).step
            file = partial(tmp_path / "killed")
            while process.poll() is None and not (file.exists() and load_checkpoint(file).step > before):
                time.sleep(0.01)  # until it has written something
            time.sleep(float(np.random.default_rng(seed).uniform(0, 0.05)))
            process.kill()
    recipe = changed(recipe, epochs=40)
    # As torch leaves it after a product in bf16 has failed in the same process; on ARM it then multiplies otherwise.
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
    killed = train_model(recipe, data, tmp_path / "killed")
    monkeypatch.undo()
    whole = train_model(recipe, data, tmp_path / "whole")
    assert weights(killed.path) == weights(whole.path)
    assert killed.card["history"] == whole.card["history"]
