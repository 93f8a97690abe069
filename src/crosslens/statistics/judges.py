"""How far judges agree with each other: Krippendorff's α, Cohen's κ, one judge against the others."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, get_args

import numpy as np

from crosslens.core import UnknownNameError
from crosslens.statistics.aggregation import FloatArray
from crosslens.statistics.correlation import correlations

BoolArray = np.ndarray[Any, np.dtype[np.bool_]]
KappaWeights = Literal["none", "linear", "quadratic"]


@dataclass(frozen=True)
class JudgeAgreement:
    """Judges against each other, over the pairs that have at least two.

    ``alpha``  Krippendorff's α for interval data: 1 is full agreement, 0 that of chance
    ``kappa``  Cohen's κ of every two judges, averaged (Light 1971), plain and with linear and quadratic weights;
    judges are columns here, and must be the same persons throughout
    ``one_against_others``  the coefficients between each single judgement and the mean of the pair's others
    """

    pairs: int
    judgements: int
    alpha: float
    kappa: dict[str, float]
    one_against_others: dict[str, float]


def judge_agreement(judges: FloatArray) -> JudgeAgreement | None:
    """From judgements in rows (pairs) and columns (judges), NaN where there is none; None without a second judge.

    But for κ, no figure depends on the order of a pair's judges: they need not be the same persons throughout.
    """
    judges, judged = _judged_twice(np.asarray(judges, np.float64))
    if not len(judges):
        return None
    count = judged.sum(axis=1, keepdims=True)
    known = np.where(judged, judges, 0.0)
    others = (known.sum(axis=1, keepdims=True) - known) / (count - 1)
    against = correlations(judges[judged], others[judged]).figures
    kappas = {weights: cohen_kappa(judges, weights) for weights in get_args(KappaWeights)}
    return JudgeAgreement(len(judges), int(judged.sum()), interval_alpha(judges), kappas, dict(against))


def interval_alpha(judges: FloatArray) -> float:
    """Krippendorff's α with squared differences: 1 − observed ÷ expected disagreement; single judges are left out."""
    judges, judged = _judged_twice(judges)
    if not len(judges):
        return float("nan")
    centred = np.where(judged, judges - judges[judged].mean(), 0.0)
    count, sums, squares = judged.sum(axis=1), centred.sum(axis=1), (centred**2).sum(axis=1)
    total = int(count.sum())
    # Σ over ordered pairs of (a − b)² is 2·(m·Σa² − (Σa)²).
    observed = float((2 * (count * squares - sums**2) / (count - 1)).sum()) / total
    expected = 2 * float(total * squares.sum() - sums.sum() ** 2) / (total * (total - 1))
    return 1 - observed / expected if expected > 0 else float("nan")


def cohen_kappa(judges: FloatArray, weights: KappaWeights = "none") -> float:
    """Cohen's κ of two judges (columns), over the rows both judged; of more, the mean of all pairs of judges.

    1 − observed ÷ chance disagreement; two judgements disagree by 1 if they differ, or by their distance on the scale
    (``linear``), or its square (``quadratic``). A pair of judges that say the same thing throughout is left out.
    """
    if weights not in get_args(KappaWeights):
        raise UnknownNameError("weights of κ", weights, get_args(KappaWeights))
    pairs = [
        _pair_kappa(judges[:, first], judges[:, second], weights)
        for first, second in combinations(range(judges.shape[1]), 2)
    ]
    defined = [kappa for kappa in pairs if np.isfinite(kappa)]
    return float(np.mean(defined)) if defined else float("nan")


def _pair_kappa(first: FloatArray, second: FloatArray, weights: KappaWeights) -> float:
    both = np.isfinite(first) & np.isfinite(second)
    if not both.any():
        return float("nan")
    levels, codes = np.unique([first[both], second[both]], return_inverse=True)
    counts = np.zeros((len(levels), len(levels)))
    np.add.at(counts, tuple(codes.reshape(2, -1)), 1 / both.sum())
    distance = np.abs(levels[:, None] - levels)
    disagreement = {"none": (distance > 0).astype(np.float64), "linear": distance, "quadratic": distance**2}[weights]
    expected = float((disagreement * np.outer(counts.sum(axis=1), counts.sum(axis=0))).sum())
    return 1 - float((disagreement * counts).sum()) / expected if expected > 0 else float("nan")


def _judged_twice(judges: FloatArray) -> tuple[FloatArray, BoolArray]:
    """The rows with at least two judgements, and where they have them."""
    judged = np.isfinite(judges)
    rows = judged.sum(axis=1) > 1
    return judges[rows], judged[rows]
