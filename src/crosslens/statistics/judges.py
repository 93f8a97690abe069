"""How far judges agree with each other: α, κ, one judge against the others, the reliability of their means."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Literal, get_args

import numpy as np

from crosslens.core import UnknownNameError
from crosslens.statistics.aggregation import FloatArray
from crosslens.statistics.correlation import correlations
from crosslens.statistics.krippendorff import judged_twice, krippendorff_alpha

KappaWeights = Literal["none", "linear", "quadratic"]


@dataclass(frozen=True)
class JudgeAgreement:
    """Judges against each other, over the pairs that have at least two.

    ``alpha``  Krippendorff's α for interval data: 1 is full agreement, 0 that of chance
    ``kappa``  Cohen's κ of every two judges, averaged (Light 1971), plain and with linear and quadratic weights;
    NaN where a column is not the same person throughout
    ``one_against_others``  the coefficients between each single judgement and the mean of the pair's others
    ``reliability``  the share of the variance of pairs' means that is not the judges' noise: ICC(1, k)
    ``single_reliability``  the same of single judgements: ICC(1)
    """

    pairs: int
    judgements: int
    alpha: float
    kappa: dict[str, float]
    one_against_others: dict[str, float]
    reliability: float
    single_reliability: float

    def ceiling(self, pooled: bool = False) -> float:
        """Pearson's r between the scores and what they would be without the judges' noise: no φ is expected above it.

        It is the root of the reliability: of the means, or of single judgements where they are ``pooled``.
        """
        reliability = self.single_reliability if pooled else self.reliability
        return reliability**0.5 if reliability >= 0 else float("nan")


def judge_agreement(judges: FloatArray, same_persons: bool = True) -> JudgeAgreement | None:
    """From judgements in rows (pairs) and columns (judges), NaN where there is none; None without a second judge.

    Only κ depends on which judge is in which column; it is NaN unless a column has the ``same_persons`` throughout.
    """
    judges, judged = judged_twice(np.asarray(judges, np.float64))
    if not len(judges):
        return None
    count = judged.sum(axis=1, keepdims=True)
    known = np.where(judged, judges, 0.0)
    others = (known.sum(axis=1, keepdims=True) - known) / (count - 1)
    against = correlations(judges[judged], others[judged]).figures
    kappas = {
        weights: cohen_kappa(judges, weights) if same_persons else float("nan") for weights in get_args(KappaWeights)
    }
    return JudgeAgreement(
        len(judges), int(judged.sum()), krippendorff_alpha(judges), kappas, dict(against), *mean_reliability(judges)
    )


def mean_reliability(judges: FloatArray) -> tuple[float, float]:
    """The reliability of pairs' means and of single judgements, by one-way analysis of variance (Shrout & Fleiss 1979).

    With τ² the variance between pairs and σ² that of the judgements within a pair, τ² ÷ (τ² + σ² · mean of 1/m) and
    τ² ÷ (τ² + σ²), where a pair has m judgements; with equally many each, ICC(1, k) and ICC(1).
    """
    judges, judged = judged_twice(judges)
    if len(judges) < 2:
        return float("nan"), float("nan")
    count = judged.sum(axis=1)
    total = int(count.sum())
    means = np.where(judged, judges, 0.0).sum(axis=1) / count
    within = float((np.where(judged, judges - means[:, None], 0.0) ** 2).sum()) / (total - len(judges))
    between = float(count @ (means - count @ means / total) ** 2) / (len(judges) - 1)
    typical = (total - float(count @ count) / total) / (len(judges) - 1)
    pairs = (between - within) / typical
    noises = (within * float(np.mean(1 / count)), within)
    mean, single = (pairs / (pairs + noise) if pairs + noise > 0 else float("nan") for noise in noises)
    return mean, single


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
    scores = np.stack([first[both], second[both]])
    distance = np.abs(scores[0] - scores[1])
    scores -= scores.mean()  # large scores of a small spread would cancel
    observed = {"none": distance > 0, "linear": distance, "quadratic": distance**2}[weights].mean()
    expected = _chance_disagreement(scores, weights)
    return 1 - float(observed) / expected if expected > 0 else float("nan")


def _chance_disagreement(scores: FloatArray, weights: KappaWeights) -> float:
    """The mean disagreement of a score of the first row with one of the second, drawn independently.

    No table of all pairs of scores: judges may use as many different ones as there are pairs.
    """
    if weights == "quadratic":
        return float((scores**2).mean(axis=1).sum() - 2 * scores.mean(axis=1).prod())
    levels, codes = np.unique(scores, return_inverse=True)
    shares = np.stack([np.bincount(row, minlength=len(levels)) for row in codes.reshape(scores.shape)])
    shares = shares / scores.shape[1]
    if weights == "none":
        return float(1 - (shares[0] * shares[1]).sum())
    # E|a − b| is the integral of P(a ≤ x < b) + P(b ≤ x < a) over x.
    below = shares.cumsum(axis=1)[:, :-1]
    return float((np.diff(levels) * (below[0] * (1 - below[1]) + below[1] * (1 - below[0]))).sum())
