"""Colours of levels, the same in all charts."""

from __future__ import annotations

import re

import numpy as np

from crosslens.analyze import difficulty, measure_filter_loss
from crosslens.report import LEVEL_COLOURS, SECTION_STYLE
from crosslens.report.forms.drawing import series_class
from crosslens.report.forms.theme import PAGE_STYLE
from crosslens.values import Dataset


def test_a_level_of_difficulty_has_one_colour_in_all_charts() -> None:
    dataset = Dataset.of({"a": ["x", "y"], "b": ["z"]})
    scores = {"first": np.array([[1, 0, 0], [0, 0, 0]]), "second": np.array([[1, 1, 0], [0, 0, 0]])}
    result = difficulty(dataset, scores, dict.fromkeys(scores, 1.0))
    assert result.counts() == {"easy": 1, "medium": 1, "hard": 1}
    classes = [series_class(number, level) for number, level in enumerate(LEVEL_COLOURS)]
    assert len(set(classes)) == 3
    assert not set(classes) & {series_class(number) for number in range(10)}
    for charted_result in (result, measure_filter_loss(result, "first")):
        for look in classes:
            assert f'{look}"' in charted_result.chart().svg
    for level, colour in LEVEL_COLOURS.items():
        assert f".chart .level-{level} .point.beyond {{ stroke: {colour}; }}" in SECTION_STYLE


def test_dark_colours_are_the_same_whether_the_system_or_the_reader_asks_for_them() -> None:
    by_system, by_reader = re.findall(r"color-scheme: dark; ([^}]+)", PAGE_STYLE)
    assert by_system == by_reader
