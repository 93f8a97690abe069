"""p-values adjusted for how many comparisons were made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from crosslens.core import InputError, UnknownNameError
from crosslens.statistics.aggregation import FloatArray


def correct(p_values: Sequence[float] | FloatArray, correction: str = "holm") -> FloatArray:
    """Adjust by the name of a correction: ``holm``, ``bh`` or ``none``. NaN stays NaN."""
    if correction not in CORRECTIONS:
        raise UnknownNameError("correction", correction, CORRECTIONS)
    result = np.array(p_values, np.float64)
    tested = np.flatnonzero(~np.isnan(result))
    wrong = tested[(result[tested] < 0) | (result[tested] > 1)]
    if len(wrong):
        raise InputError(f"p-value {result[wrong[0]]}", row=int(wrong[0]), expected="a number from 0 to 1")
    order = tested[np.argsort(result[tested], kind="stable")]
    result[order] = np.minimum(CORRECTIONS[correction](result[order]), 1)
    return result


def holm(p_values: Sequence[float] | FloatArray) -> FloatArray:
    """Holm's step-down adjustment: the chance of any false finding stays below the level."""
    return correct(p_values, "holm")


def _holm(ascending: FloatArray) -> FloatArray:
    return np.maximum.accumulate(ascending * np.arange(len(ascending), 0, -1))


def _benjamini_hochberg(ascending: FloatArray) -> FloatArray:
    scaled = ascending * len(ascending) / np.arange(1, len(ascending) + 1)
    return np.minimum.accumulate(scaled[::-1])[::-1]


CORRECTIONS: Mapping[str, Callable[[FloatArray], FloatArray]] = MappingProxyType(
    {"holm": _holm, "bh": _benjamini_hochberg, "none": lambda ascending: ascending}
)
"""Name → how ascending p-values are adjusted."""
CORRECTION_WORDS = MappingProxyType(
    {"holm": "corrected by Holm", "bh": "corrected by Benjamini–Hochberg", "none": "not corrected"}
)
"""How a sentence about p-values says it."""


def significance_sentence(test: str, permutations: int, correction: str, tests: int) -> str:
    """How p-values were computed and corrected, and the smallest that can come out of it."""
    number = "" if correction == "none" else f" for {tests:,} test{'s' if tests != 1 else ''}"
    least = floor_of_p(permutations, correction, tests)
    return (
        f"p: {test}, two-sided, {CORRECTION_WORDS[correction]}{number}; {permutations:,} permutations give no p below "
        f"{least:.2g}."
    )


def floor_of_p(permutations: int, correction: str, tests: int) -> float:
    """The smallest p-value that so many permutations can give; Holm multiplies the smallest by the number of tests."""
    return (tests if correction == "holm" else 1) / (permutations + 1)
