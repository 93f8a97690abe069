"""How far judges agree with each other: α, κ, one judge against the others, the reliability of their means."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, get_args

import numpy as np

from crosslens.core import BoolArray, FloatArray, UnknownNameError
from crosslens.statistics.bootstrap import Bootstrap, Estimate, percentiles, require_level

AlphaScale = Literal["nominal", "ordinal", "interval"]
KappaWeights = Literal["none", "linear", "quadratic"]


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
    levels, codes, counts = np.unique(judges[judged], return_inverse=True, return_counts=True)
    if scale == "nominal":
        votes = np.zeros((len(judges), len(levels)))
        np.add.at(votes, (np.nonzero(judged)[0], codes), 1)
        count, totals = votes.sum(axis=1), votes.sum(axis=0)
        total = count.sum()
        observed = float(((count**2 - (votes**2).sum(axis=1)) / (count - 1)).sum()) / total
        expected = float(total**2 - (totals**2).sum()) / (total * (total - 1))
        return 1 - observed / expected if expected > 0 else float("nan")
    if scale == "ordinal":  # differences of middle ranks among all judgements are the ordinal distances
        judges = np.full(judges.shape, np.nan)
        judges[judged] = (np.cumsum(counts) - counts / 2)[codes]
    centred = np.where(judged, judges - judges[judged].mean(), 0.0)
    count, sums, squares = judged.sum(axis=1), centred.sum(axis=1), (centred**2).sum(axis=1)
    total = int(count.sum())
    # Σ over ordered pairs of (a − b)² is 2·(m·Σa² − (Σa)²).
    observed = float((2 * (count * squares - sums**2) / (count - 1)).sum()) / total
    expected = 2 * float(total * squares.sum() - sums.sum() ** 2) / (total * (total - 1))
    return 1 - observed / expected if expected > 0 else float("nan")


def judged_twice(judges: FloatArray) -> tuple[FloatArray, BoolArray]:
    """The rows with at least two judgements, and where they have them."""
    judged = np.isfinite(judges)
    rows = judged.sum(axis=1) > 1
    return judges[rows], judged[rows]


@dataclass(frozen=True)
class JudgeAgreement:
    """Judges against each other, over the pairs that have at least two.

    ``alpha``  Krippendorff's α for interval data: 1 is full agreement, 0 that of chance
    ``kappa``  Cohen's κ of every two judges, averaged (Light 1971), plain and with linear and quadratic weights;
    NaN where a column is not the same person throughout
    ``one_against_others``  the coefficients between each single judgement and the mean of the pair's others
    ``reliability``  the share of the variance of pairs' means that is not the judges' noise
    ``single_reliability``  the same of single judgements
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

    κ and the reliability depend on which judge is in which column, if it has the ``same_persons`` throughout.
    Otherwise κ is NaN, and the leniency of a judge cannot be told from noise.
    """
    from crosslens.statistics.correlation import correlations  # compiled code: slow to import

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
    reliabilities = mean_reliability(judges, same_persons)
    return JudgeAgreement(
        len(judges), int(judged.sum()), krippendorff_alpha(judges), kappas, dict(against), *reliabilities
    )


def mean_reliability(judges: FloatArray, same_persons: bool = True) -> tuple[float, float]:
    """The reliability of pairs' means and of single judgements, from the variances of pairs τ², judges λ² and noise σ².

    Variances are by analysis of variance (Henderson 1953, method 1), with λ² = 0 unless a column has the
    ``same_persons``. A judge's leniency is noise as far as it sets scores apart: not at all in the means of pairs that
    the same k persons judged, which have the consistency ICC(C, k); like σ² where no two pairs share a judge, which
    gives ICC(1, k) of Shrout and Fleiss (1979), as λ² = 0 does.
    """
    judges, judged = judged_twice(judges)
    if len(judges) < 2:
        return float("nan"), float("nan")
    judges, judged = judges[:, judged.any(axis=0)], judged[:, judged.any(axis=0)]
    scores = np.where(judged, judges - judges[judged].mean(), 0.0)  # large scores of a small spread would cancel
    per_pair, per_judge = judged.sum(axis=1), judged.sum(axis=0)
    total, (pairs, persons) = int(judged.sum()), judges.shape
    # How often τ², λ² and σ² are in the expected sums of squares: of all scores, of pairs' means and of judges' means.
    expected = np.array([[total, total, total], [total, pairs, pairs], [persons, total, persons]], np.float64)
    expected -= np.array([per_pair @ per_pair, per_judge @ per_judge, total]) / total
    of_pairs, of_judges = scores.sum(axis=1) ** 2 / per_pair, scores.sum(axis=0) ** 2 / per_judge
    sums = np.array([(scores**2).sum(), of_pairs.sum(), of_judges.sum()])
    if same_persons:
        signal, leniency, noise = np.linalg.lstsq(expected, sums, rcond=1e-10)[0].tolist()
    else:
        (signal, noise), leniency = np.linalg.solve(expected[:2, ::2], sums[:2]).tolist(), 0.0
    per_mean = float(np.mean(1 / per_pair))
    judge_weights = (judged / per_pair[:, None]).mean(axis=0)
    of_mean = leniency * (per_mean - float((judge_weights**2).sum())) * pairs / (pairs - 1) + noise * per_mean
    of_single = leniency * (total - float(per_judge @ per_judge) / total) / (total - 1) + noise
    mean, single = (signal / (signal + own) if signal + own > 0 else float("nan") for own in (of_mean, of_single))
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


def kappa_estimate(
    first: Any, second: Any, clusters: Any, *, resamples: int = 1000, level: float = 0.95, seed: int = 0
) -> Estimate:
    """Cohen's κ of two judges who both judged everything, with its interval, for which ``clusters`` are resampled.

    A resample whose κ is undefined does not count; there is no interval where all resamples have the same κ.
    """
    require_level(level)
    codes = np.unique(np.stack([first, second]), return_inverse=True)[1].reshape(2, -1)
    answers = int(codes.max(initial=0)) + 1
    groups = np.unique(np.asarray(clusters), return_inverse=True)[1]
    tables = np.zeros((int(groups.max(initial=-1)) + 1, answers, answers))
    np.add.at(tables, (groups, *codes), 1)
    draws = Bootstrap(groups, resamples, seed).weights(len(tables)) if len(tables) > 1 else iter(())
    drawn = [_table_kappas(np.tensordot(weights, tables, 1)) for weights in draws]
    kappas = np.concatenate([*drawn, np.empty(0)])
    valid = kappas[np.isfinite(kappas)]
    none = float("nan"), float("nan")
    ends = percentiles(valid, level) if len(valid) and np.ptp(valid) > 0 else none
    return Estimate(float(_table_kappas(tables.sum(axis=0)[None])[0]), *ends)


def _table_kappas(tables: FloatArray) -> FloatArray:
    """κ of each table of counts, the answers of the first judge by those of the second."""
    shares = tables / np.maximum(tables.sum(axis=(1, 2), keepdims=True), 1)
    observed = np.trace(shares, axis1=1, axis2=2)
    expected = (shares.sum(axis=1) * shares.sum(axis=2)).sum(axis=1)
    kappas = np.full(len(tables), np.nan)
    np.divide(observed - expected, 1 - expected, out=kappas, where=expected < 1)
    return kappas


def _pair_kappa(first: FloatArray, second: FloatArray, weights: KappaWeights) -> float:
    both = np.isfinite(first) & np.isfinite(second)
    if not both.any():
        return float("nan")
    scores = np.stack([first[both], second[both]])
    distance = np.abs(scores[0] - scores[1])
    scores -= scores.mean()  # large scores of a small spread would cancel
    observed = {"none": distance > 0, "linear": distance, "quadratic": distance**2}[weights].mean()
    # The mean disagreement of a score of the first judge with one of the second, drawn independently; no table of all
    # pairs of scores: judges may use as many different ones as there are pairs.
    if weights == "quadratic":
        expected = float((scores**2).mean(axis=1).sum() - 2 * scores.mean(axis=1).prod())
    else:
        levels, codes = np.unique(scores, return_inverse=True)
        shares = np.stack([np.bincount(row, minlength=len(levels)) for row in codes.reshape(scores.shape)])
        shares = shares / scores.shape[1]
        expected = float(1 - (shares[0] * shares[1]).sum())
        if weights == "linear":
            # E|a − b| is the integral of P(a ≤ x < b) + P(b ≤ x < a) over x.
            below = shares.cumsum(axis=1)[:, :-1]
            expected = float((np.diff(levels) * (below[0] * (1 - below[1]) + below[1] * (1 - below[0]))).sum())
    return 1 - float(observed) / expected if expected > 0 else float("nan")
