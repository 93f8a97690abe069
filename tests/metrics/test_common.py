"""One suite for every registered metric: its slow reference, its invariances, ties, chance, and lists cut short."""

from __future__ import annotations

import re
from functools import cache
from math import comb, isnan

import numpy as np
import pytest
from hypothesis import given, strategies as st

from crosslens.core import InputError, UnknownNameError
from crosslens.metrics import METRICS, TIES, MetricSpec, compute, compute_across, family_of, measure, parse_metric
from crosslens.statistics import aggregate
from crosslens.values import Ranking
from tests.metrics.brute import rank
from tests.metrics.graded_reference import GRADED
from tests.metrics.reference import REFERENCES, headline, value
from tests.tables import each_row


def variants() -> list[MetricSpec]:
    """Every registered metric, with every flag, at small and large cutoffs."""
    specs = []
    for entry in METRICS:
        family = entry.value
        if family.graded:
            continue  # test_graded_common.py does the same for them
        flags = [option.name for option in family.options if option.kind == "flag"]
        cutoffs = {"none": [None], "optional": [None, 1, 3], "required": [1, 2, 3, 10]}[family.cutoff]
        specs += [
            MetricSpec(family.name, flags_of_spec, k)
            for flags_of_spec in ((), *((flag,) for flag in flags))
            for k in cutoffs
        ]
    return specs


SPECS = variants()
ONE_DIRECTION = [spec for spec in SPECS if not family_of(spec).across]
ACROSS = [spec for spec in SPECS if family_of(spec).across]

ties_of_four = st.integers(0, 3)


