"""Trained models in the commands that take models and runs: two of them on the small feature set."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import crosslens as cl
from crosslens.train import Trained, TrainingData
from tests.commands import Call as Call, call as call

from .conftest import small_recipe
from .trained_models import pair_model, train_on_files

pytest.importorskip("torch")

SAM = ({"kind": "triplet"}, {"kind": "sam", "sampling": "random", "weight": 5.0})


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, data: TrainingData) -> Path:
    """Features, and three models on them: with the triplet loss, with SAM, and one without vectors."""
    folder = tmp_path_factory.mktemp("home")
    recipes = {"triplet": small_recipe(), "sam": replace(small_recipe(), losses=SAM)}
    for name, recipe in recipes.items():
        train_on_files(folder, data, recipe).path.rename(folder / name)
    return folder


@pytest.fixture(scope="module")
def pairs(home: Path, data: TrainingData) -> Iterator[Trained]:
    with pair_model() as kind:
        trained = train_on_files(home, data, replace(small_recipe(), model=kind, model_settings={"dimension": 8}))
        yield trained


def dataset_of(home: Path) -> list[object]:
    files = home / "data"
    return ["--dataset", "flickr", "--captions", files / "Flickr8k.token.txt", "--images",
            files / "Flickr_8k.testImages.txt"]  # fmt: skip


def figures(card_folder: Path) -> dict[str, float]:
    test: dict[str, float] = json.loads((card_folder / "header.json").read_text())["test"]
    return test


def evaluate(call: Call, home: Path, model: object, output: Path, *more: object) -> dict[str, float]:
    words = ("--metrics", "Hit@1 Hit@5 Hit@10 MedR Rsum NCS[cider]@5", "--device", "cpu", "-o", output, "--json")
    outcome = call("evaluate", "--model", f"path:{model}", *dataset_of(home), *words, *more)
    assert outcome.code == 0, outcome.err
    return {name: metric["mean"] for name, metric in outcome.json["metrics"].items()}


def test_evaluate_gives_the_test_figures_and_its_recipe_repeats_them(call: Call, home: Path, tmp_path: Path) -> None:
    values = evaluate(call, home, home / "triplet", tmp_path / "run")
    assert {name: values[name] for name in figures(home / "triplet")} == pytest.approx(figures(home / "triplet"))
    again = call("run", tmp_path / "run", "-o", tmp_path / "again")
    assert again.code == 0, again.err
    assert "every query has the same value" in again.err


@pytest.mark.slow
def test_compare_explain_and_robustness_of_two_trained_models(call: Call, home: Path, tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    for name in ("triplet", "sam"):
        evaluate(call, home, home / name, tmp_path / name)
    runs = (tmp_path / "triplet", tmp_path / "sam")
    page = tmp_path / "changes.html"
    outcome = call("compare", *runs, "--changes", "--write", page, "--permutations", "200", "--json")
    assert outcome.code == 0, outcome.err
    changes = outcome.json["changes"]
    assert changes["queries"] == 100
    assert changes["runs"] == ["triplet", "sam"]
    assert "What sam changed" in page.read_text()
    assert call("compare", *runs, "--changes", "--write", page).code == 5, "it is replaced only with --overwrite"
    images = call("compare", *runs, "--changes", "--direction", "i2t", "--show", "1", "--json")
    assert images.json["changes"]["queries"] == 20
    assert len(images.json["changes"]["won"]) <= 1
    explained = call("explain", runs[0], "--compare", runs[1], "--json")
    assert explained.code == 0, explained.err
    assert explained.json["queries"] == 100
    study = call(
        "robustness", "--model", f"path:{home / 'triplet'}", "--model", f"path:{home / 'sam'}", *dataset_of(home),
        "--perturbations", "char_swap,shuffle_all_words", "--device", "cpu", "-o", tmp_path / "study", "--json",
    )  # fmt: skip
    assert study.code == 0, study.err
    assert len({row["model"] for row in study.json["drops"]}) == 2


def test_changes_are_of_two_runs(call: Call) -> None:
    outcome = call("compare", "a", "b", "c", "--changes")
    assert outcome.code == 2
    assert "--changes is of two runs" in outcome.err
    for words in (("--show", "3"), ("--dataset", "x.jsonl"), ("--image-folder", "photos")):
        outcome = call("compare", "a", "b", *words)
        assert outcome.code == 2
        assert "are of --changes" in outcome.err


def test_pictures_cannot_be_changed_where_features_are_read(call: Call, home: Path) -> None:
    outcome = call(
        "robustness", "--model", f"path:{home / 'triplet'}", *dataset_of(home), "--perturbations", "shot_noise",
        "--device", "cpu",
    )  # fmt: skip
    assert outcome.code == 2
    assert "reads stored features of images" in outcome.err


def test_models_without_vectors(call: Call, home: Path, pairs: Trained, tmp_path: Path) -> None:
    values = evaluate(call, home, pairs.path, tmp_path / "run")
    assert {name: values[name] for name in pairs.test} == pytest.approx(pairs.test)
    outcome = call("encode", "--model", f"path:{pairs.path}", *dataset_of(home), "-o", tmp_path / "vectors")
    assert outcome.code == 2
    assert "has no vectors" in outcome.err
    reranked = evaluate(
        call, home, home / "triplet", tmp_path / "reranked", "--rerank", f"path:{pairs.path}", "--rerank-depth", "100"
    )
    assert {name: reranked[name] for name in pairs.test} == pytest.approx(pairs.test), "all of every list is re-ranked"


def test_robustness_of_models_without_vectors(call: Call, home: Path, pairs: Trained, tmp_path: Path) -> None:
    quick = ("--permutations", "5", "--resamples", "5")
    words = ("--perturbations", "char_swap", "--device", "cpu", *quick, "-o", tmp_path / "study", "--json")
    study = call("robustness", "--model", f"path:{pairs.path}", *dataset_of(home), *words)
    assert study.code == 0, study.err
    (original,) = (tmp_path / "study").glob("**/original/run.json")
    run = cl.Run.load(original.parent)
    assert run["Rsum"].mean == pytest.approx(pairs.test["Rsum"])
    changed = cl.Run.load(next((tmp_path / "study").glob("**/char_swap/run.json")).parent)
    assert changed["Rsum"].mean != run["Rsum"].mean
    again = call("robustness", "--model", f"path:{pairs.path}", *dataset_of(home), *words)
    assert again.json == study.json


def test_encode_and_missing_features(call: Call, home: Path, tmp_path: Path) -> None:
    words = ("--device", "cpu", "-o", tmp_path / "vectors")
    outcome = call("encode", "--model", f"path:{home / 'sam'}", *dataset_of(home), *words)
    assert outcome.code == 0, outcome.err
    assert cl.Embeddings.load(tmp_path / "vectors" / "images").vectors.shape == (20, 16)
    cl.Dataset.of({"unknown.jpg": ["a dog"], "test-1.jpg": ["a cat"]}).save(tmp_path / "other")
    outcome = call("evaluate", "--model", f"path:{home / 'sam'}", "--dataset", tmp_path / "other", "--device", "cpu")
    assert outcome.code == 3
    assert "no features of the image 'unknown.jpg'" in outcome.err


def test_a_model_of_embeddings_is_evaluated_on_pictures(call: Call, picture_home: Path) -> None:
    model = picture_home / "model"
    words = ("--dataset", picture_home / "data" / "test-captions", "--image-folder", picture_home / "data" / "pictures")
    outcome = call("evaluate", "--model", f"path:{model}", *words, "--device", "cpu", "--metrics", "Rsum", "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.json["metrics"]["Rsum"]["mean"] == pytest.approx(figures(model)["Rsum"])


@pytest.mark.slow
def test_a_model_of_real_features(call: Call, shared_data: Path, tmp_path: Path) -> None:
    flickr8k = shared_data / "flickr8k"
    words = ("--data", flickr8k, "--fraction", "0.03", "--epochs", "1", "--device", "cpu", "-o", tmp_path / "model")
    trained = call("train", "flickr8k-vse-triplet", *words, "--json")
    assert trained.code == 0, trained.err
    dataset = ("--dataset", "flickr", "--captions", flickr8k / "Flickr8k.token.txt")
    dataset += ("--images", flickr8k / "Flickr_8k.testImages.txt")
    options = ("--metrics", "Hit@1 Hit@5 Hit@10 MedR Rsum", "--device", "cpu", "--json")
    run = call("evaluate", "--model", f"path:{tmp_path / 'model'}", *dataset, *options)
    assert run.code == 0, run.err
    values = {name: metric["mean"] for name, metric in run.json["metrics"].items()}
    assert values == pytest.approx(trained.json["test"], rel=0.05), "ranks of near ties may depend on the batches"
