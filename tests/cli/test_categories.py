"""``crosslens analyze categories`` as a person calls it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from crosslens.analyze import category_results
from crosslens.cli import main
from crosslens.core import Bars
from crosslens.data import write_dataset
from crosslens.values import Dataset, Run

from .conftest import Call

IMAGES = 12


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset, two runs from score matrices, and levels of difficulty."""
    tmp_path = tmp_path_factory.mktemp("categories")
    dataset = Dataset.of({f"i{n}.jpg": [f"picture {n}", f"scene {n}", f"view {n}"] for n in range(IMAGES)})
    dataset.save(tmp_path / "data")
    random = np.random.default_rng(0)
    positives = (dataset.caption_image, np.arange(3 * IMAGES))
    for name, strength in (("strong", 1.5), ("weak", 0.5)):
        scores = random.normal(size=(IMAGES, 3 * IMAGES)).astype(np.float32)
        scores[positives] += strength * (3 - positives[1] % 3)
        np.save(tmp_path / f"{name}.npy", scores)
        words = ("evaluate", "--dataset", tmp_path / "data", "--scores", tmp_path / f"{name}.npy")
        assert main([str(word) for word in (*words, "-o", tmp_path / "runs" / name, "--resamples", "20")]) == 0
    levels = ["easy", "medium", "hard"] * IMAGES
    pl.DataFrame({"caption": dataset.caption_ids, "difficulty": levels, "words": [2] * len(levels)}).write_parquet(
        tmp_path / "levels.parquet"
    )
    return tmp_path


@pytest.fixture
def study(prepared: Path, tmp_path: Path) -> Path:
    """The same in a folder of its own."""
    return Path(shutil.copytree(prepared, tmp_path / "study"))


def test_a_panel_in_the_terminal_and_in_files(study: Path, call: Call) -> None:
    words = ("analyze", "categories", study / "runs/strong", study / "runs/weak", "--difficulty")
    words = (*words, study / "levels.parquet", "--metrics", "Hit@1 MedR[all]", "--resamples", "20")
    outcome = call(*words, "--negatives", "2", "-o", study / "t.csv", "--write", study / "p.html")
    assert outcome.code == 0, outcome.err
    assert max(map(len, outcome.out.splitlines())) <= 80
    assert "text → image, of all queries" in outcome.out
    assert "AUPRC    strong" in outcome.out
    assert "mean" in outcome.out
    assert "24 captions of other images, 2 per image" in " ".join(outcome.out.split())
    table = pl.read_csv(study / "t.csv")
    assert set(table["model"]) == {"strong", "weak"}
    shares = table.filter(pl.col("direction") == "t2i", pl.col("metric") == "Hit@1", pl.col("model") == "weak")
    parts = shares.filter(pl.col("denominator") == "all")["value"].sum()
    assert parts == pytest.approx(shares.filter(pl.col("category") == "total")["value"][0])
    assert "mean ± sd" in (study / "p.html").read_text()
    assert call(*words, "-o", study / "t.csv").code == 5
    assert call(*words, "--write", study / "t.tex", "--write", study / "w.csv").code == 0
    latex = (study / "t.tex").read_text()
    assert "% text → image, of all queries" in latex
    assert re.search(r"Hit@1 & strong & [0-9.]+ & .*\n & weak & ", latex)
    written = pl.read_csv(study / "w.csv")
    assert written.select("metric", "model").rows()[1] == ("Hit@1", "weak"), "a name is in every row of data"


def test_charts_hold_the_figures_of_the_tables(study: Path, call: Call) -> None:
    run = Run.load(study / "runs/weak")
    result = category_results({"weak": run, "other": run}, study / "levels.parquet", metrics=["Hit@1"], resamples=20)
    (section,) = result.sections()
    left, right = section.charts
    assert isinstance(right, Bars)
    assert (left.title, right.title) == ("Hit@1, image → text", "Hit@1, text → image")
    assert [line.name for line in right.series] == ["weak", "other", "mean ± sd"]
    for line in right.series[:2]:
        expected = [
            result.value("weak", "Hit@1", name, direction="t2i", denominator="category") for name in result.categories
        ]
        assert [figure.value for figure in line.figures] == expected
    for mean, figure in zip(right.series[2].figures, right.series[0].figures, strict=True):
        assert (mean.low, mean.value, mean.high) == (figure.value,) * 3, "equal models have no spread"


