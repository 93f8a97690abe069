"""Retrieval per category, from the ranks of the relevant pairs that a run keeps.

A pair counts in its own category; the ranks are those of the whole gallery, in which the pairs of other categories stay
where they are. So a category's metric is that of the same ranking with its relevant pairs restricted to the category.

Two denominators. ``category``: the mean over the queries that have a relevant pair of the category. ``all``: the same
sum over all queries that have any relevant pair. Each caption query has one category, so the ``all`` columns of t2i add
up to the total; an image has captions of several categories, and counts in each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crosslens.analyze.categories.labels import NO_CATEGORY, TOTAL, Categories
from crosslens.core import BOTH, InputError, MetricValues, Ranking, Run, UsageError, split_name
from crosslens.metrics import MetricRequest, Ties, family_of, measure, parse_metrics
from crosslens.statistics import Bootstrap

IntArray = np.ndarray[Any, np.dtype[np.int64]]

RETRIEVAL_METRICS = ("Hit@1", "Hit@5", "Hit@10", "MedR[all]", "MeanR[all]", "mAP@R")
"""Those of IMP Tables 3 and 4."""
ALL, CATEGORY = "all", "category"


@dataclass(frozen=True)
class Resampling:
    """How intervals are computed."""

    resamples: int = 1000
    level: float = 0.95
    seed: int = 0


def restricted(ranking: Ranking, kept: np.ndarray[Any, np.dtype[np.bool_]]) -> Ranking:
    """The same ranking with some of its relevant pairs; the others count as any other item."""
    offsets = np.zeros_like(ranking.offsets)
    np.cumsum(np.bincount(ranking.rows[kept], minlength=len(ranking.query_ids)), out=offsets[1:])
    pairs = {name: getattr(ranking, name)[kept] for name in ("relevant", "grades", "above", "tied", "tied_before")}
    return replace(ranking, offsets=offsets, **pairs)


def rank_requests(metrics: str | Sequence[str] | None) -> list[MetricRequest]:
    """The metrics asked for; raises for one that is not computed from the ranks of a single direction."""
    requests = parse_metrics(RETRIEVAL_METRICS if metrics is None else metrics)
    for request in requests:
        if family_of(request.spec).graded or request.spans_both or family_of(request.spec).across:
            raise UsageError(
                f"{request.spec} cannot be split by category", fix="name metrics of ranks, such as Hit@5 or MedR[all]"
            )
    return requests


def category_rows(
    run: Run, model: str, categories: Categories, requests: Sequence[MetricRequest], resampling: Resampling
) -> Iterator[dict[str, Any]]:
    """One row per direction, metric, category and denominator, the total first."""
    if not run.rankings:
        raise InputError(
            f"the run {run.name!r} keeps no rankings",
            expected="a run whose folder holds ranking-t2i or ranking-i2t",
            fix="repeat the evaluation with -o",
        )
    ties: Ties = run.provenance.get("options", {}).get("ties", "stable")
    matched = False
    for direction, ranking in run.rankings.items():
        chosen = [request for request in requests if request.direction in (None, direction)]
        codes = categories.of_ranking(ranking)
        matched |= bool((codes >= 0).any())
        if chosen:
            yield from _direction(
                ranking, codes, model, categories, chosen, clusters_of(run, ranking), ties, resampling
            )
    if not matched:
        raise InputError(
            f"no pair of the run {run.name!r} has a {categories.column}",
            expected="a table with the ids of this run's dataset",
            fix="name the table that belongs to this dataset",
        )


def clusters_of(run: Run, ranking: Ranking) -> IntArray:
    """The image of every query of a direction, as the run's metrics have it."""
    for name, values in run.values.items():
        if split_name(name)[0] == ranking.direction and values.query_ids == ranking.query_ids:
            return values.clusters
    if split_name(next(iter(run.values), BOTH))[0] == BOTH or ranking.direction == "i2t":
        return np.arange(len(ranking.query_ids))
    raise InputError(f"the run {run.name!r} has no metric of {ranking.direction}", fix="repeat the evaluation")


def _direction(
    ranking: Ranking,
    codes: IntArray,
    model: str,
    categories: Categories,
    requests: Sequence[MetricRequest],
    clusters: IntArray,
    ties: Ties,
    resampling: Resampling,
) -> Iterator[dict[str, Any]]:
    direction = ranking.direction
    settings: dict[str, Any] = {"ties": ties, **vars(resampling)}
    specs = [request.spec for request in requests]
    whole = measure({direction: ranking}, {direction: clusters}, specs, **settings)
    places = {name: place for place, name in enumerate(categories.names)} | {NO_CATEGORY: -1}
    parts = {
        name: measure({direction: restricted(ranking, codes == places[name])}, {direction: clusters}, specs, **settings)
        for name in categories.shown(codes)
    }
    draws = Bootstrap(clusters, resampling.resamples, resampling.seed)
    for spec in specs:
        name, family = f"{direction}/{spec}", family_of(spec)
        total = whole[name]
        fields = {"model": model, "direction": direction, "metric": str(spec)}
        yield fields | {"category": TOTAL, "denominator": None} | _figures(total)
        for category, values in parts.items():
            own = fields | {"category": category}
            if family.statistic_of(spec) == "mean" and family.bounds() is not None:
                # A query without a pair of the category contributes nothing; one that never counts stays out.
                filled = np.where(np.isnan(total.values), np.nan, np.nan_to_num(values[name].values))
                share = draws.estimate(filled, level=resampling.level, bounds=family.bounds())
                figures = {"value": share.mean, "low": share.low, "high": share.high, "queries": total.n}
                yield own | {"denominator": ALL} | figures
            yield own | {"denominator": CATEGORY} | _figures(values[name])


def _figures(values: MetricValues) -> dict[str, Any]:
    return {"value": values.mean, "low": values.low, "high": values.high, "queries": values.n}
