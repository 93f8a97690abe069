"""The trainer: it learns, repeats itself to the bit, survives interruptions, and says what is wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tables import rest_slow

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from crosslens.core import ConflictError, CrosslensError, InputError, MissingExtraError, UsageError  # noqa: E402
from crosslens.encode import load_encoder  # noqa: E402
from crosslens.train import MODELS, InputShape, TrainingData, TrainingRecipe, captions, train_model, trainer, training  # noqa: E402
from crosslens.train.processes import seed_generators  # noqa: E402
from crosslens.train.stored.checkpoint import Checkpoint, load_checkpoint, load_trained_state, save_checkpoint  # noqa: E402
from crosslens.train.stored.model_folder import read_model  # noqa: E402

from .conftest import changed  # noqa: E402


def weights(folder: Path) -> bytes:
    return (folder / "weights.safetensors").read_bytes()


def partial(folder: Path) -> Path:
    """Where an interrupted training of a folder leaves its checkpoint."""
    return folder.with_name(f".{folder.name}.crosslens-partial") / f"kept-{trainer.CHECKPOINT}"


def stop_after(epochs: int) -> Any:
    def watch(row: dict[str, Any]) -> None:
        if row["epoch"] > epochs:
            raise KeyboardInterrupt

    return watch


# Learning


@pytest.mark.parametrize("losses", rest_slow([["triplet", "sam"], ["triplet"], ["infonce"], ["siglip"]]), ids="+".join)
def test_it_learns(tmp_path: Path, recipe: TrainingRecipe, data: TrainingData, losses: list[str]) -> None:
    recipe = replace(changed(recipe, epochs=8, batch_size=20), losses=tuple({"kind": kind} for kind in losses))
    rows = list[dict[str, Any]]()
    trained = train_model(recipe, data, tmp_path / "model", watch=rows.append)
    chance = 100 * ((0.05 + 0.25 + 0.5) + (1 - 0.95 + 0.25 + 0.47))  # 20 images; 5 of 100 captions are relevant
    assert trained.test["Rsum"] > chance + 100
    assert set(trained.test) >= {"Rsum", "i2t/Hit@1", "t2i/Hit@10"}
    assert rows == trained.card["history"]
    assert rows[-1]["loss"] < rows[0]["loss"]
    best = max(rows, key=lambda row: row["value"])
    assert (trained.card["best_step"], trained.card["validation"]) == (best["step"], {"Rsum": best["value"]})


def test_the_stored_weights_are_those_best_on_validation(
    tmp_path: Path, recipe: TrainingRecipe, data: TrainingData
) -> None:
    trained = train_model(changed(recipe, metric="MedR", epochs=4), data, tmp_path / "model")
    values = [row["value"] for row in trained.card["history"]]
    assert trained.card["validation"] == {"MedR": min(values)}, "a lower rank is better"
    assert trained.card["best_step"] == 5 * (values.index(min(values)) + 1)
    cut = train_model(changed(recipe, metric="MedR", epochs=values.index(min(values)) + 1), data, tmp_path / "cut")
    assert weights(cut.path) == weights(trained.path)


def test_patience_ends_a_training(tmp_path: Path, recipe: TrainingRecipe, data: TrainingData) -> None:
    trained = train_model(changed(recipe, epochs=50, patience=2, learning_rate=1e-9), data, tmp_path / "model")
    assert trained.card["steps"] < 250
    values = [row["value"] for row in trained.card["history"]]
    assert len(values) - 1 - int(np.argmax(values)) == 2


def test_a_frozen_sentence_encoder_is_asked_once_per_split(
    tmp_path: Path, recipe: TrainingRecipe, data: TrainingData, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = list[int]()

    class Letters:
        def encode_texts(self, texts: list[str]) -> np.ndarray:
            calls.append(len(texts))
            return np.array([[text.count(letter) for letter in "abcdeghilnorstu"] for text in texts], np.float32)

    monkeypatch.setattr(captions, "load_encoder", lambda name: load_encoder(Letters()))
    recipe = replace(recipe, text_model="letters:any", model_settings={"dimension": 16, "text": "sentence"})
    trained = train_model(changed(recipe, epochs=6, batch_size=20), data, tmp_path / "model")
    assert trained.test["Rsum"] > 200
    assert sum(calls) == sum(len(set(split.dataset.texts)) for split in vars(data).values())
    assert InputShape(**trained.card["shape"]) == InputShape(16, 0, (15,))


@pytest.mark.parametrize(
    "settings", rest_slow([{"text": "transformer"}, {"both": True}, {"image": "residual", "dropout": 0.2}])
)
def test_other_towers_train(
    tmp_path: Path, recipe: TrainingRecipe, data: TrainingData, settings: dict[str, Any]
) -> None:
    recipe = replace(changed(recipe, epochs=2), model_settings={**recipe.model_settings, **settings})
    rows = train_model(recipe, data, tmp_path / "model").card["history"]
    assert rows[-1]["loss"] < rows[0]["loss"]


# Repetition and interruption


def test_same_seed_same_weights(tmp_path: Path, recipe: TrainingRecipe, data: TrainingData) -> None:
    recipe = replace(
        changed(recipe, epochs=1), losses=({"kind": "sam"},),
        model_settings={**recipe.model_settings, "dropout": 0.3},
    )  # fmt: skip
    first, again = (train_model(recipe, data, tmp_path / name).path for name in ("first", "again"))
    assert weights(first) == weights(again)
    assert weights(train_model(changed(recipe, seed=1), data, tmp_path / "other").path) != weights(first)


def test_a_seed_for_the_cpu_goes_to_no_other_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "manual_seed", lambda seed: pytest.fail("seeds every device"))
    seed_generators(7, torch.device("cpu"))
    assert torch.equal(torch.rand(3), torch.rand(3, generator=torch.Generator().manual_seed(7)))


def test_a_training_that_was_interrupted_ends_with_the_same_weights(
    tmp_path: Path, recipe: TrainingRecipe, data: TrainingData
) -> None:
    recipe = replace(
        changed(recipe, epochs=3, schedule="cosine"), losses=({"kind": "sam"},),
        model_settings={**recipe.model_settings, "dropout": 0.3},
    )  # fmt: skip
    whole = train_model(recipe, data, tmp_path / "whole")
    for epochs in (0, 1):
        with pytest.raises(KeyboardInterrupt, match=f"stopped after step {5 * epochs + 5} of 15"):
            train_model(recipe, data, tmp_path / "resumed", watch=stop_after(epochs))
        assert load_checkpoint(partial(tmp_path / "resumed")).step == 5 * epochs + 5
    rows = list[dict[str, Any]]()
    resumed = train_model(recipe, data, tmp_path / "resumed", watch=rows.append)
    assert weights(resumed.path) == weights(whole.path)
    assert rows == resumed.card["history"] == whole.card["history"]
    assert resumed.test == whole.test
    assert not partial(tmp_path / "resumed").exists()


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.train.conftest import changed, made_data, small_recipe
from crosslens.train import train_model
def watch(row):
    if row["epoch"] == 4:
        os.kill(os.getpid(), signal.SIGKILL)
train_model(changed(small_recipe(), epochs=6, checkpoint_share=1), made_data(), Path({output!r}), watch=watch)
"""


