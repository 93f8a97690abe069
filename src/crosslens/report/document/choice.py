"""Which queries are worth looking at: confident failures, near misses, likely missing positives, wins and losses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from crosslens.core import IMAGE_TO_TEXT, CrosslensError, Dataset
from crosslens.similarity import relevance_pairs

PHI = "cider"
FAILED = pl.col("rank").is_null() | (pl.col("rank") != 1)


@dataclass(frozen=True)
class QueryGroup:
    """Queries of one kind, the most instructive first; ``facts`` is a sentence on each."""

    title: str
    about: str
    queries: tuple[str, ...]
    facts: tuple[str, ...]


def choose_queries(
    outcomes: Mapping[str, pl.DataFrame], best: str, most: int, phi: pl.DataFrame | None = None
) -> list[QueryGroup]:
    """Up to ``most`` queries of each kind, none of them twice; ``outcomes`` are of runs on the same queries.

    Failures are those of the run ``best``. ``phi`` has, for some of its failures, how similar the first hit is to the
    query (``query``, ``phi``).
    """
    chosen: set[str] = set()
    failures = outcomes[best].filter(FAILED)
    groups = [_confident(failures, chosen, most, best), _similar(failures, phi, chosen, most)]
    names = list(outcomes)
    if len(names) > 1:
        changed = _changes(outcomes[names[0]], outcomes[names[1]])
        groups += [_changed(changed, chosen, most, names, won) for won in (True, False)]
    groups.append(_near(failures, chosen, most))
    return [group for group in groups if group.queries]


def _take(rows: pl.DataFrame, chosen: set[str], most: int) -> pl.DataFrame:
    """The first rows whose queries are not shown yet."""
    free = rows.filter(~pl.col("query").is_in(list(chosen))).head(most)
    chosen.update(free["query"])
    return free


def _confident(failures: pl.DataFrame, chosen: set[str], most: int, run: str) -> QueryGroup:
    margin = pl.coalesce("margin", "margin_at_least")
    known = failures.with_columns(margin.alias("lead")).filter(pl.col("lead").is_not_null() & (pl.col("lead") > 0))
    rows = _take(known.sort("lead", "query", descending=[True, False]), chosen, most)
    facts = [
        f"score {row['score']:.3f}, against {'at most ' if row['margin'] is None else ''}"
        f"{row['score'] - row['lead']:.3f} of the right item"
        for row in rows.to_dicts()
    ]
    about = f"{run} is wrong by the largest margin: the first hit scores far above the right item."
    return QueryGroup("Confident failures", about, tuple(rows["query"]), tuple(facts))


def _near(failures: pl.DataFrame, chosen: set[str], most: int) -> QueryGroup:
    second = failures.filter((pl.col("rank") == 2) & pl.col("margin").is_not_null()).sort("margin", "query")
    rows = _take(second, chosen, most)
    facts = tuple(f"{margin:.4f} behind the first" for margin in rows["margin"])
    return QueryGroup("Near misses", "The right item is second, by the smallest margin.", tuple(rows["query"]), facts)


def _similar(failures: pl.DataFrame, phi: pl.DataFrame | None, chosen: set[str], most: int) -> QueryGroup:
    if phi is None:
        return QueryGroup("", "", (), ())
    known = failures.join(phi, on="query", how="inner").filter(pl.col("phi") > 0)
    rows = _take(known.sort("phi", "query", descending=[True, False]), chosen, most)
    about = (
        f"Failures whose first hit is most similar to the query by its captions (φ = {PHI}): the label may be missing, "
        "and the answer right."
    )
    facts = tuple(f"φ of the first hit {value:.2f}" for value in rows["phi"])
    return QueryGroup("Likely missing positives", about, tuple(rows["query"]), facts)


def _changes(first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """Queries of both runs, with how much the reciprocal rank of the first relevant item changes."""
    both = first.select("query", "rank").join(second.select("query", "rank"), on="query", suffix="_after")
    change = (1 / pl.col("rank_after")).fill_null(0.0) - (1 / pl.col("rank")).fill_null(0.0)
    return both.with_columns(change.alias("change"))


def _changed(changed: pl.DataFrame, chosen: set[str], most: int, names: list[str], won: bool) -> QueryGroup:
    first, second = names[:2]
    side = changed.filter(pl.col("change") > 0 if won else pl.col("change") < 0)
    rows = _take(side.sort(pl.col("change").abs(), "query", descending=[True, False]), chosen, most)
    facts = tuple(
        f"rank {_rank(row['rank'])} with {first}, {_rank(row['rank_after'])} with {second}" for row in rows.to_dicts()
    )
    what = "wins" if won else "loses"
    about = f"{side.height:,} queries in all; those whose reciprocal rank changes most."
    return QueryGroup(f"Queries that {second} {what} against {first}", about, tuple(rows["query"]), facts)


def _rank(rank: int | None) -> str:
    return "beyond the list" if rank is None else f"{rank:,}"


def similarity_of_hits(outcomes: pl.DataFrame, dataset: Dataset, direction: str) -> pl.DataFrame | None:
    """φ of every failure's first hit; None where it cannot be computed."""
    failures = outcomes.filter(FAILED)
    image = {name: row for row, name in enumerate(dataset.image_ids)}
    caption = {name: row for row, name in enumerate(dataset.caption_ids)}
    images, captions = ("query", "item") if direction == IMAGE_TO_TEXT else ("item", "query")
    try:
        rows = np.array([image[name] for name in failures[images]], np.int64)
        columns = np.array([caption[name] for name in failures[captions]], np.int64)
        values = relevance_pairs(dataset, PHI, rows, columns)
    except (CrosslensError, KeyError):
        return None
    return pl.DataFrame({"query": failures["query"], "phi": values}, schema={"query": pl.String, "phi": pl.Float64})
