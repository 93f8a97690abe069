"""How far judges agree, against worked examples and slow references."""

from __future__ import annotations

from itertools import combinations
from math import isnan

import numpy as np
import pytest

from crosslens.core import UnknownNameError
from crosslens.statistics import Bootstrap, cohen_kappa, correlations, judge_agreement, kappa_estimate
from crosslens.statistics.judges import mean_reliability


def slow_against(judges: np.ndarray) -> tuple[list[float], list[float]]:
    ones, others = [], []
    for row in judges:
        judgements = [judgement for judgement in row if not isnan(judgement)]
        for number, judgement in enumerate(judgements):
            if len(judgements) > 1:
                ones.append(judgement)
                others.append(float(np.mean(judgements[:number] + judgements[number + 1 :])))
    return ones, others


def test_one_judge_against_the_others() -> None:
    random = np.random.default_rng(8)
    judges = random.integers(1, 5, (40, 1)) + random.integers(-1, 2, (40, 3)).astype(float)
    judges[random.random((40, 3)) < 0.2] = np.nan
    agreement = judge_agreement(judges, resamples=0)
    assert agreement is not None
    ones, others = slow_against(judges)
    assert agreement.judgements == len(ones)
    assert agreement.one_against_others == pytest.approx(correlations(np.array(ones), np.array(others)).figures)
    shuffled = judge_agreement(random.permuted(judges, axis=1))
    assert shuffled is not None
    assert shuffled.alpha == pytest.approx(agreement.alpha)
    assert shuffled.one_against_others == pytest.approx(agreement.one_against_others)


def slow_reliability(judges: np.ndarray) -> tuple[float, float]:
    """One-way analysis of variance, term by term."""
    pairs = [[float(score) for score in row if not isnan(score)] for row in judges]
    pairs = [scores for scores in pairs if len(scores) > 1]
    everything = [score for scores in pairs for score in scores]
    grand = sum(everything) / len(everything)
    within, between = 0.0, 0.0
    for scores in pairs:
        mean = sum(scores) / len(scores)
        within += sum((score - mean) ** 2 for score in scores)
        between += len(scores) * (mean - grand) ** 2
    within /= len(everything) - len(pairs)
    between /= len(pairs) - 1
    typical = (len(everything) - sum(len(scores) ** 2 for scores in pairs) / len(everything)) / (len(pairs) - 1)
    signal = (between - within) / typical
    inverse = sum(1 / len(scores) for scores in pairs) / len(pairs)
    return signal / (signal + within * inverse), signal / (signal + within)


def test_reliability_of_unknown_persons_against_a_slow_reference() -> None:
    random = np.random.default_rng(11)
    judges = random.integers(1, 5, (60, 1)) + random.normal(size=(60, 4))
    judges[random.random((60, 4)) < 0.3] = np.nan
    expected = slow_reliability(judges)
    assert mean_reliability(judges, same_persons=False) == pytest.approx(expected)
    assert mean_reliability(random.permuted(judges, axis=1), same_persons=False) == pytest.approx(expected)
    result = judge_agreement(judges, same_persons=False)
    assert result is not None
    assert (result.reliability, result.single_reliability) == pytest.approx(expected)
    assert result.ceiling() == result.reliability**0.5


def slow_two_way(judges: np.ndarray) -> tuple[float, float]:
    """Variances whose expected sums of squares are those seen; the share of noise is that of simulated variances."""
    rows, columns = np.nonzero(np.isfinite(judges))
    scores = judges[rows, columns]
    of_pair, of_judge = (np.equal.outer(codes, np.unique(codes)).astype(float) for codes in (rows, columns))
    count = len(scores)
    mean = np.full((count, count), 1 / count)
    means = [table @ np.diag(1 / table.sum(axis=0)) @ table.T for table in (of_pair, of_judge)]
    forms = [form - mean for form in (np.eye(count), *means)]
    effects = [of_pair @ of_pair.T, of_judge @ of_judge.T, np.eye(count)]
    expected = [[np.trace(form @ effect) for effect in effects] for form in forms]
    variances = np.linalg.solve(expected, [scores @ form @ scores for form in forms])
    averages = np.diag(1 / of_pair.sum(axis=0)) @ of_pair.T
    shares = []
    for average in (averages, np.eye(count)):
        size = len(average)
        centre = np.eye(size) - 1 / size
        parts = [np.trace(centre @ average @ effect @ average.T) / (size - 1) for effect in effects]
        parts[0] = 1.0
        shares.append(variances[0] / float(variances @ parts))
    return shares[0], shares[1]


