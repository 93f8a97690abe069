"""All scores of a dataset from a model that compares images with texts, and what it sees of the images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import CrosslensError, Dataset, InputError, Progress, SilentProgress, current_engine, fingerprint
from crosslens.data import image_files
from crosslens.encode.encoder import Array, DivisibleScorer, FeatureReader, MatrixScorer
from crosslens.encode.pairs.tasks import score_in_blocks
from crosslens.encode.stream import encode_images, feature_key


@dataclass(frozen=True)
class ReadImages:
    """What a model sees of a dataset's images: ``features`` row by row; ``dataset`` is without those in ``skipped``.

    ``content`` is a hash of the features.
    """

    dataset: Dataset
    features: Sequence[Any]
    skipped: dict[str, str]
    content: str


def read_features(
    dataset: Dataset,
    scorer: MatrixScorer,
    *,
    image_folder: str | Path | None = None,
    skip_bad: bool = False,
    **stream: Any,
) -> ReadImages:
    """The features of all images: found by id, or made from their pixels (and cached) by the encoder that the model
    was trained on; ``stream`` are the other keywords of :func:`encode_images`."""
    if isinstance(scorer, FeatureReader):
        features, skipped = list(scorer.features_of(dataset.image_ids)), {}
    else:
        assert scorer.pixels is not None
        files = image_files(dataset, image_folder, skip_bad=skip_bad)
        vectors = encode_images(scorer.pixels, files, names=dataset.image_ids, skip_bad=skip_bad, **stream)
        skipped = {dataset.image_ids[row]: problem for row, problem in vectors.bad.items()}
        kept = [row for row in range(len(files)) if row not in vectors.bad]
        features = [(vectors.rows[row],) for row in kept]
        dataset = dataset.select(dataset.image_ids[row] for row in kept) if skipped else dataset
    keys = np.frombuffer(b"".join(map(feature_key, features)), np.uint8)
    return ReadImages(dataset, features, skipped, fingerprint("features", {"keys": keys}))


def score_texts(
    scorer: MatrixScorer, images: ReadImages, texts: Sequence[str], progress: Progress | None = None
) -> Array:
    """Images × texts, checked."""
    engine = current_engine()
    if engine.distributed and isinstance(scorer, DivisibleScorer) and images.features and texts:
        scores = score_in_blocks(engine, scorer, images.features, texts, progress or SilentProgress())
    else:
        scores = np.asarray(scorer.score_matrix(images.features, texts, progress), np.float32)
    expected = (len(images.features), len(texts))
    if scores.shape != expected:
        raise CrosslensError(
            f"{scorer.name} gave scores of shape {scores.shape} for images × texts of {expected}",
            fix="return a row per image and a column per text",
        )
    if not np.isfinite(scores).all():
        raise InputError(f"{scorer.name} gave NaN or infinite scores", expected="finite numbers")
    return scores
