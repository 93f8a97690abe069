"""Ranking within folds: consecutive parts of the images, each with its own captions and its own galleries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from crosslens.core.dataset import Dataset
from crosslens.core.errors import UsageError
from crosslens.core.ids import Ids
from crosslens.core.ranking import UNRANKED, Ranking
from crosslens.core.relevance import IMAGE_TO_TEXT, Relevance

Array = np.ndarray[Any, Any]


class Fold(NamedTuple):
    """Rows of the images and captions of one fold."""

    images: Array
    captions: Array


def folds_of(dataset: Dataset, count: int) -> list[Fold]:
    """``count`` consecutive parts of the images (1,000 each for COCO's 5,000 in 5), with their captions."""
    if not isinstance(count, int) or not 1 <= count <= len(dataset.image_ids):
        raise UsageError(
            f"{count} folds of {len(dataset.image_ids)} images", fix="use a whole number from 1 to the number of images"
        )
    return [
        Fold(rows, np.flatnonzero((dataset.caption_image >= rows[0]) & (dataset.caption_image <= rows[-1])))
        for rows in np.array_split(np.arange(len(dataset.image_ids)), count)
    ]


def fold_numbers(dataset: Dataset, folds: Sequence[Fold]) -> dict[str, Array]:
    """Per direction, the fold of every query."""
    of_image = np.concatenate([np.full(len(fold.images), number) for number, fold in enumerate(folds)])
    of_caption = of_image[dataset.caption_image]
    return {"i2t": of_image, "t2i": of_caption, "t2t": of_caption}


def within(relevance: Mapping[str, Relevance], fold: Fold) -> dict[str, Relevance]:
    """The judgements whose query and item are both in the fold."""
    return {
        direction: _restricted(one, *((fold.images, fold.captions) if direction == IMAGE_TO_TEXT else fold[::-1]))
        for direction, one in relevance.items()
    }


def _restricted(relevance: Relevance, queries: Array, items: Array) -> Relevance:
    row_of, column_of = _places(queries, len(relevance.query_ids)), _places(items, len(relevance.item_ids))
    rows, columns = row_of[relevance.rows], column_of[relevance.items]
    inside = (rows >= 0) & (columns >= 0)
    return Relevance.from_indices(
        tuple(relevance.query_ids[row] for row in queries),
        tuple(relevance.item_ids[column] for column in items),
        rows[inside],
        columns[inside],
        relevance.grades[inside],
        relevance.source,
    )


def _places(chosen: Array, size: int) -> Array:
    places = np.full(size, -1, np.int64)
    places[chosen] = np.arange(len(chosen))
    return places


def joined(parts: Sequence[Ranking], folds: Sequence[Fold], query_ids: Ids, item_ids: Ids) -> Ranking:
    """One ranking over all queries, each ranked in its fold; indices are those of the whole dataset."""
    forward = parts[0].direction == IMAGE_TO_TEXT
    sides = [(fold.images, fold.captions) if forward else (fold.captions, fold.images) for fold in folds]
    depth = max(part.depth for part in parts)
    queries = np.concatenate([mine for mine, _ in sides])
    lists = [_global_lists(part, items, depth) for part, (_, items) in zip(parts, sides, strict=True)]
    rows = np.concatenate([mine[part.rows] for part, (mine, _) in zip(parts, sides, strict=True)])
    relevant = np.concatenate([items[part.relevant] for part, (_, items) in zip(parts, sides, strict=True)])
    order = np.lexsort((relevant, rows))
    counts = np.bincount(rows, minlength=len(query_ids))

    def by_query(values: Sequence[Array]) -> Array:
        together = np.concatenate(values)
        out = np.empty_like(together)
        out[queries] = together
        return out

    def by_pair(name: str) -> Array:
        return np.concatenate([getattr(part, name) for part in parts])[order]

    return replace(
        parts[0],
        query_ids=query_ids,
        item_ids=item_ids,
        top_items=by_query([items for items, _ in lists]),
        top_scores=by_query([scores for _, scores in lists]),
        known=by_query([part.known for part in parts]),
        offsets=np.concatenate([[0], np.cumsum(counts)]),
        relevant=relevant[order],
        grades=by_pair("grades"),
        above=by_pair("above"),
        tied=by_pair("tied"),
        tied_before=by_pair("tied_before"),
    )


def _global_lists(part: Ranking, items: Array, depth: int) -> tuple[Array, Array]:
    """A fold's lists in the indices of the whole dataset, padded to a common depth."""
    shape = (len(part.query_ids), depth)
    top_items, top_scores = np.full(shape, UNRANKED, np.int64), np.full(shape, np.nan, part.top_scores.dtype)
    top_items[:, : part.depth] = items[part.top_items]
    top_scores[:, : part.depth] = part.top_scores
    return top_items, top_scores
