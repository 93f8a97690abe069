"""Several runs in one table (EXPL's Table 3): the concept metrics of each, over its own failures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import InputError, Presented, Section, argument, json_form
from crosslens.explanations.overview.overview import Overview
from crosslens.explanations.overview.sections import concept_sections
from crosslens.explanations.overview.statistics import SCOPES, column_of
from crosslens.explanations.words.images import finite
from crosslens.metrics import format_count
from crosslens.statistics import Bootstrap

FAILS = "Fails"
"""The share of queries that fail."""
WRONG_COUNTS = "wrong_counts"
"""Common concepts of another count, as a number per failure: what EXPL prints as a percentage."""
_ABOUT = ("run", "queries", "failures")


@dataclass(frozen=True, eq=False)
class ConceptTable(Presented):
    """``overviews`` by the name of their run; ``metrics``: a row per run, scope and metric, as fractions.

    Means are over the failures of a run that define a metric, with intervals over images; ``total`` is their sum,
    ``pooled`` the share over all failures together. Runs fail on different queries: their means are over other pairs.
    """

    overviews: Mapping[str, Overview]
    direction: str
    metrics: pl.DataFrame

    @property
    def title(self) -> str:
        """The heading of the page."""
        return f"Concept metrics of {format_count(len(self.overviews), 'run')}"

    def sections(self, **options: Any) -> Iterator[Section]:
        """A row per run, query-agnostic and query-informed."""
        return concept_sections(self)

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        runs = [
            {"run": name, "queries": overview.queries.height, "failures": overview.failures.height,
             "settings": dict(overview.settings), "totals": overview.totals.to_dicts(),
             "cause_numbers": overview.cause_numbers.to_dicts()}
            for name, overview in self.overviews.items()
        ]  # fmt: skip
        whole: dict[str, Any] = json_form(
            {
                "format": "crosslens/explain-runs",
                "version": 1,
                "direction": self.direction,
                "runs": runs,
                "metrics": self.metrics.to_dicts(),
            }
        )
        return whole


def tabulate_overviews(overviews: Mapping[str, Overview]) -> ConceptTable:
    """The concept metrics of several runs, one under the other."""
    directions = {overview.direction: name for name, overview in overviews.items()}
    if len(directions) > 1:
        (first, run), (second, other), *_ = directions.items()
        raise InputError(
            f"{run} was explained in the direction {first}, {other} in {second}",
            expected="the same direction",
            fix=f"choose a direction with {argument('direction')}",
        )
    tables = [_rows(name, overview) for name, overview in overviews.items()]
    return ConceptTable(dict(overviews), next(iter(directions)), pl.concat(tables))


def _rows(name: str, overview: Overview) -> pl.DataFrame:
    """The metrics of a run as its overview has them, and two more: failed queries, and wrong counts per failure."""
    images = np.unique(overview.failures["ground_truth"].to_numpy(), return_inverse=True)[1]
    draws = Bootstrap(images, overview.resamples, overview.seed)
    counted = []
    for scope in SCOPES:
        values = overview.failures[column_of(WRONG_COUNTS, scope)]
        estimate = draws.estimate(values.cast(pl.Float64).to_numpy(), level=overview.level)
        counted.append(_row(scope, WRONG_COUNTS, estimate, values.len(), float(values.sum())))
    failing = overview.queries["query"].is_in(overview.failures["query"].to_list()).cast(pl.Float64).to_numpy()
    clusters = np.unique(overview.queries["ground_truth"].to_numpy(), return_inverse=True)[1]
    share = Bootstrap(clusters, overview.resamples, overview.seed)
    failed = share.estimate(failing, level=overview.level, bounds=(0, 1))
    more = [_row(SCOPES[0], FAILS, failed, len(failing), float(failing.sum())), *counted]
    metrics = pl.concat([overview.metrics, pl.DataFrame(more, schema=overview.metrics.schema)])
    about = dict(zip(_ABOUT, (name, overview.queries.height, overview.failures.height), strict=True))
    return metrics.select(*(pl.lit(value).alias(key) for key, value in about.items()), pl.all())


def _row(scope: str, metric: str, estimate: Any, defined: int, total: float) -> dict[str, Any]:
    ends = {key: finite(getattr(estimate, key)) for key in ("mean", "low", "high")}
    return {
        "scope": scope,
        "metric": metric,
        **ends,
        "defined": defined,
        "undefined": 0,
        "total": total,
        "pooled": None,
    }
