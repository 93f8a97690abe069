"""Rules "if A then B" over a table of yes and no: how often they hold, and whether chance would make them as often.

A row is something that was judged (a failure, an answered question), a column something that may be true of it. Null is
"not judged": a rule is counted over the rows in which everything it names was judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from crosslens.core.errors import InputError, UsageError
from crosslens.statistics.corrections import correct

Array = np.ndarray[Any, Any]

RULE_COLUMNS: dict[str, Any] = {
    "if": pl.List(pl.String),
    "then": pl.String,
    "rows": pl.Int64,
    "count_if": pl.Int64,
    "count_then": pl.Int64,
    "count": pl.Int64,
    "support": pl.Float64,
    "confidence": pl.Float64,
    "lift": pl.Float64,
    "p_value": pl.Float64,
    "p_adjusted": pl.Float64,
}


def association_rules(
    table: pl.DataFrame,
    *,
    longest: int = 1,
    minimum: int = 5,
    confidence: float = 0.0,
    support: float = 0.0,
    correction: str = "holm",
) -> pl.DataFrame:
    """Every rule "if A then B" over the boolean columns of ``table``, the surest first.

    A is up to ``longest`` columns, all true; B another one. ``rows``: where all of them were judged; ``count_if`` and
    ``count_then``: how often A and B are true there, ``count``: both. ``support`` = count / rows, ``confidence`` =
    count / count_if, ``lift`` = confidence / (count_then / rows): above 1, A makes B likelier than it is anyway.

    ``p_value`` is Fisher's exact one: the chance of at least this ``count`` where A and B have nothing to do with each
    other; rows are taken as independent. ``p_adjusted`` corrects it for every rule that was tested, which are those
    with A, and B, true in at least ``minimum`` rows and not in all of them. The least ``confidence`` and ``support``
    only choose what is listed: what is tested does not depend on what comes out.
    """
    _check(table, longest, minimum)
    tested = list(_tested(table, longest, minimum))
    if not tested:
        return pl.DataFrame(schema=RULE_COLUMNS)
    counts = np.array([numbers for _, _, numbers in tested], np.int64)
    rows, first, second, both = counts.T
    p_values = at_least_by_chance(rows, first, second, both)
    found = pl.DataFrame(
        {
            "if": [list(names) for names, _, _ in tested],
            "then": [name for _, name, _ in tested],
            "rows": rows,
            "count_if": first,
            "count_then": second,
            "count": both,
            "support": both / rows,
            "confidence": both / first,
            "lift": (both * rows) / (first.astype(np.float64) * second),
            "p_value": p_values,
            "p_adjusted": correct(p_values, correction),
        },
        schema=RULE_COLUMNS,
    )
    kept = found.filter((pl.col("confidence") >= confidence) & (pl.col("support") >= support) & (pl.col("count") > 0))
    order = ["p_adjusted", "p_value", "lift", "count"]
    return kept.sort(order, descending=[False, False, True, True], maintain_order=True)


def at_least_by_chance(rows: Array, first: Array, second: Array, both: Array) -> Array:
    """The chance of at least ``both`` rows in common, of ``first`` and ``second`` rows drawn independently."""
    from scipy.stats import hypergeom

    return np.clip(np.asarray(hypergeom.sf(both - 1, rows, first, second), np.float64), 0.0, 1.0)


def _tested(
    table: pl.DataFrame, longest: int, minimum: int
) -> Iterator[tuple[tuple[str, ...], str, tuple[int, int, int, int]]]:
    """Every rule with its counts: rows judged, A, B, both."""
    names = table.columns
    judged = {name: table[name].is_not_null().to_numpy() for name in names}
    true = {name: table[name].fill_null(False).to_numpy() for name in names}
    for size in range(1, longest + 1):
        for condition in combinations(names, size):
            known = np.logical_and.reduce([judged[name] for name in condition])
            holds = np.logical_and.reduce([true[name] for name in condition]) & known
            if int(holds.sum()) < minimum:
                continue
            for name in names:
                if name not in condition:
                    counts = _counts(known & judged[name], holds, true[name])
                    if all(minimum <= one < counts[0] for one in counts[1:3]):
                        yield condition, name, counts


def _counts(rows: Array, first: Array, second: Array) -> tuple[int, int, int, int]:
    first, second = first & rows, second & rows
    return int(rows.sum()), int(first.sum()), int(second.sum()), int((first & second).sum())


def _check(table: pl.DataFrame, longest: int, minimum: int) -> None:
    wrong: Sequence[str] = [name for name, kind in table.schema.items() if kind != pl.Boolean]
    if wrong:
        raise InputError(
            f"the column {wrong[0]!r} holds {table.schema[wrong[0]]}",
            expected="true, false or null",
            fix="give a table of boolean columns only",
        )
    if longest < 1:
        raise UsageError(f"conditions of up to {longest} columns", fix="use 1 or more")
    if minimum < 1:
        raise UsageError(f"a minimum of {minimum} rows", fix="use 1 or more; 5 is usual")
