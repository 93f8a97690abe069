"""The ground truth that an analysis starts from."""

from __future__ import annotations

from crosslens.core import Dataset, InputError, Relevance, UsageError, match_ids, positions


def ground_truth_of(dataset: Dataset, relevance: Relevance | None) -> Relevance:
    """Images × captions of the dataset: each caption's own image, or ``relevance`` with images as queries.

    ``relevance`` may name a part of the images and captions, in either direction, as a qrels file does.
    """
    if relevance is None:
        return Relevance.from_dataset(dataset)
    sides = [(match_ids(ids, dataset.image_ids) >= 0).any() for ids in (relevance.query_ids, relevance.item_ids)]
    if sides == [False, True]:
        relevance = relevance.flip()
    try:
        images = positions(relevance.query_ids, dataset.image_ids, "image", any_ending=True)
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
