"""``crosslens analyze difficulty`` and ``filter-loss`` as a person calls them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

import crosslens as cl
from crosslens.analyze import read_difficulty
from crosslens.cli.flags import spread_values
from crosslens.data import write_dataset
from crosslens.pipeline import EvaluateOptions, InputOptions, Recipe, run_recipe
from tests.cli.conftest import Call
from tests.pipeline.small_world import world

MODELS = ("good", "fair", "poor")


def add_runs(folder: Path, name: str, images: int, seed: int) -> None:
    """Three models' runs over a dataset: vectors of its images and of its captions, which get noisier."""
    dataset, pictures, texts = world(images, seed=seed)
    write_dataset(dataset, folder / f"{name}.jsonl")
    random = np.random.default_rng(seed)
    for noise, model in enumerate(MODELS):
        home = folder / name / model
        home.mkdir(parents=True)
        np.save(home / "images.npy", pictures)
        np.save(home / "captions.npy", texts + noise * random.normal(size=texts.shape).astype(np.float32))
        recipe = Recipe(
            dataset=str(folder / f"{name}.jsonl"),
            inputs=InputOptions(
                image_embeddings=str(home / "images.npy"), caption_embeddings=str(home / "captions.npy")
            ),
            options=EvaluateOptions(resamples=0, metrics=("Hit@1",)),
        )
        run_recipe(recipe, folder / "runs" / name / model)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("difficulty")
    add_runs(folder, "photos", 20, 1)
    add_runs(folder, "web", 25, 2)
    return folder


def cosines(folder: Path) -> np.ndarray:
    images, captions = (np.load(folder / f"{side}.npy").astype(np.float64) for side in ("images", "captions"))
    return (images / np.linalg.norm(images, axis=1)[:, None]) @ (captions / np.linalg.norm(captions, axis=1)[:, None]).T


def runs_of(root: Path, name: str) -> list[Path]:
    return [root / "runs" / name / model for model in MODELS]


