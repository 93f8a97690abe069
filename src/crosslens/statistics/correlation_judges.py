"""How well several judges of the same pairs agree with each other: what a metric can be expected to reach at most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosslens.statistics.centre import FloatArray
from crosslens.statistics.correlation import correlations


@dataclass(frozen=True)
class JudgeAgreement:
    """Judges against each other, over the pairs that have at least two.

    ``alpha``  Krippendorff's α for interval data: 1 is full agreement, 0 that of chance
    ``one_against_others``  the coefficients between each single judgement and the mean of the pair's others
    """

    pairs: int
    judgements: int
    alpha: float
    one_against_others: dict[str, float]


def judge_agreement(judges: FloatArray) -> JudgeAgreement | None:
    """From judgements in rows (pairs) and columns (judges), NaN where there is none; None without a second judge.

    Neither figure depends on the order of a pair's judges: they need not be the same persons throughout.
    """
    judges = np.asarray(judges, np.float64)
    given = np.isfinite(judges)
    judges, given = judges[given.sum(axis=1) > 1], given[given.sum(axis=1) > 1]
    if not len(judges):
        return None
    count = given.sum(axis=1, keepdims=True)
    known = np.where(given, judges, 0.0)
    others = (known.sum(axis=1, keepdims=True) - known) / (count - 1)
    against = correlations(judges[given], others[given]).figures
    return JudgeAgreement(len(judges), int(given.sum()), interval_alpha(judges), dict(against))


def interval_alpha(judges: FloatArray) -> float:
    """Krippendorff's α with squared differences: 1 − observed ÷ expected disagreement; single judges are left out."""
    given = np.isfinite(judges)
    judges, given = judges[given.sum(axis=1) > 1], given[given.sum(axis=1) > 1]
    if not len(judges):
        return float("nan")
    centred = np.where(given, judges - judges[given].mean(), 0.0)
    count, sums, squares = given.sum(axis=1), centred.sum(axis=1), (centred**2).sum(axis=1)
    total = int(count.sum())
    # Σ over ordered pairs of (a − b)² is 2·(m·Σa² − (Σa)²).
    observed = float((2 * (count * squares - sums**2) / (count - 1)).sum()) / total
    expected = 2 * float(total * squares.sum() - sums.sum() ** 2) / (total * (total - 1))
    return 1 - observed / expected if expected > 0 else float("nan")
