"""``crosslens train``: the contract of its JSON, recipes by name and by file, and what is wrong with a call."""

from __future__ import annotations

from pathlib import Path

import pytest

from crosslens.train import TrainingData, recipe_minutes, recipe_names
from tests.commands import Call as Call, call as call

from .conftest import SMALL_RECIPE, write_flickr8k


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, data: TrainingData) -> Path:
    folder = write_flickr8k(tmp_path_factory.mktemp("data") / "flickr8k", data)
    (folder / "small.toml").write_text(SMALL_RECIPE)
    return folder


def test_a_packaged_recipe(call: Call, folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    words = ("train", "flickr8k-vse-sam-random", "--data", folder, "--fraction", "0.25", "--seed", "0")
    words += (
        "--epochs",
        "1",
        "--batch-size",
        "25",
        "--threads",
        "1",
        "--device",
        "cpu",
        "-o",
        tmp_path / "model",
        "--json",
    )
    outcome = call(*words)
    assert outcome.code == 0, outcome.err
    assert {"Rsum", "i2t/Hit@1", "t2i/Hit@1"} <= set(outcome.json["test"])
    assert outcome.json["steps"] == 2
    assert outcome.json["model"] == str(tmp_path / "model")
    assert call(*words).json == outcome.json


def test_a_recipe_file(call: Call, folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    words = ("--data", folder, "--device", "cpu", "--threads", "1", "-o", tmp_path / "model")
    outcome = call("train", "--recipe", folder / "small.toml", *words)
    assert outcome.code == 0, outcome.err
    assert "epoch 2: loss" in outcome.err
    assert "small, " in outcome.out
    assert "\ntest          image → text   text → image\nHit@1 " in outcome.out
    assert "\nRsum (both) " in outcome.out
    assert max(map(len, outcome.out.splitlines()[1:-1])) <= 80
    assert call("train", folder / "small.toml", *words).out == outcome.out, "a path in place of the name"
    refused = call("train", folder / "small.toml", *words, "--seed", "1")
    assert refused.code == 5
    assert "--overwrite" in refused.err
    assert call("train", folder / "small.toml", *words, "--seed", "1", "--overwrite").code == 0


def test_metrics_of_the_test_split(call: Call, folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    words = ("train", folder / "small.toml", "--data", folder, "--device", "cpu", "--threads", "1", "--json")
    outcome = call(*words, "-o", tmp_path / "model", "--metrics", "Rsum NCS@5", "--metrics", "Nsum")
    assert outcome.code == 0, outcome.err
    assert {"Rsum", "i2t/Hit@1", "i2t/NCS[cider]@5", "t2i/NCS[cider]@5", "Nsum[cider]"} <= set(outcome.json["test"])
    assert "NCS" in call("train", *words[1:], "-o", tmp_path / "m", "--metrics", "NCS").err, "it needs a cutoff"


def test_the_list_of_recipes_and_their_expected_minutes(call: Call) -> None:
    """Those that the benchmark measured; a first training ends within two minutes."""
    measured = recipe_minutes()
    assert set(measured.recipe) <= set(recipe_names())
    assert measured.recipe["flickr8k-first"] < 2
    listed = call("train", "--list", "--json").json["recipes"]
    assert [entry["name"] for entry in listed] == recipe_names()
    rows = {entry["name"]: entry for entry in listed}
    assert rows["flickr8k-vse-triplet"]["minutes"] == measured.recipe["flickr8k-vse-triplet"]
    assert rows["flickr8k-vse-triplet"]["minutes_of_a_tenth"] < 5
    assert rows["coco-sgr-triplet"]["minutes"] is None, "not measured"
    whole = call("train", "--list").out
    assert all(name in whole for name in recipe_names())
    text = " ".join(call("train", "--list", "flickr8k vse").out.split())
    minutes = measured.recipe["flickr8k-vse-sum"], measured.tenth["flickr8k-vse-sum"]
    assert "sum over all negatives; {:.0f} min, {:.0f} with --fraction 0.1".format(*minutes) in text
    assert f"processor minutes on {measured.machine}" in text


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--data", ".", "-o", "m"), 2, "no recipe"),
        (("flickr8k-vse-triplet", "--recipe", "x.toml", "--data", ".", "-o", "m"), 2, "two recipes"),
        (("flickr8k-vse-triplet", "-o", "m"), 2, "no data"),
        (("flickr8k-vse-triplet", "--data", "."), 2, "no output folder"),
        (("flickr8k-vse-triplte", "--data", ".", "-o", "m"), 2, "did you mean flickr8k-vse-triplet"),
        (("flickr8k-vse-triplet", "--data", "nowhere", "-o", "m"), 2, "nowhere is not a folder"),
        (("flickr8k-vse-triplet", "--data", ".", "-o", "m"), 3, "efficientnet_lite0_global.npy"),
        (("flickr8k-vse-triplet", "--data", ".", "-o", "m", "--fraction", "2"), 2, "--fraction"),
        (("nothing.toml", "--data", ".", "-o", "m"), 3, "nothing.toml"),
    ],
)
def test_wrong_calls(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], code: int, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = call("train", *words)
    assert outcome.code == code
    assert message in outcome.err
    assert not list(tmp_path.iterdir())


def test_a_batch_that_is_too_large_names_the_flag(call: Call, folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    outcome = call("train", folder / "small.toml", "--data", folder, "-o", tmp_path / "m", "--batch-size", "500")
    assert outcome.code == 2
    assert "a batch of 500 pairs from 200 training captions" in outcome.err


def test_a_note_on_fewer_concepts(call: Call, tmp_path: Path, local_data: TrainingData) -> None:
    pytest.importorskip("torch")
    folder = write_flickr8k(tmp_path / "flickr8k", local_data)
    words = ("--data", folder, "--device", "cpu", "--threads", "1", "--epochs", "1", "--batch-size", "50")
    (tmp_path / "small.toml").write_text('base = "flickr8k-cvse"\n[model]\ndimension = 8\nword_dimension = 8\n')
    outcome = call("train", tmp_path / "small.toml", *words, "-o", tmp_path / "model")
    assert outcome.code == 0, outcome.err
    assert "note: 12 concepts, not 300: the vocabulary has no more content words" in outcome.err
