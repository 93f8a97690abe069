"""How far judges agree with each other: α, κ, one judge against the others, the reliability of their means."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import isfinite
from typing import Any, Literal, get_args

import numpy as np

from crosslens.core import UnknownNameError
from crosslens.statistics.bootstrap import NO_INTERVAL, Bootstrap, Estimate, estimate, percentiles, require_level
from crosslens.storage import BoolArray, FloatArray, IntArray

_PERFECT = 1e-12
"""What rounding may take from full agreement."""
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
    ``single_reliability``  the same of single judgements; both have an interval over images
    """

    pairs: int
    judgements: int
    alpha: float
    kappa: dict[str, float]
    one_against_others: dict[str, float]
    reliability: float
    single_reliability: float
    reliability_interval: tuple[float, float] = NO_INTERVAL
    single_reliability_interval: tuple[float, float] = NO_INTERVAL

    def ceiling(self, pooled: bool = False) -> float:
        """Pearson's r between the scores and what they would be without the judges' noise: no φ is expected above it.

        It is the root of the reliability: of the means, or of single judgements where they are ``pooled``.
        """
        reliability = self.single_reliability if pooled else self.reliability
        return reliability**0.5 if reliability >= 0 else float("nan")

    def ceiling_interval(self, pooled: bool = False) -> tuple[float, float]:
        """The interval of the ceiling over images: the roots of the reliability's limits, of a negative one 0."""
        low, high = self.single_reliability_interval if pooled else self.reliability_interval
        return (max(low, 0.0) ** 0.5, max(high, 0.0) ** 0.5) if isfinite(self.ceiling(pooled) + low) else NO_INTERVAL


