"""Several processes: the result of one, whatever the model encodes into, and nothing left behind when one is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from crosslens.core import CrosslensError, UsageError, load_plugin  # noqa: E402
from crosslens.train import TrainingData, TrainingRecipe, train_model  # noqa: E402
from crosslens.train.processes import Group, check_processes  # noqa: E402
from crosslens.train.stored.checkpoint import load_checkpoint  # noqa: E402
from crosslens.train.stored.model_folder import read_model  # noqa: E402

from .conftest import changed  # noqa: E402
from .test_trainer import partial  # noqa: E402

ROOT = Path(__file__).parents[2]

WORDS = '''
"""A model whose captions are word states of their own length, with a loss on the encodings themselves."""
import torch
from torch import nn
from crosslens.train import LOSSES, MODELS


@MODELS.register("attending")
class Attending(nn.Module):
    """Words look at the image; a parameter of the comparison itself."""

    def __init__(self, shape, *, dimension: int = 8):
        super().__init__()
        self.image = nn.Linear(shape.vector, dimension)
        self.embedding = nn.Embedding(shape.words, dimension, padding_idx=0)
        self.scale = nn.Parameter(torch.ones(()))

    def encode_images(self, images):
        return (nn.functional.normalize(self.image(images.vectors), dim=-1),)

    def encode_captions(self, captions):
        words = captions.words[:, : int(captions.lengths.max())]
        return self.embedding(words), captions.lengths, words > 0

    def scores(self, images, captions):
        states, lengths, known = captions
        assert bool((known.sum(dim=1) == lengths).all())
        pairs = torch.einsum("id,ctd->ict", images[0], states)
        return self.scale * pairs.tanh().sum(dim=2) / lengths


@LOSSES.register("small-encodings")
def small_encodings():
    """The mean square of all encodings."""
    return lambda batch: batch.images[0].square().mean() + batch.captions[0].square().sum() / len(batch.scores)
'''


def largest_difference(first_folder: Path, second_folder: Path) -> float:
    first, second = read_model(first_folder).weights, read_model(second_folder).weights
    assert first.keys() == second.keys()
    return max(float((first[name] - second[name]).abs().max()) for name in first)


def test_one_process_is_the_whole_group() -> None:
    group = Group(device=torch.device("cpu"))
    encoding = (torch.ones(3, 2), torch.arange(3))
    assert group.gather(encoding) is encoding
    assert group.leads
    assert not group.is_stopped()
    assert group.from_leader(0.5) == 0.5
    assert np.array_equal(group.share(np.arange(5)), np.arange(5))


def test_shares_are_the_batch_in_its_order() -> None:
    for size in (2, 3, 7):
        shares = [Group(rank, size).share(np.arange(20)) for rank in range(size)]
        assert np.array_equal(np.concatenate(shares), np.arange(20))
        assert {len(share) for share in shares} <= {20 // size, 20 // size + 1}


def test_processes_need_pairs_and_devices() -> None:
    with pytest.raises(UsageError, match="a batch of 3 pairs for 4 processes"):
        check_processes(4, torch.device("cpu"), 3)
    with pytest.raises(UsageError, match="2 processes on the one device cuda:1"):
        check_processes(2, torch.device("cuda", 1), 8)
    with pytest.raises(UsageError, match=r"99 processes on \d+ GPUs"):
        check_processes(99, torch.device("cuda"), 128)
    check_processes(1, torch.device("cuda", 1), 8)


@pytest.mark.slow
@pytest.mark.parametrize("losses", [["triplet", "sam"], ["infonce"]], ids="+".join)
def test_two_processes_give_the_result_of_one(
    tmp_path: Path, recipe: TrainingRecipe, data: TrainingData, losses: list[str]
) -> None:
    recipe = replace(changed(recipe, batch_size=21), losses=tuple({"kind": kind} for kind in losses))  # 11 and 10
    rows = list[dict[str, Any]]()
    alone = train_model(recipe, data, tmp_path / "alone")
    together = train_model(changed(recipe, processes=2), data, tmp_path / "together", watch=rows.append)
    assert largest_difference(alone.path, together.path) < 2e-6
    assert rows == together.card["history"]
    for epoch, epoch_of_two in zip(alone.card["history"], rows, strict=True):
        assert epoch == pytest.approx(epoch_of_two, rel=1e-5)
    assert together.test == pytest.approx(alone.test)
    assert train_model(recipe, data, together.path).test == together.test, "the same training"


@pytest.mark.slow
def test_word_states_and_losses_on_encodings(tmp_path: Path, recipe: TrainingRecipe, data: TrainingData) -> None:
    (tmp_path / "attending.py").write_text(WORDS)
    load_plugin(tmp_path / "attending.py")
    split = data.train  # captions of different lengths: the last words of some are left out
    texts = {
        image: [text if k % 2 else text.rsplit(" ", 1 + k)[0] for k, text in enumerate(five)]
        for image, five in zip(split.dataset.image_ids, np.reshape(split.dataset.texts, (-1, 5)).tolist(), strict=True)
    }
    train = replace(split, dataset=type(split.dataset).of(texts, name="train"))
    recipe = replace(
        recipe, model="attending", model_settings={}, losses=({"kind": "triplet"}, {"kind": "small-encodings"})
    )
    paths = [
        train_model(changed(recipe, processes=size), replace(data, train=train), tmp_path / str(size)).path
        for size in (1, 3)
    ]
    assert largest_difference(*paths) < 2e-6


def workers_of(process: int) -> list[int]:
    """The child processes that train."""
    children = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[1]) == process and fields[0] != "Z":
                command = (stat.parent / "cmdline").read_bytes()
                if b"spawn_main" in command:
                    children.append(int(stat.parent.name))
    return sorted(children)  # they begin one after the other


@pytest.mark.slow
def test_a_killed_worker_ends_all_and_the_training_can_be_resumed(
    tmp_path: Path, recipe: TrainingRecipe, data: TrainingData
) -> None:
    recipe = changed(recipe, epochs=6, checkpoint_share=1.0)

    def kill(row: dict[str, Any]) -> None:
        if row["epoch"] == 2:
            os.kill(workers_of(os.getpid())[1], signal.SIGKILL)

    with pytest.raises(CrosslensError, match="process 2 of 2 was ended by SIGKILL") as error:
        train_model(changed(recipe, processes=2), data, tmp_path / "model", watch=kill)
    assert "resumes" in str(error.value)
    assert not workers_of(os.getpid())
    assert load_checkpoint(partial(tmp_path / "model")).step >= 10
    resumed, whole = (train_model(recipe, data, tmp_path / name) for name in ("model", "whole"))
    assert largest_difference(resumed.path, whole.path) < 2e-6


@pytest.mark.slow
def test_an_error_in_a_worker_is_the_error_of_the_call(
    tmp_path: Path, recipe: TrainingRecipe, data: TrainingData
) -> None:
    recipe = replace(changed(recipe, processes=2), model_settings={"dimensions": 3}, source="mine.toml")
    with pytest.raises(CrosslensError, match=r"(?s)mine.toml.*\[model\] vse has no setting 'dimensions'"):
        train_model(recipe, data, tmp_path / "model")
    assert not workers_of(os.getpid())


SCRIPT = """
import sys
sys.path.insert(0, {root!r})
from tests.train.conftest import changed, made_data, small_recipe
from crosslens.train import train_model
recipe = changed(small_recipe(), epochs=3000, processes=2)
train_model(recipe, made_data(), {output!r}, watch=lambda row: print(row["epoch"], flush=True))
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_the_process_that_started_them(tmp_path: Path, number: signal.Signals) -> None:
    script = SCRIPT.format(root=str(ROOT), output=str(tmp_path / "model"))
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        workers = workers_of(process.pid)
        assert len(workers) == 2
        if number == signal.SIGINT:
            os.killpg(process.pid, number)  # as a terminal does
        else:
            process.kill()
        message = process.stderr.read().decode()
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{worker}").exists() for worker in workers) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)
    step = load_checkpoint(partial(tmp_path / "model")).step
    assert step >= 5
    if number == signal.SIGINT:
        assert f"stopped after step {step:,} of 15,000" in message
