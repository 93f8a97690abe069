"""One suite for every graded metric: its slow reference, its invariances, ties, lists cut short, nothing to compare."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import product
from math import isnan

import numpy as np
import pytest
from hypothesis import given, settings

from crosslens.core import InputError
from crosslens.metrics import METRICS, TIES, GainMatrix, MetricSpec, compute, compute_across, family_of, measure
from crosslens.values import Ranking
from tests.metrics.graded_data import Collection, collections, made_up
from tests.metrics.graded_reference import SPECS as VARIANTS, value
from tests.tables import each_row, rest_slow

SPECS, ACROSS = ([spec for spec in VARIANTS if family_of(spec).across == across] for across in (False, True))
DIRECTIONS = ("i2t", "t2i")


def reference(spec: MetricSpec, data: Collection, direction: str, ties: str = "stable") -> list[float]:
    return [value(spec, query, ties) for query in data.queries(direction)]


@cache
def ranked(seed: int, direction: str) -> Ranking:
    """A made-up collection, ranked once for all metrics."""
    return made_up(seed).ranking(direction)


def test_every_graded_metric_is_in_the_suite() -> None:
    assert {entry.name for entry in METRICS if entry.value.graded} == {spec.family for spec in (*SPECS, *ACROSS)}


@settings(max_examples=5)
@given(data=collections())
def test_agrees_with_the_reference(data: Collection) -> None:
    gains = data.gains()
    for direction in DIRECTIONS:
        ranking, queries = data.ranking(direction), data.queries(direction)
        for spec, ties in product(SPECS, TIES):
            ours = compute(spec, ranking, ties, gains)
            theirs = [value(spec, query, ties) for query in queries]
            np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9, err_msg=f"{direction}/{spec} {ties}")


@each_row("direction", DIRECTIONS)
def test_independent_of_the_order_of_images_and_captions(direction: str) -> None:
    data, random = made_up(3), np.random.default_rng(4)
    images, captions = random.permutation(6), random.permutation(14)
    moved = data.moved(images, captions)
    ranking, other_ranking = data.ranking(direction), moved.ranking(direction)
    queries = images if direction == "i2t" else captions
    for spec in SPECS:
        original = compute(spec, ranking, "stable", data.gains())
        after = compute(spec, other_ranking, "stable", moved.gains())
        np.testing.assert_allclose(after, original[queries], rtol=1e-12, err_msg=str(spec))


@each_row("direction", DIRECTIONS)
def test_independent_of_monotone_scores(direction: str) -> None:
    data = made_up(5)
    stretched = replace(data, scores=np.exp(data.scores) - 50)
    rankings = [collection.ranking(direction) for collection in (stretched, data)]
    for spec in SPECS:
        if spec.family != "DCGcm":
            ours, theirs = (compute(spec, ranking, "stable", data.gains()) for ranking in rankings)
            np.testing.assert_array_equal(ours, theirs, err_msg=str(spec))


@each_row("spec", SPECS, ids=str)
def test_without_ties_all_modes_agree(spec: MetricSpec) -> None:
    gains = made_up(6).gains()
    for direction in DIRECTIONS:
        ranking = ranked(6, direction)
        stable = compute(spec, ranking, "stable", gains)
        for ties in TIES:
            np.testing.assert_allclose(compute(spec, ranking, ties, gains), stable, err_msg=ties)


@settings(max_examples=4)
@given(data=collections(5, 6))
def test_modes_stand_in_order(data: Collection) -> None:
    gains = data.gains()
    for direction in DIRECTIONS:
        ranking = data.ranking(direction)
        for spec in SPECS:
            values = {ties: np.nan_to_num(compute(spec, ranking, ties, gains)) for ties in TIES}
            for ties in ("stable", "expected"):
                assert (values[ties] <= values["optimistic"] + 1e-9).all(), spec
                assert (values[ties] >= values["pessimistic"] - 1e-9).all(), spec


@cache
def cut_rankings(trial: int) -> tuple[dict[str, GainMatrix], Ranking, dict[int, Ranking]]:
    """Gains, a whole ranking, and what lists of every length show of it; every other one has ties."""
    data = made_up(trial, 3, 7)
    gains = data.gains()
    if trial % 2:
        data = replace(data, scores=np.random.default_rng(trial).integers(0, 4, (3, 7)).astype(float))
    return gains, data.ranking("i2t"), {length: data.ranking("i2t", length=length) for length in range(1, 8)}


@each_row("spec", SPECS, ids=str)
def test_lists_cut_short_raise_or_agree(spec: MetricSpec) -> None:
    name = re.escape(f"i2t/{spec} cannot be computed: ")
    pattern = re.compile(rf"{name}.* query 'q\d'.* items?.*\n.*expected.*\n.*fix: ")
    refusals: dict[str, list[tuple[int, str]]] = {ties: [] for ties in TIES}
    agreed = Counter[str]()
    for trial in range(2):
        gains, ranking, rankings = cut_rankings(trial)
        for ties in TIES:
            whole = compute(spec, ranking, ties, gains)
            for length, cut in rankings.items():
                try:
                    values = compute(spec, cut, ties, gains)
                except InputError as error:
                    refusals[ties].append((length, str(error)))
                else:
                    np.testing.assert_allclose(values, whole, rtol=1e-12, err_msg=ties)
                    agreed[ties] += 1
    for ties, refused in refusals.items():
        assert refused or (spec.cutoff == 1 and ties == "stable"), ties
        assert all(length < 7 for length, _ in refused), f"{ties}: a list of the whole gallery is enough"
        assert all(pattern.match(text) for _, text in refused), refused
        assert agreed[ties], ties


@each_row("spec", SPECS, ids=str)
def test_a_ranking_that_keeps_too_few_places_raises(spec: MetricSpec) -> None:
    data, ranking = made_up(1), ranked(1, "i2t")
    shallow = replace(ranking, top_items=ranking.top_items[:, :1], top_scores=ranking.top_scores[:, :1])
    if spec.cutoff == 1 and not spec.has("non-gt"):
        np.testing.assert_array_equal(
            compute(spec, shallow, "stable", data.gains()), compute(spec, ranking, "stable", data.gains())
        )
        return
    with pytest.raises(InputError, match=r"only . items?.* kept[\s\S]*depth=, rerank_depth="):
        compute(spec, shallow, "stable", data.gains())


@each_row("spec", SPECS, ids=str)
def test_a_query_without_relevant_items_is_counted_and_excluded(spec: MetricSpec) -> None:
    data = made_up(2)
    grades = data.grades.copy()
    grades[4] = 0
    data = replace(data, grades=grades)
    metric = measure({"i2t": data.ranking("i2t")}, {"i2t": np.arange(6)}, [spec], gains=data.gains())[f"i2t/{spec}"]
    expected = reference(spec, data, "i2t")
    assert isnan(metric.values[4])
    assert metric.excluded == sum(map(isnan, expected)) > 0
    assert metric.mean == pytest.approx(np.nanmean(expected), rel=1e-6)


@pytest.mark.parametrize("spec", ACROSS, ids=str)
@settings(max_examples=5)
@given(data=collections())
def test_across_directions(spec: MetricSpec, data: Collection) -> None:
    """The plain mean over images is the sum of both directions' means, whichever queries are skipped."""
    rankings = {direction: data.ranking(direction) for direction in DIRECTIONS}
    queries = {direction: data.queries(direction) for direction in DIRECTIONS}
    clusters, gains = {"i2t": np.arange(len(data.phi)), "t2i": data.image_of}, data.gains()
    for ties in TIES:
        values = compute_across(spec, rankings, clusters, ties, gains=gains)
        # Each part has its own best order within ties, so the parts are asked for one by one.
        parts = [MetricSpec("NCS", spec.options, k) for k in (1, 5, 10)]
        sides = [
            np.array([[value(part, query, ties) for part in parts] for query in queries[direction]]).sum(axis=1)
            for direction in DIRECTIONS
        ]
        if all(np.isfinite(side).any() for side in sides):
            assert np.nanmean(values) == pytest.approx(100 * sum(np.nanmean(side) for side in sides), rel=1e-6), ties


@pytest.mark.parametrize("layout", rest_slow(["F", "int", "C", "float64"], 2))
def test_any_layout_and_type_of_the_matrix(layout: str) -> None:
    data = made_up(8)
    data = replace(data, phi=np.floor(data.phi * 8))
    matrix = {"C": np.ascontiguousarray(data.phi, np.float32), "F": np.asfortranarray(data.phi, np.float32),
              "float64": data.phi, "int": data.phi.astype(np.int64)}[layout]  # fmt: skip
    gains = {**data.gains(), "cider": GainMatrix(matrix, image_of=data.image_of)}
    for direction in DIRECTIONS:
        ranking, queries = data.ranking(direction), data.queries(direction)
        for spec in SPECS:
            values, expected = compute(spec, ranking, "stable", gains), [value(spec, query) for query in queries]
            np.testing.assert_allclose(values, expected, rtol=1e-6, err_msg=str(spec))


def test_shares_stay_shares() -> None:
    data = made_up(9)
    for spec in SPECS:
        if family_of(spec).range == (0, 1):
            for direction in DIRECTIONS:
                values = compute(spec, ranked(9, direction), "stable", data.gains())
                assert ((values >= 0) & (values <= 1 + 1e-12) | np.isnan(values)).all(), spec
