"""How far judges agree, against worked examples and slow references."""

from __future__ import annotations

from itertools import combinations
from math import isnan

import numpy as np
import pytest

from crosslens.core.errors import UnknownNameError
from crosslens.statistics import cohen_kappa, correlations, judge_agreement
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
    agreement = judge_agreement(judges)
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


def test_reliability_against_a_slow_reference() -> None:
    random = np.random.default_rng(11)
    judges = random.integers(1, 5, (60, 1)) + random.normal(size=(60, 4))
    judges[random.random((60, 4)) < 0.3] = np.nan
    assert mean_reliability(judges) == pytest.approx(slow_reliability(judges))
    assert mean_reliability(random.permuted(judges, axis=1)) == pytest.approx(mean_reliability(judges))
    result = judge_agreement(judges)
    assert result is not None
    assert (result.reliability, result.single_reliability) == mean_reliability(judges)
    assert result.ceiling() == result.reliability**0.5


def test_reliability_of_the_worked_example() -> None:
    """Shrout and Fleiss (1979), table 2: ICC(1,1) = 0.17 and ICC(1,4) = 0.44 of four judges of six persons."""
    judges = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]], float)
    mean, single = mean_reliability(judges)
    assert (round(single, 2), round(mean, 2)) == (0.17, 0.44)
    assert mean == pytest.approx(4 * single / (1 + 3 * single)), "Spearman and Brown"


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