@pytest.mark.parametrize("missing", [0.0, 0.3, 0.6])
def test_reliability_of_persons_against_a_slow_reference(missing: float) -> None:
    random = np.random.default_rng(12)
    judges = random.normal(size=(40, 1)) + random.normal(size=6) + random.normal(size=(40, 6))
    judges[random.random((40, 6)) < missing] = np.nan
    judges = judges[np.isfinite(judges).sum(axis=1) > 1]
    assert mean_reliability(judges) == pytest.approx(slow_two_way(judges))
    assert mean_reliability(1e7 + judges) == pytest.approx(slow_two_way(judges), rel=1e-6), "large scores do not cancel"


def test_reliability_of_the_worked_example() -> None:
    """Shrout and Fleiss (1979), table 2 and 4, of four judges of six persons: ICC(1,1), ICC(1,4) and ICC(3,4)."""
    judges = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]], float)
    mean, single = mean_reliability(judges, same_persons=False)
    assert (round(single, 2), round(mean, 2)) == (0.17, 0.44)
    assert mean == pytest.approx(4 * single / (1 + 3 * single)), "Spearman and Brown"
    consistency = mean_reliability(judges)[0]
    assert round(consistency, 2) == 0.91
    cronbach = 4 / 3 * (1 - judges.var(axis=0, ddof=1).sum() / judges.sum(axis=1).var(ddof=1))
    assert consistency == pytest.approx(cronbach)


def test_persons_who_share_no_pair_are_like_unknown_ones() -> None:
    random = np.random.default_rng(13)
    scores = random.normal(size=(30, 1)) + random.normal(size=(30, 3))
    judges = np.full((30, 90), np.nan)
    for row, scores_of_pair in enumerate(scores):
        judges[row, 3 * row : 3 * row + 3] = scores_of_pair
    assert mean_reliability(judges) == pytest.approx(mean_reliability(scores, same_persons=False))


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_the_ceiling_of_judges_who_differ_in_leniency(missing: float) -> None:
    """The means of four judges correlate with the truth at 0.91 where everybody judges everything; it was 0.78."""
    random = np.random.default_rng(14)
    true, ceilings = [], []
    for _ in range(40):
        truth = random.normal(size=300)
        judges = truth[:, None] + random.normal(size=4) + 0.9 * random.normal(size=(300, 4))
        judges[random.random((300, 4)) < missing] = np.nan
        several = np.isfinite(judges).sum(axis=1) > 1
        agreement = judge_agreement(judges[several], resamples=0)
        assert agreement is not None
        ceilings.append((agreement.ceiling(), agreement.ceiling(pooled=True)))
        single = np.isfinite(judges[several])
        repeated = np.repeat(truth[several], single.sum(axis=1))
        means = np.corrcoef(truth[several], np.nanmean(judges[several], axis=1))[0, 1]
        true.append((means, np.corrcoef(repeated, judges[several][single])[0, 1]))
    assert np.mean(ceilings, axis=0) == pytest.approx(np.mean(true, axis=0), abs=0.015)
    if not missing:
        assert np.mean(ceilings, axis=0)[0] == pytest.approx(0.91, abs=0.005)


def test_reliability_where_there_is_none() -> None:
    assert all(isnan(value) for value in mean_reliability(np.array([[1.0, 2.0]])))
    assert all(isnan(value) for value in mean_reliability(np.ones((4, 2))))
    noise = judge_agreement(np.array([[1.0, 4.0], [4.0, 1.0], [1.0, 4.0]]))
    assert noise is not None
    assert noise.reliability < 0 or isnan(noise.reliability)
    assert isnan(noise.ceiling())


def test_kappa_needs_columns_that_are_persons() -> None:
    judges = np.array([[1.0, 2.0], [3.0, 4.0], [2.0, 2.0]])
    result = judge_agreement(judges, same_persons=False)
    assert result is not None
    assert all(isnan(kappa) for kappa in result.kappa.values())


