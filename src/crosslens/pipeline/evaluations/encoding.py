"""Embeddings of a dataset from the model that a recipe, a study or a comparison names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from crosslens.core import UsageError, argument
from crosslens.encode import (
    IMAGES,
    MEAN,
    TEXTS,
    EncodeOptions,
    Encoder,
    MatrixScorer,
    SecondStage,
    Summariser,
    TextOnly,
    encode_dataset,
    load_encoder,
    load_summariser,
    read_features,
    require_modality,
    score_texts,
    text_only,
)
from crosslens.engine import Progress
from crosslens.pipeline.evaluations.inputs import TEXT_TO_TEXT
from crosslens.pipeline.recipe.options import ModelOptions
from crosslens.storage import Array, fingerprint
from crosslens.values import Dataset, Embeddings, RankedLists, Relevance

_MOST_NAMED = 5  # skipped images that a note names


@dataclass(frozen=True)
class LoadedInputs:
    """What the inputs of a recipe hold, or what its model made."""

    dataset: Dataset | None
    images: Embeddings | None = None
    captions: Embeddings | None = None
    scores: Array | None = None
    run: Mapping[str, RankedLists] | None = None
    relevance: Relevance | Mapping[str, Relevance] | None = None
    second_stage: SecondStage | None = None
    texts: TextOnly | None = None
    """In text-only retrieval: the text sets that queries and images come from."""
    phi: Mapping[str, Path] = field(default_factory=dict)
    scores_from: Mapping[str, Any] = field(default_factory=dict)
    directions: tuple[str, ...] = ()
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    """Hashes of the models and of what they encoded."""


def load_dual_encoder(model: Any, options: EncodeOptions) -> Encoder:
    """An encoder that takes both images and texts."""
    encoder = load_encoder(model, options)
    for ability in (IMAGES, TEXTS):
        require_modality(encoder, ability)
    return encoder


def encode_with_model(
    model: ModelOptions, dataset: Dataset | None, options: EncodeOptions, progress: Progress | None,
    queries: Dataset | None = None,
) -> LoadedInputs:  # fmt: skip
    """Encode the dataset with a recipe's model; ``queries`` is the second text set of text-only retrieval."""
    if dataset is None:
        raise UsageError(f"{argument('model')} requires {argument('dataset')}", fix=f"pass {argument('dataset')}")
    encoder = load_encoder(model.name, options)
    if model.image_text is None and queries is None:
        return encode_with(encoder, dataset, options, progress)
    fingerprints = {"corpus": dataset.fingerprint}
    if queries is not None:  # what is evaluated has texts of both: each is recorded as it was read
        fingerprints = {"dataset": dataset.fingerprint, "queries": queries.fingerprint}
    if encoder.revision:
        fingerprints["model"] = encoder.revision
    image_text: str | Summariser = MEAN
    if model.image_text not in (None, MEAN):
        image_text = load_summariser(str(model.image_text), replace(options, precision="fp32"))
        fingerprints["items"] = fingerprint("summaries", {"name": image_text.name, "revision": image_text.revision})
    encoded = text_only(
        dataset, encoder, query=model.query_caption, image_text=image_text, queries=queries,
        shared_images=model.shared_images, **options.stream(progress),
    )  # fmt: skip
    return LoadedInputs(
        encoded.dataset, encoded.images, encoded.captions, texts=encoded, directions=(TEXT_TO_TEXT,),
        fingerprints=fingerprints,
    )  # fmt: skip


def encode_with(encoder: Encoder, dataset: Dataset, options: EncodeOptions, progress: Progress | None) -> LoadedInputs:
    """What an encoder makes of a dataset's images and captions; of a model that has no vectors, all scores."""
    files: Any = {"image_folder": options.image_folder, "skip_bad": options.skip_bad}
    reading = {**files, **options.stream(progress)}
    if isinstance(encoder, MatrixScorer):  # all scores of a model that has no vectors
        images = read_features(dataset, encoder, **reading)
        note_skipped(images.skipped, options.notify)
        scores = score_texts(encoder, images, images.dataset.texts, progress)
        revision = {"model": encoder.revision} if encoder.revision else {}
        return LoadedInputs(images.dataset, scores=scores, fingerprints={"items": images.content} | revision)
    for ability in (IMAGES, TEXTS):
        require_modality(encoder, ability)
    encoded = encode_dataset(dataset, encoder, **reading)
    note_skipped(encoded.skipped, options.notify)
    if encoded.images is None or encoded.captions is None:
        raise UsageError("a dataset without captions", fix="evaluation needs both images and captions")
    sources = {"model": encoder.revision, "items": encoded.content}
    hashes = {key: value for key, value in sources.items() if value}
    return LoadedInputs(encoded.dataset, encoded.images, encoded.captions, fingerprints=hashes)


def note_skipped(skipped: Mapping[str, str], notify: Callable[[str], None]) -> None:
    """Report which images could not be read."""
    if skipped:
        names = ", ".join(f"{image} ({reason})" for image, reason in list(skipped.items())[:_MOST_NAMED])
        more = f" and {len(skipped) - _MOST_NAMED:,} more" if len(skipped) > _MOST_NAMED else ""
        notify(f"note: {len(skipped):,} unreadable images are left out, with their captions: {names}{more}")
