"""Rankings in, metrics out: one value per query, and figures with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from crosslens.core import InputError, UsageError, call_function, wrong_code
from crosslens.metrics.family import Family, MetricSpec, family_of
from crosslens.metrics.graded import GainMatrix, GradedRanking
from crosslens.metrics.relevant_ranks import (
    Coverage,
    ExpectedRanks,
    OrderedRanks,
    RelevantPairs,
    RelevantRanks,
    Ties,
    require_ties,
)
from crosslens.metrics.request import MetricRequest, parse_metrics
from crosslens.statistics import Bootstrap, sum_of_means
from crosslens.storage import FloatArray, IntArray
from crosslens.values import IMAGE_TO_TEXT, TEXT_TO_IMAGE, MetricValues, Ranking

_RANKS: WeakKeyDictionary[Ranking, tuple[RelevantPairs, dict[Ties, RelevantRanks]]] = WeakKeyDictionary()
_BOTH = (IMAGE_TO_TEXT, TEXT_TO_IMAGE)

Gains = Mapping[str, GainMatrix] | None
"""For each φ (or relevance encoder) that a graded metric names, the gains of items."""


class Observations(NamedTuple):
    """The values a metric's figure is taken over: usually one per query; one per pair for a pooled metric."""

    values: FloatArray
    rows: IntArray | None
    """The query of each value; None: one value per query, in order."""


