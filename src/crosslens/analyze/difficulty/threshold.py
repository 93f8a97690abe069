"""The score from which on a model says that an image and a caption match: the one with the highest F1.

F1 at a threshold t is 2·TP ÷ (P + number of pairs with a score ≥ t), where P is the number of matching pairs. Between
two scores of matching pairs a lower threshold only adds mismatches, so the best threshold is the score of a matching
pair: it is enough to count, for each of those, the mismatches that reach it. That makes the search exact in one pass
over any number of mismatches, in memory of the matching pairs alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from crosslens.core import InputError, UsageError

Array = np.ndarray[Any, Any]

_ROUNDING = 1e-12
"""F1 values closer than this, relatively, are compared as fractions."""


@dataclass(frozen=True, eq=False)
class PrecisionRecall:
    """Precision and recall at the score of every matching pair, ascending, as inclusive thresholds.

    ``matched`` and ``reached`` count the matching pairs, and all pairs, with a score of at least the threshold.
    """

    thresholds: Array
    matched: Array
    reached: Array
    positives: int
    negatives: int

    @property
    def precision(self) -> Array:
        return np.asarray(self.matched / self.reached)

    @property
    def recall(self) -> Array:
        return np.asarray(self.matched / self.positives)

    @property
    def f1(self) -> Array:
        return np.asarray(2 * self.matched / (self.positives + self.reached))

    @property
    def best(self) -> int:
        """The row of the highest F1; of equal ones the lowest threshold."""
        ratios = self.matched / (self.positives + self.reached)
        near = np.flatnonzero(ratios >= ratios.max() * (1 - _ROUNDING)).tolist()
        # Floating point can neither tell apart nor equate all fractions: the nearest ones are compared exactly.
        return max(near, key=lambda row: (self._ratio(row), -row))

    def _ratio(self, row: int) -> Fraction:
        return Fraction(int(self.matched[row]), self.positives + int(self.reached[row]))

    @property
    def threshold(self) -> float:
        """The threshold with the highest F1."""
        return float(self.thresholds[self.best])


class PairCounter:
    """Collects the scores of mismatches, a block at a time, against those of the matching pairs."""

    def __init__(self, positives: Any) -> None:
        scores = _numbers(positives, "scores of matching pairs")
        if not scores.size:
            raise InputError(
                "no matching pair to choose a threshold by",
                expected="matching pairs (label 1) and mismatches (label 0)",
                fix="add pairs that match",
                code="one-class",
            )
        self._thresholds, counts = np.unique(scores, return_counts=True)
        self._matched = counts[::-1].cumsum()[::-1]
        self._negatives = np.zeros(len(self._thresholds) + 1, np.int64)

    def add(self, negatives: Any) -> None:
        """Count the mismatches that reach each threshold."""
        scores = _numbers(negatives, "scores of mismatches")
        reached = np.searchsorted(self._thresholds, scores, side="right")
        self._negatives += np.bincount(reached, minlength=len(self._negatives))

    def curve(self) -> PrecisionRecall:
        """Precision and recall over everything that was added; raises where no mismatch was."""
        total = int(self._negatives.sum())
        if not total:
            raise InputError(
                "no mismatch to choose a threshold by",
                expected="matching pairs (label 1) and mismatches (label 0)",
                fix="add pairs that do not match: with more than one image, other images' captions do",
                code="one-class",
            )
        above = self._negatives[::-1].cumsum()[::-1][1:]
        return PrecisionRecall(self._thresholds, self._matched, self._matched + above, int(self._matched[0]), total)


def match_threshold(scores: Any, labels: Any) -> float:
    """The score that separates matching pairs from others with the highest F1; a score of at least it is a match.

    ``labels`` says of each score whether the pair matches (1 or True) or not (0 or False). Among thresholds of equal F1
    it is the lowest; it is always the score of a matching pair.
    """
    return precision_recall(scores, labels).threshold


def precision_recall(scores: Any, labels: Any) -> PrecisionRecall:
    """Precision, recall and F1 at the score of every matching pair; see :func:`match_threshold`."""
    values, truth = _numbers(scores, "scores"), _labels(labels)
    if len(values) != len(truth):
        raise InputError(
            f"{len(values):,} scores and {len(truth):,} labels",
            expected="one label per score",
            fix="pass both in the same order, each as a flat list",
        )
    if not len(values):
        raise InputError("no scores", expected="at least one matching pair and one mismatch", fix="pass some pairs")
    counter = PairCounter(values[truth])
    counter.add(values[~truth])
    return counter.curve()


def check_threshold(value: Any, model: str) -> float:
    """A threshold as a finite number, or an error that names its model."""
    if isinstance(value, (bool, str)) or not np.isscalar(value) or not np.isfinite(np.float64(value)):  # type: ignore[arg-type]
        fix = "pass a finite number, such as match_threshold gives"
        raise UsageError(f"the threshold of {model} is {value!r:.60}", fix=fix, option="thresholds")
    return float(value)  # type: ignore[arg-type]


def _numbers(values: Any, what: str) -> Array:
    array = np.asarray(values)
    if array.dtype.kind not in "fiub" and array.size:
        raise InputError(f"{what} of type {array.dtype}", expected="real numbers")
    flat = array.reshape(-1) if array.ndim != 1 else array
    flat = flat.astype(np.float64, copy=False)
    if not np.isfinite(flat).all():
        row = int(np.argmax(~np.isfinite(flat)))
        fix = "find out why the model gave NaN or infinity"
        problem = f"{flat[row]} among the {what}"
        raise InputError(problem, row=row, expected="finite numbers", fix=fix)
    return flat


def _labels(labels: Any) -> Array:
    array = np.asarray(labels).reshape(-1)
    if array.dtype == np.bool_:
        return array
    wrong = [row for row, label in enumerate(array.tolist()) if label not in (0, 1)]
    if wrong:
        label = array.tolist()[wrong[0]]
        raise InputError(
            f"label {label!r}", row=wrong[0], expected="1 for a pair that matches, 0 for one that does not"
        )
    return array.astype(np.bool_)
