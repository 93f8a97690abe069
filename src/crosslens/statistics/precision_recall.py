"""The area under the precision–recall curve (AUPRC), with intervals that resample images.

Pairs with equal scores are one step of the curve: no order within them could be told from another.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

from crosslens.core import InputError, UnknownNameError
from crosslens.statistics.aggregation import FloatArray, IntArray, percentiles, require_level
from crosslens.statistics.bootstrap import Bootstrap, Estimate

Area = Literal["step", "trapezoid"]
AREAS: tuple[Area, ...] = get_args(Area)
"""``step``: Σ (R_n − R_{n−1}) · P_n, average precision. ``trapezoid``: straight lines between points, from (0, 1)."""

_CELLS = 1 << 22
"""Weights that are held at once."""


class SortedPairs:
    """Labelled pairs by descending score, sorted once for any number of resamples.

    ``positive`` says which pairs match; a pair is retrieved where its score is at least the threshold.
    """

    def __init__(self, positive: Any, scores: Any) -> None:
        positive, scores = np.asarray(positive, bool), np.asarray(scores, np.float64)
        if positive.shape != scores.shape or positive.ndim != 1:
            raise InputError(f"{positive.shape} labels against {scores.shape} scores", expected="one of each per pair")
        if not np.isfinite(scores).all():
            row = int(np.argmax(~np.isfinite(scores)))
            raise InputError(f"the score is {scores[row]}", row=row, expected="finite numbers", fix="score it again")
        self._order = np.argsort(-scores, kind="stable")
        self._positive = positive[self._order]
        ordered = scores[self._order]
        self._ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True)) if len(ordered) else np.zeros(0, int)

    def area(self, kind: Area = "step") -> float:
        """The area of the whole sample; NaN without a positive."""
        return float(self.areas(np.ones((1, len(self._positive))), kind)[0])

    def areas(self, weights: Any, kind: Area = "step") -> FloatArray:
        """The area of each resample: ``weights`` (resamples × pairs) says how often a pair is drawn."""
        if kind not in AREAS:
            raise UnknownNameError("area", kind, AREAS)
        drawn = np.asarray(weights, np.float64)[:, self._order]
        hits = np.cumsum(drawn * self._positive, axis=1)[:, self._ends]
        retrieved = np.cumsum(drawn, axis=1)[:, self._ends]
        if not hits.size:
            return np.full(len(drawn), np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            # Before anything is drawn, nothing wrong is retrieved either.
            precision = np.where(retrieved > 0, hits / retrieved, 1.0)
            steps = np.diff(hits / hits[:, -1:], axis=1, prepend=0.0)
        if kind == "trapezoid":
            before = np.concatenate([np.ones((len(drawn), 1)), precision[:, :-1]], axis=1)
            precision = (precision + before) / 2
        return np.asarray((steps * precision).sum(axis=1), np.float64)


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

    ``step`` is what scikit-learn calls ``average_precision_score``. NaN without a positive; a resample without one is
    not counted in the interval.
    """
    require_level(level)
    curve = SortedPairs(positive, scores)
    figure = curve.area(kind)
    labels = np.arange(len(np.asarray(scores))) if clusters is None else np.asarray(clusters)
    groups = np.unique(labels, return_inverse=True)[1]
    size = int(groups.max(initial=-1)) + 1
    if not resamples or size < 2 or not np.isfinite(figure):
        return Estimate(figure, float("nan"), float("nan"))
    rows = max(1, _CELLS // len(groups))
    replicates = np.concatenate(
        [
            curve.areas(draws[start : start + rows][:, groups], kind)
            for draws in Bootstrap(groups, resamples, seed).weights(size)
            for start in range(0, len(draws), rows)
        ]
    )
    valid = replicates[np.isfinite(replicates)]
    return Estimate(figure, *percentiles(valid, level)) if len(valid) else Estimate(figure, float("nan"), float("nan"))
