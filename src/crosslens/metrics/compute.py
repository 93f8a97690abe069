"""Rankings in, one value per query out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple, cast
from weakref import WeakKeyDictionary

import numpy as np

from crosslens.core.errors import InputError, UsageError
from crosslens.core.ranking import Ranking
from crosslens.core.relevance import IMAGE_TO_TEXT, TEXT_TO_IMAGE
from crosslens.metrics.coverage import Coverage
from crosslens.metrics.expected import ExpectedPlaces
from crosslens.metrics.family import AcrossFunction, Function, GradedAcrossFunction, GradedFunction, family_of
from crosslens.metrics.gains import Gains
from crosslens.metrics.graded import Graded
from crosslens.metrics.ordered import OrderedPlaces
from crosslens.metrics.places import FloatArray, IntArray, Pairs, Places
from crosslens.metrics.spec import MetricSpec
from crosslens.metrics.ties import Ties, require_ties

_PLACES: WeakKeyDictionary[Ranking, tuple[Pairs, dict[Ties, Places]]] = WeakKeyDictionary()


class Observations(NamedTuple):
    """The values a metric's figure is taken over: usually one per query; one per pair for a pooled metric."""

    values: FloatArray
    rows: IntArray | None
    """The query of each value; None: one value per query, in order."""


def compute(
    spec: MetricSpec, ranking: Ranking, ties: Ties = "stable", gains: Mapping[str, Gains] | None = None
) -> FloatArray:
    """One value per query; NaN for queries without a relevant item.

    A graded metric needs ``gains``: for each φ (or relevance encoder) it names, the values of items.
    For a pooled metric (``MedR[all]``) that is the query's own median or mean; its figure is taken over
    :func:`observations`.
    """
    values, rows = observations(spec, ranking, ties, gains)
    if rows is None:
        return values
    middle = _segment_means if family_of(spec).statistic_of(spec) == "mean" else _segment_medians
    return middle(values, ranking.offsets)


def observations(
    spec: MetricSpec, ranking: Ranking, ties: Ties = "stable", gains: Mapping[str, Gains] | None = None
) -> Observations:
    """The values whose mean or median is the figure of this metric."""
    family = family_of(spec)
    if family.across:
        raise UsageError(f"{spec} needs both directions", fix="use compute_across")
    with _naming(spec, ranking.direction), np.errstate(divide="ignore", invalid="ignore"):
        if family.graded:
            graded = _graded(ranking, ties, gains)
            values = cast(GradedFunction, family.function)(graded, family.checked(spec))
        else:
            values = cast(Function, family.function)(places_of(ranking, ties), spec)
    if family.pooled(spec):
        return Observations(values, ranking.rows)
    return Observations(np.where(ranking.relevant_counts > 0, values, np.nan), None)


