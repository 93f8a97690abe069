"""A model's scores of images and captions, pair by pair, in blocks that fit into memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from crosslens.core import Progress, SilentProgress, stage
from crosslens.train.compute.group import Group
from crosslens.train.inputs.feature_sets import ImageFeatures, Split
from crosslens.train.models.protocol import TrainableModel

if TYPE_CHECKING:
    from crosslens.train.inputs.batches import CaptionSource

Array = np.ndarray[Any, Any]
_IMAGES, _PICTURES, _CAPTIONS = 500, 64, 1_000
"""How many are encoded at once; pictures are larger than features."""
LARGEST_BLOCK = 2**26
"""Numbers that the scores of a block of pairs may take at once: 256 MiB in float32."""
LARGEST_GPU_BLOCK = 2**29
"""The same on a GPU, where many small blocks cost more than they save: 2 GiB."""


def score_matrix(model: TrainableModel, split: Split, captions: CaptionSource, group: Group) -> Array:
    """All scores of a split, images × captions. Of several processes, each compares its share of the images."""
    out = np.zeros((len(split.features), len(split.dataset.texts)), np.float32)
    rows = group.share(np.arange(len(out)))
    if len(rows):
        own = slice(int(rows[0]), int(rows[-1]) + 1)
        out[own] = score_features(model, split.features[own], captions, out.shape[1], group.device)
    return group.add_array(out)


def score_features(
    model: TrainableModel,
    features: ImageFeatures,
    captions: CaptionSource,
    count: int,
    device: Any,
    progress: Progress | None = None,
) -> Array:
    """Images × ``count`` captions, float32. Memory: encodings of all images and of 1,000 captions, a block of pairs."""
    import torch

    progress = progress or SilentProgress()
    out = np.empty((len(features), count), np.float32)
    image_blocks, caption_blocks = divide(len(features), features.pixels is not None, captions, count)
    largest = LARGEST_BLOCK if torch.device(device).type == "cpu" else LARGEST_GPU_BLOCK
    with torch.inference_mode(), stage(progress, "scoring pairs", count):
        images = [(rows, model.encode_images(features.batch(rows, device))) for rows in image_blocks]
        for columns in caption_blocks:
            encoded = model.encode_captions(captions.batch(columns, device))
            for rows, encoded_images in images:
                for lines, chosen, scores in scores_in_blocks(model, encoded_images, encoded, largest):
                    out[np.ix_(np.arange(rows.start, rows.stop)[lines], columns[chosen])] = scores
            progress.advance(len(columns))
    return out


def divide(images: int, pictures: bool, captions: CaptionSource, count: int) -> tuple[list[slice], list[Array]]:
    """Rows of images and positions of captions that are encoded at once.

    Captions are taken by their length, so that little of a block is padding. The scores of a block are the same to the
    last bit where it is computed alone.
    """
    order = np.arange(count) if captions.lengths is None else np.argsort(captions.lengths, kind="stable")
    return list(_slices(images, _PICTURES if pictures else _IMAGES)), [
        order[part] for part in _slices(count, _CAPTIONS)
    ]


def scores_in_blocks(
    model: TrainableModel, images: Any, captions: Any, largest: int = LARGEST_BLOCK
) -> Iterator[tuple[slice, slice, Array]]:
    """Rows, columns and scores of blocks whose pairs take at most ``largest`` numbers; a block has at least one pair.

    What a pair takes is the model's ``numbers_per_pair``; models without it only take the score itself.
    """
    numbers_per_pair = getattr(model, "numbers_per_pair", None)
    pairs = max(1, largest // (numbers_per_pair(images, captions) if numbers_per_pair else 1))
    rows_at_once = min(_count(images), max(1, math.isqrt(pairs)))
    for columns in _slices(_count(captions), max(1, pairs // rows_at_once)):
        chosen = _rows(captions, columns)
        for rows in _slices(_count(images), rows_at_once):
            scores: Array = model.scores(_rows(images, rows), chosen).float().cpu().numpy()
            yield rows, columns, scores


def _slices(count: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


def _count(encoding: Any) -> int:
    """Items of an encoding: a tensor, or a tuple of tensors, with a row per item."""
    return len(encoding[0]) if isinstance(encoding, tuple) else len(encoding)


def _rows(encoding: Any, rows: slice) -> Any:
    """These items of an encoding, which stays of its kind."""
    if not isinstance(encoding, tuple):
        return encoding[rows]
    parts = tuple(tensor[rows] for tensor in encoding)
    return type(encoding)(*parts) if hasattr(encoding, "_fields") else parts  # a named tuple takes them one by one