def test_a_panel_of_runs_calibrated_on_another_dataset(call: Call, root: Path, tmp_path: Path) -> None:
    table, kept = tmp_path / "difficulty.parquet", tmp_path / "thresholds.json"
    outcome = call(
        "analyze", "difficulty", "--runs", *runs_of(root, "photos"), "--calibration", *runs_of(root, "web"),
        "--negatives", "all", "-o", table, "--save-thresholds", kept, "--stability", "2", "--repeats", "3", "--json",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    photos, web = cl.load_dataset(str(root / "photos.jsonl")), cl.load_dataset(str(root / "web.jsonl"))
    votes = np.zeros(len(photos.caption_ids), int)
    for model in MODELS:
        scores = cosines(root / "web" / model)
        is_own = np.arange(len(web.image_ids))[:, None] == web.caption_image
        threshold = cl.match_threshold(scores.ravel(), is_own.ravel())
        assert outcome.json["thresholds"][model] == pytest.approx(threshold, abs=1e-6)
        here = cosines(root / "photos" / model)[photos.caption_image, np.arange(len(votes))]
        votes += here >= outcome.json["thresholds"][model]
    read = read_difficulty(table)
    assert read.table["votes"].to_list() == votes.tolist()
    columns = ["caption", "image", "votes", "models", "difficulty"]
    assert read.table.columns == [*columns, *(f"score[{m}]" for m in MODELS), *(f"vote[{m}]" for m in MODELS)]
    assert read.table.select(pl.sum_horizontal(pl.col(r"^vote\[.*$"))).to_series().to_list() == votes.tolist()
    assert [entry["model"] for entry in outcome.json["left_out"]] == list(MODELS)
    assert {entry["role"] for entry in outcome.json["left_out"]} == {"strongest", "weakest", ""}
    assert all(0 <= entry["changed"] <= 1 and sum(entry["shares"].values()) == 1 for entry in outcome.json["left_out"])
    assert outcome.json["levels"]["easy"]["pairs"] == int((votes == 3).sum())
    assert outcome.json["stability"]["size"] == 2
    again = call("analyze", "difficulty", "--runs", *runs_of(root, "photos"), "--thresholds", kept, "--json")
    assert again.json["levels"] == outcome.json["levels"]
    assert again.json["thresholds"] == outcome.json["thresholds"]


def test_matrices_numbers_and_a_mapping(call: Call, root: Path, tmp_path: Path) -> None:
    for model in MODELS:
        np.save(tmp_path / f"{model}.npy", cosines(root / "photos" / model))
    words = [f"{model}={tmp_path / model}.npy" for model in MODELS]
    outcome = call(
        "analyze", "difficulty", "--dataset", root / "photos.jsonl", "--runs", *words, "--calibration", "good=0.2",
        "fair=0.3", "--calibration", "poor=-1", "--tie-breaker", "poor", "--mapping", "easy=2 hard=0-1", "--json",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert outcome.json["thresholds"] == {"good": 0.2, "fair": 0.3, "poor": -1.0}
    assert outcome.json["models"] == ["good", "fair"]
    assert list(outcome.json["levels"]) == ["easy", "hard"]


def test_text_and_page(call: Call, root: Path, tmp_path: Path) -> None:
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for image in cl.load_dataset(str(root / "photos.jsonl")).image_ids:
        Image.new("RGB", (30, 20), "red").save(pictures / image, "JPEG")
    first = tmp_path / "first.csv"
    call("analyze", "difficulty", "--runs", *runs_of(root, "web"), "--calibration", "self", "-o", first)
    outcome = call(
        "analyze", "difficulty", "--runs", *runs_of(root, "photos"), "--calibration", "self", "--beside", first,
        "--write", tmp_path / "page.html", "--write", tmp_path / "charts.svg", "--image-folder", pictures,
        "--show", "2",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    lines = outcome.out.splitlines()
    assert lines[0].split() == ["dataset", "pairs", "easy", "medium", "hard"]
    assert lines[1].startswith("photos")
    assert lines[2].startswith("first")
    assert "Thresholds of highest F1 between" in outcome.out
    assert outcome.out.count("of 3 votes,") == 2
    assert max(map(len, outcome.out.splitlines())) <= 80
    page = (tmp_path / "page.html").read_text()
    assert page.count("data:image/webp;base64,") > 2
    assert len(re.findall(r"<figcaption>\d of 3 votes,", page)) == 60, "more than a terminal shows"
    assert "✗ poor: " in page
    assert "also: " not in page, "the picture says it"
    for file in ("page.html", "charts.svg"):
        for title in ("Difficulty of pairs", "Precision and recall"):
            assert title in (tmp_path / file).read_text()


def test_pairs_of_one_model_only(call: Call, root: Path, tmp_path: Path) -> None:
    table, page = tmp_path / "levels.parquet", tmp_path / "page.html"
    runs = runs_of(root, "photos")
    call("analyze", "difficulty", "--runs", runs[1], "--calibration", "self", "-o", table)
    words = ("analyze", "difficulty", "--runs", runs[0], runs[2], "--calibration", "self", "--disagree", "good", "poor")
    outcome = call(*words, "--levels", table, "--json", "--show", "2", "-o", tmp_path / "two.csv")
    assert outcome.code == 0, outcome.err
    scores = pl.read_csv(tmp_path / "two.csv")
    matches = {
        model: scores[f"score[{model}]"].to_numpy() >= outcome.json["thresholds"][model] for model in MODELS[::2]
    }
    expected = int((matches["good"] & ~matches["poor"]).sum()), int((matches["poor"] & ~matches["good"]).sum())
    differ = outcome.json["disagreements"]
    assert (differ["good"]["pairs"], differ["poor"]["pairs"]) == expected
    assert expected[0] > 0
    assert sum(differ["good"]["levels"].values()) == expected[0]
    votes = [row["votes"] for row in differ["good"]["hardest"]]
    assert votes == sorted(votes)
    assert len(votes) == 2
    text = call(*words, "--levels", table, "--write", page, "--show", "1")
    assert "Only good matches:" in text.out
    assert "Hardest pairs" not in text.out
    assert max(map(len, text.out.splitlines())) <= 80
    assert page.read_text().count("of 1 votes, ") == min(60, expected[0]) + min(60, expected[1])
    assert "name two" in call(*words[:-1]).err
    assert "--levels without --disagree" in call(*words[:-3], "--levels", table).err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["{photos}/good", "{web}/fair", "--calibration", "self"], "is over another dataset than"),
        (["{photos}/good", "{photos}/good", "--calibration", "self"], "two models of the panel are called 'good'"),
        (["{photos}/good"], "no thresholds"),
        (["{photos}/good", "--calibration", "poor=1"], "no model of the panel is called 'poor'"),
        (["{photos}/good", "--calibration", "0.3"], "does not say whose it is"),
        (["{photos}/good", "{photos}/fair", "--calibration", "good=1"], "no threshold for fair"),
        (["{photos}/nothing", "--calibration", "self"], "no such folder"),
        (["{photos}/good", "--calibration", "self", "--mapping", "easy=1"], "0 of 1 votes belong to no level"),
        (["{photos}/good", "--calibration", "self", "--stability", "1"], "panels of 1 of 1 models"),
        (["{photos}/good", "--calibration", "self", "--write", "{out}/page.xls"], "unknown form .xls"),
        (["a=scores.npy", "--calibration", "a=1"], "does not say which images and captions it scores"),
    ],
)
def test_what_does_not_fit_is_one_clear_error_and_writes_nothing(
    call: Call, root: Path, tmp_path: Path, words: list[str], problem: str
) -> None:
    places = {"photos": root / "runs" / "photos", "web": root / "runs" / "web", "out": tmp_path}
    arguments = [word.format(**places) for word in words]
    outcome = call("analyze", "difficulty", "--runs", *arguments, "-o", tmp_path / "out.parquet")
    assert outcome.code == 2 or (outcome.code == 3 and "no such folder" in problem), outcome.err
    assert problem in outcome.err
    assert outcome.err.count("error:") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_calibration_set_with_one_class_is_one_clear_error(call: Call, root: Path, tmp_path: Path) -> None:
    write_dataset(cl.Dataset.of({"a": ["x", "y"]}), tmp_path / "single.jsonl")
    np.save(tmp_path / "ones.npy", np.ones((1, 2)))
    outcome = call(
        "analyze", "difficulty", "--runs", root / "runs" / "photos" / "good", "--calibration",
        f"good={tmp_path / 'ones.npy'}", "--calibration-dataset", tmp_path / "single.jsonl",
        "-o", tmp_path / "out.parquet",
    )  # fmt: skip
    assert outcome.code == 3
    assert "no threshold for good from single: no mismatch to choose a threshold by" in outcome.err
    assert not (tmp_path / "out.parquet").exists()