@st.composite
def galleries(draw: st.DrawFn, items: int = 6, few_scores: bool = True) -> tuple[list[list[float]], list[set[int]]]:
    """Scores of up to four queries, and what is relevant to each; at least one query has something."""
    size = draw(st.integers(1, items))
    queries = draw(st.integers(1, 4))
    if few_scores:
        row = st.lists(ties_of_four, min_size=size, max_size=size)
    else:
        row = st.permutations(range(-size // 2, size - size // 2))
    relevant = draw(st.lists(st.sets(st.integers(0, size - 1)), min_size=queries, max_size=queries))
    relevant[0] = relevant[0] or {0}
    return draw(st.lists(row, min_size=queries, max_size=queries)), relevant


def per_query(spec: MetricSpec, scores: list[list[float]], relevant: list[set[int]], ties: str) -> list[float]:
    result = []
    for row, relevant_items in zip(scores, relevant, strict=True):
        figure = value(spec, row, relevant_items, ties) if relevant_items else float("nan")
        if isinstance(figure, list):
            figure = headline(MetricSpec(spec.family), figure)
        result.append(figure)
    return result


def test_every_metric_has_a_slow_reference() -> None:
    assert {entry.name for entry in METRICS if not entry.value.graded} == set(REFERENCES)
    assert {entry.name for entry in METRICS if entry.value.graded} == set(GRADED)


@pytest.mark.parametrize("ties", TIES)
@given(galleries())
def test_agrees_with_the_reference(ties: str, data: tuple[list[list[float]], list[set[int]]]) -> None:
    scores, relevant = data
    ranking = rank(scores, relevant)
    for spec in ONE_DIRECTION:
        ours, theirs = compute(spec, ranking, ties), per_query(spec, scores, relevant, ties)
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12, err_msg=str(spec))


@each_row("spec", ONE_DIRECTION, ids=str)
@each_row("ties", TIES)
def test_headline_agrees_with_the_reference(spec: MetricSpec, ties: str) -> None:
    random = np.random.default_rng(3)
    scores = random.integers(0, 4, (9, 6)).tolist()
    relevant = [set(random.choice(6, random.integers(0, 5), replace=False).tolist()) for _ in range(9)]
    assert set() in relevant
    figures = measure({"i2t": rank(scores, relevant)}, {"i2t": np.arange(9)}, [spec], ties=ties, resamples=10)
    metric = figures[f"i2t/{spec}"]
    values = [
        value(spec, row, relevant_items, ties)
        for row, relevant_items in zip(scores, relevant, strict=True)
        if relevant_items
    ]
    assert metric.mean == pytest.approx(headline(spec, values), rel=1e-12)
    assert (metric.n, metric.excluded) == (len(values), 9 - len(values))
    lowest, highest = family_of(spec).range
    assert all(isnan(value) or lowest <= value <= highest for value in metric.values)


@given(data=galleries(few_scores=False), seed=st.integers(0, 99))
def test_invariant_to_order_and_to_monotone_scores(data: tuple[list[list[float]], list[set[int]]], seed: int) -> None:
    scores, relevant = np.array(data[0], float), data[1]
    random = np.random.default_rng(seed)
    queries, items = random.permutation(len(scores)), random.permutation(scores.shape[1])
    moved = [{int(np.flatnonzero(items == item)[0]) for item in relevant[query]} for query in queries]
    ranking, reordered = rank(scores, relevant), rank(scores[queries][:, items], moved)
    stretched = rank(np.exp(scores) - 50, relevant)
    for spec in ONE_DIRECTION:
        original = compute(spec, ranking)
        np.testing.assert_array_equal(compute(spec, reordered), original[queries], err_msg=str(spec))
        np.testing.assert_array_equal(compute(spec, stretched), original, err_msg=str(spec))


def test_without_ties_all_modes_agree() -> None:
    random = np.random.default_rng(5)
    scores = random.normal(size=(20, 30))
    relevant = [set(random.choice(30, random.integers(0, 6), replace=False).tolist()) for _ in range(20)]
    ranking = rank(scores, relevant)
    for spec in ONE_DIRECTION:
        for ties in TIES:
            np.testing.assert_allclose(
                compute(spec, ranking, ties), compute(spec, ranking), rtol=1e-14, err_msg=f"{spec} {ties}"
            )


@each_row("spec", ONE_DIRECTION, ids=str)
def test_a_query_without_relevant_items_changes_nothing_but_the_count(spec: MetricSpec) -> None:
    random = np.random.default_rng(7)
    scores, relevant = random.normal(size=(12, 8)), [{item % 8, (item * 3) % 8} for item in range(12)]
    with_one = np.vstack([scores[:5], random.normal(size=(1, 8)), scores[5:]])
    few = measure({"t2i": rank(scores, relevant, "t2i")}, {"t2i": np.arange(12)}, [spec])[f"t2i/{spec}"]
    more = measure(
        {"t2i": rank(with_one, [*relevant[:5], set(), *relevant[5:]], "t2i")}, {"t2i": np.arange(13)}, [spec]
    )[f"t2i/{spec}"]
    assert (few.mean, few.low, few.high, few.n) == (more.mean, more.low, more.high, more.n)
    assert (few.excluded, more.excluded) == (0, 1)
    assert isnan(more.values[5])


@cache
def tied_ranking() -> Ranking:
    random = np.random.default_rng(11)
    scores = random.integers(0, 3, (40, 12))
    return rank(scores, [set(random.choice(12, random.integers(1, 7), replace=False).tolist()) for _ in range(40)])


@each_row("spec", ONE_DIRECTION, ids=str)
def test_modes_stand_in_order(spec: MetricSpec) -> None:
    """Optimistic is best, pessimistic worst, whatever the metric; the others lie between."""
    ranking = tied_ranking()
    sign = 1 if family_of(spec).higher_is_better else -1
    best, worst = sign * compute(spec, ranking, "optimistic"), sign * compute(spec, ranking, "pessimistic")
    # A median of expected ranks is no expected median: items of one tie all get the same rank, and it may lie outside.
    for ties in ("stable",) if family_of(spec).pooled(spec) else ("stable", "expected"):
        middle = sign * compute(spec, ranking, ties)
        assert (middle <= best + 1e-12).all()
        assert (middle >= worst - 1e-12).all()


# What a scorer that cannot tell anything apart must score, for n items of which R are relevant.
CHANCE = {
    "Hit@3": lambda n, r: 1 - comb(n - r, 3) / comb(n, 3),
    "Recall@3": lambda n, r: 3 / n,
    "CappedRecall@3": lambda n, r: 3 * r / n / min(3, r),
    "Fails": lambda n, r: 1 - r / n,
    "RPrecision": lambda n, r: r / n,
    "MeanR": lambda n, r: (n + 1) / (r + 1),
    "MedR": lambda n, r: (n + 1) / (r + 1),
    "MedR[all]": lambda n, r: (n + 1) / 2,
    "MeanR[all]": lambda n, r: (n + 1) / 2,
    "MRR": lambda n, r: sum(comb(n - j, r - 1) / comb(n, r) / j for j in range(1, n - r + 2)),
    "MRR@3": lambda n, r: sum(comb(n - j, r - 1) / comb(n, r) / j for j in range(1, min(3, n - r + 1) + 1)),
    "AP": lambda n, r: sum((1 + (j - 1) * (r - 1) / (n - 1)) / j for j in range(1, n + 1)) / n,
    "AP@3": lambda n, r: sum((1 + (j - 1) * (r - 1) / (n - 1)) / j for j in range(1, 4)) / n,
    "Precision@3": lambda n, r: r / n,
    "mAP@R": lambda n, r: sum((1 + (j - 1) * (r - 1) / (n - 1)) / j for j in range(1, r + 1)) / n,
}


def test_chance_is_written_down_for_every_metric() -> None:
    assert {parse_metric(text).spec.family for text in CHANCE} == {spec.family for spec in ONE_DIRECTION}


@each_row("sharers", [1, 2, 5, 40])
def test_constant_scorer_scores_at_chance(sharers: int) -> None:
    n = 200
    ranking = rank(np.full((2, n), 0.5), [set(range(sharers)), set(range(n - sharers, n))])
    for text, chance in CHANCE.items():
        values = compute(parse_metric(text).spec, ranking, "expected")
        np.testing.assert_allclose(values, chance(n, sharers), rtol=1e-10, err_msg=text)


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("spec", ACROSS, ids=str)
@given(data=st.data())
def test_across_directions(spec: MetricSpec, ties: str, data: st.DataObject) -> None:
    """The plain mean over images is exactly the sum of both directions' means, however uneven the data."""
    images = data.draw(st.integers(1, 4))
    image_of = data.draw(st.lists(st.integers(0, images - 1), min_size=1, max_size=5))
    captions = len(image_of)
    scores = np.array(
        data.draw(
            st.lists(st.lists(ties_of_four, min_size=captions, max_size=captions), min_size=images, max_size=images)
        )
    )
    forward = data.draw(st.lists(st.sets(st.integers(0, captions - 1)), min_size=images, max_size=images))
    back = data.draw(st.lists(st.sets(st.integers(0, images - 1)), min_size=captions, max_size=captions))
    forward[0], back[0] = forward[0] or {0}, back[0] or {0}
    rankings = {"i2t": rank(scores, forward), "t2i": rank(scores.T, back, "t2i")}
    values = compute_across(spec, rankings, {"i2t": np.arange(images), "t2i": np.array(image_of)}, ties)
    expected = sum(
        np.nanmean(per_query(spec, table.tolist(), relevant, ties))
        for table, relevant in ((scores, forward), (scores.T, back))
    )
    assert np.nanmean(values) == pytest.approx(expected, rel=1e-12)


def test_across_directions_within_folds() -> None:
    random = np.random.default_rng(2)
    image_of = np.sort(random.integers(0, 20, 70))
    fold = np.arange(20) // 5
    scores = random.normal(size=(20, 70))
    rankings = {
        "i2t": rank(scores, [set(np.flatnonzero(image_of == image).tolist()) for image in range(20)]),
        "t2i": rank(scores.T, [{int(image)} for image in image_of], "t2i"),
    }
    clusters, strata = {"i2t": np.arange(20), "t2i": image_of}, {"i2t": fold, "t2i": fold[image_of]}
    results = measure(rankings, clusters, "Rsum Hit@1 Hit@5 Hit@10", strata=strata, resamples=20)
    six = [metric.mean for name, metric in results.items() if name != "Rsum"]
    assert len(six) == 6
    assert results["Rsum"].mean == pytest.approx(100 * sum(six), rel=1e-12)
    by_hand = [aggregate(results["t2i/Hit@1"].values[strata["t2i"] == number]) for number in range(4)]
    assert results["t2i/Hit@1"].mean == pytest.approx(np.mean(by_hand), rel=1e-12)


@cache
def cut_rankings() -> list[tuple[Ranking, Ranking]]:
    """Whole rankings and what lists of every length show of them, with and without ties."""
    random = np.random.default_rng(13)
    pairs = []
    for trial in range(6):
        scores = random.integers(0, 4 if trial % 2 else 1000, (3, 7))
        relevant = [set(random.choice(7, random.integers(0, 4), replace=False).tolist()) for _ in range(3)]
        whole = rank(scores, relevant)
        pairs += [(whole, rank(scores, relevant, length=length)) for length in range(1, 8)]
    return pairs


@each_row("ties", TIES)
@each_row("spec", ONE_DIRECTION, ids=str)
def test_lists_cut_short_raise_or_agree(spec: MetricSpec, ties: str) -> None:
    """A list never gives another number than the whole gallery: it gives the same, or an error that says why."""
    outcomes = []
    expected: dict[int, np.ndarray] = {}
    for whole, cut in cut_rankings():
        if id(whole) not in expected:
            expected[id(whole)] = compute(spec, whole, ties)
        try:
            values = compute(spec, cut, ties)
        except InputError as error:
            outcomes.append(str(error))
        else:
            outcomes.append("")
            np.testing.assert_allclose(values, expected[id(whole)], rtol=1e-12)
    assert not any(outcomes[6::7]), "a list of the whole gallery is enough"
    shorter = [outcome for row, outcome in enumerate(outcomes) if row % 7 != 6]
    assert ("" in shorter) == (spec.cutoff != 10), "a short one is, where it shows what counts"
    pattern = re.compile(
        rf"i2t/{re.escape(str(spec))} cannot be computed: .* query 'q\d'.* items?\n.*expected.*\n.*fix: "
    )
    assert all(pattern.match(outcome) for outcome in outcomes if outcome)


@each_row("spec", ONE_DIRECTION, ids=str)
def test_nothing_to_count(spec: MetricSpec) -> None:
    nothing = rank(np.zeros((3, 4)), [set(), set(), set()])
    for ties in TIES:
        assert np.isnan(compute(spec, nothing, ties)).all()
    metric = measure({"i2t": nothing}, {"i2t": np.arange(3)}, [spec])[f"i2t/{spec}"]
    assert isnan(metric.mean)
    assert isnan(metric.low)
    assert metric.n == 0


def test_unknown_tie_mode() -> None:
    with pytest.raises(UnknownNameError, match="did you mean optimistic"):
        compute(MetricSpec("MRR"), rank([[1, 2]], [{0}]), "optimist")
