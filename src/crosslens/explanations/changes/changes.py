"""Two runs, query by query: which queries the second wins and loses, and what is wrong with the hits of either."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from crosslens.core import IMAGE_TO_TEXT, Dataset, InputError, MissingExtraError, Progress, Run
from crosslens.explanations.changes.values import QueryChange, RunChanges, TopHit
from crosslens.explanations.concepts.objects import objects_of
from crosslens.explanations.failures import failed, query_outcomes, ranking_of
from crosslens.explanations.overview.causes import (
    CAUSES,
    NEAR_MISS,
    UNCLEAR,
    MentionJudgement,
    cause_table,
    judge_failures,
    texts_of,
)
from crosslens.explanations.words.mentions import Mention, mentioned_concepts
from crosslens.similarity import Phi, PreparedSimilarity, load_similarity, prepare_dataset
from crosslens.statistics import paired_permutation

Array = np.ndarray[Any, Any]

SHOWN = 20
"""Won queries, and lost ones, that are shown."""
_KEY = ("query", "item")
_SCHEMA: dict[str, Any] = {"cause": pl.String, **dict.fromkeys(("first", "second", "gone", "new"), pl.Int64)}


class _Failure(NamedTuple):
    """What is wrong with a hit."""

    causes: tuple[str, ...]
    wrong: tuple[str, ...]


def compare_queries(
    first: Run,
    second: Run,
    dataset: Dataset,
    direction: str | None = None,
    *,
    names: tuple[str, str] | None = None,
    phi: Phi = "cider",
    most: int = SHOWN,
    permutations: int = 10_000,
    seed: int = 0,
    progress: Progress | None = None,
) -> RunChanges:
    """Which queries the second run wins over the first and which it loses, with their top hits, φ of these, and causes.

    ``direction``: by default the first that the first run has, captions first. ``most`` won and ``most`` lost queries
    are listed: those whose reciprocal rank changes most, and of equal ones those in the dataset's order.
    """
    direction = ranking_of(first, direction, dataset).direction
    outcomes = [query_outcomes(run, dataset, direction) for run in (first, second)]
    shared = outcomes[0].join(outcomes[1], on="query", how="inner", suffix="_after", maintain_order="left")
    if not shared.height:
        raise InputError(
            f"{first.name} and {second.name} have no query in common", expected="two runs on one dataset",
            fix="compare runs of the same queries",
        )  # fmt: skip
    before, after = (_reciprocal(shared[name]) for name in ("rank", "rank_after"))
    gain = after - before
    clusters = _clusters(shared, dataset, direction)
    prepared = prepare_dataset(dataset, phi, progress=progress)
    hits = [_phi_of_hits(shared, name, dataset, direction, prepared) for name in ("item", "item_after")]
    failures, notes = _explained(outcomes, shared["query"], dataset, progress)
    test: dict[str, Any] = {"permutations": permutations, "seed": seed}
    return RunChanges(
        names or (first.name, second.name), dataset.name, direction, shared.height, int((gain > 0).sum()),
        int((gain < 0).sum()), paired_permutation(after, before, clusters, bounds=(0, 1), **test),
        load_similarity(phi).name, (float(hits[0].mean()), float(hits[1].mean())),
        paired_permutation(hits[1], hits[0], clusters, **test), _cause_changes(shared, gain, failures),
        tuple(_change(shared.row(row, named=True), hits, row, failures) for row in _largest(gain, most)),
        tuple(_change(shared.row(row, named=True), hits, row, failures) for row in _largest(-gain, most)), notes,
        dict(dataset.described.captions.select("image", "text").reverse().iter_rows()),
    )  # fmt: skip


def _reciprocal(ranks: pl.Series) -> Array:
    """1 / rank; 0 where a given list ends before the relevant item."""
    return (1.0 / ranks.cast(pl.Float64)).fill_null(0.0).to_numpy()


def _largest(gain: Array, most: int) -> list[int]:
    order = np.argsort(-gain, kind="stable")[:most]
    return [int(row) for row in order if gain[row] > 0]


def _clusters(shared: pl.DataFrame, dataset: Dataset, direction: str) -> Array:
    """The image of every query."""
    if direction == IMAGE_TO_TEXT:
        return np.arange(shared.height)
    image_of = dict(zip(dataset.caption_ids, np.asarray(dataset.caption_image).tolist(), strict=True))
    return np.array([image_of[query] for query in shared["query"]])


def _phi_of_hits(shared: pl.DataFrame, column: str, dataset: Dataset, direction: str, phi: PreparedSimilarity) -> Array:
    """φ of each top hit: of a caption with the query image's captions; of an image, whose captions, with the query."""
    sides = ("query", column) if direction == IMAGE_TO_TEXT else (column, "query")
    rows = []
    for name, ids in zip(sides, (dataset.image_ids, dataset.caption_ids), strict=True):
        row_of = {item: row for row, item in enumerate(ids)}
        rows.append(np.array([row_of[item] for item in shared[name]], np.int64))
    return np.asarray(phi.pairs(*rows), np.float64)


