"""The queries whose first place went to a wrong item: what was asked, what was found, how far off the right one was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from crosslens.core.dataset import Dataset
from crosslens.core.errors import InputError, UsageError
from crosslens.core.ids import Ids, positions
from crosslens.core.ranking import UNRANKED, Ranking
from crosslens.core.relevance import IMAGE_TO_TEXT, TEXT_TO_IMAGE
from crosslens.core.run import Run

Array = np.ndarray[Any, Any]

TEXT_TO_TEXT = "t2t"
DIRECTIONS = (TEXT_TO_IMAGE, TEXT_TO_TEXT, IMAGE_TO_TEXT)
"""The directions that can be explained; the first one that a run has is the usual one."""

COLUMNS: Mapping[str, Any] = {
    "query": pl.String,
    "text": pl.String,
    "ground_truth": pl.String,
    "retrieved": pl.String,
    "item": pl.String,
    "answer": pl.String,
    "rank": pl.Int64,
    "score": pl.Float64,
    "truth_score": pl.Float64,
    "margin": pl.Float64,
    "margin_at_least": pl.Float64,
}


def failures_of(run: Run | Mapping[str, Ranking], dataset: Dataset, direction: str | None = None) -> pl.DataFrame:
    """One row per failed query of a direction (the rows of :func:`outcomes_of` whose rank is not 1)."""
    outcomes = outcomes_of(run, dataset, direction)
    return outcomes.filter(pl.col("rank").is_null() | (pl.col("rank") != 1))


def outcomes_of(run: Run | Mapping[str, Ranking], dataset: Dataset, direction: str | None = None) -> pl.DataFrame:
    """One row per query that has a right answer and got any answer.

    ``query``            the query's id, ``text`` its text (null for an image query)
    ``ground_truth``     the right image: of several, the one that stands first; of an image query, the image itself
    ``retrieved``        the image at the first place; of an image query, the image of the caption at the first place
    ``item``             the item at the first place: that image, or that caption; ``answer`` the caption's text
    ``rank``             the place of the right item; null where a ready-made list ends before it
    ``score``            that of the first place; ``truth_score`` of the right item, null where the list did not keep it
    ``margin``           ``score − truth_score``; 0 where the first place is right
    ``margin_at_least``  the same where the right item lies beyond the kept list: the difference to the list's end
    """
    ranking = ranking_of(run, direction)
    places = _Places(ranking)
    rows = np.flatnonzero(places.answered)
    tops = ranking.top_items[rows, 0]
    item_image, texts = _items(ranking, dataset)
    truth_image = _truths(ranking, dataset, rows, places.best[rows], item_image)
    scores, own, last = places.scores(rows)
    image_ids = np.array(dataset.image_ids, dtype=object)
    table = {
        "query": [ranking.query_ids[row] for row in rows],
        "text": _query_texts(ranking, dataset, rows),
        "ground_truth": image_ids[truth_image].tolist(),
        "retrieved": image_ids[item_image[tops]].tolist(),
        "item": [ranking.item_ids[item] for item in tops],
        "answer": [None if texts is None else texts[item] for item in tops],
        "rank": [None if rank == UNRANKED else int(rank) for rank in places.rank[rows]],
        "score": scores,
        "truth_score": own,
        "margin": scores - own,
        "margin_at_least": np.where(np.isnan(own), scores - last, np.nan),
    }
    return pl.DataFrame(table, schema=dict(COLUMNS), strict=False, nan_to_null=True)


def ranking_of(run: Run | Mapping[str, Ranking], direction: str | None = None) -> Ranking:
    """The ranking of a direction, with lists in it; by default of the first of ``DIRECTIONS`` that the run has."""
    rankings = run.rankings if isinstance(run, Run) else run
    name = run.name if isinstance(run, Run) else "this run"
    if direction is not None and direction not in DIRECTIONS:
        raise UsageError(f"unknown direction {direction!r}", fix=f"use one of: {', '.join(DIRECTIONS)}")
    having = [one for one in DIRECTIONS if one in rankings]
    if not having:
        raise InputError(
            f"{name} keeps no rankings",
            expected="a run whose folder holds ranking-t2i or ranking-i2t",
            fix="repeat the evaluation; a depth of 1 or more keeps the lists",
        )
    if direction is not None and direction not in having:
        raise UsageError(f"{name} has no {direction} ranking", fix=f"it has: {', '.join(having)}")
    ranking = rankings[direction or having[0]]
    if ranking.depth == 0:
        raise InputError(
            f"the {ranking.direction} ranking of {name} keeps no lists",
            expected="at least the first place of every list",
            fix="repeat the evaluation with a depth of 1 or more (the usual one is 10)",
        )
    return ranking


class _Places:
    """Per query the right item that stands first, and its rank; ties stand in gallery order, as in the lists."""

    def __init__(self, ranking: Ranking) -> None:
        self.ranking = ranking
        counts = (ranking.grades > 0) & (ranking.above >= UNRANKED)
        far = np.iinfo(np.int64).max
        ranks = np.where(ranking.above == UNRANKED, far, 1 + ranking.above + ranking.tied_before)
        order = np.flatnonzero(counts)
        order = order[np.lexsort((ranking.relevant[order], ranks[order], ranking.rows[order]))]
        queries, first = np.unique(ranking.rows[order], return_index=True)
        leading = order[first]
        self.best = np.full(len(ranking.query_ids), UNRANKED, np.int64)
        self.rank = np.full(len(ranking.query_ids), UNRANKED, np.int64)
        self.best[queries] = ranking.relevant[leading]
        self.rank[queries] = np.where(ranks[leading] == far, UNRANKED, ranks[leading])

    @property
    def answered(self) -> Array:
        """Queries with a right answer, and with a first place."""
        found: Array = (self.best != UNRANKED) & (self.ranking.top_items[:, 0] != UNRANKED)
        return found

    def scores(self, rows: Array) -> tuple[Array, Array, Array]:
        """Of each query: the score of the first place, of the right item (NaN where not kept), of the list's end."""
        lists, values = self.ranking.top_items[rows], self.ranking.top_scores[rows].astype(np.float64)
        kept = lists != UNRANKED
        own = np.where((lists == self.best[rows][:, None]) & kept, values, np.nan)
        found = np.where(np.isnan(own).all(axis=1), np.nan, np.nanmax(np.nan_to_num(own, nan=-np.inf), axis=1))
        last = values[np.arange(len(rows)), np.maximum(kept.sum(axis=1) - 1, 0)]
        beyond = self.rank[rows] != UNRANKED
        # What a ready-made list leaves out may have been left out for any reason: nothing bounds its score.
        return values[:, 0], found, np.where(beyond, last, np.nan)


