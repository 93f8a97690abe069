"""Colours of levels, the same in all figures."""

from __future__ import annotations

import numpy as np
import pytest

from crosslens.analyze import measure_difficulty, measure_filter_loss
from crosslens.core import Dataset
from crosslens.report import LEVEL_COLOURS
from crosslens.report.plots.filter_loss import filter_loss_figure
from crosslens.report.plots.style import COLOURS, category_colours

pytest.importorskip("plotly", reason="pip install 'crosslens[plot]'")


def test_a_level_of_difficulty_has_one_colour_in_all_figures() -> None:
    dataset = Dataset.of({"a": ["x", "y"], "b": ["z"]})
    scores = {"first": np.array([[1, 0, 0], [0, 0, 0]]), "second": np.array([[1, 1, 0], [0, 0, 0]])}
    result = measure_difficulty(dataset, scores, dict.fromkeys(scores, 1.0))
    assert result.counts() == {"easy": 1, "medium": 1, "hard": 1}
    figure = filter_loss_figure(measure_filter_loss(result, "first"))
    for level, colour in LEVEL_COLOURS.items():
        traces = [trace for trace in figure.data if trace.name == level]
        assert traces
        for trace in traces:
            assert trace.line.color == colour
    assert category_colours(("hard", "odd", "(none)"), "categories") == {
        "hard": LEVEL_COLOURS["hard"], "odd": COLOURS[0], "(none)": COLOURS[1]
    }  # fmt: skip