def _explained(
    outcomes: Sequence[pl.DataFrame], queries: pl.Series, dataset: Dataset, progress: Progress | None
) -> tuple[list[dict[str, _Failure]], tuple[str, ...]]:
    """Per run the failed queries and what is wrong with their top hits. A hit of both runs is judged once."""
    tables = [table.filter(failed() & pl.col("query").is_in(queries.implode())) for table in outcomes]
    distinct = pl.concat(tables).unique(_KEY, keep="first", maintain_order=True)
    try:
        mentions = mentioned_concepts(texts_of(distinct), progress=progress)
        objects = objects_of(dataset, progress=progress)
    except MissingExtraError as error:
        return [{}, {}], (f"Causes are left out: {error.problem}; {error.fix}.",)
    judged = judge_failures(distinct, dataset, objects, mentions, progress)
    table = cause_table([[judgement for _, judgement in row] for row in judged])
    by_hit = {
        key: _Failure(_named_causes(causes), tuple(_phrases(row)))
        for key, causes, row in zip(distinct.select(_KEY).iter_rows(), table.to_dicts(), judged, strict=True)
    }
    failures = [{query: by_hit[query, item] for query, item in table.select(_KEY).iter_rows()} for table in tables]
    source = (
        "captions, as no objects are annotated" if objects.source == "captions" else "annotated objects and captions"
    )
    return failures, (f"Causes are judged by {source}.",)


def _named_causes(row: Mapping[str, Any]) -> tuple[str, ...]:
    """All causes of a failure, or why it has none."""
    violated = tuple(cause for cause in CAUSES if row[f"cause_{cause}"])
    return violated or (row["main_cause"],)


def _phrases(row: Sequence[tuple[Mention, MentionJudgement]]) -> list[str]:
    """The phrases of a query that its hit contradicts."""
    wrong = (f"{judgement.cause}: {_phrase(mention)}" for mention, judgement in row if judgement.holds is False)
    return list(dict.fromkeys(wrong))


def _phrase(mention: Mention) -> str:
    if mention.kind == "relation":
        return f"{mention.noun} {mention.value} {mention.other}"
    text = mention.text.lower()
    return text if mention.noun in text else f"{text} {mention.noun}"


def _cause_changes(shared: pl.DataFrame, gain: Array, failures: Sequence[Mapping[str, _Failure]]) -> pl.DataFrame:
    """Per cause: queries that fail so in either run, won queries without it since, lost queries that have it since."""
    counts = {cause: dict.fromkeys(("first", "second", "gone", "new"), 0) for cause in (*CAUSES, NEAR_MISS, UNCLEAR)}
    for query, change in zip(shared["query"], gain, strict=True):
        before, after = (set(side[query].causes) if query in side else set() for side in failures)
        for cause in before | after:
            counts[cause]["first"] += cause in before
            counts[cause]["second"] += cause in after
            counts[cause]["gone"] += change > 0 and cause not in after
            counts[cause]["new"] += change < 0 and cause not in before
    rows = [{"cause": cause, **{name: int(value) for name, value in row.items()}} for cause, row in counts.items()]
    return pl.DataFrame([row for row in rows if row["first"] or row["second"]], schema=_SCHEMA)


def _change(
    row: Mapping[str, Any], phi: Sequence[Array], position: int, failures: Sequence[Mapping[str, _Failure]]
) -> QueryChange:
    hits = []
    for side, suffix in enumerate(("", "_after")):
        failure = failures[side].get(row["query"], _Failure((), ()))
        hits.append(
            TopHit(
                row[f"item{suffix}"], row[f"retrieved{suffix}"], row[f"answer{suffix}"], row[f"rank{suffix}"],
                float(phi[side][position]), failure.causes, failure.wrong,
            )
        )  # fmt: skip
    return QueryChange(row["query"], row["text"], row["ground_truth"], *hits)