def test_filter_loss(call: Call, root: Path, tmp_path: Path) -> None:
    table, web = tmp_path / "d.parquet", tmp_path / "web.npy"
    call("analyze", "difficulty", "--runs", *runs_of(root, "photos"), "--calibration", "self", "-o", table)
    np.save(web, np.linspace(-1, 1, 101))
    outcome = call(
        "analyze", "filter-loss", table, "--model", "good", "--keep", "0.9", "0.4", "--threshold", "0.28",
        "--web-scores", web, "--write", tmp_path / "loss.html", "-o", tmp_path / "loss.csv",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert outcome.out.splitlines()[0].split() == ["threshold", "web", "kept", "all", "easy", "medium", "hard"]
    written = pl.read_csv(tmp_path / "loss.csv")
    assert written["threshold"].unique().sort().to_list() == pytest.approx([-0.8, 0.2, 0.28])
    page = (tmp_path / "loss.html").read_text()
    assert "throws away" in page
    assert page.count('<svg class="chart"') == 1
    assert json.loads(call("analyze", "filter-loss", table, "--model", "good", "--json").out)["web_pairs"] == 0
    wrong = call("analyze", "filter-loss", table, "--keep", "0.9", "--model", "good")
    assert "a share of web pairs to keep, without their scores" in wrong.err


def test_values_after_one_flag_are_read_as_if_it_were_repeated() -> None:
    from crosslens.cli.app import _command_of

    command = _command_of(["analyze", "difficulty"])
    words = ["analyze", "difficulty", "--runs", "a", "b", "--json", "--beside", "c", "--runs", "d", "--seed", "1"]
    spread = ["analyze", "difficulty", "--runs", "a", "--runs", "b", "--json", "--beside", "c", "--runs", "d"]
    assert spread_values(words, command) == [*spread, "--seed", "1"]
    assert spread_values(["show", "a", "b"], _command_of(["show"])) == ["show", "a", "b"]
