"""Where the vectors of the variants come from: a model that encodes what changed, or somebody's files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from crosslens.core.dataset import Dataset
from crosslens.core.embeddings import Embeddings
from crosslens.core.errors import UsageError, reading
from crosslens.core.fingerprint import fingerprint
from crosslens.core.progress import Progress
from crosslens.data.inside import outer_file
from crosslens.encode import Cache, Encoder, encode_dataset, encode_images, encode_texts, text_only
from crosslens.encode.encoder import IMAGES, TEXTS, demand, label
from crosslens.encode.own import StoredEncoder
from crosslens.encode.pictures import image_files
from crosslens.encode.text_only import asking_part
from crosslens.perturb.images import perturb_images
from crosslens.pipeline.robustness.variants import ORIGINAL, Variant
from crosslens.pipeline.sources import aligned

Pair = tuple[Embeddings, Embeddings]
"""The vectors of images and of captions."""


class Vectors(Protocol):
    """The vectors of one model for the dataset and its variants."""

    name: str

    def key(self, variant: Variant | None) -> str | None:
        """What the vectors depend on, known without making them; None where that cannot be known."""

    def of(self, variant: Variant | None, progress: Progress) -> Pair:
        """The vectors of a variant, or of the original (None)."""


@dataclass(frozen=True)
class Encoding:
    """How a model encodes; of this only ``precision``, ``image_text`` and ``query`` change what comes out."""

    image_folder: str | Path | None = None
    image_text: Any = None
    query: int = 0
    precision: str = "fp32"
    cache: Cache | None = None
    batch_size: int | None = None
    threads: int | None = None
    scratch: Path = field(default_factory=Path)
    """Where changed pictures lie while they are needed."""

    def asking(self, dataset: Dataset) -> Dataset:
        """The captions that ask: all, or one of each image in text-only retrieval."""
        return dataset if self.image_text is None else asking_part(dataset, self.query)


class ModelVectors:
    """A model: the original is encoded once, and of a variant only what changed."""

    def __init__(self, name: str, encoder: Encoder, dataset: Dataset, how: Encoding) -> None:
        if isinstance(encoder, StoredEncoder):
            raise UsageError(
                f"{encoder.name} holds vectors and cannot encode changed captions",
                fix="name the model that made them, or bring the variants' vectors (--variants)",
            )
        demand(encoder, TEXTS)
        if how.image_text is None:
            demand(encoder, IMAGES)
        self.name, self.encoder, self.dataset, self.how = name, encoder, dataset, how

    def key(self, variant: Variant | None) -> str | None:
        if not self.encoder.revision:
            return None
        how = self.how
        return fingerprint(
            "variant",
            {
                "dataset": self.dataset.fingerprint,
                "encoder": [self.encoder.name, self.encoder.revision, getattr(self.encoder, "preprocessing", "")],
                "precision": how.precision,
                "image_text": str(getattr(how.image_text, "name", how.image_text)),
                "query": how.query,
                "pictures": self._pictures,
                "variant": [] if variant is None else [variant.label, str(variant.seed), *variant.dataset.texts],
                "changed_pictures": _stamps(variant.pictures) if variant is not None and variant.pictures else [],
            },
        )

    @cached_property
    def _pictures(self) -> list[str]:
        return [] if self.how.image_text is not None else _stamps(self.dataset, self.how.image_folder)

    def of(self, variant: Variant | None, progress: Progress) -> Pair:
        images, captions = self._original(progress)
        if variant is None:
            return images, captions
        if variant.captions is None:
            return self._pictures_of(variant, progress), captions
        rows = [row for row, one in enumerate(variant.captions) if one.text != one.original]
        if not rows:
            return images, captions
        vectors = np.array(captions.vectors)
        vectors[rows] = encode_texts(
            self.encoder, [variant.captions[row].text for row in rows], **self._means(progress)
        ).rows
        return images, Embeddings(captions.ids, vectors, model=captions.model)

    def _original(self, progress: Progress) -> Pair:
        if not hasattr(self, "_made"):
            if self.how.image_text is None:
                found = encode_dataset(
                    self.dataset, self.encoder, image_folder=self.how.image_folder, **self._means(progress)
                )
                assert found.images is not None
                assert found.captions is not None
                self._made: Pair = found.images, found.captions
            else:
                texts = text_only(
                    self.dataset, self.encoder, query=self.how.query, image_text=self.how.image_text,
                    **self._means(progress),
                )  # fmt: skip
                self._made = texts.images, texts.captions
        return self._made

    def _pictures_of(self, variant: Variant, progress: Progress) -> Embeddings:
        made = variant.pictures or perturb_images(
            self.dataset, variant.perturbation, self.how.scratch / variant.label, seed=variant.seed,
            threads=self.how.threads, image_folder=self.how.image_folder, overwrite=True, progress=progress,
        )  # fmt: skip
        found = encode_images(self.encoder, image_files(made), names=made.image_ids, **self._means(progress))
        return Embeddings(made.image_ids, found.rows, model=label(self.encoder))

    def _means(self, progress: Progress) -> dict[str, Any]:
        how = self.how
        return {"cache": how.cache, "batch_size": how.batch_size, "precision": how.precision, "progress": progress}


def _stamps(dataset: Dataset, folder: str | Path | None = None) -> list[str]:
    """How large picture files are and when they were changed: to read them all would be most of encoding's work."""
    facts = {one: one.stat() for one in dict.fromkeys(map(outer_file, image_files(dataset, folder)))}
    return [f"{one.st_size} {one.st_mtime_ns}" for one in facts.values()]


class ReadyVectors:
    """Vectors that are there: of the original, and by name those of every variant.

    Those of a variant are of its captions, or a pair of images' and captions' of which one may be None.
    """

    def __init__(self, name: str, dataset: Dataset, images: Any, captions: Any, variants: Mapping[str, Any]) -> None:
        if images is None or captions is None:
            missing = "image" if images is None else "caption"
            raise UsageError(f"no {missing} embeddings of the original", fix=f"pass {missing}s= too, or a model")
        self.name = name
        original = aligned(images, dataset.image_ids, "image"), aligned(captions, dataset.caption_ids, "caption")
        self._pairs: dict[str, Pair] = {ORIGINAL: original}
        for variant, given in variants.items():
            new_images, new_captions = given if isinstance(given, tuple) else (None, given)
            with reading(f"variant {variant!r}"):
                self._pairs[variant] = (
                    original[0] if new_images is None else aligned(new_images, dataset.image_ids, "image"),
                    original[1] if new_captions is None else aligned(new_captions, dataset.caption_ids, "caption"),
                )

    def key(self, variant: Variant | None) -> str | None:
        images, captions = self._of(variant)
        label = ORIGINAL if variant is None else variant.label
        parts = {"images": images.fingerprint, "captions": captions.fingerprint, "label": label}
        return fingerprint("ready variant", parts)

    def of(self, variant: Variant | None, progress: Progress) -> Pair:
        return self._of(variant)

    def _of(self, variant: Variant | None) -> Pair:
        name = ORIGINAL if variant is None else variant.perturbation
        if name not in self._pairs:
            known = ", ".join(one for one in self._pairs if one != ORIGINAL) or "none"
            raise UsageError(
                f"no embeddings of the variant {name!r}", fix=f"bring them, or leave it out; there: {known}"
            )
        return self._pairs[name]
