"""Pairs that do not match: captions that people rejected, or captions of other images drawn with a seed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from crosslens.analyze.categories import Categories, ClassificationPairs
from crosslens.analyze.pair_scores import ImageCaptionPairs, ground_truth_of, rows_of
from crosslens.core import InputError, UsageError, argument
from crosslens.data import RowName, check_ids
from crosslens.storage import Array, IntArray, random_stream
from crosslens.values import Dataset, Relevance, positions

ALL_REJECTED = "all"
_TRIES = 64


def classification_pairs(
    dataset: Dataset,
    categories: Categories,
    rejected: pl.DataFrame | str | Path | None = None,
    *,
    negatives: int | str = 1,
    relevance: Relevance | None = None,
    seed: int = 0,
) -> ClassificationPairs:
    """Every caption with its image, and pairs that do not match.

    Those are the captions in ``rejected`` (columns ``image`` and ``text``; ``score[MODEL]`` where they are scored
    already), or else captions of other images, drawn with the seed. ``negatives`` of them are taken per image, or
    ``"all"`` rejected ones; an image with fewer rejected captions has those.
    """
    limit: int | None = None
    if negatives != ALL_REJECTED:
        limit = int(negatives) if str(negatives).isdecimal() else 0
        if limit < 1:
            fix = "pass a number from 1, or all"
            raise UsageError(f"{negatives!r} negatives per image", fix=fix, option="negatives")
    elif rejected is None:
        raise UsageError(
            "all pairs that do not match, without rejected captions",
            fix=f"pass a number per image, or the rejected captions: {argument('rejected')}",
            option="negatives",
        )
    matching, extended = ImageCaptionPairs.of_captions(dataset), dataset
    scores: dict[str, Array] = {}
    if rejected is None:
        assert limit is not None
        images, captions = _mismatched(dataset, ground_truth_of(dataset, relevance), limit, seed)
        words = f"captions of other images, {limit} per image, drawn with the seed {seed}"
    else:
        with rows_of(rejected) as (frame, row_name):
            table = _checked(frame, dataset, row_name).unique(["image", "text"], maintain_order=True)
        if limit is not None:  # drawn with the seed from an image's texts: the order of the file does not matter
            picks: list[int] = []
            for (image,), part in table.with_row_index("at").sort("text").group_by("image", maintain_order=True):
                order = random_stream(seed, "rejected caption", str(image)).permutation(part.height)
                picks += part["at"].gather(order[:limit]).to_list()
            table = table[sorted(picks)]
        names = [f"rejected:{number}" for number in range(1, table.height + 1)]
        added = table.select(pl.Series("caption", names), "image", "text")
        extended = replace(dataset, captions=pl.concat([dataset.captions, added], how="diagonal"))
        images = table["row"].to_numpy()
        captions = np.arange(len(dataset.caption_ids), len(extended.caption_ids))
        words = f"rejected captions, {'all of them' if limit is None else f'at most {limit} per image'}"
        # Of the models that both tables have scores of.
        stored = categories.table
        keys = [name for name in ("image", "caption") if name in stored.columns]
        for column in table.columns:
            if column.startswith("score[") and column in stored.columns and "caption" in keys:
                matching_scores = matching.from_table(stored.select(*keys, pl.col(column).alias("score")))
                scores[column[len("score[") : -1]] = np.concatenate([matching_scores, table[column].to_numpy()])
    rows = np.concatenate([matching.images, images]), np.concatenate([matching.captions, captions])
    labels = np.concatenate([categories.of_dataset(dataset), np.full(len(images), -1, np.int64)])
    matches = np.arange(len(labels)) < len(matching)
    return ClassificationPairs(ImageCaptionPairs(extended, *rows), matches, labels, categories.names, words, scores)


def _mismatched(dataset: Dataset, truth: Relevance, count: int, seed: int) -> tuple[IntArray, IntArray]:
    """For every image with captions, captions that are not relevant to it, nor word for word equal to one that is."""
    relevant = truth.relevant()
    relevant_of: list[set[int]] = [set() for _ in dataset.image_ids]
    for image, caption in zip(relevant.rows.tolist(), relevant.items.tolist(), strict=True):
        relevant_of[image].add(caption)
    texts, total = dataset.texts, len(dataset.caption_ids)
    images: list[int] = []
    captions: list[int] = []
    for image, relevant_captions in enumerate(relevant_of):
        if not relevant_captions:
            continue
        relevant_texts = {texts[caption] for caption in relevant_captions}
        stream = random_stream(seed, "mismatched caption", dataset.image_ids[image])
        negatives: dict[int, None] = {}
        for _ in range(_TRIES):
            for caption in stream.integers(0, total, size=4 * count).tolist():
                if caption not in relevant_captions and texts[caption] not in relevant_texts and len(negatives) < count:
                    negatives[caption] = None
            if len(negatives) == count:
                break
        else:
            raise InputError(
                f"{total:,} captions are too few to draw {count} of other images for each image",
                expected="enough captions of other images",
                fix="draw fewer per image",
            )
        images += [image] * count
        captions += negatives
    return np.array(images, np.int64), np.array(captions, np.int64)


def _checked(frame: pl.DataFrame, dataset: Dataset, row_name: RowName) -> pl.DataFrame:
    """The columns ``row`` (the image's position), ``image``, ``text`` and ``score[MODEL]``."""
    text = next((name for name in ("text", "caption") if name in frame.columns), None)
    if "image" not in frame.columns or text is None:
        raise InputError(
            f"the columns are {', '.join(frame.columns) or 'none'}",
            expected="the columns image and text",
            fix="name the image's id and the rejected caption so",
        )
    if not frame.height:
        raise InputError("no rejected captions", expected="at least one row", fix="check the file")
    images = check_ids(frame["image"].to_list(), "image", row_name)
    rows = positions(images, dataset.image_ids, "image", any_ending=True)
    texts = [str(value or "").strip() for value in frame[text].to_list()]
    captions_of: dict[int, set[str]] = {}
    for caption, image in zip(dataset.texts, dataset.caption_image.tolist(), strict=True):
        captions_of.setdefault(image, set()).add(caption)
    for row, (image, value) in enumerate(zip(rows.tolist(), texts, strict=True)):
        if not value:
            raise InputError("an empty caption", row=row_name(row), expected="a text", fix="remove the row")
        if value in captions_of.get(image, ()):
            raise InputError(
                f"the rejected caption {value!r:.80} is a caption of the image {images[row]!r} in the dataset",
                row=row_name(row),
                expected="captions that do not match",
                fix="remove the row, or the caption from the dataset",
            )
    scores = [pl.col(name).cast(pl.Float64) for name in frame.columns if name.startswith("score[")]
    return pl.DataFrame({"row": rows, "image": [dataset.image_ids[row] for row in rows], "text": texts}).with_columns(
        frame.select(scores)
    )
