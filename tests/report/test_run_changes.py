"""The page of what one run changed against another: its content, and in a browser."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import crosslens as cl
from crosslens.core import Dataset
from crosslens.explanations import RunChanges, compare_queries
from crosslens.pipeline import Comparison, compare
from crosslens.report import run_changes_page
from tests.report.browser import Watched

pytest.importorskip("spacy", reason="pip install 'crosslens[language]'")
NASTY = "<b>a dog & \"two\" 'cats'</b>"


def compared(direction: str = "t2i") -> tuple[RunChanges, Comparison, Dataset]:
    captions = {f"img{n}": [f"a dog and {n} cats", NASTY] for n in range(6)}
    dataset = Dataset.of(captions, name="toys <1>")
    stream = np.random.default_rng(3)
    runs = [
        cl.evaluate(
            dataset, scores=stream.random((6, 12)).astype(np.float32) + weight * np.eye(6).repeat(2, axis=1),
            metrics="Rsum Hit@1 NCS[cider]@5", resamples=50, name=name,
        )
        for name, weight in (("tri<plet", 0.2), ("sam", 0.7))
    ]  # fmt: skip
    changes = compare_queries(*runs, dataset, direction, permutations=100)
    return changes, compare(*runs, permutations=100), dataset


@pytest.mark.parametrize("direction", ["t2i", "i2t"])
def test_the_page_says_what_changed(direction: str) -> None:
    changes, comparison, dataset = compared(direction)
    page = run_changes_page(changes, comparison, dataset)
    assert "<h1>What sam changed</h1>" in page
    assert f"▲ {changes.wins:,} won" in page
    assert f"▼ {changes.losses:,} lost" in page
    assert "NCS[cider]@5" in page
    assert "no graded metric" not in page
    assert "tri&lt;plet" in page
    assert "<b>a dog" not in page
    for change in (*changes.won, *changes.lost):
        assert f"{change.first.rank} → {change.second.rank}" in page
        assert f"φ {change.first.phi:.2f}" in page
    assert "pictures are missing" in page


def test_runs_without_graded_metrics_say_how_to_get_one() -> None:
    changes, comparison, dataset = compared()
    plain = Comparison(**{**vars(comparison), "results": comparison.results[:1]})
    assert "--metrics &quot;… NCS[cider]@10&quot;" in run_changes_page(changes, plain, dataset)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_browser(browser_page: Watched, tmp_path: Path, scheme: str) -> None:
    changes, comparison, dataset = compared()
    files = {}
    for number, image in enumerate(dataset.image_ids):
        Image.new("RGB", (80 + 40 * number, 60), (40 * number, 90, 200)).save(tmp_path / f"{image}.png")
        files[image] = str(tmp_path / f"{image}.png")
    (tmp_path / "page.html").write_text(run_changes_page(changes, comparison, dataset, files), encoding="utf-8")
    page = browser_page.page
    page.emulate_media(color_scheme=scheme)
    for width in (1300, 390):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(f"file://{tmp_path / 'page.html'}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator("article").count() == len(changes.won) + len(changes.lost)
        assert page.locator("article svg.frame").count() == 3 * page.locator("article").count()
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (colour == "rgb(255, 255, 255)") == (scheme == "light")
    assert not browser_page.complaints
    assert all(request.startswith(("file://", "data:")) for request in browser_page.requests)