def test_single_judges_do_not_agree() -> None:
    assert judge_agreement(np.array([[1.0, np.nan], [np.nan, 2.0]])) is None


def slow_kappa(first: list[float], second: list[float], power: int) -> float:
    """Over all pairs of judgements: those of one item are observed, those of any two items are chance."""

    def disagreement(left: float, right: float) -> float:
        return float(left != right) if power == 0 else abs(left - right) ** power

    observed = np.mean([disagreement(*pair) for pair in zip(first, second, strict=True)])
    chance = np.mean([disagreement(left, right) for left in first for right in second])
    return float(1 - observed / chance)


def test_kappa_of_a_worked_example() -> None:
    """20 both yes, 15 both no, 5 and 10 apart: observed 0.7, chance 0.5, κ = 0.4."""
    first = [1.0] * 25 + [0.0] * 25
    second = [1.0] * 20 + [0.0] * 5 + [1.0] * 10 + [0.0] * 15
    judges = np.array([first, second]).T
    assert [cohen_kappa(judges, weights) for weights in ("none", "linear", "quadratic")] == pytest.approx([0.4] * 3)


def test_the_interval_of_kappa() -> None:
    """Resample by resample against a slow reference, and near the asymptotic one (Fleiss, Cohen and Everitt 1969)."""
    first = np.array([1] * 25 + [0] * 25)
    second = np.array([1] * 20 + [0] * 5 + [1] * 10 + [0] * 15)
    kappa_with_interval = kappa_estimate(first, second, np.arange(50), resamples=200, seed=3)
    kappas = []
    for weights in np.concatenate(list(Bootstrap(np.arange(50), 200, 3).weights(50))):
        rows = np.repeat(np.arange(50), weights)
        kappas.append(slow_kappa(first[rows].tolist(), second[rows].tolist(), 0))
    assert kappa_with_interval.mean == pytest.approx(0.4)
    assert kappa_with_interval.interval == pytest.approx(np.quantile(kappas, [0.025, 0.975]))
    table, kappa, chance = np.array([[20, 5], [10, 15]]) / 50, 0.4, 0.5
    marginal = table.sum(axis=0)[:, None] + table.sum(axis=1)
    spread = sum(table[i, i] * (1 - marginal[i, i] * (1 - kappa)) ** 2 for i in range(2))
    spread += (1 - kappa) ** 2 * sum(table[i, j] * marginal[i, j] ** 2 for i, j in ((0, 1), (1, 0)))
    error = np.sqrt((spread - (kappa - chance * (1 - kappa)) ** 2) / ((1 - chance) ** 2 * 50))
    assert kappa_with_interval.interval == pytest.approx((kappa - 1.96 * error, kappa + 1.96 * error), abs=0.06)
    together = kappa_estimate(first, second, np.arange(50) // 10, resamples=200)
    assert together.high - together.low > 1.2 * (kappa_with_interval.high - kappa_with_interval.low), (
        "five clusters tell less than fifty items"
    )


def test_perfect_agreement_leaves_room_for_a_difference() -> None:
    """None of 50 images differs: about 3 may, and chance makes 48 % of judgements differ."""
    answers = np.array([1] * 30 + [0] * 20)
    perfect = kappa_estimate(answers, answers, np.arange(50))
    assert (perfect.mean, perfect.high) == (1, 1)
    assert perfect.low == pytest.approx(1 - (1 - 0.035 ** (1 / 50)) / 0.48)
    of_ten = kappa_estimate(np.repeat(answers, 2), np.repeat(answers, 2), np.arange(100) // 10)
    assert of_ten.low < perfect.low, "ten images tell less"
    scores = judge_agreement(np.stack([answers, answers, answers], axis=1).astype(float))
    assert scores is not None
    assert scores.reliability == pytest.approx(1)
    assert scores.reliability_interval == pytest.approx((perfect.low, 1))
    assert scores.ceiling_interval() == pytest.approx((perfect.low**0.5, 1))


@pytest.mark.parametrize(("images", "differing"), [(30, 0.02), (30, 0.1), (100, 0.02)])
def test_intervals_of_kappa_contain_the_truth(images: int, differing: float) -> None:
    """At 2 % that differ, 30 images agree throughout in most samples, which had no interval."""
    random, contained = np.random.default_rng(16), []
    chance = 1 - (0.5**2 + 0.5**2)
    for _ in range(150):
        first = random.random(images) < 0.5
        second = first ^ (random.random(images) < differing)
        figure = kappa_estimate(first, second, np.arange(images), resamples=200)
        contained.append(figure.low <= 1 - differing / chance <= figure.high)
    assert np.mean(contained) > 0.9


def slow_reliabilities(judges: np.ndarray, clusters: np.ndarray, draws: np.ndarray, same: bool) -> np.ndarray:
    names = np.unique(clusters)
    rows = [np.concatenate([np.flatnonzero(clusters == name) for name, times in zip(names, weights, strict=True)
                            for _ in range(times)]) for weights in draws]  # fmt: skip
    return np.array([mean_reliability(judges[each], same) for each in rows])


@pytest.mark.parametrize("same_persons", [True, False])
def test_the_interval_of_the_ceiling_against_a_slow_reference(same_persons: bool) -> None:
    random = np.random.default_rng(17)
    clusters = np.repeat(np.arange(20), 3)
    judges = random.normal(size=(60, 1)) + 0.5 * random.normal(size=4) + random.normal(size=(60, 4))
    judges[random.random((60, 4)) < 0.2] = np.nan
    judges[0] = [1, np.nan, np.nan, np.nan]
    result = judge_agreement(judges, same_persons, clusters, resamples=100, seed=5)
    assert result is not None
    draws = np.concatenate(list(Bootstrap(clusters[1:], 100, 5).weights(20)))
    drawn = slow_reliabilities(judges[1:], clusters[1:], draws, same_persons)
    limits = np.quantile(drawn, [0.025, 0.975], axis=0).T
    assert result.reliability_interval == pytest.approx(limits[0])
    assert result.single_reliability_interval == pytest.approx(limits[1])
    assert result.ceiling_interval() == pytest.approx(np.sqrt(limits[0]))
    assert result.ceiling_interval()[0] < result.ceiling() < result.ceiling_interval()[1]
    assert result.ceiling_interval(pooled=True) == pytest.approx(np.sqrt(limits[1]))


def test_the_interval_of_the_ceiling_contains_the_truth() -> None:
    """Two judges with noise as large as what they judge: reliability 2/3 of the mean."""
    random, contained = np.random.default_rng(18), []
    for _ in range(100):
        judges = random.normal(size=(80, 1)) + random.normal(size=(80, 2))
        result = judge_agreement(judges, same_persons=False, resamples=200)
        assert result is not None
        low, high = result.ceiling_interval()
        contained.append(low <= (2 / 3) ** 0.5 <= high)
    assert np.mean(contained) > 0.88


def test_no_interval_of_kappa_where_nothing_varies() -> None:
    for judges in (([1, 1, 1], [1, 1, 1]), ([], [])):
        kappa_with_interval = kappa_estimate(*judges, np.arange(len(judges[0])))
        assert isnan(kappa_with_interval.low)
        assert isnan(kappa_with_interval.high)
    assert isnan(kappa_estimate([1, 1], [1, 1], [0, 1]).mean)
    assert isnan(kappa_estimate([1, 0], [1, 1], [0, 0]).low), "one cluster"


@pytest.mark.parametrize(("weights", "power"), [("none", 0), ("linear", 1), ("quadratic", 2)])
def test_kappa_against_a_slow_reference(weights: str, power: int) -> None:
    random = np.random.default_rng(9)
    judges = random.integers(1, 5, (50, 1)) + random.integers(0, 2, (50, 3)).astype(float)
    judges[random.random((50, 3)) < 0.2] = np.nan
    expected = []
    for first, second in combinations(range(3), 2):
        both = ~np.isnan(judges[:, [first, second]]).any(axis=1)
        expected.append(slow_kappa(*judges[both][:, [first, second]].T.tolist(), power))
    assert cohen_kappa(judges, weights) == pytest.approx(np.mean(expected))
    agreement = judge_agreement(judges)
    assert agreement is not None
    assert agreement.kappa[weights] == cohen_kappa(judges, weights)


def test_kappa_where_chance_explains_everything() -> None:
    assert isnan(cohen_kappa(np.ones((5, 2))))
    with pytest.raises(UnknownNameError, match="weights of κ"):
        cohen_kappa(np.ones((5, 2)), "cubic")
