"""Why a failure is one: which kinds of things the query asks for and the retrieved image gets wrong.

Every cause is judged from facts, query-informed: only what the query mentions can be a cause. A cause is true where a
mention of its kind is violated, null where one could not be judged (and none is violated), false otherwise: where all
are satisfied, or the query mentions nothing of the kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from crosslens.statistics import Bootstrap

CAUSES = ("object", "count", "colour", "size", "position", "action", "detail")
"""What may be wrong, in the order by which the main cause is chosen: what is shown, how many of it, what it looks
like, where it stands, what it does, and whatever else was said."""
NEAR_MISS = "near miss"
"""Nothing that the query mentions is violated, and most of what can be judged is there: it may be a good answer too."""
UNCLEAR = "unclear"
"""Nothing is violated, but more of what the query mentions is open than is there: too little to say."""
OUTCOMES = (*CAUSES, NEAR_MISS, UNCLEAR)
"""Every failure has one of them as its main cause."""
MAIN = "main_cause"

_SHARES: dict[str, Any] = {
    "cause": pl.String,
    "asked": pl.Int64,
    "open": pl.Int64,
    "count": pl.Int64,
    "share": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "of_asked": pl.Float64,
    "main": pl.Int64,
    "main_share": pl.Float64,
    "alone": pl.Int64,
}


@dataclass(frozen=True)
class Judged:
    """One mention of a query, judged against the retrieved image.

    ``holds`` is None where nothing is known; ``evidence`` names what decided: the ``annotations`` or the ``captions``.
    """

    cause: str
    holds: bool | None
    evidence: str = ""


def cause_column(cause: str) -> str:
    """The column of a cause in the table of failures."""
    return f"cause_{cause.replace(' ', '_')}"


def cause_table(judged: Sequence[Iterable[Judged]]) -> pl.DataFrame:
    """One row per failure: a boolean column per cause, for near misses and unclear ones, and the main cause.

    ``mentions`` and ``unjudged`` count what the query mentions and what of it could not be judged; ``by_captions`` is
    true where the word of captions decided about a cause.
    """
    rows = [list(some) for some in judged]
    columns: dict[str, Any] = {cause_column(cause): [_cause(some, cause) for some in rows] for cause in CAUSES}
    violated = [[cause for cause in CAUSES if columns[cause_column(cause)][row]] for row in range(len(rows))]
    sound = [_mostly_there(some) for some in rows]
    columns[cause_column(NEAR_MISS)] = [not wrong and there for wrong, there in zip(violated, sound, strict=True)]
    columns[cause_column(UNCLEAR)] = [not wrong and not there for wrong, there in zip(violated, sound, strict=True)]
    schema: dict[str, Any] = dict.fromkeys(columns, pl.Boolean)
    columns |= {
        MAIN: [
            wrong[0] if wrong else NEAR_MISS if there else UNCLEAR for wrong, there in zip(violated, sound, strict=True)
        ],
        "mentions": [len(some) for some in rows],
        "unjudged": [sum(one.holds is None for one in some) for some in rows],
        "by_captions": [any(one.holds is False and one.evidence == "captions" for one in some) for some in rows],
    }
    schema |= {MAIN: pl.String, "mentions": pl.Int64, "unjudged": pl.Int64, "by_captions": pl.Boolean}
    asked = {f"asks_{cause}": [sum(one.cause == cause for one in some) for some in rows] for cause in CAUSES}
    return pl.DataFrame(columns | asked, schema=schema | dict.fromkeys(asked, pl.Int64))


def cause_shares(failures: pl.DataFrame, draws: Bootstrap, level: float = 0.95) -> pl.DataFrame:
    """One row per cause, then the near misses and the unclear ones.

    ``asked``: failures whose query mentions such a thing; ``open``: those of them that could not be judged; ``count``:
    failures with this cause, ``share`` of all failures with its interval over images; ``of_asked``: of those asked and
    judged; ``main`` and ``main_share``: where it is the main cause; ``alone``: where it is the only one.
    """
    whole = failures.height
    number = pl.sum_horizontal(pl.col([cause_column(one) for one in CAUSES]).fill_null(False).cast(pl.Int64))
    single = failures.select((number == 1).alias("single"))["single"]
    rows = []
    for cause in OUTCOMES:
        column = failures[cause_column(cause)]
        true = column.fill_null(False)
        found = draws.estimate(true.cast(pl.Float64).to_numpy(), level=level)
        asked = int((failures[f"asks_{cause}"] > 0).sum()) if cause in CAUSES else None
        unknown = column.null_count()
        main = int((failures[MAIN] == cause).sum())
        rows.append({
            "cause": cause, "asked": asked, "open": unknown, "count": int(true.sum()), "share": _real(found.mean),
            "low": _real(found.low), "high": _real(found.high),
            "of_asked": int(true.sum()) / (asked - unknown) if asked is not None and asked > unknown else None,
            "main": main, "main_share": main / whole if whole else None,
            "alone": int((true & single).sum()) if cause in CAUSES else None,
        })  # fmt: skip
    return pl.DataFrame(rows, schema=_SHARES)


def _mostly_there(some: Sequence[Judged]) -> bool:
    """Whether more mentions are satisfied than open. Places do not count: boxes hardly ever tell."""
    holds = [one.holds for one in some if one.cause != "position"]
    there = sum(one is True for one in holds)
    return there > 0 and there >= sum(one is None for one in holds)


def _cause(some: Sequence[Judged], cause: str) -> bool | None:
    own = [one.holds for one in some if one.cause == cause]
    if any(holds is False for holds in own):
        return True
    return None if any(holds is None for holds in own) else False


def _real(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
