"""Krippendorff's α against his worked example and the definition, pair by pair."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from crosslens.core import UnknownNameError
from crosslens.statistics import krippendorff_alpha

_ = np.nan
EXAMPLE = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
        [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
    ]
).T
"""Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", sections C to E."""


@pytest.mark.parametrize(("scale", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_krippendorffs_own_example(scale: str, alpha: float) -> None:
    assert krippendorff_alpha(EXAMPLE, scale) == pytest.approx(alpha, abs=5e-4)  # type: ignore[arg-type]


def slow_alpha(judges: np.ndarray, scale: str) -> float:
    """Every two judgements of a unit, every two judgements at all, and the distance of each two values, counted out."""
    units = [[value for value in row if not isnan(value)] for row in judges]
    units = [unit for unit in units if len(unit) > 1]
    everything = [value for unit in units for value in unit]

    def distance(first: float, second: float) -> float:
        if scale == "nominal":
            return float(first != second)
        if scale == "interval":
            return (first - second) ** 2
        low, high = sorted((first, second))
        between = sum(low <= value <= high for value in everything)
        ends = sum(value == low for value in everything) + sum(value == high for value in everything)
        return 0.0 if low == high else (between - ends / 2) ** 2

    observed = sum(
        distance(first, second) / (len(unit) - 1)
        for unit in units
        for at, first in enumerate(unit)
        for other_at, second in enumerate(unit)
        if at != other_at
    )
    pairs = [
        distance(first, second)
        for at, first in enumerate(everything)
        for other_at, second in enumerate(everything)
        if at != other_at
    ]
    if not sum(pairs):
        return float("nan")
    return 1 - (observed / len(everything)) / (sum(pairs) / len(pairs))


JUDGES = arrays(
    np.float64, st.tuples(st.integers(1, 7), st.integers(2, 4)), elements=st.sampled_from([1.0, 2.0, 3.0, 7.0, np.nan])
)


@given(JUDGES, st.sampled_from(["nominal", "ordinal", "interval"]))
def test_any_judgements_against_the_definition(judges: np.ndarray, scale: str) -> None:
    assert krippendorff_alpha(judges, scale) == pytest.approx(slow_alpha(judges, scale), nan_ok=True)  # type: ignore[arg-type]


def test_what_alpha_is_not_defined_for() -> None:
    assert isnan(krippendorff_alpha(np.array([[1.0, np.nan], [np.nan, 2.0]]), "nominal"))
    assert isnan(krippendorff_alpha(np.ones((4, 3)), "nominal"))
    with pytest.raises(UnknownNameError, match="ratio"):
        krippendorff_alpha(EXAMPLE, "ratio")  # type: ignore[arg-type]