@pytest.mark.slow
def test_a_killed_process_can_be_resumed(tmp_path: Path, recipe: TrainingRecipe, data: TrainingData) -> None:
    script = KILLED.format(root=str(Path(__file__).parents[2]), output=str(tmp_path / "killed"))
    done = subprocess.run([sys.executable, "-c", script], env=dict(os.environ), capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    assert load_checkpoint(partial(tmp_path / "killed")).step == 15
    recipe = changed(recipe, epochs=6)
    killed, whole = (train_model(recipe, data, tmp_path / name) for name in ("killed", "whole"))
    assert weights(killed.path) == weights(whole.path)
    assert killed.test == whole.test


MOMENTS = """
import sys
sys.path.insert(0, {root!r})
from tests.train.conftest import changed, made_data, small_recipe
from crosslens.train import train_model
print("begun", flush=True)
train_model(changed(small_recipe(), epochs=80, checkpoint_share={share}), made_data(), {output!r})
"""


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.1, 1])
def test_killed_at_twenty_random_moments(
    tmp_path: Path, recipe: TrainingRecipe, data: TrainingData, share: float
) -> None:
    script = MOMENTS.format(root=str(Path(__file__).parents[2]), output=str(tmp_path / "killed"), share=share)
    moments = np.random.default_rng(5).uniform(0, 1, 20)
    for moment in moments:
        with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"begun\n"
            with suppress(subprocess.TimeoutExpired):
                process.wait(moment)
            process.kill()
    recipe = changed(recipe, epochs=80)
    killed, whole = (train_model(recipe, data, tmp_path / name) for name in ("killed", "whole"))
    assert weights(killed.path) == weights(whole.path)
    assert killed.card["history"] == whole.card["history"]


