"""Two runs over the same queries: what one confuses and the other does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from crosslens.core.errors import InputError
from crosslens.explain.overview.atlas import EXAMPLES
from crosslens.explain.overview.causes import OUTCOMES, cause_column
from crosslens.explain.overview.kinds import lifted
from crosslens.explain.overview.overview import Overview
from crosslens.statistics import Bootstrap

Array = np.ndarray[Any, Any]

_NUMBERS: dict[str, Any] = {
    "first": pl.Int64,
    "second": pl.Int64,
    "difference": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "only_first": pl.Int64,
    "only_second": pl.Int64,
    "first_examples": pl.List(pl.String),
    "second_examples": pl.List(pl.String),
}


@dataclass(frozen=True, eq=False)
class OverviewComparison:
    """``causes`` and ``confusions``: per cause, per expected and shown concept, how many queries fail so in each run.

    ``difference`` is second − first as a share of all queries that both runs answered, with its interval over images;
    ``only_first`` counts the queries of which only the first run does, and the examples name some of them.
    """

    first: Overview
    second: Overview
    queries: int
    failed: pl.DataFrame
    causes: pl.DataFrame
    confusions: pl.DataFrame

    def as_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {
            "first": self.first.as_dict(),
            "second": self.second.as_dict(),
            "queries": self.queries,
            "failed": self.failed.to_dicts()[0],
            "causes": self.causes.to_dicts(),
            "confusions": self.confusions.to_dicts(),
        }


def compare_overviews(
    first: Overview, second: Overview, *, minimum: int = 5, depth: int | None = None
) -> OverviewComparison:
    """Where two runs fail differently, over the queries that both answered.

    Confusions with fewer than ``minimum`` failures in both runs are left out; ``depth`` lifts concepts to their kinds.
    """
    sides = _Sides(first, second)
    failed = [sides.counted(None, "", (sides.all_failures(0), sides.all_failures(1)))]
    causes = [
        sides.counted("cause", cause, (sides.with_cause(0, cause), sides.with_cause(1, cause))) for cause in OUTCOMES
    ]
    pairs = [sides.by_pair(side, depth) for side in (0, 1)]
    nobody = frozenset[str]()
    named = sorted(key for key in {*pairs[0], *pairs[1]} if max(len(one.get(key, nobody)) for one in pairs) >= minimum)
    confusions = [
        {"expected": key[0]} | sides.counted("shown", key[1], (pairs[0].get(key, nobody), pairs[1].get(key, nobody)))
        for key in named
    ]
    schema: dict[str, Any] = {"expected": pl.String, "shown": pl.String, **_NUMBERS}
    table = pl.DataFrame(confusions, schema=schema)
    order = table.with_columns(pl.col("difference").abs().alias("far")).sort(
        ["far", "expected", "shown"], descending=[True, False, False]
    )
    return OverviewComparison(
        first, second, len(sides.queries), pl.DataFrame(failed, schema=_NUMBERS),
        pl.DataFrame(causes, schema={"cause": pl.String, **_NUMBERS}), order.drop("far"),
    )  # fmt: skip


class _Sides:
    """The failures of both runs, as sets of the queries that both answered."""

    def __init__(self, first: Overview, second: Overview) -> None:
        if first.direction != second.direction:
            raise InputError(
                f"{first.run} was explained in the direction {first.direction}, {second.run} in {second.direction}",
                expected="the same direction",
                fix="choose one with --direction",
            )
        self.sides = (first, second)
        answered = first.queries.join(second.queries.select("query"), on="query", how="semi", maintain_order="left")
        if not answered.height:
            raise InputError(
                f"{first.run} and {second.run} have no query in common",
                expected="two runs over the same dataset",
                fix="compare runs of the same queries",
            )
        self.queries: dict[str, int] = {query: row for row, query in enumerate(answered["query"])}
        clusters = np.unique(answered["ground_truth"].to_numpy(), return_inverse=True)[1]
        self.draws = Bootstrap(clusters, first.resamples, first.seed)
        self.level = first.level

    def all_failures(self, side: int) -> frozenset[str]:
        return frozenset(self.queries.keys() & set(self.sides[side].failures["query"]))

    def with_cause(self, side: int, cause: str) -> frozenset[str]:
        table = self.sides[side].failures
        column = cause_column(cause)
        if column not in table.columns:
            return frozenset()
        return frozenset(self.queries.keys() & set(table.filter(pl.col(column))["query"]))

    def by_pair(self, side: int, depth: int | None) -> dict[tuple[str, str], set[str]]:
        table = self.sides[side]
        names = table.failures["query"].to_list()
        found: dict[tuple[str, str], set[str]] = {}
        for failure, expected, shown, _ in table.pairs.iter_rows():
            if names[failure] in self.queries:
                found.setdefault((lifted(expected, depth), lifted(shown, depth)), set()).add(names[failure])
        return found

    def counted(self, what: str | None, name: str, failing: Sequence[Any]) -> dict[str, Any]:
        """The two counts, their difference with its interval, and queries of which only one run does."""
        values = np.zeros(len(self.queries))
        for sign, some in zip((-1.0, 1.0), failing, strict=True):
            values[[self.queries[query] for query in sorted(some)]] += sign
        found = self.draws.estimate(values, level=self.level)
        alone = [sorted(failing[side] - failing[1 - side], key=self.queries.__getitem__) for side in (0, 1)]
        row = {
            "first": len(failing[0]),
            "second": len(failing[1]),
            "difference": found.mean,
            "low": None if np.isnan(found.low) else found.low,
            "high": None if np.isnan(found.high) else found.high,
            "only_first": len(alone[0]),
            "only_second": len(alone[1]),
            "first_examples": alone[0][:EXAMPLES],
            "second_examples": alone[1][:EXAMPLES],
        }
        return {what: name, **row} if what else row
