"""Expected values in random sub-galleries against every sub-gallery looked at, and against drawn ones."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import comb, isclose
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, strategies as st

from crosslens.core import InputError, UsageError
from crosslens.metrics import SubGalleries, Ties, compute, parse_metric, require_expectation
from crosslens.metrics.sub_galleries import chance_of, chance_up_to, mean_reciprocal
from tests.tables import each_row

from .brute import rank
from .reference import value

METRICS = (
    "Hit@1", "Hit@3", "Fails", "Recall@2", "CappedRecall@2", "Precision@3", "RPrecision", "mAP@R", "AP@3", "MRR",
    "MRR@2", "MeanR", "t2i/Rsum", "t2i/Rsum[capped]",
)  # fmt: skip


def slow_value(metric: str, scores: list[int], relevant: set[int], size: int, ties: str) -> float:
    """The mean over all sub-galleries of this size that hold the relevant items, each ranked by itself."""
    others = [item for item in range(len(scores)) if item not in relevant]
    values = []
    for drawn in combinations(others, size - len(relevant)):
        kept = sorted([*relevant, *drawn])
        places = {kept.index(item) for item in relevant}
        values.append(value(parse_metric(metric).spec, [scores[item] for item in kept], places, ties))
    return fmean(values)


@given(st.data())
def test_expected_values_are_means_over_all_sub_galleries(data: st.DataObject) -> None:
    items = data.draw(st.integers(2, 7))
    scores = data.draw(st.lists(st.integers(0, 3), min_size=items, max_size=items))
    relevant = data.draw(st.sets(st.integers(0, items - 1), min_size=1, max_size=3))
    size = data.draw(st.integers(len(relevant), items))
    metric = data.draw(st.sampled_from(METRICS))
    ties: Ties = data.draw(st.sampled_from(("stable", "optimistic", "pessimistic", "expected")))
    galleries = SubGalleries(rank([scores], [relevant], "t2i"), ties)
    expected = slow_value(metric, scores, relevant, size, ties)
    assert galleries.values(parse_metric(metric).spec, size)[0] == pytest.approx(expected, abs=1e-12)


@each_row("ties", ["stable", "optimistic", "pessimistic", "expected"])
@each_row("metric", [*METRICS, "AP"])
def test_the_whole_gallery_gives_the_metric_itself(metric: str, ties: Ties) -> None:
    random = np.random.default_rng(3)
    scores = random.integers(0, 9, (40, 30))
    relevant = [{int(item)} for item in random.integers(0, 30, 40)]
    if metric != "AP":
        relevant = [{*items, int(random.integers(0, 30))} for items in relevant]
    ranking = rank(scores, relevant, "t2i")
    spec = parse_metric(metric).spec
    expected = compute(spec, ranking, ties)
    np.testing.assert_allclose(SubGalleries(ranking, ties).values(spec, 30), expected, atol=1e-12)


def test_drawn_sub_galleries_agree() -> None:
    """A gallery that is too large to look at every sub-gallery: 600 are drawn."""
    random = np.random.default_rng(5)
    scores = random.integers(0, 60, 200).tolist()
    relevant = {10, 77, 150}
    galleries = SubGalleries(rank([scores], [relevant], "t2i"))
    others = [item for item in range(200) if item not in relevant]
    metrics = [parse_metric(metric).spec for metric in ("Hit@1", "Hit@10", "MRR", "MeanR", "Recall@10", "mAP@R")]
    drawn: dict[str, list[float]] = {str(spec): [] for spec in metrics}
    for _ in range(600):
        kept = sorted([*relevant, *random.choice(others, 37, replace=False).tolist()])
        places = {kept.index(item) for item in relevant}
        for spec in metrics:
            drawn[str(spec)].append(value(spec, [scores[item] for item in kept], places))
    for spec in metrics:
        values = drawn[str(spec)]
        error = np.std(values) / len(values) ** 0.5
        assert abs(galleries.values(spec, 40)[0] - np.mean(values)) < 4.5 * error + 1e-9


def slow_median(scores: list[list[int]], relevant: list[set[int]], size: int) -> float:
    """The median over all queries and all their sub-galleries, every query weighing the same."""
    weighted = []
    for row, relevant_items in zip(scores, relevant, strict=True):
        others = [item for item in range(len(row)) if item not in relevant_items]
        samples = list(combinations(others, size - len(relevant_items)))
        for drawn in samples:
            first = max(row[item] for item in relevant_items)
            before = sum(row[item] >= first for item in drawn)  # pessimistic: no index to look at
            weighted.append((1 + before, Fraction(1, len(samples))))
    weighted.sort()
    half, running = Fraction(len(scores), 2), Fraction(0)
    for number, (own_rank, weight) in enumerate(weighted):
        running += weight
        if running > half:
            return own_rank
        if running == half:
            return (own_rank + weighted[number + 1][0]) / 2
    raise AssertionError


def test_shares_of_ranks_lead_to_the_median() -> None:
    random = np.random.default_rng(8)
    scores = random.integers(0, 12, (5, 9)).tolist()
    relevant = [{int(item)} for item in random.integers(0, 9, 5)]
    galleries = SubGalleries(rank(scores, relevant, "t2i"), "pessimistic")
    for size in (2, 4, 7, 9):
        shares = [galleries.within(k, size).mean() for k in range(1, size + 1)]
        lower = next(k for k, share in enumerate(shares, start=1) if share >= 0.5 - 1e-12)
        upper = next(k for k, share in enumerate(shares, start=1) if share > 0.5 + 1e-12)
        assert (lower + upper) / 2 == slow_median(scores, relevant, size)


def test_every_relevant_item_by_itself() -> None:
    scores, relevant = [[5, 4, 3, 2, 1, 0]], [{1, 4}]
    galleries = SubGalleries(rank(scores, relevant, "t2i"))
    np.testing.assert_allclose(galleries.pair_ranks(6), [2, 5])
    np.testing.assert_allclose(galleries.pair_ranks(4), [1 + 2 / 4, 2 + 2 * 3 / 4])
    np.testing.assert_allclose(galleries.within(2, 4, each=True), [1, 0], atol=1e-12)


def test_a_constant_scorer_is_at_chance_in_every_gallery() -> None:
    ranking = rank(np.zeros((3, 50)), [{0}, {10}, {49}], "t2i")
    galleries = SubGalleries(ranking, "expected")
    for size in (1, 7, 50):
        np.testing.assert_allclose(galleries.values(parse_metric("Hit@1").spec, size), 1 / size)
        np.testing.assert_allclose(galleries.values(parse_metric("MeanR").spec, size), (size + 1) / 2)


def test_queries_without_a_relevant_item_are_excluded() -> None:
    galleries = SubGalleries(rank([[3, 2, 1], [3, 2, 1]], [{0}, set()], "t2i"))
    assert galleries.values(parse_metric("Hit@1").spec, 2).tolist()[0] == 1
    assert np.isnan(galleries.values(parse_metric("MeanR").spec, 2)[1])
    assert np.isnan(galleries.within(1, 2)[1])


# Chances


@given(st.integers(1, 300), st.data())
def test_chances_are_those_of_counting(others: int, data: st.DataObject) -> None:
    before, drawn, taken = (data.draw(st.integers(0, others)) for _ in range(3))

    def ways(count: int) -> int:
        return comb(before, count) * comb(others - before, drawn - count) if count <= drawn else 0

    total = comb(others, drawn)
    arrays = [np.array([part]) for part in (taken, others, before, drawn)]
    assert isclose(chance_of(*arrays)[0], Fraction(ways(taken), total), rel_tol=1e-11, abs_tol=1e-300)
    up_to = Fraction(sum(ways(count) for count in range(taken + 1)), total)
    assert isclose(chance_up_to(*arrays)[0], up_to, rel_tol=1e-11, abs_tol=1e-15)
    reciprocal = sum(Fraction(ways(count), total) / (count + 1) for count in range(drawn + 1))
    assert isclose(mean_reciprocal(*arrays[1:])[0], reciprocal, rel_tol=1e-10)
    cut = sum(Fraction(ways(count), total) / (count + 1) for count in range(min(drawn + 1, taken)))
    assert isclose(mean_reciprocal(*arrays[1:], most=taken)[0], cut, rel_tol=1e-9, abs_tol=1e-14)


def test_chances_among_a_thousand_million() -> None:
    """The limit of rare draws is Poisson's; the exact value was computed with 40 digits."""
    arrays = [np.array([part]) for part in (3050, 10**9, 3 * 10**6, 10**6)]
    assert chance_of(*arrays)[0] == pytest.approx(0.004774712730367037756824, rel=1e-12)
    none = chance_of(*(np.array([part]) for part in (0, 10**9, 500, 10**6)))[0]
    assert none == pytest.approx(np.exp(-0.5 - 0.5 * 0.0005), rel=1e-6)


# Mistakes


def test_mistakes_are_named() -> None:
    ranking = rank([[3, 2, 1], [3, 2, 1]], [{0, 1}, {2}], "t2i")
    hit = parse_metric("Hit@1").spec
    with pytest.raises(InputError, match="a gallery of 1 cannot hold the 2 relevant items of query 'q0'"):
        SubGalleries(ranking).values(hit, 1)
    with pytest.raises(UsageError, match="a sub-gallery of 4 items"):
        SubGalleries(ranking).values(hit, 4)
    with pytest.raises(InputError, match="lists do not hold the whole gallery: that of query 'q0' has 2 of 3"):
        SubGalleries(rank([[3, 2, 1]], [{0}], "t2i", length=2))
    with pytest.raises(UsageError, match="AP of queries with several relevant items has no closed form"):
        SubGalleries(ranking).values(parse_metric("AP").spec, 2)
    with pytest.raises(UsageError, match="has no closed form in smaller galleries"):
        require_expectation(parse_metric("DCGcm@10").spec)