def test_a_learnt_temperature_and_measured_features_survive_an_interruption(
    tmp_path: Path, recipe: TrainingRecipe, data: TrainingData
) -> None:
    recipe = replace(
        changed(recipe, epochs=2, optimizer="adamw", weight_decay=0.1),
        losses=({"kind": "infonce", "learnt": True, "self_targets": 0.3},),
        model_settings={**recipe.model_settings, "standardise": True},
    )  # fmt: skip
    with pytest.raises(KeyboardInterrupt):
        train_model(recipe, data, tmp_path / "resumed", watch=stop_after(0))
    resumed, whole = (train_model(recipe, data, tmp_path / name) for name in ("resumed", "whole"))
    assert weights(resumed.path) == weights(whole.path)
    stored = read_model(whole.path)
    assert float(stored.weights["loss.0_temperature"]) != 0
    assert np.allclose(stored.weights["image.scale.vectors_mean"], data.train.features.vectors.mean(axis=0), atol=1e-5)
    model = MODELS["vse"].value(InputShape(**stored.card["shape"]), **recipe.model_settings)
    load_trained_state(model, stored.weights)  # a model in use has no loss
    with pytest.raises(RuntimeError, match="1 weights are missing or unknown"):
        load_trained_state(model, {name: part for name, part in stored.weights.items() if name != "image.head.bias"})


