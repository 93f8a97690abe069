"""Text-only retrieval (EXPL): one caption asks, and each image is represented by its other captions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crosslens.core import Dataset, Embeddings, InputError, Progress, UsageError
from crosslens.encode.adapters.stored_embeddings import StoredEmbeddings
from crosslens.encode.cache import Cache
from crosslens.encode.dataset import encode_dataset
from crosslens.encode.encoder import TEXTS, Array, Encoder, label, require_modality
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
    require_modality(encoder, TEXTS)
    queries_at, others = _split(dataset, query)
    encoding: dict[str, Any] = {"cache": cache, "batch_size": batch_size, "precision": precision, "progress": progress}
    if image_text == MEAN:
        vectors = _captions(dataset, encoder, encoding)
        gallery = np.stack([vectors[rows].mean(axis=0) for rows in others])
        queries = vectors[queries_at]
    else:
        summarise = load_summariser(image_text) if isinstance(image_text, str) else image_text
        texts = summarise([[dataset.texts[row] for row in rows] for rows in others])
        gallery = encode_texts(encoder, texts, **encoding).rows
        queries = encode_texts(encoder, [dataset.texts[row] for row in queries_at], **encoding).rows
    query_set = query_captions(dataset, query)
    return TextOnly(
        query_set,
        Embeddings(query_set.image_ids, gallery, model=label(encoder)),
        Embeddings(query_set.caption_ids, queries, model=label(encoder)),
    )


def query_captions(dataset: Dataset, query: int = 0) -> Dataset:
    """The dataset with, of every image, only the caption that asks."""
    return replace(dataset, captions=dataset.captions[_split(dataset, query)[0]])


def _captions(dataset: Dataset, encoder: Encoder, encoding: dict[str, Any]) -> Array:
    if not isinstance(encoder, StoredEmbeddings):
        return encode_texts(encoder, dataset.texts, **encoding).rows
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
    for image, caption_rows in zip(dataset.image_ids, rows, strict=True):
        if len(caption_rows) < max(query + 1, 2):
            raise InputError(
                f"image {image!r} has {len(caption_rows)} captions",
                expected=f"caption number {query} (counted from 0) to ask, and another to stand for the image",
                fix="select images with enough captions, or ask with a lower --query-caption",
            )
    return [caption_rows[query] for caption_rows in rows], [
        caption_rows[:query] + caption_rows[query + 1 :] for caption_rows in rows
    ]
