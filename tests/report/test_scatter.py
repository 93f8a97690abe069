"""Agreement as a figure: the dots are the judged pairs, the line is what people said on average."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import crosslens as cl
from crosslens.core.errors import ConflictError, MissingExtraError, UsageError
from crosslens.data import Judgements

pytest.importorskip("plotly", reason="pip install 'crosslens[plot]'")

from crosslens.report.plots import panels

NASTY = "</script><b>φ</b>"


def found(n: int = 300, names: tuple[str, ...] = ("first", NASTY)) -> object:
    dataset = cl.Dataset.of({f"i{image}": [f"caption {image} {number}" for number in range(2)] for image in range(40)})
    random = np.random.default_rng(0)
    rows = random.choice(40 * 80, n, replace=False)
    scores = random.integers(1, 5, n)
    people = Judgements.of(
        dataset,
        [dataset.image_ids[row // 80] for row in rows],
        [dataset.caption_ids[row % 80] for row in rows],
        scores.tolist(),
    )
    return cl.agreement(dataset, people, {name: scores + random.normal(size=n) for name in names}, resamples=20)


def test_dots_are_the_judged_pairs() -> None:
    agreement = found()
    drawn = panels.scatter_figure(agreement)
    dots = [trace for trace in drawn.data if trace.mode == "markers"]
    assert len(dots) == 4
    drawn_values = np.sort(np.concatenate([dots[0].x, dots[1].x]))
    assert drawn_values == pytest.approx(np.sort(agreement.values["first"]), abs=1e-4)
    heights = np.concatenate([dots[0].y, dots[1].y])
    assert np.abs(heights - np.round(heights)).max() < 0.5
    lines = [trace for trace in drawn.data if trace.mode != "markers"]
    assert all(np.corrcoef(trace.x, trace.y)[0, 1] > 0.8 for trace in lines)


def test_many_pairs_are_thinned_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panels, "_MOST_DOTS", 50)
    drawn = panels.scatter_figure(found(names=("first",)))
    counts = [len(trace.x) for trace in drawn.data if trace.mode == "markers"]
    assert max(counts) == 50
    assert f"{sum(counts)} of them drawn" in drawn.layout.title.subtitle.text


def test_the_page_stands_alone(tmp_path: Path) -> None:
    agreement = found()
    page = panels.write_scatter(agreement, tmp_path / "agreement.html")
    text = page.read_text(encoding="utf-8")
    assert NASTY not in text
    assert "&lt;/script&gt;&lt;b&gt;φ" in text
    assert f"{agreement.figure('first').mean:.3f} [" in text
    assert panels.write_scatter(agreement, page) == page
    with pytest.raises(ConflictError):
        panels.write_scatter(found(200), page)
    with pytest.raises(UsageError, match="end the name in"):
        panels.write_scatter(agreement, tmp_path / "agreement.txt")


def test_nothing_to_draw() -> None:
    with pytest.raises(UsageError, match="no φ to draw"):
        panels.scatter_figure(found(names=()))


def test_without_plotly_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("plotly", "plotly.graph_objects", "plotly.subplots"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match="plot"):
        panels.scatter_figure(found())
