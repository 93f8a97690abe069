"""Bars of a terminal."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from crosslens.report.text.runs import text_bar

EIGHTHS = {part: eighths for eighths, part in enumerate("▏▎▍▌▋▊▉█", start=1)}


@given(st.floats(0, 1), st.integers(1, 60))
def test_a_bar_is_as_long_as_its_share(share: float, room: int) -> None:
    drawn = text_bar(share, room)
    length = sum(EIGHTHS[part] for part in drawn) / 8
    assert abs(length - share * room) <= 1 / 8
    assert bool(drawn) == (share > 0), "what is above nothing shows"
    assert len(drawn) <= room


@pytest.mark.parametrize("nothing", [0.0, -0.5, math.nan])
def test_nothing_has_no_bar(nothing: float) -> None:
    assert text_bar(nothing, 20) == ""
