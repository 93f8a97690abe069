"""The embeddings of a dataset's images and captions: through an encoder, or given and brought into its order."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import (
    Dataset,
    Embeddings,
    Progress,
    UsageError,
    align_embeddings,
    fingerprint,
)
from crosslens.data import image_files
from crosslens.encode.adapters.stored_embeddings import StoredEmbeddings
from crosslens.encode.cache import Cache
from crosslens.encode.encoder import IMAGES, TEXTS, Encoder, FeatureReader, label, require_modality
from crosslens.encode.stream import Vectors, encode_features, encode_images, encode_texts


@dataclass(frozen=True)
class Encoded:
    """What encoding a dataset gives.

    ``dataset`` is the dataset without the images that could not be read, which are in ``skipped`` with the reason.
    ``images`` or ``captions`` is None where the encoder does not take that kind. ``content`` is a hash of the files
    and texts that went in.
    """

    dataset: Dataset
    images: Embeddings | None
    captions: Embeddings | None
    skipped: dict[str, str]
    content: str = ""


def encode_dataset(
    dataset: Dataset,
    encoder: Encoder,
    *,
    image_folder: str | Path | None = None,
    cache: Cache | None = None,
    batch_size: int | None = None,
    precision: str = "fp32",
    skip_bad: bool = False,
    progress: Progress | None = None,
) -> Encoded:
    """Encode the images, the captions, or both: whatever the encoder takes.

    Image files are looked for under their ``file`` (or id) below ``image_folder``; an encoder of stored features finds
    images by their ids. With ``skip_bad`` an image that
    is not there or unreadable is left out together with its captions; without it, it raises.
    """
    if isinstance(encoder, StoredEmbeddings):
        return _stored(dataset, encoder)
    skipped: dict[str, str] = {}
    images: Embeddings | None = None
    content: list[str] = []
    stream: dict[str, Any] = {
        "cache": cache, "batch_size": batch_size, "precision": precision, "progress": progress
    }  # fmt: skip
    if not encoder.abilities:
        require_modality(encoder, IMAGES)
    if IMAGES in encoder.abilities:
        if isinstance(encoder, FeatureReader):
            features = encoder.features_of(dataset.image_ids)
            image_vectors = encode_features(encoder, features, names=dataset.image_ids, **stream)
        else:
            files = image_files(dataset, image_folder, skip_bad=skip_bad)
            image_vectors = encode_images(encoder, files, names=dataset.image_ids, skip_bad=skip_bad, **stream)
        skipped = {dataset.image_ids[row]: problem for row, problem in image_vectors.bad.items()}
        kept = np.array([row for row in range(len(dataset.image_ids)) if row not in image_vectors.bad])
        if skipped:
            dataset = dataset.select(dataset.image_ids[row] for row in kept)
        images = Embeddings(
            dataset.image_ids, image_vectors.rows[kept] if skipped else image_vectors.rows, model=label(encoder)
        )
        content.append(_content(image_vectors))
    captions: Embeddings | None = None
    if TEXTS in encoder.abilities and dataset.caption_ids:
        text_vectors = encode_texts(encoder, dataset.texts, **stream)
        captions = Embeddings(dataset.caption_ids, text_vectors.rows, model=label(encoder))
        content.append(_content(text_vectors))
    if images is None and captions is None:
        raise UsageError(f"{encoder.name} has nothing to encode here", fix="check that the dataset has captions")
    return Encoded(dataset, images, captions, skipped, "+".join(content))


def _content(vectors: Vectors) -> str:
    return fingerprint("items", {"keys": np.frombuffer(b"".join(vectors.keys), np.uint8)})


def _stored(dataset: Dataset, encoder: StoredEmbeddings) -> Encoded:
    images, captions = (
        None if kind not in encoder.stored else align_embeddings(encoder.stored[kind], ids, what)
        for kind, ids, what in ((IMAGES, dataset.image_ids, "image"), (TEXTS, dataset.caption_ids, "caption"))
    )
    return Encoded(dataset, images, captions, {}, encoder.revision)


def encode_captions(dataset: Dataset, encoder: Encoder, **encoding: Any) -> Embeddings:
    """The embeddings of the captions: encoded as :func:`encode_texts` does, or looked up where they are stored."""
    if not dataset.caption_ids:
        return Embeddings((), np.zeros((0, encoder.dimension or 1), np.float32), model=label(encoder))
    if not isinstance(encoder, StoredEmbeddings):
        vectors = encode_texts(encoder, dataset.texts, **encoding).rows
        return Embeddings(dataset.caption_ids, vectors, model=label(encoder))
    stored = _stored(dataset, encoder).captions
    assert stored is not None
    return stored


def caption_rows(dataset: Dataset) -> list[list[int]]:
    """For each image the rows of its captions."""
    rows: list[list[int]] = [[] for _ in dataset.image_ids]
    for row, image in enumerate(dataset.caption_image):
        rows[image].append(row)
    return rows