def test_a_finished_training_is_returned_as_it_is(
    tmp_path: Path, recipe: TrainingRecipe, data: TrainingData, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = changed(recipe, epochs=1)
    first = train_model(recipe, data, tmp_path / "model")
    monkeypatch.setattr(trainer, "Training", None)
    again = train_model(changed(recipe, threads=2), data, tmp_path / "model")
    assert again.test == first.test
    assert again.as_dict()["history"] == first.as_dict()["history"]


def test_another_recipe_is_refused_unless_it_may_overwrite(
    tmp_path: Path, recipe: TrainingRecipe, data: TrainingData
) -> None:
    recipe = changed(recipe, epochs=1)
    folder = train_model(recipe, data, tmp_path / "model").path
    before = weights(folder)
    reseeded_recipe = changed(recipe, seed=1)
    with pytest.raises(ConflictError, match="already contains a different trained model"):
        train_model(reseeded_recipe, data, folder)
    assert weights(folder) == before
    train_model(reseeded_recipe, data, folder, overwrite=True)
    assert weights(folder) != before
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(ConflictError, match=r"notes.txt, which would be lost"):
        train_model(recipe, data, folder, overwrite=True)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    with pytest.raises(ConflictError, match="is not empty and is not a trained model"):
        train_model(recipe, data, tmp_path / "full", overwrite=True)


def test_a_model_folder_can_be_read_and_notices_changes(
    tmp_path: Path, recipe: TrainingRecipe, data: TrainingData
) -> None:
    trained = train_model(changed(recipe, epochs=1), data, tmp_path / "model")
    stored = read_model(trained.path)
    assert stored.card["test"] == trained.test
    assert sum(tensor.numel() for tensor in stored.weights.values()) == stored.card["parameters"]
    file = trained.path / "weights.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(CrosslensError, match=r"weights.safetensors"):
        read_model(trained.path)


# Mistakes


def test_a_loss_that_is_not_finite_keeps_the_last_checkpoint(
    tmp_path: Path, recipe: TrainingRecipe, data: TrainingData, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = changed(recipe, checkpoint_share=1.0)
    taken = list[int]()

    def broken(entries: Any, source: str, **shape: Any) -> Any:
        loss, needs_phi = build(entries, source, **shape)

        def not_a_number(batch: Any) -> Any:
            taken.append(1)
            return loss(batch) * (float("nan") if len(taken) == 13 else 1.0)

        return not_a_number, needs_phi

    build = training.build_loss
    with monkeypatch.context() as patch:
        patch.setattr(training, "build_loss", broken)
        with pytest.raises(
            CrosslensError, match=r"the loss is nan at step 13.*the last checkpoint is of step 10"
        ) as error:
            train_model(recipe, data, tmp_path / "model")
    assert "learning rate" in str(error.value)
    kept = load_checkpoint(partial(tmp_path / "model"))
    assert kept.step == 10
    assert all(bool(tensor.isfinite().all()) for tensor in kept.weights.values())
    resumed, whole = (train_model(recipe, data, tmp_path / name) for name in ("model", "whole"))
    assert weights(resumed.path) == weights(whole.path)


def test_a_damaged_checkpoint_is_an_error_and_stays(tmp_path: Path, recipe: TrainingRecipe, data: TrainingData) -> None:
    recipe = changed(recipe, epochs=2)
    with pytest.raises(KeyboardInterrupt):
        train_model(recipe, data, tmp_path / "model", watch=stop_after(0))
    file = partial(tmp_path / "model")
    content = file.read_bytes()
    for damaged in (content[:-9], b"", b"not a checkpoint at all"):
        file.write_bytes(damaged)
        for _ in range(2):
            with pytest.raises(InputError, match=r"checkpoint.safetensors.*checkpoint"):
                train_model(recipe, data, tmp_path / "model")
        assert file.read_bytes() == damaged
    save_checkpoint(file, Checkpoint(3, {"w": torch.zeros(2)}, {}, [], {}))
    with pytest.raises(InputError, match="a checkpoint of another model"):
        train_model(recipe, data, tmp_path / "model")
    file.write_bytes(content)
    train_model(recipe, data, tmp_path / "model")


def test_checkpoints_round_trip(tmp_path: Path) -> None:
    stored = Checkpoint(
        7,
        {"a/b": torch.arange(3.0)},
        {"0/step": torch.tensor(7.0)},
        [{"step": 7, "value": 0.1}],
        {"a/b": torch.ones(3)},
        (1.5, 3),
        2,
    )
    save_checkpoint(tmp_path / "c.safetensors", stored)
    read = load_checkpoint(tmp_path / "c.safetensors")
    assert (read.step, read.history, read.losses, read.threads) == (7, stored.history, stored.losses, 2)
    for threads in (0, 10**9, 2.0, "2"):
        save_checkpoint(tmp_path / "wrong.safetensors", replace(stored, threads=threads))
        with pytest.raises(InputError, match=r"not a checkpoint of a training: threads = "):
            load_checkpoint(tmp_path / "wrong.safetensors")
    for part in ("weights", "optimizer", "best"):
        before, after = getattr(stored, part), getattr(read, part)
        assert before.keys() == after.keys()
        assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"batch_size": 300}, UsageError, "a batch of 300 pairs from 200 training captions"),
        ({"fraction": 0.02}, UsageError, "one image, and so no mismatched pairs"),
        ({"device": "gpu"}, UsageError, "cannot use the device 'gpu'"),
        ({"metric": "Hit@1 Hit@5"}, UsageError, "name one metric"),
        ({"metric": "Hti@1"}, CrosslensError, "Hit"),
        ({"metric": "t2t/Hit@1"}, UsageError, "ranks captions by captions"),
        ({"metric": "DCGcm[scores_from=clip]@5"}, UsageError, "needs the scores of another encoder"),
        ({"metric": "NCS[cidre]@5"}, CrosslensError, "cider"),
        ({"test_metrics": "Rsum Nscum"}, CrosslensError, "Nsum"),
        ({"processes": 41}, UsageError, "a batch of 40 pairs for 41 processes"),
    ],
)
def test_settings_that_do_not_fit(
    tmp_path: Path, recipe: TrainingRecipe, data: TrainingData, settings: dict[str, Any], error: Any, message: str
) -> None:
    with pytest.raises(error, match=message):
        train_model(changed(recipe, **settings), data, tmp_path / "model")
    assert not list(tmp_path.glob(".*/checkpoint*"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_settings": {"dimensions": 3}}, r"mine.toml.*\[model\] vse has no setting 'dimensions'"),
        ({"model_settings": {"dimension": "big"}}, r"mine.toml.*dimension of \[model\] vse is 'big'"),
        ({"model_settings": {"both": 1}}, r"mine.toml.*both of \[model\] vse is 1"),
        ({"model_settings": {"text": "lstm"}}, r"mine.toml.*text is 'lstm'"),
        ({"losses": ({"kind": "triplet", "margn": 1},)}, r"mine.toml.*\[\[loss\]\] triplet has no setting 'margn'"),
        ({"losses": ({"kind": "sam", "tau": 0},)}, r"mine.toml.*tau is 0"),
        ({"losses": ({"kind": "sam", "weight": "5"},)}, r"mine.toml.*weight of \[\[loss\]\] is '5'"),
        ({"losses": ({"kind": "tripelt"},)}, "did you mean triplet"),
        ({"model": "vsee"}, "did you mean vse"),
    ],
)
def test_mistakes_in_a_recipe_name_it(
    tmp_path: Path, recipe: TrainingRecipe, data: TrainingData, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(CrosslensError, match=f"(?s){message}"):
        train_model(replace(recipe, source="mine.toml", **changes), data, tmp_path / "model")


def test_without_torch_the_extra_is_named(
    tmp_path: Path, recipe: TrainingRecipe, data: TrainingData, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    with pytest.raises(MissingExtraError, match=r"crosslens\[train\]"):
        train_model(recipe, data, tmp_path / "model")
