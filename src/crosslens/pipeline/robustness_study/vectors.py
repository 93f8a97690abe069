"""The vectors of the variants: from a model that encodes what changed, or given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import Dataset, Embeddings, Progress, UsageError, argument, fingerprint, reading
from crosslens.data import image_files, outer_file
from crosslens.encode import (
    IMAGES,
    TEXTS,
    EncodeOptions,
    Encoder,
    StoredEmbeddings,
    TextOnly,
    TextQueries,
    encode_dataset,
    encode_images,
    encode_texts,
    label,
    require_modality,
    text_only,
    text_queries,
)
from crosslens.perturbations import perturb_images
from crosslens.pipeline.encoding import stream_options
from crosslens.pipeline.inputs import align_both
from crosslens.pipeline.options import RobustnessOptions
from crosslens.pipeline.robustness_study.variants import ORIGINAL, Variant

Pair = tuple[Embeddings, Embeddings]
"""The vectors of images and of captions."""


@dataclass(frozen=True)
class VariantEncoding:
    """How a model encodes variants."""

    options: EncodeOptions
    study: RobustnessOptions
    scratch: Path
    """The folder of perturbed pictures while they are needed."""
    query_set: Dataset | None = None
    """The second text set of text-only retrieval, which has the queries."""

    def queries(self, dataset: Dataset) -> TextQueries:
        """The queries: all captions; in text-only retrieval, those that the options choose."""
        if self.study.image_text is None:
            return TextQueries.over(dataset)
        shared = self.study.shared_images
        return text_queries(dataset, self.study.query_caption, self.query_set, shared_images=shared)


class ModelVectors:
    """From a model: the original is encoded once, and of a variant only what changed."""

    def __init__(self, name: str, encoder: Encoder, dataset: Dataset, encoding: VariantEncoding) -> None:
        if isinstance(encoder, StoredEmbeddings):
            raise UsageError(
                f"{encoder.name} holds vectors and cannot encode changed captions",
                fix=f"name the model that made them, or pass the variants' vectors: {argument('variants')}",
            )
        require_modality(encoder, TEXTS)
        if encoding.study.image_text is None:
            require_modality(encoder, IMAGES)
        self.name, self.encoder, self.dataset, self.encoding = name, encoder, dataset, encoding
        self._encoded: Pair | None = None
        self._texts: TextOnly | None = None

    def key(self, variant: Variant | None) -> str | None:
        """A hash of what the vectors depend on, without computing them; None where that is not known."""
        if not self.encoder.revision:
            return None
        image_text = self.encoding.study.image_text
        return fingerprint(
            "variant",
            {
                "dataset": self.dataset.fingerprint,
                "queries": "" if self.encoding.query_set is None else self.encoding.query_set.fingerprint,
                "encoder": [self.encoder.name, self.encoder.revision, getattr(self.encoder, "preprocessing", "")],
                "precision": self.encoding.options.precision,
                "image_text": str(getattr(image_text, "name", image_text)),
                "query": [str(self.encoding.study.query_caption), str(self.encoding.study.shared_images)],
                "pictures": self._pictures,
                "variant": [] if variant is None else [variant.label, str(variant.seed), *variant.texts],
                "changed_pictures": _stamps(variant.pictures) if variant is not None and variant.pictures else [],
            },
        )

    @cached_property
    def _pictures(self) -> list[str]:
        text_only = self.encoding.study.image_text is not None
        return [] if text_only else _stamps(self.dataset, self.encoding.options.image_folder)

    def inputs(self, variant: Variant | None, progress: Progress) -> dict[str, Any]:
        """The vectors of a variant, or of the original (None), as keywords of ``evaluate``."""
        return dict(zip(("images", "captions"), self.of(variant, progress), strict=True))

    def of(self, variant: Variant | None, progress: Progress) -> Pair:
        """The vectors of a variant, or of the original (None)."""
        images, captions = self._original(progress)
        if variant is None:
            return images, captions
        if variant.captions is None:
            return self._perturbed_images(variant, progress), captions
        sentences = variant.captions if variant.sentences is None else variant.sentences
        rows = [row for row, sentence in enumerate(sentences) if sentence.text != sentence.original]
        if not rows:
            return images, captions
        texts = [sentences[row].text for row in rows]
        vectors = np.array((captions if self._texts is None else self._texts.sentences).vectors)
        vectors[rows] = encode_texts(self.encoder, texts, **stream_options(self.encoding.options, progress)).rows
        averaged = vectors if self._texts is None else self._texts.queries.average(vectors)
        return images, Embeddings(captions.ids, averaged, model=captions.model)

    def _original(self, progress: Progress) -> Pair:
        if self._encoded is None:
            options, study = self.encoding.options, self.encoding.study
            data, shared = (self.dataset, self.encoder), stream_options(options, progress)
            encoded: Any
            if study.image_text is not None:
                encoded = self._texts = text_only(
                    *data, query=study.query_caption, image_text=study.image_text, queries=self.encoding.query_set,
                    shared_images=study.shared_images, **shared,
                )  # fmt: skip
            else:
                encoded = encode_dataset(*data, image_folder=options.image_folder, **shared)
            self._encoded = encoded.images, encoded.captions
        return self._encoded

    def _perturbed_images(self, variant: Variant, progress: Progress) -> Embeddings:
        options = self.encoding.options
        pictures = variant.pictures or perturb_images(
            self.dataset, variant.perturbation, self.encoding.scratch / variant.label, seed=variant.seed,
            threads=self.encoding.study.threads, image_folder=options.image_folder, overwrite=True, progress=progress,
        )  # fmt: skip
        encoded = encode_images(
            self.encoder, image_files(pictures), names=pictures.image_ids, **stream_options(options, progress)
        )
        return Embeddings(pictures.image_ids, encoded.rows, model=label(self.encoder))


def _stamps(dataset: Dataset, folder: str | Path | None = None) -> list[str]:
    """Sizes and modification times of picture files: to read them all would be most of encoding's work."""
    files = dict.fromkeys(map(outer_file, image_files(dataset, folder)))
    return [f"{facts.st_size} {facts.st_mtime_ns}" for facts in (file.stat() for file in files)]


