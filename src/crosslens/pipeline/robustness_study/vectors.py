"""The vectors of the variants: from a model that encodes what changed, or given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    FeatureReader,
    MatrixScorer,
    ReadImages,
    StoredEmbeddings,
    TextOnly,
    TextQueries,
    encode_dataset,
    encode_images,
    encode_texts,
    feature_key,
    label,
    read_features,
    require_modality,
    score_texts,
    text_only,
    text_queries,
)
from crosslens.perturbations import perturb_images
from crosslens.pipeline.encoding import stream_options
from crosslens.pipeline.inputs import align_both
from crosslens.pipeline.options import RobustnessOptions
from crosslens.pipeline.robustness_study.variants import ORIGINAL, Variant

Array = np.ndarray[Any, Any]
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

    def pictures(self, dataset: Dataset, variant: Variant, progress: Progress) -> Dataset:
        """The dataset with a variant's pictures, which are made where they are not given."""
        return variant.pictures or perturb_images(
            dataset, variant.perturbation, self.scratch / variant.label, seed=variant.seed, threads=self.study.threads,
            image_folder=self.options.image_folder, overwrite=True, progress=progress,
        )  # fmt: skip


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
                **_variant_parts(variant),
            },
        )

    @cached_property
    def _pictures(self) -> list[str]:
        if self.encoding.study.image_text is not None:
            return []
        if isinstance(self.encoder, FeatureReader):
            features = self.encoder.features_of(self.dataset.image_ids)
            return [fingerprint("features", {"images": [feature_key(image).hex() for image in features]})]
        return _stamps(self.dataset, self.encoding.options.image_folder)

    def inputs(self, variant: Variant | None, progress: Progress) -> dict[str, Any]:
        """The vectors of a variant, or of the original (None), as keywords of ``evaluate``."""
        images, captions = self._original(progress)
        rows, texts = ([], []) if variant is None else _changed_texts(variant)
        stream = stream_options(self.encoding.options, progress)
        if variant is not None and variant.captions is None:
            pictures = self.encoding.pictures(self.dataset, variant, progress)
            encoded = encode_images(self.encoder, image_files(pictures), names=pictures.image_ids, **stream)
            images = Embeddings(pictures.image_ids, encoded.rows, model=label(self.encoder))
        elif rows:
            changed = encode_texts(self.encoder, texts, **stream).rows
            if self._texts is None:
                captions = captions.with_rows(rows, changed)
            else:
                averaged = self._texts.queries.average(self._texts.sentences.with_rows(rows, changed).vectors)
                captions = Embeddings(captions.ids, averaged, model=captions.model)
        return {"images": images, "captions": captions}

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


class MatrixScores:
    """From a model that has no vectors: all scores of the original, and of a variant those that change."""

    def __init__(self, name: str, scorer: MatrixScorer, dataset: Dataset, encoding: VariantEncoding) -> None:
        if encoding.study.image_text is not None:
            problem = f"{scorer.name} compares images with texts, and not texts with texts"
            raise UsageError(problem, fix=f"drop {argument('image_text')}", option="image_text")
        self.name, self.encoder, self.dataset, self.encoding = name, scorer, dataset, encoding
        self._scores: Array | None = None

    def key(self, variant: Variant | None) -> str | None:
        """A hash of what the scores depend on, without computing them; None where that is not known."""
        if not self.encoder.revision:
            return None
        model = [self.encoder.name, self.encoder.revision, self.encoding.options.precision]
        parts = {"dataset": self.dataset.fingerprint, "scorer": model, "images": self._images.content}
        return fingerprint("variant scores", {**parts, **_variant_parts(variant)})

    def inputs(self, variant: Variant | None, progress: Progress) -> dict[str, Any]:
        """The scores of a variant, or of the original (None), as keywords of ``evaluate``."""
        if self._scores is None:
            self._scores = score_texts(self.encoder, self._images, self.dataset.texts, progress)
        if variant is None:
            return {"scores": self._scores}
        if variant.captions is None:
            pictures = self.encoding.pictures(self.dataset, variant, progress)
            images = read_features(pictures, self.encoder, **stream_options(self.encoding.options, progress))
            return {"scores": score_texts(self.encoder, images, self.dataset.texts, progress)}
        rows, texts = _changed_texts(variant)
        scores = self._scores.copy()
        if rows:
            scores[:, rows] = score_texts(self.encoder, self._images, texts, progress)
        return {"scores": scores}

    @cached_property
    def _images(self) -> ReadImages:
        options = self.encoding.options
        stream = stream_options(options, None)
        return read_features(self.dataset, self.encoder, image_folder=options.image_folder, **stream)


def _variant_parts(variant: Variant | None) -> dict[str, list[str]]:
    return {
        "variant": [] if variant is None else [variant.label, str(variant.seed), *variant.texts],
        "changed_pictures": _stamps(variant.pictures) if variant is not None and variant.pictures else [],
    }


def _changed_texts(variant: Variant) -> tuple[list[int], list[str]]:
    """The rows of the sentences that a variant changes, and what they become."""
    sentences = (variant.captions if variant.sentences is None else variant.sentences) or ()
    rows = [row for row, sentence in enumerate(sentences) if sentence.text != sentence.original]
    return rows, [sentences[row].text for row in rows]


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


VectorSource = ModelVectors | MatrixScores | GivenVectors
"""The vectors or scores of one model for the dataset and its variants."""


def require_pixels(source: VectorSource, variants: Sequence[Variant]) -> None:
    """Raise where variants change pictures that the model never sees."""
    changed = [variant.label for variant in variants if variant.captions is None]
    if changed and not isinstance(source, GivenVectors) and isinstance(source.encoder, FeatureReader):
        raise UsageError(
            f"{source.encoder.name} reads stored features of images, and {changed[0]} changes their pixels",
            fix="choose perturbations of captions, or a model that was trained on what crosslens encode writes",
            option="perturbations",
        )
