"""Failed queries, whose top-1 item is not relevant: what they retrieved, and the rank of the relevant item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import InputError, UsageError, argument
from crosslens.storage import Array
from crosslens.values import (
    DIRECTION_LABELS,
    IMAGE_TO_TEXT,
    TEXT_TO_IMAGE,
    UNRANKED,
    Dataset,
    Ids,
    Ranking,
    Run,
    positions,
    spelled_as,
)

TEXT_TO_TEXT = "t2t"
DIRECTIONS = (TEXT_TO_IMAGE, TEXT_TO_TEXT, IMAGE_TO_TEXT)
"""The directions that can be explained; the first one that a run has is the usual one."""
DIRECTION_NAMES = {**DIRECTION_LABELS, TEXT_TO_TEXT: "text → image by its captions"}

COLUMNS: Mapping[str, Any] = {
    **dict.fromkeys(("query", "text", "ground_truth", "retrieved", "item", "answer"), pl.String),
    "rank": pl.Int64,
    **dict.fromkeys(("score", "truth_score", "margin", "margin_at_least"), pl.Float64),
}


def failed_queries(run: Run | Mapping[str, Ranking], dataset: Dataset, direction: str | None = None) -> pl.DataFrame:
    """One row per failed query of a direction (the rows of :func:`query_outcomes` whose rank is not 1)."""
    return query_outcomes(run, dataset, direction).filter(failed())


def failed() -> pl.Expr:
    """Which outcomes are failures."""
    return pl.col("rank").is_null() | (pl.col("rank") != 1)


def query_outcomes(run: Run | Mapping[str, Ranking], dataset: Dataset, direction: str | None = None) -> pl.DataFrame:
    """One row per query that has a relevant item and retrieved any item, all of the dataset.

    ``query``            the query's id, ``text`` its text (null for an image query)
    ``ground_truth``     the relevant image: of several, the first ranked; of an image query, the image itself
    ``retrieved``        the top-1 image; of an image query, the image of the top-1 caption
    ``item``             the top-1 item: that image, or that caption; ``answer`` the caption's text
    ``rank``             the rank of the relevant item; null where an imported ranking ends before it
    ``score``            that of the top-1 item; ``truth_score`` of the relevant item, null beyond the top k
    ``margin``           ``score − truth_score``; 0 where the top-1 item is relevant
    ``margin_at_least``  the same where the relevant item lies beyond the top k: the difference to the last score
    """
    ranking = ranking_of(run, direction, dataset)
    best, rank = first_relevant(ranking)
    gallery = item_rows(ranking, dataset)
    # Of items that only ready-made lists name, nothing is known that could be compared.
    outside = ((ranking.top_items != UNRANKED) & (gallery[ranking.top_items] < 0)).any(axis=1)
    rows = np.flatnonzero((best != UNRANKED) & (ranking.top_items[:, 0] != UNRANKED) & ~outside)
    items = ranking.top_items[rows, 0]
    texts: list[str | None] = [None] * len(rows)
    answers: list[str | None] = [None] * len(rows)
    if ranking.direction == IMAGE_TO_TEXT:
        retrieved = dataset.caption_image[gallery[items]]
        answers = [dataset.texts[row] for row in gallery[items]]
        truth = _rows(ranking.query_ids, dataset.image_ids, "image", dataset)[rows]
    else:
        retrieved, truth = gallery[items], gallery[best[rows]]
        texts = [dataset.texts[row] for row in _rows(ranking.query_ids, dataset.caption_ids, "caption", dataset)[rows]]
    scores, truth_scores, last = (part[rows] for part in list_scores(ranking, best))
    # An imported ranking may leave out an item for any reason: nothing bounds its score.
    bounded = np.isnan(truth_scores) & (rank[rows] != UNRANKED)
    table = {
        "query": [ranking.query_ids[row] for row in rows],
        "text": texts,
        "ground_truth": [dataset.image_ids[row] for row in truth],
        "retrieved": [dataset.image_ids[row] for row in retrieved],
        "item": [ranking.item_ids[item] for item in items],
        "answer": answers,
        "rank": [None if number == UNRANKED else int(number) for number in rank[rows]],
        "score": scores,
        "truth_score": truth_scores,
        "margin": scores - truth_scores,
        "margin_at_least": scores - np.where(bounded, last, np.nan),
    }
    return pl.DataFrame(table, schema=dict(COLUMNS), strict=False, nan_to_null=True)


def list_scores(ranking: Ranking, relevant: Array) -> tuple[Array, Array, Array]:
    """Of each query the score of the top-1 item, that of this relevant one (NaN beyond the top k), and the last one."""
    in_list, scores = ranking.top_items != UNRANKED, ranking.top_scores.astype(np.float64)
    at, queries = (ranking.top_items == relevant[:, None]) & in_list, np.arange(len(scores))
    relevant_scores = np.where(at.any(axis=1), scores[queries, at.argmax(axis=1)], np.nan)
    return scores[:, 0], relevant_scores, scores[queries, np.maximum(in_list.sum(axis=1) - 1, 0)]


def ranking_of(
    run: Run | Mapping[str, Ranking], direction: str | None = None, dataset: Dataset | None = None
) -> Ranking:
    """The ranking of a direction, with lists in it; by default of the first of ``DIRECTIONS`` that the run has.

    With a dataset, ids are written as there: an image with or without the ending of its file.
    """
    rankings = run.rankings if isinstance(run, Run) else run
    run_name = run.name if isinstance(run, Run) else "this run"
    if direction is not None and direction not in DIRECTIONS:
        raise UsageError(f"unknown direction {direction!r}", fix=f"use one of: {', '.join(DIRECTIONS)}")
    available = [name for name in DIRECTIONS if name in rankings]
    if not available:
        raise InputError(
            f"{run_name} keeps no rankings",
            expected="a run whose folder holds ranking-t2i or ranking-i2t",
            fix="repeat the evaluation with a depth of 1 or more",
        )
    if direction is not None and direction not in available:
        raise UsageError(f"{run_name} has no {direction} ranking", fix=f"it has: {', '.join(available)}")
    ranking = rankings[direction or available[0]]
    if ranking.depth == 0:
        raise InputError(
            f"the {ranking.direction} ranking of {run_name} keeps no top-k lists",
            expected="at least the top-1 item of every query",
            fix="repeat the evaluation with a depth of 1 or more (the default is 10)",
        )
    if dataset is None:
        return ranking
    sides = dataset.image_ids, dataset.caption_ids
    queries, items = sides if ranking.direction == IMAGE_TO_TEXT else sides[::-1]
    query_ids, item_ids = spelled_as(queries, ranking.query_ids), spelled_as(items, ranking.item_ids)
    same = (query_ids, item_ids) == (ranking.query_ids, ranking.item_ids)
    return ranking if same else replace(ranking, query_ids=query_ids, item_ids=item_ids)


def first_relevant(ranking: Ranking) -> tuple[Array, Array]:
    """Per query the first ranked relevant item, and its rank; ties are ranked in gallery order, as in the lists."""
    far = np.iinfo(np.int64).max
    ranks = np.where(ranking.above == UNRANKED, far, 1 + ranking.above + ranking.tied_before)
    order = np.flatnonzero((ranking.grades > 0) & (ranking.above >= UNRANKED))
    order = order[np.lexsort((ranking.relevant[order], ranks[order], ranking.rows[order]))]
    queries, first = np.unique(ranking.rows[order], return_index=True)
    leading = order[first]
    best, rank = np.full((2, len(ranking.query_ids)), UNRANKED, np.int64)
    best[queries] = ranking.relevant[leading]
    rank[queries] = np.where(ranks[leading] == far, UNRANKED, ranks[leading])
    return best, rank


def item_rows(ranking: Ranking, dataset: Dataset) -> Array:
    """The row of each item in the dataset; −1 for those that only ready-made lists name, behind the dataset's own."""
    kind = "caption" if ranking.direction == IMAGE_TO_TEXT else "image"
    ids = dataset.caption_ids if kind == "caption" else dataset.image_ids
    if len(ranking.item_ids) > len(ids) and ranking.item_ids[: len(ids)] == ids:
        return np.concatenate([np.arange(len(ids)), np.full(len(ranking.item_ids) - len(ids), UNRANKED)])
    return _rows(ranking.item_ids, ids, kind, dataset)


def _rows(ids: Ids, dataset_ids: Ids, kind: str, dataset: Dataset) -> Array:
    try:
        return positions(ids, dataset_ids, kind)
    except InputError as error:
        known_id = error.code == "unknown-id" and error.subject is not None
        problem = f"the run ranks {kind} {error.subject!r}" if known_id else error.problem
        raise InputError(
            f"{problem}, which is not in the dataset {dataset.name!r}",
            expected="the dataset that the run was made from",
            fix=f"name that dataset with {argument('dataset')} and its reader options",
            code=error.code,
            subject=error.subject,
        ) from error
