"""Two runs over the same queries: which concepts only one of them confuses."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import InputError, Presented, Section, argument
from crosslens.explanations.concepts.lexicon import ancestor_at
from crosslens.explanations.overview.causes import OUTCOMES, cause_column
from crosslens.explanations.overview.confusions import EXAMPLES
from crosslens.explanations.overview.overview import Overview
from crosslens.explanations.overview.sections import comparison_sections
from crosslens.explanations.words.images import finite
from crosslens.statistics import Bootstrap

_NUMBERS: dict[str, Any] = {
    **dict.fromkeys(("first", "second"), pl.Int64),
    **dict.fromkeys(("difference", "low", "high"), pl.Float64),
    **dict.fromkeys(("only_first", "only_second"), pl.Int64),
    **dict.fromkeys(("first_examples", "second_examples"), pl.List(pl.String)),
}


@dataclass(frozen=True, eq=False)
class OverviewComparison(Presented):
    """``causes`` and ``confusions``: per cause, per expected and shown concept, how many queries fail so in each run.

    ``difference`` is second − first as a share of all queries that both runs answered, with its interval over images;
    ``only_first`` counts the queries that only the first run fails so; the examples name some of them.
    """

    first: Overview
    second: Overview
    queries: int
    failed: pl.DataFrame
    causes: pl.DataFrame
    confusions: pl.DataFrame

    @property
    def title(self) -> str:
        """The heading of the page."""
        return f"Failures of {self.first.run} and {self.second.run}"

    def sections(self, **options: Any) -> Iterator[Section]:
        """Where two runs fail differently."""
        return comparison_sections(self)

    def as_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        sides = {"first": self.first.as_dict(), "second": self.second.as_dict(), "queries": self.queries}
        tables = {"causes": self.causes.to_dicts(), "confusions": self.confusions.to_dicts()}
        return {**sides, "failed": self.failed.to_dicts()[0], **tables}


def compare_overviews(
    first: Overview, second: Overview, *, minimum: int = 5, depth: int | None = None
) -> OverviewComparison:
    """Where two runs fail differently, over the queries that both answered.

    Confusions with fewer than ``minimum`` failures in both runs are left out; ``depth`` replaces concepts by hypernyms.
    """
    common = _CommonQueries(first, second)
    failed = common.compare([frozenset(overview.failures["query"]) for overview in (first, second)])
    causes = [{"cause": cause, **common.compare(common.with_cause(cause))} for cause in OUTCOMES]
    pairs = [common.by_pair(overview, depth) for overview in (first, second)]
    confusions = []
    for expected, shown in sorted({*pairs[0], *pairs[1]}):
        failing = [queries.get((expected, shown), set()) for queries in pairs]
        if max(map(len, failing)) >= minimum:
            confusions.append({"expected": expected, "shown": shown, **common.compare(failing)})
    table = pl.DataFrame(confusions, schema={"expected": pl.String, "shown": pl.String, **_NUMBERS})
    order = [pl.col("difference").abs(), pl.col("expected"), pl.col("shown")]
    return OverviewComparison(
        first, second, len(common.rows), pl.DataFrame([failed], schema=_NUMBERS),
        pl.DataFrame(causes, schema={"cause": pl.String, **_NUMBERS}),
        table.sort(order, descending=[True, False, False]),
    )  # fmt: skip


class _CommonQueries:
    """The queries that both runs answered, and how many of them fail in either."""

    def __init__(self, first: Overview, second: Overview) -> None:
        if first.direction != second.direction:
            raise InputError(
                f"{first.run} was explained in the direction {first.direction}, {second.run} in {second.direction}",
                expected="the same direction",
                fix=f"choose a direction with {argument('direction')}",
            )
        self.overviews = (first, second)
        answered = first.queries.join(second.queries.select("query"), on="query", how="semi", maintain_order="left")
        if not answered.height:
            raise InputError(
                f"{first.run} and {second.run} have no query in common",
                expected="two runs over the same dataset",
                fix="compare runs of the same queries",
            )
        self.rows: dict[str, int] = {query: row for row, query in enumerate(answered["query"])}
        clusters = np.unique(answered["ground_truth"].to_numpy(), return_inverse=True)[1]
        self.draws = Bootstrap(clusters, first.resamples, first.seed)
        self.level = first.level

    def with_cause(self, cause: str) -> list[frozenset[str]]:
        """Per run the queries that fail for a cause."""
        column = cause_column(cause)
        tables = [overview.failures for overview in self.overviews]
        return [frozenset(table.filter(pl.col(column))["query"] if column in table else ()) for table in tables]

    def by_pair(self, overview: Overview, depth: int | None) -> dict[tuple[str, str], set[str]]:
        """The queries that confuse each expected with each shown concept."""
        names = overview.failures["query"].to_list()
        queries: dict[tuple[str, str], set[str]] = {}
        for failure, expected, shown, _ in overview.pairs.iter_rows():
            if names[failure] in self.rows:
                pair = (ancestor_at(expected, depth), ancestor_at(shown, depth))
                queries.setdefault(pair, set()).add(names[failure])
        return queries

    def compare(self, failing: Sequence[Collection[str]]) -> dict[str, Any]:
        """Counts of the failing queries, their difference with its interval, and queries that fail in one run only."""
        first, second = (self.rows.keys() & set(queries) for queries in failing)
        changes = np.zeros(len(self.rows))
        changes[[self.rows[query] for query in first]] -= 1.0
        changes[[self.rows[query] for query in second]] += 1.0
        estimate = self.draws.estimate(changes, level=self.level, bounds=(-1, 1))
        only_first, only_second = (sorted(side, key=self.rows.__getitem__) for side in (first - second, second - first))
        interval = (estimate.mean, finite(estimate.low), finite(estimate.high))
        examples = (only_first[:EXAMPLES], only_second[:EXAMPLES])
        values = (len(first), len(second), *interval, len(only_first), len(only_second), *examples)
        return dict(zip(_NUMBERS, values, strict=True))
