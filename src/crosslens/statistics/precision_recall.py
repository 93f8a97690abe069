"""Precision and recall of scores that tell matching pairs from mismatches: the best threshold, and the area (AUPRC).

Between two scores of matching pairs a lower threshold only adds mismatches, so it is enough to count, for the score of
each matching pair, the pairs that reach it: exact in one pass over any number of mismatches, in memory of the matching
pairs alone. Pairs with equal scores are one step of the curve: no order within them could be told from another.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np

from crosslens.core import InputError, UnknownNameError
from crosslens.statistics.bootstrap import Estimate, Linearised, bounded_interval, require_level
from crosslens.storage import Array, FloatArray, IntArray, random_stream

Area = Literal["step", "trapezoid"]
AREAS: tuple[Area, ...] = get_args(Area)
"""``step``: Σ (R_n − R_{n−1}) · P_n, average precision. ``trapezoid``: straight lines between points, from (0, 1)."""

_CELLS = 1 << 22
"""Counts that are held at once."""
_MOST_GROUPS = 500
"""Up to so many images, each is left out in turn; beyond, so many groups of them."""
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
        return max(
            near, key=lambda row: (Fraction(int(self.matched[row]), self.positives + int(self.reached[row])), -row)
        )

    @property
    def threshold(self) -> float:
        return float(self.thresholds[self.best])


class PairCounter:
    """Collects the scores of mismatches, a block at a time, against those of the matching pairs."""

    def __init__(self, positives: Any) -> None:
        scores = _numbers(positives, "scores of matching pairs")
        if not scores.size:
            raise _one_class("matching pair", "add pairs that match")
        self._thresholds = np.unique(scores)
        self._positives = _counts(self._thresholds, scores)
        self._negatives = np.zeros_like(self._positives)

    def add(self, negatives: Any) -> None:
        """Count the mismatches that reach each threshold."""
        self._negatives += _counts(self._thresholds, _numbers(negatives, "scores of mismatches"))

    def curve(self) -> PrecisionRecall:
        """Precision and recall over everything that was added; raises where no mismatch was."""
        negatives = int(self._negatives.sum())
        if not negatives:
            fix = "add pairs that do not match: with more than one image, other images' captions do"
            raise _one_class("mismatch", fix)
        matched = _reaching(self._positives)[0]
        reached = matched + _reaching(self._negatives)[0]
        return PrecisionRecall(self._thresholds, matched, reached, int(matched[0]), negatives)


def match_threshold(scores: Any, labels: Any) -> float:
    """The score that separates matching pairs from others with the highest F1; a score of at least it is a match.

    Among thresholds of equal F1 it is the lowest; it is always the score of a matching pair.

    Args:
        scores: One number per pair.
        labels: Whether each pair matches: 1 or True, 0 or False.
    """
    return precision_recall(scores, labels).threshold


def precision_recall(scores: Any, labels: Any) -> PrecisionRecall:
    """Precision, recall and F1 at the score of every matching pair; see :func:`match_threshold`."""
    values, positive = _labelled(scores, labels)
    if not len(values):
        raise InputError("no scores", expected="at least one matching pair and one mismatch", fix="pass some pairs")
    counter = PairCounter(values[positive])
    counter.add(values[~positive])
    return counter.curve()


def auprc(
    positive: Any,
    scores: Any,
    clusters: IntArray | None = None,
    *,
    kind: Area = "step",
    resamples: int = 0,
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """The area under the precision–recall curve; with ``resamples``, its interval over ``clusters`` (images).

    ``step`` is what scikit-learn calls ``average_precision_score``. NaN without a positive. The interval is by the
    jackknife, not by resamples, which are biased upwards once more than the area is: images are left out in turn
    (``seed`` deals more than 500 to groups), and the interval of a share of that variance is taken both of the area and
    of the area without its bias. There is none where only one image has positives.
    """
    require_level(level)
    if kind not in AREAS:
        raise UnknownNameError("area", kind, AREAS)
    values, matches = _labelled(scores, positive)
    thresholds = np.unique(values[matches])
    # Matching pairs and mismatches that reach a threshold, and mismatches above it.
    sides = [(matches, "right"), (~matches, "right"), (~matches, "left")]
    whole = [_counts(thresholds, values[side], reach) for side, reach in sides]
    figure = float(_areas(whole, kind)[0]) if len(thresholds) else float("nan")
    labels = np.arange(len(values)) if clusters is None else np.asarray(clusters)
    images = np.unique(labels, return_inverse=True)[1]
    size = int(images.max(initial=-1)) + 1
    count = min(size, _MOST_GROUPS)
    none = Estimate(figure)
    if not resamples or size < 2 or not len(thresholds):
        return none
    dealt = np.arange(size) % count
    groups = (random_stream(seed, "groups").permutation(dealt) if count < size else dealt)[images]
    rows = max(1, _CELLS // len(thresholds))
    areas = []
    for start in range(0, count, rows):
        part = (groups >= start) & (groups < start + rows)
        size = min(rows, count - start)
        remaining = (
            total - _counts(thresholds, values[side & part], reach, groups[side & part] - start, size)
            for total, (side, reach) in zip(whole, sides, strict=True)
        )
        areas.append(_areas(remaining, kind))
    without = np.concatenate(areas)
    if not np.isfinite(without).all():
        return none
    moves = (without.mean() - without) * (count - 1) / count
    squares = float((moves**2).sum())
    moves *= 1 + squares / max(2 * float(np.abs(moves).sum()) ** 2, 1e-300)  # so few images make the variance uncertain
    unbiased = min(max(figure - (count - 1) * (float(without.mean()) - figure), 0.0), 1.0)
    weights = np.full(count, 1 / count)
    ends = [
        bounded_interval(Linearised(area, moves, weights, (len(moves),), area * (1 - area)), (0, 1), level)
        for area in (figure, unbiased)
    ]
    return Estimate(figure, min(low for low, _ in ends), max(high for _, high in ends))


def _counts(thresholds: Array, scores: Array, reach: Any = "right", groups: Any = 0, size: int = 1) -> Array:
    """How many scores of each group lie below the first threshold and from each to the next.

    With ``reach="left"``, a score equal to a threshold lies below it.
    """
    width = len(thresholds) + 1
    places = np.searchsorted(thresholds, scores, reach) + groups * width
    return np.bincount(places, minlength=size * width).reshape(size, width)


def _reaching(counts: Array) -> Array:
    """How many scores reach each threshold, of :func:`_counts`."""
    return counts[:, ::-1].cumsum(axis=1)[:, -2::-1]


def _areas(counts: Iterable[Array], kind: Area) -> FloatArray:
    """The area of each group: counts of matches and of mismatches that reach a threshold, of mismatches above it."""
    matched, mismatched, above = map(_reaching, counts)
    precision = _precision(matched, mismatched)
    if kind == "trapezoid":
        precision = (precision + _precision(np.pad(matched[:, 1:], ((0, 0), (0, 1))), above)) / 2
    with np.errstate(invalid="ignore"):  # a group without matches has no area
        steps = -np.diff(matched / matched[:, :1], axis=1, append=0.0)
    return np.asarray((steps * precision).sum(axis=1), np.float64)


def _precision(matched: Array, mismatched: Array) -> FloatArray:
    """The share of matches; 1 before anything is retrieved, since nothing wrong is either."""
    retrieved = matched + mismatched
    share: FloatArray = np.divide(matched, retrieved, out=np.ones(matched.shape), where=retrieved > 0)
    return share


def _labelled(scores: Any, labels: Any) -> tuple[Array, Array]:
    """Scores as numbers, and which of them are of matching pairs."""
    values, array = _numbers(scores, "scores"), np.asarray(labels).reshape(-1)
    if len(values) != len(array):
        raise InputError(
            f"{len(values):,} scores and {len(array):,} labels",
            expected="one label per score",
            fix="pass both in the same order, each as a flat list",
        )
    if array.dtype != np.bool_:
        for row, label in enumerate(array.tolist()):
            if label not in (0, 1):
                expected = "1 for a pair that matches, 0 for one that does not"
                raise InputError(f"label {label!r}", row=row, expected=expected)
    return values, array.astype(np.bool_, copy=False)


def _numbers(values: Any, noun: str) -> Array:
    array = np.asarray(values)
    if array.dtype.kind not in "fiub" and array.size:
        raise InputError(f"{noun} of type {array.dtype}", expected="real numbers")
    flat = array.reshape(-1).astype(np.float64, copy=False)
    if not np.isfinite(flat).all():
        row = int(np.argmax(~np.isfinite(flat)))
        fix = "find out why the model gave NaN or infinity"
        raise InputError(f"{flat[row]} among the {noun}", row=row, expected="finite numbers", fix=fix)
    return flat


def _one_class(missing: str, fix: str) -> InputError:
    expected = "matching pairs (label 1) and mismatches (label 0)"
    return InputError(f"no {missing} to choose a threshold by", expected=expected, fix=fix, code="one-class")
