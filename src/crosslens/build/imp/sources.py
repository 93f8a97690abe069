"""What a benchmark is built from: images, their titles, a pool of captions with their images, vectors of both."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import Dataset, Embeddings, InputError, Progress, UsageError, argument, match_ids, positions
from crosslens.data import image_files
from crosslens.encode import (
    IMAGES,
    TEXTS,
    Cache,
    EncodeOptions,
    Encoder,
    StoredEmbeddings,
    encode_dataset,
    encode_texts,
)

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class ImpSources:
    """Images, the pool, and who encodes what; nothing is encoded before it is needed.

    ``encoder``        the visual encoder; None where both kinds of images come with their vectors
    ``text_encoder``   compares the captions of an image in the end
    ``image_vectors``, ``pool_vectors``  in the place of encoded images
    ``pool_folder``    where the pool's picture files are
    ``titles``         captions that belong to the images themselves, by their ids
    """

    images: Dataset
    pool: Dataset
    encoder: Encoder | None
    text_encoder: Encoder
    image_vectors: Embeddings | None
    pool_vectors: Embeddings | None
    pool_folder: str | Path | None
    options: EncodeOptions
    progress: Progress | None = None
    titles: Dataset | None = None

    def __post_init__(self) -> None:
        for vectors, what in ((self.image_vectors, "image_embeddings"), (self.pool_vectors, "pool_embeddings")):
            if vectors is None and self.encoder is None:
                fix = f"pass {argument('encoder')}, or {argument(what)}"
                raise UsageError("nothing encodes the images" + (" of the pool" if "pool" in what else ""), fix=fix)
        if self.encoder is not None and IMAGES not in self.encoder.abilities:
            raise UsageError(f"{self.encoder.name} encodes no images", fix=f"name another {argument('encoder')}")
        if TEXTS not in self.text_encoder.abilities or isinstance(self.text_encoder, StoredEmbeddings):
            raise UsageError(
                f"{self.text_encoder.name} does not encode texts",
                fix=f"name a text encoder, which compares the captions of an image: {argument('text_encoder')}",
            )
        if not self.pool.captions.height:
            fix = "name a table with the columns text and image"
            raise InputError("the pool has no captions", expected="captions with their images", fix=fix)
        assert self.own_titles is not None  # those of unknown images are refused here, before anything is encoded

    @property
    def key_parts(self) -> dict[str, Any]:
        """What decides the candidates, besides settings: for the key of a build."""
        return {
            "images": _about(self.images),
            "pool": {**_about(self.pool), "captions": self.pool.captions.height},
            "encoder": None if self.encoder is None else _identity(self.encoder, self.options),
            "image_vectors": None if self.image_vectors is None else self.image_vectors.fingerprint,
            "pool_vectors": None if self.pool_vectors is None else self.pool_vectors.fingerprint,
            # Not named where there are none, so that earlier builds keep their key.
            **({} if self.titles is None else
               {"titles": {**_about(self.titles), "captions": self.titles.captions.height}}),
        }  # fmt: skip

    @property
    def text_identity(self) -> dict[str, Any]:
        return _identity(self.text_encoder, self.options)

    def encode_images(self) -> tuple[Dataset, Array, dict[str, str]]:
        """The images that can be read, their vectors, and why others cannot."""
        return self._encode(self.images, self.image_vectors, self.options.image_folder, "image")

    def encode_pool(self) -> tuple[Dataset, Array, dict[str, str]]:
        """The same of the pool."""
        try:
            return self._encode(self.pool, self.pool_vectors, self.pool_folder, "pool image")
        except InputError as error:
            if self.pool_vectors is None:
                error.add_context("the pool")
                fix = f"pass {argument('pool_images')}, the folder of its images, or {argument('pool_embeddings')}"
                error.fix = f"{error.fix}; {fix}" if error.fix else fix
            raise

    @cached_property
    def own_titles(self) -> dict[str, list[tuple[str, str]]]:
        """Image → the ids and texts of its titles, in the order of the file; one of an unknown image raises."""
        titles, by_image = self.titles, dict[str, list[tuple[str, str]]]()
        if titles is None:
            return by_image
        rows = match_ids(titles.image_ids, self.images.image_ids)
        unknown = [image for image, row in zip(titles.image_ids, rows, strict=True) if row < 0]
        if unknown:
            raise InputError(
                f"{len(unknown):,} of the {len(titles.image_ids):,} images of the titles {titles.name!r} are not among "
                f"the images, such as {unknown[0]!r}",
                expected=f"ids of the {len(self.images.image_ids):,} images, such as {self.images.image_ids[0]!r}",
                fix=f"correct the column image of {argument('titles')}, or remove those rows",
            )
        for caption, text, own in zip(titles.caption_ids, titles.texts, titles.caption_image, strict=True):
            by_image.setdefault(self.images.image_ids[rows[own]], []).append((caption, text))
        return by_image

    def encode_captions(self, texts: list[str]) -> Array:
        """Texts → vectors of the text encoder."""
        return np.asarray(encode_texts(self.text_encoder, texts, **self._how).rows, np.float64)

    def files(self, images: Dataset) -> dict[str, str]:
        """Image → its picture file; empty where the pictures are not here."""
        try:
            return dict(zip(images.image_ids, image_files(images, self.options.image_folder), strict=True))
        except InputError:
            if self.image_vectors is None or self.options.image_folder is not None:
                raise
            return {}

    @property
    def _how(self) -> dict[str, Any]:
        options = self.options
        cache = None if options.cache is None else Cache.of(options.cache)
        return {
            "cache": cache, "batch_size": options.batch_size, "precision": options.precision,
            "progress": self.progress,
        }  # fmt: skip

    def _encode(
        self, dataset: Dataset, vectors: Embeddings | None, folder: str | Path | None, what: str
    ) -> tuple[Dataset, Array, dict[str, str]]:
        if vectors is not None:
            rows = positions(dataset.image_ids, vectors.ids, what, any_ending=vectors.has_names)
            same = len(rows) == len(vectors.ids) and bool((rows == np.arange(len(rows))).all())
            # A file larger than memory stays on disk if it is in the pool's order.
            return dataset, vectors.vectors if same else np.asarray(vectors.vectors)[rows], {}
        assert self.encoder is not None
        bare = replace(dataset, captions=dataset.captions.clear())
        encoded = encode_dataset(bare, self.encoder, image_folder=folder, skip_bad=self.options.skip_bad, **self._how)
        assert encoded.images is not None
        kept = dataset.select(encoded.dataset.image_ids) if encoded.skipped else dataset
        return kept, np.asarray(encoded.images.vectors), encoded.skipped


def _about(dataset: Dataset) -> dict[str, Any]:
    return {"name": dataset.name, "fingerprint": dataset.fingerprint, "images": len(dataset.image_ids)}


def _identity(encoder: Encoder, options: EncodeOptions) -> dict[str, Any]:
    return {
        "name": encoder.name, "revision": encoder.revision, "preprocessing": encoder.preprocessing,
        "precision": options.precision,
    }  # fmt: skip
