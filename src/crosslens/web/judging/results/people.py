"""Each judge: how many items, how fast, right on items with known answers, agreeing with the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from crosslens.web.judging.results.agreement import person_agreement
from crosslens.web.judging.results.table import CHECK, DISTRACTOR, PERSON, PRACTICE, REAL

_COLUMNS: dict[str, Any] = {
    "account": pl.String,
    "judged": pl.Int64,
    "seconds": pl.Float64,
    **{f"{kind}_{what}": pl.Int64 for kind in (CHECK, DISTRACTOR, PRACTICE) for what in ("right", "given")},
    "agreement": pl.Float64,
    "first": pl.Datetime("us", "UTC"),
    "last": pl.Datetime("us", "UTC"),
}


def people_table(
    table: pl.DataFrame, expected: Mapping[str, Sequence[str]] | None = None, source: str = PERSON
) -> pl.DataFrame:
    """One row per judge, in the order of names.

    ``judged`` counts real items; ``seconds`` is the median time of one; ``check_right`` of ``check_given`` attention
    checks have the expected answer, and so for distractors and practice items; ``agreement`` is the share of real
    items answered as most others did.
    """
    known = expected or {}
    own = table.filter(pl.col("source") == source)
    agreement = person_agreement(own.filter(pl.col("kind") == REAL)).each
    rows = []
    for (account,), part in own.sort("account", "created", maintain_order=True).group_by(
        ["account"], maintain_order=True
    ):
        real = part.filter(pl.col("kind") == REAL)
        known_answers = [count for kind in (CHECK, DISTRACTOR, PRACTICE) for count in _right(part, kind, known)]
        times = (part["created"].min(), part["created"].max())
        rows.append(
            (account, real.height, real["seconds"].median(), *known_answers, agreement.get(str(account)), *times)
        )
    return pl.DataFrame(rows, schema=_COLUMNS, orient="row")


def _right(part: pl.DataFrame, kind: str, known: Mapping[str, Sequence[str]]) -> tuple[int, int]:
    """How many answers of a kind are the expected ones, of how many that have an expected one."""
    answers = [
        set(known[item]) == set(labels)
        for item, labels in part.filter(pl.col("kind") == kind).select("item", "labels").iter_rows()
        if item in known
    ]
    return sum(answers), len(answers)
