"""The page of what one run changed against another: its content, and in a browser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import crosslens as cl
from crosslens.comparisons import Comparison, compare
from crosslens.core import Shares
from crosslens.explanations import compare_queries
from crosslens.report.forms import page as form
from crosslens.values import Dataset
from tests.report.browser import Watched

pytest.importorskip("spacy", reason="pip install 'crosslens[language]'")
NASTY = "<b>a dog & \"two\" 'cats'</b>"


def compared(direction: str = "t2i") -> Comparison:
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
    return replace(compare(*runs, permutations=100), changes=changes)


@pytest.mark.parametrize("direction", ["t2i", "i2t"])
def test_the_page_says_what_changed(direction: str) -> None:
    comparison = compared(direction)
    changes = comparison.changes
    assert changes is not None
    page = comparison.content(".html").decode()
    assert "<h2>What sam changed</h2>" in page
    assert "NCS[cider]@5" in page
    assert "no graded metric" not in page
    assert "tri&lt;plet" in page
    assert "<b>a dog" not in page
    for change in (*changes.won, *changes.lost):
        assert f"{change.first.rank} → {change.second.rank}" in page
        assert f"φ {change.first.phi:.2f}" in page
    assert "pictures are missing" in page


def test_a_terminal_has_the_figures_and_the_first_queries() -> None:
    comparison = compared()
    changes = comparison.changes
    assert changes is not None
    text = comparison.text(80)
    equal = changes.queries - changes.wins - changes.losses
    assert f"{changes.wins} won, {equal} equal, {changes.losses} lost." in " ".join(text.split())
    assert comparison.verdicts[0].split(".")[0] in " ".join(text.split())
    assert "What sam changed" in text
    listed = [change.query for change in changes.won if f"{change.query}, rank" in text]
    assert listed == [change.query for change in changes.won[:3]]
    assert len(changes.won) > 3
    (balance,) = next(section for section in changes.sections()).charts
    assert isinstance(balance, Shares)
    assert balance.counts == ((changes.wins, equal, changes.losses),)


def test_runs_without_graded_metrics_say_how_to_get_one() -> None:
    comparison = compared()
    plain = replace(comparison, results=comparison.results[:1])
    assert "--metrics &quot;… NCS[cider]@10&quot;" in plain.content(".html").decode()


def test_pictures_of_a_page_share_its_room(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each query has its own cards: the pictures of all of them fit together, or are made smaller."""
    comparison = compared()
    changes = comparison.changes
    assert changes is not None
    stream = np.random.default_rng(0)
    files = {image: str(tmp_path / f"{image}.png") for image in changes.images}
    for file in files.values():
        Image.fromarray(stream.integers(0, 255, (320, 320, 3), np.uint8)).save(file)
    with_pictures = replace(comparison, changes=replace(changes, pictures=files))
    bare = len(comparison.content(".html"))
    assert len(with_pictures.content(".html")) - bare > 1_000_000
    monkeypatch.setattr(form, "_BUDGET", 500_000)
    assert len(with_pictures.content(".html")) - bare < 520_000


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_browser(browser_page: Watched, tmp_path: Path, scheme: str) -> None:
    comparison = compared()
    changes = comparison.changes
    assert changes is not None
    files = {}
    for number, image in enumerate(changes.images):
        Image.new("RGB", (80 + 40 * number, 60), (40 * number, 90, 200)).save(tmp_path / f"{image}.png")
        files[image] = str(tmp_path / f"{image}.png")
    replace(comparison, changes=replace(changes, pictures=files)).save(tmp_path / "page.html")
    page = browser_page.page
    page.emulate_media(color_scheme=scheme)
    queries = len(changes.won) + len(changes.lost)
    for width in (1300, 390):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(f"file://{tmp_path / 'page.html'}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator(".hits").count() == queries
        assert page.locator(".hits img").count() == 3 * queries
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (colour == "rgb(255, 255, 255)") == (scheme == "light")
    assert not browser_page.complaints
    assert all(request.startswith(("file://", "data:")) for request in browser_page.requests)
