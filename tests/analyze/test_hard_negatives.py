"""Scores of hard negatives against slow references, written from the papers' definitions case by case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import binom

from crosslens.analyze import HardNegatives, HardNegativesResult, compare_hard_negatives
from crosslens.analyze.hard_negatives.result import (
    category_accuracies,
    evaluate_scores,
    judge_cases,
    macro_estimate,
    mcnemar,
)
from crosslens.core import InputError, UnknownNameError, UsageError
from crosslens.statistics import Bootstrap

LEVELS = (0.0, 0.25, 0.5)


def one_picture(wrongs: Sequence[int], categories: Sequence[str | None], photos: Sequence[int]) -> HardNegatives:
    """Cases with these numbers of wrong captions, categories and photos."""
    captions = []
    for number, (wrong, photo) in enumerate(zip(wrongs, photos, strict=True)):
        case, image = str(number), f"photo {photo}"
        captions.append((f"{case}:right", image, f"right {case}", case, True))
        captions += [(f"{case}:wrong{n}", image, f"wrong {case} {n}", case, False) for n in range(wrong)]
    images = [f"photo {photo}" for photo in photos]
    return HardNegatives.of("cases", {"image": images}, captions, {"category": categories}, averaged="category")


def two_pictures(number: int) -> HardNegatives:
    captions = [
        (f"{n}:{side}", f"{n}-{side}", f"text {n} {side}", str(n), True) for n in range(number) for side in (0, 1)
    ]
    return HardNegatives.of("pairs", {"image": [row[1] for row in captions]}, captions, {})


def scores_by_case(
    negatives: HardNegatives, scores: Sequence[float]
) -> list[dict[tuple[int, int], tuple[float, bool]]]:
    table: list[dict[tuple[int, int], tuple[float, bool]]] = [{} for _ in range(len(negatives))]
    for (case, caption, image, right), score in zip(negatives.pairs.iter_rows(), scores, strict=True):
        table[case][caption, image] = score, right
    return table


@st.composite
def scored_cases(draw: st.DrawFn) -> tuple[HardNegatives, list[float]]:
    size = draw(st.integers(2, 8))
    wrongs = draw(st.lists(st.integers(1, 3), min_size=size, max_size=size))
    categories = draw(st.lists(st.sampled_from(["a", "b", "c"]), min_size=size, max_size=size))
    photos = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    negatives = one_picture(wrongs, categories, photos)
    total = negatives.pairs.height
    return negatives, draw(st.lists(st.sampled_from(LEVELS), min_size=total, max_size=total))


@given(scored_cases())
def test_accuracy_is_what_the_definition_says(drawn: tuple[HardNegatives, list[float]]) -> None:
    negatives, scores = drawn
    result = evaluate_scores(negatives, np.array(scores), "m", resamples=0)
    correct, tied = [], []
    for case in scores_by_case(negatives, scores):
        right = next(score for score, is_right in case.values() if is_right)
        wrong = max(score for score, is_right in case.values() if not is_right)
        correct.append(right > wrong)
        tied.append(right == wrong)
    assert result.cases["correct"].to_list() == correct
    assert result.cases["tied"].to_list() == tied
    assert result.figure().value == pytest.approx(np.mean(correct))
    assert result.figure().tied == pytest.approx(np.mean(tied))
    shares = {}
    for category in dict.fromkeys(negatives.cases["category"]):
        inside = [right for right, name in zip(correct, negatives.cases["category"], strict=True) if name == category]
        shares[category] = np.mean(inside)
        assert result.figure(category).value == pytest.approx(shares[category])
        assert result.figure(category).cases == len(inside)
    assert result.figure(grouping="macro").value == pytest.approx(np.mean(list(shares.values())))


@given(st.lists(st.sampled_from(LEVELS), min_size=12, max_size=12))
def test_winoground_scores_are_what_the_definition_says(scores: list[float]) -> None:
    negatives = two_pictures(3)
    outcomes = judge_cases(negatives, np.array(scores))
    for number, case in enumerate(scores_by_case(negatives, scores)):
        c0, c1, i0, i1 = 2 * number, 2 * number + 1, 2 * number, 2 * number + 1
        s = {key: score for key, (score, _) in case.items()}
        text = s[c0, i0] > s[c1, i0] and s[c1, i1] > s[c0, i1]
        image = s[c0, i0] > s[c0, i1] and s[c1, i1] > s[c1, i0]
        assert outcomes.correct("text")[number] == text
        assert outcomes.correct("image")[number] == image
        assert outcomes.correct("group")[number] == (text and image)
    result = {row.measure: row.value for row in category_accuracies(negatives, outcomes, resamples=0)}
    assert result["group"] <= min(result["text"], result["image"])


def test_chance_is_what_random_scores_reach() -> None:
    negatives = two_pictures(4000)
    scores = np.random.default_rng(1).random(negatives.pairs.height)
    for row in category_accuracies(negatives, judge_cases(negatives, scores), resamples=0):
        assert row.value == pytest.approx(row.chance, abs=0.025)


def test_a_constant_model_is_never_right() -> None:
    result = evaluate_scores(one_picture([1, 2], ["a", "b"], [0, 1]), np.full(5, 0.3), "constant", resamples=10)
    assert (result.figure().value, result.figure().tied, result.figure().chance) == (0.0, 1.0, pytest.approx(5 / 12))


def test_ties_by_rounding_are_told_and_can_be_widened() -> None:
    negatives = one_picture([1, 1, 1], ["a"] * 3, [0, 1, 2])
    scores = np.array([0.5 + 1e-8, 0.5, 0.5, 0.5 + 1e-8, 0.9, 0.1])
    strict = evaluate_scores(negatives, scores, "m", resamples=0)
    assert strict.figure().value == pytest.approx(2 / 3)
    assert strict.outcomes.by_rounding == 2
    assert "--tolerance 1e-06" in " ".join(strict.text(200).split())
    wide = evaluate_scores(negatives, scores, "m", tolerance=1e-6, resamples=0)
    assert (wide.figure().value, wide.figure().tied) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    with pytest.raises(UsageError, match="tolerance"):
        judge_cases(negatives, scores, tolerance=-1)


def test_missing_scores_raise_or_leave_the_case_out() -> None:
    negatives = one_picture([1, 2, 1], ["a", "b", None], [0, 1, 1])
    scores = np.array([1.0, 0.0, 1.0, 0.0, np.nan, 0.0, 1.0])
    with pytest.raises(InputError, match="'1:wrong1'"):
        evaluate_scores(negatives, scores, "m", resamples=0)
    result = evaluate_scores(negatives, scores, "m", skip_missing=True, resamples=0)
    assert result.left_out == 1
    assert result.negatives.cases["case"].to_list() == ["0", "2"]
    assert result.figure().value == 0.5
    assert {row.category for row in result.figures} == {"", "a", "category"}, "no category without a case"
    with pytest.raises(InputError, match="finite"):
        judge_cases(negatives, np.full(7, np.inf))
    with pytest.raises(InputError, match="shape"):
        judge_cases(negatives, np.zeros(6))


def test_categories_below_the_fewest_are_not_averaged() -> None:
    from dataclasses import replace

    negatives = replace(one_picture([1] * 4, ["a", "a", "a", "b"], [0, 1, 2, 3]), fewest=2)
    scores = np.array([1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0])
    macro = evaluate_scores(negatives, scores, "m", resamples=20).figure(grouping="macro")
    assert (macro.value, macro.cases) == (pytest.approx(1 / 3), 3)


def test_the_macro_interval_is_about_what_resampling_all_categories_together_gives() -> None:
    random = np.random.default_rng(5)
    clusters = random.integers(0, 12, 60)
    values = (random.random(60) < 0.6).astype(np.float64)
    labels = random.integers(0, 3, 60)
    members = np.array([labels == category for category in range(3)])
    draws = Bootstrap(clusters, 200, seed=3)
    result = macro_estimate(values, members, clusters, draws)
    distinct = np.unique(clusters)
    slow = []
    for weights in np.concatenate(list(draws.weights(len(distinct)))):
        repeated = np.concatenate(
            [np.tile(np.flatnonzero(clusters == cluster), n) for cluster, n in zip(distinct, weights, strict=True)]
        )
        means = [values[rows].mean() for category in range(3) if len(rows := repeated[labels[repeated] == category])]
        slow.append(np.mean(means))
    assert (result.low, result.high) == pytest.approx(tuple(np.quantile(slow, [0.025, 0.975])), abs=0.08)
    assert result.mean == pytest.approx(np.mean([values[part].mean() for part in members]))
    alone = macro_estimate(values, np.ones((1, 60), np.bool_), clusters, draws)
    plain = draws.estimate(values, bounds=(0, 1))
    assert (alone.low, alone.high) == pytest.approx((plain.low, plain.high))


def test_intervals_see_that_a_photo_s_cases_are_not_independent() -> None:
    scores = np.tile([[1.0, 0.0], [0.0, 1.0]], (1, 40)).ravel()  # all cases of a photo go the same way
    apart = evaluate_scores(one_picture([1] * 80, ["a"] * 80, range(80)), scores, "m")
    shared = evaluate_scores(one_picture([1] * 80, ["a"] * 80, [n // 20 for n in range(80)]), scores, "m")
    width = [outcome.figure().high - outcome.figure().low for outcome in (apart, shared)]
    assert width[1] > 2 * width[0]


# Case by case


def result_of(scores: Sequence[float], name: str = "m") -> HardNegativesResult:
    negatives = one_picture([2, 1, 1], ["a", "b", "b"], [0, 1, 1])
    return evaluate_scores(negatives, np.array(scores), name, resamples=20)


def test_failures_come_with_the_largest_margin_first() -> None:
    result = result_of([0.2, 0.9, 0.5, 0.4, 0.5, 0.8, 0.1])
    rows = result.failures().select("case", "margin", "right", "wrong", "wrong_caption", "right_score").rows()
    assert rows == [
        ("0", pytest.approx(-0.7), "right 0", "wrong 0 0", "0:wrong0", 0.2),
        ("1", pytest.approx(-0.1), "right 1", "wrong 1 0", "1:wrong0", 0.4),
    ]
    assert result.failures(1).height == 1
    text = result.text(80)
    assert "-0.7  0, photo 0" in text
    assert "wrong: wrong 0 0" in text
    assert [row["case"] for row in result.as_dict()["failures"]] == ["0", "1"]
    with pytest.raises(UnknownNameError, match="measure"):
        result.figure(measure="text")
    with pytest.raises(UnknownNameError, match="category"):
        result.figure("c")


def test_two_pictures_case_by_case() -> None:
    negatives = two_pictures(2)
    values = {("0:0", "0-0"): 0.9, ("0:0", "0-1"): 0.1, ("0:1", "0-0"): 0.2, ("0:1", "0-1"): 0.8,
              ("1:0", "1-0"): 0.6, ("1:0", "1-1"): 0.7, ("1:1", "1-0"): 0.5, ("1:1", "1-1"): 0.8}  # fmt: skip
    ids = negatives.dataset.caption_ids, negatives.dataset.image_ids
    scores = [values[ids[0][caption], ids[1][image]] for _, caption, image, _ in negatives.pairs.iter_rows()]
    result = evaluate_scores(negatives, np.array(scores), "m", resamples=0)
    first, second = result.cases.rows(named=True)
    assert (first["text_correct"], first["image_correct"], first["group_correct"]) == (True, True, True)
    assert (second["text_correct"], second["image_correct"], second["group_correct"]) == (True, False, False)
    assert second["group_margin"] == pytest.approx(-0.1)
    for caption, side in product((0, 1), (0, 1)):
        assert second[f"score_{caption}_{side}"] == values[f"1:{caption}", f"1-{side}"]
    assert result.failures()["case"].to_list() == ["1"]
    assert "group score" in result.text(80)


# Two models


def test_comparison_counts_who_is_right_alone() -> None:
    ours = result_of([0.9, 0.1, 0.1, 0.9, 0.1, 0.1, 0.9], "ours")
    theirs = result_of([0.1, 0.9, 0.1, 0.9, 0.1, 0.9, 0.1], "theirs")
    result = compare_hard_negatives(ours, theirs, permutations=99, resamples=20)
    whole, a, b = result.differences
    assert (whole.only_first, whole.only_second, whole.difference) == (1, 1, pytest.approx(0.0))
    assert (a.category, a.difference, a.only_first) == ("a", pytest.approx(1.0), 1)
    assert (b.category, b.difference, b.only_second) == ("b", pytest.approx(-0.5), 1)
    assert "1st: ours; 2nd: theirs" in result.text(80)
    assert result.as_dict()["differences"][0]["cases"] == 3


def test_comparison_is_over_the_cases_that_both_have() -> None:
    negatives = one_picture([1, 1], ["a", "a"], [0, 1])
    whole = evaluate_scores(negatives, np.array([1.0, 0.0, 1.0, 0.0]), "whole", resamples=0)
    part = evaluate_scores(negatives, np.array([0.0, 1.0, np.nan, 0.0]), "part", skip_missing=True, resamples=0)
    result = compare_hard_negatives(whole, part, permutations=9, resamples=0)
    assert [row.cases for row in result.differences] == [1, 1]
    other_run = evaluate_scores(two_pictures(1), np.zeros(4), "other", resamples=0)
    with pytest.raises(UsageError, match="same cases"):
        compare_hard_negatives(whole, other_run)


@pytest.mark.parametrize(("first", "second"), [(0, 0), (1, 0), (5, 5), (9, 2), (2, 9), (30, 14)])
def test_mcnemar_is_a_fair_coin(first: int, second: int) -> None:
    total = first + second
    expected = 1.0 if total == 0 else min(1.0, 2 * binom.cdf(min(first, second), total, 0.5))
    assert mcnemar(first, second) == pytest.approx(expected)


@pytest.mark.filterwarnings("error")
def test_a_macro_over_one_photo_has_no_interval() -> None:
    """Only category a is large enough to be averaged, and all of it is on one photo."""
    negatives = replace(one_picture([1] * 6, ["a"] * 3 + ["b", "c", "d"], [0, 0, 0, 1, 2, 3]), fewest=3)
    result = evaluate_scores(negatives, np.tile([1.0, 0.0], 6), "model", resamples=50)
    assert np.isnan(result.figure(grouping="macro").low)


def test_what_is_said_below_the_table() -> None:
    several = evaluate_scores(one_picture([1, 1], ["a", "b"], [0, 1]), np.tile([1.0, 0.0], 2), "model", resamples=9)
    assert "macro: the mean over the categories of 'category', each counting the same." in several.text(200)
    assert "95% intervals over photos" in several.text(200)
    alone = evaluate_scores(one_picture([1], ["a"], [0]), np.array([1.0, 0.0]), "model", resamples=9)
    assert "interval" not in alone.text(200), "one photo has none"
