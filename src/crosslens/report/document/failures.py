"""Which queries are worth looking at: confident failures, near misses, similar first hits, wins and losses; and the
failures that say most about a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from crosslens.core import IMAGE_TO_TEXT, CrosslensError
from crosslens.data import read_table
from crosslens.explanations import Explanation, explain_queries
from crosslens.report.document.inputs import ReportContext

PHI = "cider"
FAILED = pl.col("rank").is_null() | (pl.col("rank") != 1)
_LEAD = pl.coalesce("margin", "margin_at_least")
_CANDIDATES = 24
"""Failures that are explained, to choose from."""
_EXCUSES = {"same caption"}
"""Reasons for listing a label that excuse a miss."""
_UNANNOTATED = "Worth a look: by φ, its captions are as similar as those of annotated pairs, and none denies the other."


@dataclass(frozen=True)
class ChosenQueries:
    """Queries of one kind, the most instructive first; ``facts`` is a sentence on each."""

    title: str
    about: str
    queries: tuple[str, ...]
    facts: tuple[str, ...]


def choose_queries(
    outcomes: Mapping[str, pl.DataFrame], best: str, most: int, phi: pl.DataFrame | None = None
) -> list[ChosenQueries]:
    """Up to ``most`` queries of each kind, none of them twice; ``outcomes`` are of runs on the same queries.

    Failures are those of the run ``best``. ``phi`` has, for some of its failures, how similar the first hit is to the
    query (``query``, ``phi``).
    """
    chosen: set[str] = set()
    groups: list[ChosenQueries] = []
    failures = outcomes[best].filter(FAILED)

    def add(title: str, about: str, rows: pl.DataFrame, by: str, facts: Any, *, descending: bool = True) -> None:
        """The first rows whose queries are not shown yet; ``facts`` says a sentence on a row."""
        free = rows.sort(by, "query", descending=[descending, False])
        free = free.filter(~pl.col("query").is_in(list(chosen))).head(most)
        chosen.update(free["query"])
        if free.height:
            groups.append(ChosenQueries(title, about, tuple(free["query"]), tuple(map(facts, free.to_dicts()))))

    add(
        "Confident failures",
        f"{best} is wrong by the largest margin: the first hit scores far above the right item.",
        failures.with_columns(_LEAD.alias("lead")).filter(pl.col("lead") > 0),
        "lead",
        lambda row: (
            f"score {row['score']:.3f}, against {'at most ' if row['margin'] is None else ''}"
            f"{row['score'] - row['lead']:.3f} of the right item"
        ),
    )
    if phi is not None:
        add(
            "First hits with similar captions",
            f"Failures whose first hit is most similar to the query by its captions (φ = {PHI}): worth a look.",
            failures.join(phi, on="query", how="inner").filter(pl.col("phi") > 0),
            "phi",
            lambda row: f"φ of the first hit {row['phi']:.2f}",
        )
    if len(outcomes) > 1:
        first, second = list(outcomes)[:2]
        ranks = [outcomes[name].select("query", "rank") for name in (first, second)]
        change = (1 / pl.col("rank_after")).fill_null(0.0) - (1 / pl.col("rank")).fill_null(0.0)
        changed = ranks[0].join(ranks[1], on="query", suffix="_after").with_columns(change.alias("change"))
        for what, side in (("wins", pl.col("change") > 0), ("loses", pl.col("change") < 0)):
            rows = changed.filter(side).with_columns(pl.col("change").abs())
            add(
                f"Queries that {second} {what} against {first}",
                f"{rows.height:,} queries in all; those whose reciprocal rank changes most.",
                rows,
                "change",
                lambda row: f"rank {_rank(row['rank'])} with {first}, {_rank(row['rank_after'])} with {second}",
            )
    near = failures.filter((pl.col("rank") == 2) & pl.col("margin").is_not_null())
    add(
        "Near misses", "The right item is second, by the smallest margin.", near, "margin",
        lambda row: f"{row['margin']:.4f} behind the first", descending=False,
    )  # fmt: skip
    return groups


def _rank(rank: int | None) -> str:
    return "beyond the list" if rank is None else f"{rank:,}"


@dataclass(frozen=True)
class TellingFailure:
    """A failed query: its row of :func:`query_outcomes`, what is wrong in words, and why the label may be at fault.

    ``kind`` is what is wrong, such as an object or a colour; empty where nothing explains the failure.
    """

    row: Mapping[str, Any]
    reason: str
    kind: str = ""
    doubt: str = ""
    gallery: int | None = None


def telling_failures(context: ReportContext, name: str) -> list[TellingFailure]:
    """Up to three failures of a run; none without its dataset."""
    run, outcomes = context.inputs.runs[name], context.outcomes(name)
    dataset = context.inputs.dataset_of(run)
    if outcomes is None or dataset is None:
        return []
    rows = most_telling(outcomes.filter(FAILED)).head(_CANDIDATES).to_dicts()
    explained: list[Explanation | None] = [None] * len(rows)
    try:
        explained = [*explain_queries(run, dataset, [row["query"] for row in rows], context.direction)]
    except CrosslensError as error:
        context.notes.append(f"The failures of {name} are not explained: {error.problem}.")
    no_labels: dict[str, str] = {}
    no_pairs: set[tuple[str, str]] = set()
    suspect = context.read_stored(lambda: _suspect_labels(context, name), "the first screen", no_labels)
    fitting = context.read_stored(lambda: _unannotated_pairs(context, name), "the first screen", no_pairs)
    judged = []
    for row, explanation in zip(rows, explained, strict=True):
        failure = _judged(row, explanation)
        pair = (row["query"], row["item"]) if context.direction == IMAGE_TO_TEXT else (row["retrieved"], row["query"])
        if row["query"] in suspect:
            failure = replace(failure, doubt="Another image has this very caption.")
        elif pair in fitting and not failure.doubt:
            failure = replace(failure, doubt=_UNANNOTATED)
        judged.append(failure)
    return choose_telling(judged)


def most_telling(failures: pl.DataFrame) -> pl.DataFrame:
    """Failures in order: first those that are among the most confident *and* have the right item among the furthest."""
    far = pl.col("rank").fill_null(pl.col("rank").max() + 1).fill_null(0)
    telling = pl.min_horizontal(_LEAD.fill_null(0.0).rank(), far.rank())
    return failures.sort(telling, "query", descending=[True, False])


def choose_telling(judged: Sequence[TellingFailure]) -> list[TellingFailure]:
    """The first three: of different kinds, then explained ones, then others; doubtful labels where nothing else is.

    No image is the retrieved one twice, while there are others.
    """
    chosen: list[TellingFailure] = []

    def add(candidates: Iterable[TellingFailure], *, kinds: bool = False, images: bool = True) -> None:
        for failure in candidates:
            if len(chosen) == 3:
                return
            known = {other.row["retrieved"] for other in chosen} if images else set()
            same = failure in chosen or failure.row["retrieved"] in known
            if not same and not (kinds and failure.kind in {other.kind for other in chosen}):
                chosen.append(failure)

    clear = [failure for failure in judged if not failure.doubt]
    explained = [failure for failure in clear if failure.kind]
    add(explained, kinds=True)
    for candidates in (explained, clear):
        add(candidates)
        add(candidates, images=False)
    add([failure for failure in judged if failure.doubt])
    return chosen


def _judged(row: Mapping[str, Any], explanation: Explanation | None) -> TellingFailure:
    """A failure with what its explanation says is wrong; without one, by how much it is wrong."""
    lead = row["margin"] if row["margin"] is not None else row["margin_at_least"]
    scored = "" if not lead else f"It scores {row['score']:.3g}, {lead:.2g} above the right one."
    if explanation is None:
        return TellingFailure(row, scored)
    words = explanation.sentences[0]
    kinds = [claim.kind for claim in words.claims if claim.about == "words"]
    lacking = [{claim.name for claim in words.claims if (claim.about, claim.kind) == (side, "lacks")}
               for side in ("right", "other")]  # fmt: skip
    doubt = "Worth a look: the right item lacks it too." if lacking[0] & lacking[1] else ""
    kind = next((kind for kind in kinds if kind not in ("no fault", "unchecked")), "")
    return TellingFailure(row, words.text if kind else scored or words.text, kind, doubt, explanation.gallery)


def _suspect_labels(context: ReportContext, name: str) -> dict[str, str]:
    """Captions that another image has too, word for word."""
    result = context.inputs.stage_of("label-quality", name)
    if result is None:
        return {}
    rows: Sequence[Mapping[str, Any]] = list(result.payload.get("review", ()))
    if result.folder is not None and (file := result.folder / "review.csv").exists():
        rows = read_table(file).frame.to_dicts()
    reasons = {str(row["caption"]): set(str(row["reason"]).split(" + ")) & _EXCUSES for row in rows if row["caption"]}
    return {caption: ", ".join(sorted(own)) for caption, own in reasons.items() if own}


def _unannotated_pairs(context: ReportContext, name: str) -> set[tuple[str, str]]:
    """Image and caption of pairs that nobody annotated, and that are as similar as annotated ones."""
    result = context.inputs.stage_of("missing-positives", name)
    file = None if result is None or result.folder is None else result.folder / "missing.csv"
    if file is None or not file.exists():
        return set()
    return set(read_table(file).frame.select("image", "caption").iter_rows())