class GivenVectors:
    """Vectors that are given: of the original, and by name those of every variant.

    Those of a variant are of its captions, or a pair of images' and captions' of which one may be None.
    """

    def __init__(self, name: str, dataset: Dataset, images: Any, captions: Any, variants: Mapping[str, Any]) -> None:
        if images is None or captions is None:
            missing = "image" if images is None else "caption"
            fix = f"pass {argument(f'{missing}s')}, or a model"
            raise UsageError(f"no {missing} embeddings of the original", fix=fix)
        self.name = name
        self._pairs = {ORIGINAL: align_both(dataset, images, captions)}
        for variant, vectors in variants.items():
            pair = vectors if isinstance(vectors, tuple) else (None, vectors)
            changed = (old if new is None else new for old, new in zip(self._pairs[ORIGINAL], pair, strict=True))
            with reading(f"variant {variant!r}"):
                self._pairs[variant] = align_both(dataset, *changed)

    def key(self, variant: Variant | None) -> str | None:
        images, captions = self._pair(variant)
        label = ORIGINAL if variant is None else variant.label
        parts = {"images": images.fingerprint, "captions": captions.fingerprint, "label": label}
        return fingerprint("ready variant", parts)

    def inputs(self, variant: Variant | None, progress: Progress) -> dict[str, Any]:
        return dict(zip(("images", "captions"), self._pair(variant), strict=True))

    def _pair(self, variant: Variant | None) -> Pair:
        name = ORIGINAL if variant is None else variant.perturbation
        if name not in self._pairs:
            known = ", ".join(known for known in self._pairs if known != ORIGINAL) or "none"
            fix = f"pass them, or leave it out; there are: {known}"
            raise UsageError(f"no embeddings of the variant {name!r}", fix=fix)
        return self._pairs[name]


VectorSource = ModelVectors | GivenVectors
"""The vectors of one model for the dataset and its variants."""
