"""From rankings to figures with intervals: what an evaluation does once it has ranked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from crosslens.core.errors import UsageError
from crosslens.core.metric_values import MetricValues
from crosslens.core.ranking import Ranking
from crosslens.core.relevance import IMAGE_TO_TEXT, TEXT_TO_IMAGE
from crosslens.metrics.compute import compute, compute_across, observations, parts_across
from crosslens.metrics.family import family_of
from crosslens.metrics.gains import Gains
from crosslens.metrics.places import IntArray
from crosslens.metrics.request import MetricRequest, parse_metrics
from crosslens.metrics.spec import MetricSpec
from crosslens.metrics.ties import Ties
from crosslens.statistics import Bootstrap, sum_of_means


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
    gains: Mapping[str, Gains] | None = None,
) -> dict[str, MetricValues]:
    """Compute metrics of one or both directions, each with its interval over images.

    ``clusters`` names, per direction, the image of every query; ``strata`` its fold. Without ``metrics`` the default
    ones are computed, ``Rsum`` only where both directions are there; a metric asked for that cannot be had raises.
    ``gains`` hold the values behind graded metrics, by the name that stands in the metric.
    """
    draws = {
        one: Bootstrap(clusters[one], resamples, seed, None if strata is None else strata[one]) for one in rankings
    }
    results: dict[str, MetricValues] = {}
    for request in parse_metrics(metrics):
        spec = request.spec
        if family_of(spec).across:
            if metrics is not None or {IMAGE_TO_TEXT, TEXT_TO_IMAGE} <= set(rankings):
                results[str(spec)] = _measure_across(spec, rankings, clusters, ties, strata, draws, level, gains)
            continue
        if request.direction is not None and request.direction not in rankings:
            ranked = f"ranked: {', '.join(rankings) or 'none'}"
            raise UsageError(f"{request} asks for a direction that was not ranked", fix=ranked)
        for one in rankings if request.direction is None else (request.direction,):
            results[f"{one}/{spec}"] = _measure_one(spec, rankings[one], ties, draws[one], level, gains)
    return results


def _measure_one(
    spec: MetricSpec,
    ranking: Ranking,
    ties: Ties,
    draws: Bootstrap,
    level: float,
    gains: Mapping[str, Gains] | None,
) -> MetricValues:
    statistic = family_of(spec).statistic_of(spec)
    values, rows = observations(spec, ranking, ties, gains)
    figure = draws.estimate(values, statistic, level=level, rows=rows)
    return MetricValues(
        f"{ranking.direction}/{spec}",
        ranking.query_ids,
        values if rows is None else compute(spec, ranking, ties, gains),
        draws.clusters,
        figure.mean,
        figure.low,
        figure.high,
        statistic,
        level,
    )


def _measure_across(
    spec: MetricSpec,
    rankings: Mapping[str, Ranking],
    clusters: Mapping[str, IntArray],
    ties: Ties,
    strata: Mapping[str, IntArray] | None,
    draws: Mapping[str, Bootstrap],
    level: float,
    gains: Mapping[str, Gains] | None,
) -> MetricValues:
    values = compute_across(spec, rankings, clusters, ties, None if strata is None else strata[IMAGE_TO_TEXT], gains)
    # Not from the values of single images: with unequal numbers of captions a resample has more or fewer of them.
    parts = parts_across(spec, {one: rankings[one] for one in (IMAGE_TO_TEXT, TEXT_TO_IMAGE)}, ties, gains)
    figure = sum_of_means([(draws[one], part) for one, part in parts.items()], level)
    return MetricValues(
        str(spec),
        rankings[IMAGE_TO_TEXT].query_ids,
        values,
        np.asarray(clusters[IMAGE_TO_TEXT]),
        figure.mean,
        figure.low,
        figure.high,
        level=level,
    )
