"""The area under the precision–recall curve (AUPRC), with intervals over images.

Pairs with equal scores are one step of the curve: no order within them could be told from another.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

from crosslens.core import InputError, UnknownNameError, random_stream
from crosslens.statistics.bootstrap import Estimate, FloatArray, IntArray, Linearised, bounded_interval, require_level

Area = Literal["step", "trapezoid"]
AREAS: tuple[Area, ...] = get_args(Area)
"""``step``: Σ (R_n − R_{n−1}) · P_n, average precision. ``trapezoid``: straight lines between points, from (0, 1)."""

_CELLS = 1 << 22
"""Weights that are held at once."""
_MOST_GROUPS = 500
"""Up to so many images, each is left out in turn; beyond, so many groups of them."""


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

    ``step`` is what scikit-learn calls ``average_precision_score``. NaN without a positive. The interval is by the
    jackknife, not by resamples, which are biased upwards once more than the area is: images are left out in turn
    (``seed`` deals more than 500 to groups), and the interval of a share of that variance is taken both of the area and
    of the area without its bias. There is none where only one image has positives.
    """
    require_level(level)
    curve = SortedPairs(positive, scores)
    figure = curve.area(kind)
    labels = np.arange(len(np.asarray(scores))) if clusters is None else np.asarray(clusters)
    images = np.unique(labels, return_inverse=True)[1]
    size = int(images.max(initial=-1)) + 1
    count = min(size, _MOST_GROUPS)
    none = Estimate(figure, float("nan"), float("nan"))
    if not resamples or size < 2 or not np.isfinite(figure):
        return none
    dealt = np.arange(size) % count
    groups = (random_stream(seed, "groups").permutation(dealt) if count < size else dealt)[images]
    rows = max(1, _CELLS // len(groups))
    parts = (np.arange(start, min(start + rows, count)) for start in range(0, count, rows))
    without = np.concatenate([curve.areas(groups != part[:, None], kind) for part in parts])
    if not np.isfinite(without).all():
        return none
    moves = (without.mean() - without) * (count - 1) / count
    squares = float((moves**2).sum())
    moves *= 1 + squares / max(2 * float(np.abs(moves).sum()) ** 2, 1e-300)  # so few images make the variance uncertain
    unbiased = min(max(figure - (count - 1) * (float(without.mean()) - figure), 0.0), 1.0)
    weights = np.full(count, 1 / count)
    ends = [
        bounded_interval(Linearised(area, moves, weights, 1, area * (1 - area)), (0, 1), level)
        for area in (figure, unbiased)
    ]
    return Estimate(figure, min(low for low, _ in ends), max(high for _, high in ends))
