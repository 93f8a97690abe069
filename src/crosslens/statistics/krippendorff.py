"""Krippendorff's α: how far judges agree beyond chance, whoever judged what (Krippendorff 2011)."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

from crosslens.core import UnknownNameError
from crosslens.statistics.aggregation import FloatArray

BoolArray = np.ndarray[Any, np.dtype[np.bool_]]
AlphaScale = Literal["nominal", "ordinal", "interval"]


def krippendorff_alpha(judges: FloatArray, scale: AlphaScale = "interval") -> float:
    """1 − observed ÷ expected disagreement of judgements in rows (units) and columns (judges), NaN where missing.

    Two judgements disagree by 1 if they differ (``nominal``), by the square of how many judgements lie between them
    (``ordinal``), or by their squared difference (``interval``). Units with a single judgement are left out; NaN where
    all judgements are equal, as there is no disagreement to expect.
    """
    if scale not in get_args(AlphaScale):
        raise UnknownNameError("scale of α", scale, get_args(AlphaScale))
    judges, judged = judged_twice(np.asarray(judges, np.float64))
    if not len(judges):
        return float("nan")
    if scale == "nominal":
        return _nominal(judges, judged)
    return _squared(_middle_ranks(judges, judged) if scale == "ordinal" else judges, judged)


def judged_twice(judges: FloatArray) -> tuple[FloatArray, BoolArray]:
    """The rows with at least two judgements, and where they have them."""
    judged = np.isfinite(judges)
    rows = judged.sum(axis=1) > 1
    return judges[rows], judged[rows]


def _squared(judges: FloatArray, judged: BoolArray) -> float:
    centred = np.where(judged, judges - judges[judged].mean(), 0.0)
    count, sums, squares = judged.sum(axis=1), centred.sum(axis=1), (centred**2).sum(axis=1)
    total = int(count.sum())
    # Σ over ordered pairs of (a − b)² is 2·(m·Σa² − (Σa)²).
    observed = float((2 * (count * squares - sums**2) / (count - 1)).sum()) / total
    expected = 2 * float(total * squares.sum() - sums.sum() ** 2) / (total * (total - 1))
    return 1 - observed / expected if expected > 0 else float("nan")


def _middle_ranks(judges: FloatArray, judged: BoolArray) -> FloatArray:
    """Every judgement's middle rank among all: their differences are the ordinal distances."""
    _, codes, counts = np.unique(judges[judged], return_inverse=True, return_counts=True)
    ranks = np.full(judges.shape, np.nan)
    ranks[judged] = (np.cumsum(counts) - counts / 2)[codes]
    return ranks


def _nominal(judges: FloatArray, judged: BoolArray) -> float:
    levels, codes = np.unique(judges[judged], return_inverse=True)
    votes = np.zeros((len(judges), len(levels)))
    np.add.at(votes, (np.nonzero(judged)[0], codes), 1)
    count, totals = votes.sum(axis=1), votes.sum(axis=0)
    total = count.sum()
    observed = float(((count**2 - (votes**2).sum(axis=1)) / (count - 1)).sum()) / total
    expected = float(total**2 - (totals**2).sum()) / (total * (total - 1))
    return 1 - observed / expected if expected > 0 else float("nan")