def compute_across(
    spec: MetricSpec,
    rankings: Mapping[str, Ranking],
    clusters: Mapping[str, IntArray],
    ties: Ties = "stable",
    strata: IntArray | None = None,
    gains: Mapping[str, Gains] | None = None,
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
    missing = [one for one in (IMAGE_TO_TEXT, TEXT_TO_IMAGE) if one not in rankings]
    if missing:
        raise UsageError(f"{spec} needs both directions, and {missing[0]} is missing", fix="evaluate both directions")
    both = {one: rankings[one] for one in (IMAGE_TO_TEXT, TEXT_TO_IMAGE)}
    parts = parts_across(spec, both, ties, gains)
    images = len(both[IMAGE_TO_TEXT].query_ids)
    image_of = {one: _image_rows(one, both[one], clusters) for one in both}
    stratum = np.zeros(images, np.int64) if strata is None else np.unique(strata, return_inverse=True)[1]
    valid = {one: np.isfinite(part) for one, part in parts.items()}
    counted = np.zeros(images, bool)
    for one in both:
        counted[image_of[one][valid[one]]] = True
    total = np.zeros(images)
    for one in both:
        of = image_of[one][valid[one]]
        # Queries that count, per stratum; every image of a stratum without any has nothing to scale.
        queries = np.bincount(stratum[of], minlength=int(stratum.max(initial=0)) + 1)
        scale = np.bincount(stratum[counted], minlength=len(queries)) / np.maximum(queries, 1)
        total += scale[stratum] * np.bincount(of, parts[one][valid[one]], images)
    return np.where(counted, total, np.nan)


def parts_across(
    spec: MetricSpec,
    rankings: Mapping[str, Ranking],
    ties: Ties = "stable",
    gains: Mapping[str, Gains] | None = None,
) -> dict[str, FloatArray]:
    """Per direction, one value per query (NaN: does not count); the figure is the sum of the directions' means."""
    family = family_of(spec)
    with _naming(spec, None), np.errstate(divide="ignore", invalid="ignore"):
        if family.graded:
            graded = {one: _graded(two, ties, gains) for one, two in rankings.items()}
            parts = cast(GradedAcrossFunction, family.function)(graded, family.checked(spec))
        else:
            places = {one: places_of(two, ties) for one, two in rankings.items()}
            parts = cast(AcrossFunction, family.function)(places, spec)
    return {one: np.where(two.relevant_counts > 0, parts[one], np.nan) for one, two in rankings.items()}


def places_of(ranking: Ranking, ties: Ties = "stable") -> Places:
    """The places in ``ranking`` under a tie mode; worked out once, and forgotten with the ranking."""
    require_ties(ties)
    if ranking not in _PLACES:
        _PLACES[ranking] = Pairs(ranking), {}
    pairs, known = _PLACES[ranking]
    if ties not in known:
        coverage = Coverage(ranking, ties)
        known[ties] = ExpectedPlaces(pairs, coverage) if ties == "expected" else OrderedPlaces(pairs, coverage, ties)
    return known[ties]


def _graded(ranking: Ranking, ties: Ties, gains: Mapping[str, Gains] | None) -> Graded:
    require_ties(ties)
    return Graded(ranking, ties, gains or {})


def _image_rows(direction: str, ranking: Ranking, clusters: Mapping[str, IntArray]) -> IntArray:
    """For every query, the row of its image among the i2t queries."""
    images = clusters[IMAGE_TO_TEXT]
    order = np.argsort(images, kind="stable")
    ordered = images[order]
    if (ordered[1:] == ordered[:-1]).any():
        raise InputError("two i2t queries have the same cluster", expected="one i2t query per image")
    place = np.searchsorted(ordered, clusters[direction])
    found = ordered[np.minimum(place, len(ordered) - 1)] == clusters[direction] if len(ordered) else place < 0
    if not found.all():
        query = ranking.query_ids[int(np.argmin(found))]
        raise InputError(
            f"the image of {direction} query {query!r} is not among the i2t queries",
            expected="both directions over the same images",
            fix="leave Rsum out, or evaluate both directions on the same images",
        )
    return np.asarray(order[place], np.int64)


def _segment_means(values: FloatArray, offsets: IntArray) -> FloatArray:
    counts = np.diff(offsets)
    sums = np.bincount(np.repeat(np.arange(len(counts)), counts), values, len(counts))
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _segment_medians(values: FloatArray, offsets: IntArray) -> FloatArray:
    """The median of each run of values, which are ascending within a run."""
    counts = np.diff(offsets)
    result = np.full(len(counts), np.nan)
    some = counts > 0
    start, size = offsets[:-1][some], counts[some]
    result[some] = (values[start + (size - 1) // 2] + values[start + size // 2]) / 2
    return result


@contextmanager
def _naming(spec: MetricSpec, direction: str | None) -> Iterator[None]:
    """Say in an error which metric it was that the lists are too short for."""
    try:
        yield
    except InputError as error:
        name = f"{direction}/{spec}" if direction else str(spec)
        problem = f"{name} cannot be computed: {error.problem}"
        raise InputError(problem, row=error.row, expected=error.expected, fix=error.fix) from None
