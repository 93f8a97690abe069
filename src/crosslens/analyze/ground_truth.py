"""The ground truth that an analysis starts from, over the images and captions of a dataset."""

from __future__ import annotations

from crosslens.core.dataset import Dataset
from crosslens.core.errors import InputError, UsageError
from crosslens.core.ids import positions
from crosslens.core.relevance import Relevance


def ground_truth_of(dataset: Dataset, given: Relevance | None) -> Relevance:
    """Images × captions of the dataset: each caption's own image, or what is given, seen from the images.

    What is given may name a part of the images and captions, in either direction, as a qrels file does.
    """
    if given is None:
        return Relevance.from_dataset(dataset)
    if set(dataset.image_ids).isdisjoint(given.query_ids) and not set(dataset.image_ids).isdisjoint(given.item_ids):
        given = given.flip()
    try:
        images = positions(given.query_ids, dataset.image_ids, "image")
        captions = positions(given.item_ids, dataset.caption_ids, "caption")
    except InputError as error:
        raise UsageError(
            f"the ground truth is not over the images and captions of the dataset: {error.problem}",
            fix="check that both are of the same collection and split",
        ) from error
    ids = (dataset.image_ids, dataset.caption_ids)
    return Relevance.from_indices(*ids, images[given.rows], captions[given.items], given.grades, given.source)
