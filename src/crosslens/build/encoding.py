"""The candidates as encoders represent them: descriptions and images in one space, and images among themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from crosslens.analyze import unit_vectors
from crosslens.core import Dataset, Embeddings, InputError, Progress, UsageError, align_embeddings, argument
from crosslens.data import image_files
from crosslens.encode import (
    IMAGES,
    MEAN,
    TEXTS,
    Array,
    Cache,
    EncodeOptions,
    Encoder,
    StoredEmbeddings,
    encode_captions,
    encode_dataset,
    encode_texts,
    images_from_captions,
)

_IMAGE_SOURCES = (
    f"name an encoder of both, add {argument('text_encoder')} to one that holds the images in the same space, or let "
    f"an image be the mean of its captions: {argument('image_text', MEAN)}"
)


@dataclass(frozen=True)
class Encoders:
    """Which encoder represents what.

    ``encoder``        descriptions and images, in one space
    ``text_encoder``   the descriptions instead, where ``encoder`` holds images only (the same space)
    ``image_encoder``  images among themselves; None: ``encoder``
    ``image_text``     instead of encoding images: their captions, as their mean or as a summariser's text
    """

    encoder: Encoder
    text_encoder: Encoder | None = None
    image_encoder: Encoder | None = None
    image_text: str | None = None

    @property
    def texts(self) -> Encoder:
        return self.text_encoder or self.encoder

    @property
    def logit_scale(self) -> float | None:
        return self.encoder.logit_scale or self.texts.logit_scale

    @property
    def of_images(self) -> dict[str, Encoder | None]:
        """The encoders of the gallery, and of images among themselves."""
        gallery = None if self.image_text else self.encoder
        own = self.encoder if IMAGES in self.encoder.abilities else None
        return {"gallery": gallery, "pictures": self.image_encoder or own}

    def check(self) -> None:
        """Raise where an encoder lacks what it is needed for."""
        if TEXTS not in self.texts.abilities:
            raise UsageError(
                f"{self.texts.name} does not encode texts",
                fix=f"add one of its space that does: {argument('text_encoder')}",
            )
        if self.image_text is None and IMAGES not in self.encoder.abilities:
            raise UsageError(f"{self.encoder.name} encodes no images", fix=_IMAGE_SOURCES)
        if self.image_encoder is not None and IMAGES not in self.image_encoder.abilities:
            raise UsageError(
                f"{self.image_encoder.name} encodes no images", fix=f"name another {argument('image_encoder')}"
            )

    def describe(self) -> dict[str, Any]:
        """Names and revisions, for the log."""
        parts = {"encoder": self.encoder, "text_encoder": self.text_encoder, "image_encoder": self.image_encoder}
        named: dict[str, Any] = {
            part: {"name": encoder.name, "revision": encoder.revision, "preprocessing": encoder.preprocessing}
            for part, encoder in parts.items()
            if encoder is not None
        }
        return named | ({"image_text": self.image_text} if self.image_text else {})


@dataclass(frozen=True, eq=False)
class EncodedCandidates:
    """Vectors of a set of candidates.

    ``gallery``        images in the space of the descriptions; text-only, an image without captions is missing
    ``captions``       the candidates' descriptions
    ``image_vectors``  all images among themselves: n×d, length 1
    ``files``          the image files, None where there are none
    ``encode_texts``   new descriptions → vectors; None where nothing encodes them
    ``provenance``     which models, and a hash of what they encoded
    """

    dataset: Dataset
    gallery: Embeddings
    captions: Embeddings
    image_vectors: Array
    files: list[str] | None
    encode_texts: Callable[[Sequence[str]], Array] | None
    logit_scale: float | None
    provenance: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)


def encode_candidates(
    dataset: Dataset, encoders: Encoders, options: EncodeOptions, progress: Progress | None = None
) -> EncodedCandidates:
    """Encode the candidates with whichever encoders there are for each purpose."""
    encoders.check()
    # A build from Python does not write to the default cache unasked.
    cache = None if options.cache is None else Cache.of(options.cache)
    how: dict[str, Any] = {
        "cache": cache, "batch_size": options.batch_size, "precision": options.precision, "progress": progress,
    }  # fmt: skip
    of_images = encoders.of_images
    content: dict[str, str] = {}
    skipped: dict[str, str] = {}
    vectors: dict[str, Embeddings] = {}
    for part, encoder in of_images.items():
        if encoder is None or (part == "pictures" and encoder is of_images["gallery"]):
            continue
        bare = replace(dataset, captions=dataset.captions.clear())
        encoded = encode_dataset(bare, encoder, image_folder=options.image_folder, skip_bad=options.skip_bad, **how)
        assert encoded.images is not None
        vectors[part], content[part] = encoded.images, encoded.content
        skipped |= encoded.skipped
        dataset = dataset.select(encoded.dataset.image_ids) if encoded.skipped else dataset
    vectors = {part: align_embeddings(embeddings, dataset.image_ids, "image") for part, embeddings in vectors.items()}
    captions = encode_captions(dataset, encoders.texts, **how)
    notes: list[str] = []
    if encoders.image_text is not None:
        # None is left out: a description is never compared with its own image.
        vectors["gallery"] = images_from_captions(
            dataset, encoders.texts, encoders.image_text, captions=captions, **how
        )
        if "pictures" not in vectors:
            notes.append("no encoder looks at images: their likeness to each other is that of their captions")
            missing = len(dataset.image_ids) - len(vectors["gallery"].ids)
            if missing:
                notes.append(f"{missing:,} images without captions are left out: nothing tells what is in them")
                dataset = dataset.select(vectors["gallery"].ids)
    texts_encoder = encoders.texts
    can_encode = not isinstance(texts_encoder, StoredEmbeddings)
    return EncodedCandidates(
        dataset=dataset,
        gallery=vectors["gallery"],
        captions=captions,
        image_vectors=unit_vectors(_flat(vectors.get("pictures", vectors["gallery"]))),
        files=_find_files(dataset, of_images, options, notes),
        encode_texts=(lambda texts: encode_texts(texts_encoder, texts, **how).rows) if can_encode else None,
        logit_scale=encoders.logit_scale,
        provenance={"encoders": encoders.describe(), "content": content, "precision": options.precision},
        notes=tuple(notes),
        skipped=skipped,
    )


def _flat(embeddings: Embeddings) -> Array:
    vectors = np.asarray(embeddings.vectors, np.float64)
    return vectors if vectors.ndim == 2 else vectors.mean(axis=1)


def _find_files(
    dataset: Dataset, of_images: Mapping[str, Encoder | None], options: EncodeOptions, notes: list[str]
) -> list[str] | None:
    needed = any(encoder is not None and not isinstance(encoder, StoredEmbeddings) for encoder in of_images.values())
    try:
        return image_files(dataset, options.image_folder)
    except InputError:
        if needed or options.image_folder is not None:
            raise
        notes.append("no picture files here (pass --image-folder): duplicates are found by vectors only")
        return None
