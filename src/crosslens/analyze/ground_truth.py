"""The ground truth that an analysis starts from, and ids of others found among those of a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crosslens.core import Dataset, InputError, Relevance, UsageError, positions


def ground_truth_of(dataset: Dataset, relevance: Relevance | None) -> Relevance:
    """Images × captions of the dataset: each caption's own image, or ``relevance`` with images as queries.

    ``relevance`` may name a part of the images and captions, in either direction, as a qrels file does.
    """
    if relevance is None:
        return Relevance.from_dataset(dataset)
    if set(dataset.image_ids).isdisjoint(relevance.query_ids) and not set(dataset.image_ids).isdisjoint(
        relevance.item_ids
    ):
        relevance = relevance.flip()
    try:
        images = positions(relevance.query_ids, dataset.image_ids, "image")
        captions = positions(relevance.item_ids, dataset.caption_ids, "caption")
    except InputError as error:
        raise UsageError(
            f"the ground truth is not over the images and captions of the dataset: {error.problem}",
            fix="check that both are of the same collection and split",
        ) from error
    ids = (dataset.image_ids, dataset.caption_ids)
    return Relevance.from_indices(
        *ids, images[relevance.rows], captions[relevance.items], relevance.grades, relevance.source
    )


def positions_or_missing(ids: Sequence[str], known: Sequence[str]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The position of each id, −1 where it is not known."""
    position = {name: row for row, name in enumerate(known)}
    return np.fromiter((position.get(name, -1) for name in ids), np.int64, len(ids))