def _items(ranking: Ranking, dataset: Dataset) -> tuple[Array, tuple[str, ...] | None]:
    """Of each item the row of its image, and its text where items are captions."""
    if ranking.direction != IMAGE_TO_TEXT:
        return _rows(ranking.item_ids, dataset.image_ids, "image", dataset), None
    rows = _rows(ranking.item_ids, dataset.caption_ids, "caption", dataset)
    return dataset.caption_image[rows], tuple(dataset.texts[row] for row in rows)


def _truths(ranking: Ranking, dataset: Dataset, rows: Array, best: Array, item_image: Array) -> Array:
    if ranking.direction != IMAGE_TO_TEXT:
        return item_image[best]
    return _rows(ranking.query_ids, dataset.image_ids, "image", dataset)[rows]


def _query_texts(ranking: Ranking, dataset: Dataset, rows: Array) -> list[str | None]:
    if ranking.direction == IMAGE_TO_TEXT:
        return [None] * len(rows)
    captions = _rows(ranking.query_ids, dataset.caption_ids, "caption", dataset)[rows]
    return [dataset.texts[row] for row in captions]


def _rows(wanted: Ids, known: Ids, what: str, dataset: Dataset) -> Array:
    try:
        return positions(wanted, known, what)
    except InputError as error:
        raise InputError(
            f"the run ranks {what} {error.problem.rpartition(' ')[2]}, which is not in the dataset {dataset.name!r}",
            expected="the dataset that the run was made from",
            fix="name that dataset with --dataset and its reader options",
        ) from error
