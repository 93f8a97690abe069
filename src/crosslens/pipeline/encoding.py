"""Embeddings of a dataset from the model that a recipe, a study or a comparison names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from crosslens.core import Dataset, Embeddings, Progress, UsageError, argument, fingerprint
from crosslens.encode import (
    IMAGES,
    MEAN,
    TEXTS,
    Cache,
    EncodeOptions,
    Encoder,
    PairScorer,
    SecondStage,
    Summariser,
    encode_dataset,
    load_encoder,
    load_pair_scorer,
    load_summariser,
    require_modality,
    text_only,
)
from crosslens.pipeline.inputs import TEXT_TO_TEXT
from crosslens.pipeline.recipe.options import ModelOptions, RerankOptions

_MOST_NAMED = 5  # skipped images that a note names


@dataclass(frozen=True)
class EncodedDataset:
    """Embeddings, the dataset they are of, the directions they can be ranked in, and the hashes of their sources."""

    dataset: Dataset
    images: Embeddings
    captions: Embeddings
    directions: tuple[str, ...] = ()
    fingerprints: Mapping[str, str] = field(default_factory=dict)


def load_model(model: Any, options: EncodeOptions) -> Encoder:
    """The encoder that a name stands for."""
    return load_encoder(model, options)


def load_dual_encoder(model: Any, options: EncodeOptions) -> Encoder:
    """An encoder that takes both images and texts."""
    encoder = load_model(model, options)
    for ability in (IMAGES, TEXTS):
        require_modality(encoder, ability)
    return encoder


def open_cache(options: EncodeOptions) -> Cache | None:
    """The cache that the options name; None where it is switched off."""
    return Cache.of(options.cache, options.notify)


def stream_options(options: EncodeOptions, progress: Progress | None) -> dict[str, Any]:
    """The keywords that all encoding functions share."""
    return {
        "cache": open_cache(options),
        "batch_size": options.batch_size,
        "precision": options.precision,
        "progress": progress,
    }


def encode_with_model(
    model: ModelOptions, dataset: Dataset | None, options: EncodeOptions, progress: Progress | None
) -> EncodedDataset:
    """Encode the dataset with a recipe's model."""
    if dataset is None:
        raise UsageError(f"{argument('model')} requires {argument('dataset')}", fix=f"pass {argument('dataset')}")
    if model.image_text is not None:
        return _encode_texts_only(model, dataset, options, progress)
    encoder = load_dual_encoder(model.name, options)
    encoded = encode_dataset(
        dataset, encoder, image_folder=options.image_folder, skip_bad=options.skip_bad,
        **stream_options(options, progress),
    )  # fmt: skip
    note_skipped(encoded.skipped, options.notify)
    if encoded.images is None or encoded.captions is None:
        raise UsageError("a dataset without captions", fix="evaluation needs both images and captions")
    sources = {"model": encoder.revision, "items": encoded.content}
    return EncodedDataset(
        encoded.dataset, encoded.images, encoded.captions, (), {key: value for key, value in sources.items() if value}
    )


def _encode_texts_only(
    model: ModelOptions, dataset: Dataset, options: EncodeOptions, progress: Progress | None
) -> EncodedDataset:
    assert model.image_text is not None
    encoder = load_model(model.name, options)
    fingerprints = {"model": encoder.revision} if encoder.revision else {}
    image_text: str | Summariser = MEAN
    if model.image_text != MEAN:
        image_text = load_summariser(model.image_text, replace(options, precision="fp32"))
        fingerprints["items"] = fingerprint("summaries", {"name": image_text.name, "revision": image_text.revision})
    encoded = text_only(
        dataset, encoder, query=model.query_caption, image_text=image_text, **stream_options(options, progress)
    )
    return EncodedDataset(encoded.dataset, encoded.images, encoded.captions, (TEXT_TO_TEXT,), fingerprints)


def load_reranker(rerank: RerankOptions, options: EncodeOptions) -> PairScorer | None:
    """The model that re-ranks lists, if the recipe names one."""
    if rerank.model is None:
        return None
    return load_pair_scorer(rerank.model, options)


def second_stage(
    scorer: PairScorer, depth: int, dataset: Dataset, options: EncodeOptions, progress: Progress | None
) -> SecondStage:
    """The scorer over the dataset."""
    return SecondStage.over(
        dataset, scorer, depth, image_folder=options.image_folder, **stream_options(options, progress)
    )


def note_skipped(skipped: Mapping[str, str], notify: Callable[[str], None]) -> None:
    """Report which images could not be read."""
    if skipped:
        names = ", ".join(f"{image} ({reason})" for image, reason in list(skipped.items())[:_MOST_NAMED])
        more = f" and {len(skipped) - _MOST_NAMED:,} more" if len(skipped) > _MOST_NAMED else ""
        notify(f"note: {len(skipped):,} unreadable images are left out, with their captions: {names}{more}")
