"""``crosslens analyze discriminability`` as a person calls it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.analyze import compare_discriminability
from crosslens.core import Histogram, Lines

from .conftest import Call


def words(study: Path, model: str = "model-a") -> list[str | Path]:
    return [
        *("analyze", "discriminability", "--dataset", f"coco captions={study / 'captions.json'}"),
        *("--image-embeddings", study / f"{model}-img.npy", "--caption-embeddings", study / f"{model}-cap.npy"),
    ]


def settings() -> list[str]:
    return ["--k", "5", "--temperature", "0.1", "--resamples", "50"]


def test_one_dataset(study: Path, tmp_path: Path, call: Call) -> None:
    outcome = call(*words(study), *settings(), "-o", tmp_path / "dis.csv", "--show", "2")
    assert outcome.code == 0
    assert "dis(t), nats" in outcome.out
    assert "of ln 5 = 1.61" in outcome.out
    assert "least discriminable" in outcome.out
    assert max(map(len, outcome.out.splitlines())) <= 80
    table = pl.read_csv(tmp_path / "dis.csv")
    dataset = cl.load_dataset("coco", captions=str(study / "captions.json"))
    vectors = {side: np.load(study / f"model-a-{file}.npy") for side, file in (("images", "img"), ("captions", "cap"))}
    expected = cl.analyze.dataset_discriminability(dataset, k=5, temperature=0.1, **vectors)
    assert table["dis"].to_list() == pytest.approx(expected.of("dis").tolist())
    assert table.columns[:4] == ["dataset", "caption", "image", "dis"]


def test_two_side_by_side(study: Path, call: Call) -> None:
    both = [*words(study), *words(study, "model-b")[2:], *settings()]
    outcome = call(*both)
    assert "Change against" in outcome.out
    assert "paired by image" in outcome.out
    content = call(*both, "--json", "--show", "1").json
    first, second = content["datasets"]
    assert first["k"] == second["k"] == 5
    assert first["features"]["dis"]["change"] is None
    difference = second["features"]["dis"]["mean"] - first["features"]["dis"]["mean"]
    assert second["features"]["dis"]["change"]["difference"] == pytest.approx(difference)
    assert len(first["least"]) == len(first["most"]) == 1
    assert first["least"][0]["dis"] >= first["most"][0]["dis"]


def test_the_page_has_the_histogram_and_its_numbers(study: Path, tmp_path: Path, call: Call) -> None:
    page = tmp_path / "dis.html"
    assert call(*words(study), *settings(), "--write", page).code == 0
    text = page.read_text(encoding="utf-8")
    assert "How well captions single out an image" in text
    assert "least discriminable" in text
    assert "kept at η = 0.8" in text
    assert text.count('<svg class="chart"') == 1


def test_the_chart_and_the_bars_count_every_caption(study: Path) -> None:
    dataset = cl.load_dataset("coco", captions=str(study / "captions.json"))
    vectors = {side: np.load(study / f"model-a-{file}.npy") for side, file in (("images", "img"), ("captions", "cap"))}
    measured = cl.analyze.dataset_discriminability(dataset, k=5, temperature=0.1, **vectors)
    alone = compare_discriminability([measured], resamples=0, permutations=1)
    (chart,) = [chart for section in alone.sections() for chart in section.charts]
    assert isinstance(chart, Histogram)
    assert sum(chart.counts) == len(dataset.caption_ids)
    assert chart.band is not None
    assert chart.band[:2] == measured.band
    lines = [line for line in alone.text().splitlines() if " to " in line and "█" in line]
    counts = [count for count in chart.counts if count]
    assert [int(line.replace("·", "").split()[3]) for line in lines] == counts
    assert max(line.count("█") for line in lines) == 40
    marked = [line for line in alone.text().splitlines() if line[4:8] == " to " and line[12:14] == " ·"]
    assert len(marked) == 16, "η = 0.8 keeps the middle four fifths"
    lines_of_both = next(iter(compare_discriminability([measured] * 2, resamples=0, permutations=1).sections())).charts
    assert isinstance(lines_of_both[0], Lines)
    assert sum(figure.value or 0 for figure in lines_of_both[0].series[1].figures) == pytest.approx(1)


@pytest.mark.parametrize(
    ("extra", "problem"),
    [
        (["-o", "dis.txt"], "neither .parquet nor .csv"),
        (["--write", "dis.doc"], "unknown form .doc"),
        (["--k", "40"], "40 neighbours among 39 other items"),
        (["--model", "tiny"], "both embeddings and a model"),
        (["--caption-embeddings", "more.npy"], "--caption-embeddings is given 2 times for 1 datasets"),
    ],
)
def test_bad_input(study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call, extra: list[str],
                   problem: str) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    outcome = call(*words(study), "--temperature", "0.1", *extra)
    assert outcome.code in (2, 3)
    assert problem in outcome.err
    assert not list(tmp_path.iterdir())


def test_without_a_temperature_one_is_proposed(study: Path, call: Call) -> None:
    outcome = call(*words(study), "--k", "5")
    assert outcome.code == 2
    assert "pass --temperature" in outcome.err
