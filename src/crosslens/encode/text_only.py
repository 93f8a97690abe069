"""Text-only retrieval (EXPL): one caption asks, and each image is represented by its other captions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crosslens.core.dataset import Dataset
from crosslens.core.embeddings import Embeddings
from crosslens.core.errors import InputError, UsageError
from crosslens.core.progress import Progress
from crosslens.encode.cache import Cache
from crosslens.encode.dataset import encode_dataset
from crosslens.encode.encoder import TEXTS, Array, Encoder, demand, label
from crosslens.encode.own import StoredEncoder
from crosslens.encode.stream import encode_texts
from crosslens.encode.summaries import Summariser, load_summariser

MEAN = "mean"
"""How an image is represented unless a summariser is named: the mean of its captions' vectors."""


@dataclass(frozen=True)
class TextOnly:
    """The queries and the gallery of text-only retrieval.

    ``dataset`` keeps of every image the caption that asks; ``images`` holds one vector per image, made of its other
    captions; ``captions`` the vectors of the queries.
    """

    dataset: Dataset
    images: Embeddings
    captions: Embeddings


def text_only(
    dataset: Dataset,
    encoder: Encoder,
    *,
    query: int = 0,
    image_text: str | Summariser = MEAN,
    cache: Cache | None = None,
    batch_size: int | None = None,
    precision: str = "fp32",
    progress: Progress | None = None,
) -> TextOnly:
    """Caption number ``query`` of every image asks; the image's text is what ``image_text`` makes of the others.

    ``mean`` is the mean of their vectors; anything else is a summariser (``extractive``, ``transformers:t5-small``, or
    an object), whose one text per image is encoded. An image needs the caption that asks and at least one other.
    """
    demand(encoder, TEXTS)
    asking, others = _split(dataset, query)
    how: dict[str, Any] = {"cache": cache, "batch_size": batch_size, "precision": precision, "progress": progress}
    if image_text == MEAN:
        vectors = _captions(dataset, encoder, how)
        gallery = np.stack([vectors[rows].mean(axis=0) for rows in others])
        queries = vectors[asking]
    else:
        summarise = load_summariser(image_text) if isinstance(image_text, str) else image_text
        texts = summarise([[dataset.texts[row] for row in rows] for rows in others])
        gallery = encode_texts(encoder, texts, **how).rows
        queries = encode_texts(encoder, [dataset.texts[row] for row in asking], **how).rows
    kept = asking_part(dataset, query)
    return TextOnly(
        kept,
        Embeddings(kept.image_ids, gallery, model=label(encoder)),
        Embeddings(kept.caption_ids, queries, model=label(encoder)),
    )


def asking_part(dataset: Dataset, query: int = 0) -> Dataset:
    """The dataset with, of every image, only the caption that asks."""
    return replace(dataset, captions=dataset.captions[_split(dataset, query)[0]])


def _captions(dataset: Dataset, encoder: Encoder, how: dict[str, Any]) -> Array:
    if not isinstance(encoder, StoredEncoder):
        return encode_texts(encoder, dataset.texts, **how).rows
    stored = encode_dataset(dataset, encoder).captions
    assert stored is not None
    return np.asarray(stored.vectors)


def _split(dataset: Dataset, query: int) -> tuple[list[int], list[list[int]]]:
    """For each image the row of the caption that asks, and the rows of its others."""
    if query < 0:
        raise UsageError(f"query caption {query}", fix="count from 0")
    rows: list[list[int]] = [[] for _ in dataset.image_ids]
    for row, image in enumerate(dataset.caption_image):
        rows[image].append(row)
    for image, own in zip(dataset.image_ids, rows, strict=True):
        if len(own) < max(query + 1, 2):
            raise InputError(
                f"image {image!r} has {len(own)} captions",
                expected=f"caption number {query} (counted from 0) to ask, and another to stand for the image",
                fix="select images with enough captions, or ask with a lower --query-caption",
            )
    return [own[query] for own in rows], [own[:query] + own[query + 1 :] for own in rows]