def test_a_narrow_terminal_repeats_the_names_of_rows(study: Path) -> None:
    run = Run.load(study / "runs/weak")
    result = category_results({"weak": run, "other": run}, study / "levels.parquet", metrics=["Hit@1"], resamples=0)
    blocks = result.text(34).split("\n\n")
    headers = [block.splitlines()[-5] for block in blocks if "weak" in block]
    assert [header.split() for header in headers[:2]] == [
        ["metric", "model", "total", "easy"], ["metric", "model", "medium", "hard"]
    ]  # fmt: skip
    assert max(map(len, "\n".join(blocks).splitlines())) <= 34


def test_json_holds_fractions_and_the_panel(study: Path, call: Call) -> None:
    words = ("analyze", "categories", study / "runs/strong", study / "runs/weak", "--difficulty")
    result = call(*words, study / "levels.parquet", "--metrics", "Hit@5", "--resamples", "0", "--json").json
    assert result["categories"] == ["easy", "medium", "hard"]
    assert all(0 <= row["value"] <= 1 for row in result["retrieval"])
    assert {row["models"] for row in result["panel"]} == {2}
    assert result["classification"] == []


def test_rejected_captions_with_scores_in_tables(study: Path, call: Call) -> None:
    levels = pl.read_parquet(study / "levels.parquet").with_columns(pl.lit(0.8).alias("score[strong]"))
    levels.write_parquet(study / "scored.parquet")
    rejected = {"image": [f"i{n}" for n in range(IMAGES)], "text": ["wrong"] * IMAGES, "score[strong]": [0.2] * IMAGES}
    pl.DataFrame(rejected).write_csv(study / "rejected.csv")
    words = ("analyze", "categories", study / "runs/strong", "--rejected", study / "rejected.csv", "--resamples", "20")
    result = call(*words, "--difficulty", study / "scored.parquet", "--json").json
    assert {row["value"] for row in result["classification"]} == {1.0}
    assert result["negatives"] == "rejected captions, at most 1 per image"
    outcome = call(*words, "--difficulty", study / "levels.parquet")
    assert "names no model that could score the rejected captions" in outcome.err


def test_mistakes_are_explained(study: Path, call: Call) -> None:
    words = ("analyze", "categories", study / "runs/strong", "--difficulty", study / "levels.parquet")
    assert "unknown column 'colour'" in call(*words, "--by", "colour").err
    assert "end the name in .parquet or .csv" in call(*words, "-o", study / "t.xlsx").err
    assert "pass a number from 1, or all" in call(*words, "--negatives", "none").err
    assert "unknown area 'circle'" in call(*words, "--area", "circle").err
    assert "neither runs nor scored pairs" in call("analyze", "categories", *words[3:]).err
    no_ids = study / "no_ids.csv"
    no_ids.write_text("level,difficulty\nx,easy\n")
    assert f"{no_ids}: neither a column 'caption' nor 'image'" in call(*words[:4], no_ids).err
    other_table = study / "other.csv"
    other_table.write_text("caption,difficulty\nx,easy\n")
    assert "no pair of the run 'strong' has a difficulty" in call(*words[:4], other_table).err


def test_runs_over_other_captions_with_the_same_ids(study: Path, call: Call) -> None:
    """As two drawn datasets of one size have them."""
    dataset = Dataset.of({f"i{n}.jpg": [f"other {n}", f"scene {n}", f"view {n}"] for n in range(IMAGES)})
    dataset.save(study / "others")
    words = ("evaluate", "--dataset", study / "others", "--scores", study / "weak.npy", "--resamples", "0")
    assert call(*words, "-o", study / "runs" / "other").code == 0
    runs = study / "runs" / "strong", study / "runs" / "other"
    for command in (
        ("gallery", *runs, "--write", study / "page.html"),
        ("analyze", "categories", *runs, "--difficulty", study / "levels.parquet"),
        ("analyze", "difficulty", "--runs", *runs, "--calibration", "self"),
    ):
        outcome = call(*command)
        assert outcome.code == 2, command
        assert f"{runs[1]} is over another dataset than {runs[0]}" in outcome.err, command
        assert not (study / "page.html").exists()


def test_runs_over_the_same_captions_read_from_another_file(study: Path, call: Call) -> None:
    """Their fingerprints may differ: one knows objects or files that the other does not."""
    write_dataset(Dataset.load(study / "data"), study / "copy.jsonl")
    words = ("evaluate", "--dataset", study / "copy.jsonl", "--scores", study / "weak.npy", "--resamples", "0")
    assert call(*words, "-o", study / "runs" / "copy").code == 0
    assert call("gallery", study / "runs" / "strong", study / "runs" / "copy").code == 0