def judge_agreement(
    judges: FloatArray,
    same_persons: bool = True,
    clusters: IntArray | None = None,
    *,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> JudgeAgreement | None:
    """From judgements in rows (pairs) and columns (judges), NaN where there is none; None without a second judge.

    κ and the reliability depend on which judge is in which column, if it has the ``same_persons`` throughout.
    Otherwise κ is NaN, and the leniency of a judge cannot be told from noise. The limits of the reliability resample
    ``clusters``, the image of each pair, or the pairs themselves.
    """
    from crosslens.statistics.correlation import correlations  # compiled code: slow to import

    require_level(level)
    judges = np.asarray(judges, np.float64)
    several = np.isfinite(judges).sum(axis=1) > 1
    images = np.unique(np.arange(len(judges))[several] if clusters is None else clusters[several], return_inverse=True)
    judges, judged = judged_twice(judges)
    if not len(judges):
        return None
    count = judged.sum(axis=1, keepdims=True)
    scores = np.where(judged, judges, 0.0)
    others = (scores.sum(axis=1, keepdims=True) - scores) / (count - 1)
    against = correlations(judges[judged], others[judged]).figures
    kappas = {
        weights: cohen_kappa(judges, weights) if same_persons else float("nan") for weights in get_args(KappaWeights)
    }
    reliabilities, limits = mean_reliability(judges, same_persons), [NO_INTERVAL, NO_INTERVAL]
    if len(images[0]) > 1 and resamples:
        draws = np.concatenate(list(Bootstrap(images[1], resamples, seed).weights(len(images[0]))))
        lowest = lowest_agreement(_chance_of_differing(judges[judged]), len(images[0]), level)
        replicates = _reliabilities(judges, images[1], draws, same_persons)
        limits = [_resampled_limits(figures, level, lowest) for figures in replicates]
    return JudgeAgreement(
        len(judges), int(judged.sum()), krippendorff_alpha(judges), kappas, dict(against), *reliabilities, *limits
    )


def lowest_agreement(differing: float, images: int, level: float = 0.95) -> float:
    """The lower limit of κ, α or a reliability where no judgements of so many images differ, and all figures are 1.

    None that differs among n images leaves room for about 3 ÷ n of them. As chance makes judgements differ with the
    probability ``differing`` (that of two judgements of any two pairs), the coefficient is 1 − 3 ÷ (n · differing).
    """
    agreeing = estimate(np.ones(images), np.arange(images), bounds=(0, 1), level=level).low
    return max(1 - (1 - agreeing) / differing, -1.0) if differing > 0 else float("nan")


def _chance_of_differing(values: Any) -> float:
    """That two of the judgements, drawn independently, are not the same."""
    shares = np.unique(np.asarray(values), return_counts=True)[1] / max(np.asarray(values).size, 1)
    return float(1 - (shares**2).sum())


def _resampled_limits(figures: FloatArray, level: float, lowest: float) -> tuple[float, float]:
    """Percentiles of the figures that are defined; where all of them are 1, ``lowest`` to 1."""
    valid = figures[np.isfinite(figures)]
    if not len(valid):
        return NO_INTERVAL
    if (valid > 1 - _PERFECT).all():
        return lowest, 1.0
    return percentiles(valid, level) if np.ptp(valid) > 0 else NO_INTERVAL


def mean_reliability(judges: FloatArray, same_persons: bool = True) -> tuple[float, float]:
    """The reliability of pairs' means and of single judgements, from the variances of pairs τ², judges λ² and noise σ².

    Variances are by analysis of variance (Henderson 1953, method 1), with λ² = 0 unless a column has the
    ``same_persons``. A judge's leniency is noise as far as it sets scores apart: not at all in the means of pairs that
    the same k persons judged, which have the consistency ICC(C, k); like σ² where no two pairs share a judge, which
    gives ICC(1, k) of Shrout and Fleiss (1979), as λ² = 0 does.
    """
    judges, _ = judged_twice(judges)
    pairs = np.zeros(len(judges), np.int64)
    mean, single = _reliabilities(judges, pairs, np.ones((1, min(len(judges), 1))), same_persons)
    return (float(mean[0]), float(single[0])) if len(mean) else (float("nan"), float("nan"))


def _reliabilities(
    judges: FloatArray, clusters: IntArray, weights: Any, same_persons: bool
) -> tuple[FloatArray, FloatArray]:
    """Both reliabilities of every resample: a row of how often each cluster of pairs was drawn."""
    judged = np.isfinite(judges)
    scores = np.where(judged, judges - judges[judged].mean() if judged.any() else 0.0, 0.0)  # large ones would cancel
    per_pair, of_pair = judged.sum(axis=1), scores.sum(axis=1)
    columns = [np.ones(len(judges)), per_pair, per_pair**2, 1 / per_pair, of_pair, (scores**2).sum(axis=1),
               of_pair**2 / per_pair, *judged.T, *scores.T, *(judged / per_pair[:, None]).T]  # fmt: skip
    sums = np.stack([np.bincount(clusters, column, weights.shape[1]) for column in columns])
    resampled = np.einsum("rc,kc->kr", weights, sums)
    pairs, total, squared_sizes, inverse_sizes, score, squares, of_pairs = resampled[:7]
    per_judge, of_judge, judge_weights = np.split(resampled[7:], 3)
    with np.errstate(invalid="ignore", divide="ignore"):
        centre = score**2 / total
        of_judges = np.where(per_judge > 0, of_judge**2 / np.maximum(per_judge, 1), 0.0).sum(axis=0)
        active = (per_judge > 0).sum(axis=0).astype(np.float64)
        # How often τ², λ² and σ² are in the expected sums of squares: of all scores, of pairs' and of judges' means.
        expected = np.array([[total, total, total], [total, pairs, pairs], [active, total, active]])
        expected = expected - np.array([squared_sizes, (per_judge**2).sum(axis=0), total]) / total
        expected = np.moveaxis(expected, 2, 0)
        observed = np.stack([squares - centre, of_pairs - centre, of_judges - centre], axis=1)
        valid = (pairs > 1) & np.isfinite(expected).all(axis=(1, 2))
        variances = np.full((len(pairs), 3), np.nan)
        if same_persons:
            variances[valid] = np.einsum("rij,rj->ri", np.linalg.pinv(expected[valid], rcond=1e-10), observed[valid])
        else:
            solved = np.einsum("rij,rj->ri", np.linalg.pinv(expected[valid][:, :2, ::2]), observed[valid, :2])
            variances[valid] = np.stack([solved[:, 0], np.zeros(len(solved)), solved[:, 1]], axis=1)
        signal, leniency, noise = variances.T
        per_mean = inverse_sizes / pairs
        shared = ((judge_weights / pairs) ** 2).sum(axis=0)
        of_mean = leniency * (per_mean - shared) * pairs / (pairs - 1) + noise * per_mean
        of_single = leniency * (total - (per_judge**2).sum(axis=0) / total) / (total - 1) + noise
        mean, single = (np.where(signal + off > 0, signal / (signal + off), np.nan) for off in (of_mean, of_single))
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

    A resample whose κ is undefined does not count. Of judges who agree throughout every resample is 1, and the lower
    limit is that of :func:`lowest_agreement`.
    """
    require_level(level)
    codes = np.unique(np.stack([first, second]), return_inverse=True)[1].reshape(2, -1)
    answers = int(codes.max(initial=0)) + 1
    groups = np.unique(np.asarray(clusters), return_inverse=True)[1]
    tables = np.zeros((int(groups.max(initial=-1)) + 1, answers, answers))
    np.add.at(tables, (groups, *codes), 1)
    draws = Bootstrap(groups, resamples, seed).weights(len(tables)) if len(tables) > 1 else iter(())
    replicates = [_table_kappas(np.tensordot(weights, tables, 1)) for weights in draws]
    kappas = np.concatenate([*replicates, np.empty(0)])
    shares = tables.sum(axis=0) / max(tables.sum(), 1)
    differing = 1 - float((shares.sum(axis=0) * shares.sum(axis=1)).sum())
    ends = _resampled_limits(kappas, level, lowest_agreement(differing, len(tables), level)) if len(kappas) else ()
    return Estimate(float(_table_kappas(shares[None])[0]), *ends)


def _table_kappas(tables: FloatArray) -> FloatArray:
    """κ of each table of counts, the answers of the first judge by those of the second."""
    shares = tables / np.maximum(tables.sum(axis=(1, 2), keepdims=True), 1)
    observed = np.trace(shares, axis1=1, axis2=2)
    expected = (shares.sum(axis=1) * shares.sum(axis=2)).sum(axis=1)
    kappas = np.full(len(tables), np.nan)
    np.divide(observed - expected, 1 - expected, out=kappas, where=expected < 1)
    return kappas


def _pair_kappa(first: FloatArray, second: FloatArray, weights: KappaWeights) -> float:
    valid = np.isfinite(first) & np.isfinite(second)
    if not valid.any():
        return float("nan")
    scores = np.stack([first[valid], second[valid]])
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