def compute(spec: MetricSpec, ranking: Ranking, ties: Ties = "stable", gains: Gains = None) -> FloatArray:
    """One value per query; NaN for queries without a relevant item.

    A graded metric needs ``gains``: for each φ (or relevance encoder) it names, the gains of items.
    For a pooled metric (``MedR[all]``) that is the query's own median or mean; its figure is taken over
    :func:`observations`. For a sum over both directions (``Rsum``) it is the part of this one.
    """
    values, rows = observations(spec, ranking, ties, gains)
    if rows is None:
        return values
    counts = np.diff(ranking.offsets)
    if family_of(spec).statistic_of(spec) == "mean":
        sums = np.bincount(np.repeat(np.arange(len(counts)), counts), values, len(counts))
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    result, some = np.full(len(counts), np.nan), counts > 0
    start, size = ranking.offsets[:-1][some], counts[some]
    result[some] = (values[start + (size - 1) // 2] + values[start + size // 2]) / 2  # they ascend within a query
    return result


def observations(spec: MetricSpec, ranking: Ranking, ties: Ties = "stable", gains: Gains = None) -> Observations:
    """The values whose mean or median is the figure of this metric."""
    family = family_of(spec)
    if family.across:
        return Observations(parts_across(spec, {ranking.direction: ranking}, ties, gains)[ranking.direction], None)
    with _naming(spec, ranking.direction), np.errstate(divide="ignore", invalid="ignore"):
        values = call_function(family.function, _input_of(family, ranking, ties, gains), family.checked(spec))
    if family.pooled(spec):
        return Observations(_numbers(family, spec, values, len(ranking.rows), "pair"), ranking.rows)
    values = _numbers(family, spec, values, len(ranking.query_ids), "query")
    return Observations(np.where(ranking.relevant_counts > 0, values, np.nan), None)


def compute_across(
    spec: MetricSpec,
    rankings: Mapping[str, Ranking],
    clusters: Mapping[str, IntArray],
    ties: Ties = "stable",
    strata: IntArray | None = None,
    gains: Gains = None,
) -> FloatArray:
    """One value per image (query of ``i2t``), whose plain mean is the sum of the two directions' means.

    ``clusters`` names the image of every query of each direction. An image's value is its own part of the i2t mean
    plus the parts of its captions in the t2i mean, each scaled by the number of images: that keeps the mean exact with
    any number of captions per image and with excluded queries (resampling images then takes those numbers as given).
    With ``strata`` (the fold of every image) it is exact within each. NaN: neither the image nor a caption counts.
    """
    family = family_of(spec)
    if not family.across:
        raise UsageError(f"{spec} belongs to one direction", fix="use compute")
    missing = [direction for direction in _BOTH if direction not in rankings]
    if missing:
        fix = "evaluate both directions" + (f", or write {next(iter(rankings))}/{spec}" if rankings else "")
        raise UsageError(f"{spec} needs both directions, and {missing[0]} is missing", fix=fix)
    parts = parts_across(spec, {direction: rankings[direction] for direction in _BOTH}, ties, gains)
    images = len(rankings[IMAGE_TO_TEXT].query_ids)
    stratum = np.zeros(images, np.int64) if strata is None else np.unique(strata, return_inverse=True)[1]
    valid_images = np.zeros(images, bool)
    row_of = {image: row for row, image in enumerate(clusters[IMAGE_TO_TEXT].tolist())}
    if len(row_of) < len(clusters[IMAGE_TO_TEXT]):
        raise InputError("two i2t queries have the same cluster", expected="one i2t query per image")
    image_rows, values = {}, {}
    for direction, part in parts.items():
        rows = np.array([row_of.get(image, -1) for image in clusters[direction].tolist()], np.int64)
        if (rows < 0).any():
            query = rankings[direction].query_ids[int(np.argmax(rows < 0))]
            raise InputError(
                f"the image of {direction} query {query!r} is not among the i2t queries",
                expected="both directions over the same images",
                fix="leave Rsum out, or evaluate both directions on the same images",
            )
        valid = np.isfinite(part)
        image_rows[direction] = rows[valid]
        values[direction] = part[valid]
        valid_images[image_rows[direction]] = True
    total = np.zeros(images)
    for direction, rows in image_rows.items():
        # Queries that count, per stratum; every image of a stratum without any has nothing to scale.
        queries = np.bincount(stratum[rows], minlength=int(stratum.max(initial=0)) + 1)
        scale = np.bincount(stratum[valid_images], minlength=len(queries)) / np.maximum(queries, 1)
        total += scale[stratum] * np.bincount(rows, values[direction], images)
    return np.where(valid_images, total, np.nan)


def parts_across(
    spec: MetricSpec, rankings: Mapping[str, Ranking], ties: Ties = "stable", gains: Gains = None
) -> dict[str, FloatArray]:
    """Per direction, one value per query (NaN: does not count); the figure is the sum of the directions' means."""
    family = family_of(spec)
    with (
        _naming(spec, next(iter(rankings)) if len(rankings) == 1 else None),
        np.errstate(divide="ignore", invalid="ignore"),
    ):
        inputs = {direction: _input_of(family, ranking, ties, gains) for direction, ranking in rankings.items()}
        parts = call_function(family.function, inputs, family.checked(spec))
    if not isinstance(parts, Mapping) or not set(rankings) <= set(parts):
        problem = f"the metric {spec} returned {type(parts).__name__}"
        raise wrong_code(family.function, problem, f"return a mapping with values for {' and '.join(rankings)}")
    values = {}
    for name, ranking in rankings.items():
        of_queries = _numbers(family, spec, parts[name], len(ranking.query_ids), "query")
        values[name] = np.where(ranking.relevant_counts > 0, of_queries, np.nan)
    return values


def _numbers(family: Family, spec: MetricSpec, values: Any, count: int, noun: str) -> FloatArray:
    """What a metric returned, if it is one number per query (or pair)."""
    try:
        array = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        array = np.empty(())
    if array.shape != (count,):
        returned = f"an array of shape {array.shape}" if array.shape else f"{values!r:.40}"
        problem = f"the metric {spec} returned {returned} for {count:,} {noun}s".replace("querys", "queries")
        raise wrong_code(family.function, problem, f"return one number per {noun}")
    return array


def ranks_of(ranking: Ranking, ties: Ties = "stable") -> RelevantRanks:
    """The ranks of the relevant items under a tie mode; computed once, and dropped with the ranking."""
    require_ties(ties)
    if ranking not in _RANKS:
        _RANKS[ranking] = RelevantPairs(ranking), {}
    pairs, by_ties = _RANKS[ranking]
    if ties not in by_ties:
        coverage = Coverage(ranking, ties)
        by_ties[ties] = ExpectedRanks(pairs, coverage) if ties == "expected" else OrderedRanks(pairs, coverage, ties)
    return by_ties[ties]


def _input_of(family: Family, ranking: Ranking, ties: Ties, gains: Gains) -> RelevantRanks | GradedRanking:
    require_ties(ties)
    return GradedRanking(ranking, ties, gains or {}) if family.graded else ranks_of(ranking, ties)


@contextmanager
def _naming(spec: MetricSpec, direction: str | None) -> Iterator[None]:
    """Name in an error the metric that could not be computed."""
    try:
        yield
    except InputError as error:
        error.add_context(f"{direction}/{spec} cannot be computed" if direction else f"{spec} cannot be computed")
        raise


def measure(
    rankings: Mapping[str, Ranking],
    clusters: Mapping[str, IntArray],
    metrics: str | Iterable[str | MetricSpec | MetricRequest] | None = None,
    *,
    ties: Ties = "stable",
    strata: Mapping[str, IntArray] | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    gains: Gains = None,
) -> dict[str, MetricValues]:
    """Compute metrics of one or both directions, each with its interval over images.

    ``clusters`` names, per direction, the image of every query; ``strata`` its fold. Without ``metrics`` the default
    ones are computed, ``Rsum`` only where both directions are there; a named metric that cannot be computed raises.
    ``gains`` are the matrices behind graded metrics, by the name in the metric's brackets.
    """
    draws = {
        direction: Bootstrap(clusters[direction], resamples, seed, None if strata is None else strata[direction])
        for direction in rankings
    }
    results: dict[str, MetricValues] = {}
    for request in parse_metrics(metrics):
        spec = request.spec
        if request.spans_both:
            if metrics is None and not set(_BOTH) <= set(rankings):
                continue
            folds = None if strata is None else strata[IMAGE_TO_TEXT]
            values = compute_across(spec, rankings, clusters, ties, folds, gains)
            # Not from the values of single images: with unequal numbers of captions a resample has more or fewer.
            parts = parts_across(spec, {direction: rankings[direction] for direction in _BOTH}, ties, gains)
            samples = [(draws[direction], part) for direction, part in parts.items()]
            figure = sum_of_means(samples, level, family_of(spec).bounds(one_direction=False))
            of_queries = rankings[IMAGE_TO_TEXT].query_ids, values, np.asarray(clusters[IMAGE_TO_TEXT])
            ends, facts = (figure.mean, figure.low, figure.high), family_of(spec).facts(spec)
            results[str(spec)] = MetricValues(str(spec), *of_queries, *ends, level=level, facts=facts)
            continue
        if request.direction is not None and request.direction not in rankings:
            fix = f"ranked directions: {', '.join(rankings) or 'none'}"
            raise UsageError(f"{request} needs a direction that was not ranked", fix=fix)
        for name in rankings if request.direction is None else (request.direction,):
            ranking, statistic = rankings[name], family_of(spec).statistic_of(spec)
            values, rows = observations(spec, ranking, ties, gains)
            bounds, facts = family_of(spec).bounds(), family_of(spec).facts(spec)
            figure = draws[name].estimate(values, statistic, level=level, rows=rows, bounds=bounds)
            values = values if rows is None else compute(spec, ranking, ties, gains)
            of_queries, ends = (ranking.query_ids, values, draws[name].clusters), (figure.mean, figure.low, figure.high)
            full_name = f"{ranking.direction}/{spec}"
            results[f"{name}/{spec}"] = MetricValues(full_name, *of_queries, *ends, statistic, level, facts)
    return results
