"""``crosslens analyze scorers`` as a person calls it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from crosslens.analyze import compare_scorers
from crosslens.core import Lines, Scatter
from crosslens.values import Dataset

from .conftest import Call

IMAGES = 12


@pytest.fixture
def study(tmp_path: Path, call: Call) -> Path:
    """A dataset with pictures, a run from a score matrix, a table of other scores, and levels of difficulty."""
    image = pytest.importorskip("PIL.Image")
    texts = {f"i{n}.png": [f"a red square {n}", f"the red square {n}", f"view <{n}>"] for n in range(IMAGES)}
    dataset = Dataset.of(texts, images={"file": list(texts)})
    dataset.save(tmp_path / "data")
    for name in texts:
        image.new("RGB", (20, 16), "red").save(tmp_path / "data" / name)
    random = np.random.default_rng(0)
    np.save(tmp_path / "cosines.npy", random.uniform(-0.2, 0.4, (IMAGES, 3 * IMAGES)).astype(np.float32))
    words = ("evaluate", "--dataset", tmp_path / "data", "--scores", tmp_path / "cosines.npy")
    assert call(*words, "-o", tmp_path / "runs/clip", "--resamples", "0").code == 0
    captions = pl.DataFrame({"caption": dataset.caption_ids, "image": dataset.captions["image"]})
    captions.with_columns(pl.Series("score", random.random(3 * IMAGES))).write_csv(tmp_path / "vqa.csv")
    captions.with_columns(pl.Series("difficulty", ["easy", "medium", "hard"] * IMAGES)).write_csv(
        tmp_path / "levels.csv"
    )
    return tmp_path


def test_two_scorers_in_the_terminal_and_in_files(study: Path, call: Call) -> None:
    words = ("analyze", "scorers", study / "runs/clip", "--scores", study / "vqa.csv", "--difficulty")
    words = (*words, study / "levels.csv", "--resamples", "20", "--form", "clipscore")
    outcome = call(*words, "-o", study / "s.csv", "--write", study / "page.html", "--show", "40")
    assert outcome.code == 0, outcome.err
    for expected in ("clip and vqa: 36 pairs", "Scores by difficulty", "Spearman", "Bland–Altman: vqa − clip"):
        assert expected in outcome.out
    table = pl.read_csv(study / "s.csv")
    cosines = np.load(study / "cosines.npy")[np.arange(36) // 3, np.arange(36)]
    np.testing.assert_allclose(table["score[clip]"], np.maximum(100 * cosines.astype(float), 0), rtol=1e-6)
    page = (study / "page.html").read_text()
    assert page.count("<figure><img") == 36
    assert page.count('<svg class="chart"') == 4
    assert "data:image/webp;base64," in page
    assert "view &lt;0&gt;" in page
    assert "Bland–Altman, rank" in page


def test_charts_hold_the_scores(study: Path) -> None:
    dataset = Dataset.load(study / "data")
    scores = {"one": np.arange(36.0), "other": np.arange(36.0)[::-1]}
    result = compare_scorers(dataset, scores, study / "levels.csv", resamples=0)
    section = next(iter(result.sections()))
    first, second, scatter, agreement = section.charts
    assert isinstance(first, Lines)
    assert [line.name for line in first.series] == ["easy", "medium", "hard"]
    for line in first.series:
        assert sum(figure.value or 0 for figure in line.figures) == pytest.approx(1)
    assert isinstance(scatter, Scatter)
    assert {point for cloud in scatter.clouds for point in cloud.points} == {(n, 35.0 - n) for n in range(36)}
    assert isinstance(agreement, Scatter)
    limits = [result.agreement["rank"].mean.mean, result.agreement["rank"].lower.mean]
    assert [trend.points[0][1] for trend in agreement.trends[:2]] == limits
    assert second.title == "other"


def test_phi_and_json(study: Path, call: Call) -> None:
    words = ("analyze", "scorers", "--dataset", study / "data", "--phi", "cider", "--scores", study / "vqa.csv")
    result = call(*words, "--resamples", "0", "--json", "--show", "3").json
    assert (result["first"], result["second"], result["pairs"]) == ("vqa", "cider", 36)
    assert set(result["bland_altman"]) == {"raw", "z", "rank", "range"}
    assert len(result["disagreements"]) == 3


def test_mistakes_are_explained(study: Path, call: Call) -> None:
    words = ("analyze", "scorers", study / "runs/clip")
    assert "1 of two scorers" in call(*words).err
    assert "1 of two scorers" in call("analyze", "scorers", "--phi", "cider").err
    two = (*words, "--scores", study / "vqa.csv")
    assert "neither .parquet nor .csv" in call(*two, "-o", study / "s.txt").err
    assert "unknown form .xls" in call(*two, "--write", study / "s.xls").err
    assert "form" in call(*two, "--form", "sine").err
    (study / "bad.csv").write_text("caption,score\n1,none\n")
    assert "the score is 'none'" in call(*words, "--scores", study / "bad.csv").err
    assert "neither runs nor a dataset" in call("analyze", "scorers", "--phi", "cider", "--phi", "spice").err
