"""How fine-grained captions are: adjectives, phrases, determiners, depth and variety of their concepts, length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.analyze.caption_features import CaptionFeatures, FeatureComparison, compare_features, distribution_lines
from crosslens.analyze.granularity.features import FEATURES, caption_features
from crosslens.core import Dataset, Figure, Ids, InputError, Progress, Row, Section, frozen, json_form
from crosslens.language import parse_texts

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Granularity(CaptionFeatures):
    """The features of a set of captions; as a mapping, the mean of each over the captions.

    NaN in ``per_caption``: the caption has nothing to take a mean of, and does not count. Captions without images are
    an image each.
    """

    pipeline: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: the means."""
        return {"name": self.name, "captions": len(self.caption_ids), "features": json_form(dict(self))}


def measure_granularity(
    captions: Dataset | Mapping[str, str] | Iterable[str],
    *,
    name: str | None = None,
    pipeline: str | None = None,
    cache: str | Path | bool = True,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Granularity:
    """Measure how fine-grained captions are; the result maps every feature to its mean over the captions.

    ``captions`` are texts, ``{id: text}`` or a dataset, whose images are what intervals resample. Captions are parsed
    by spaCy (``pipeline`` names one that is installed; ``cache`` and ``threads`` as in parsing); parses are cached, so
    that a second call takes seconds.
    """
    ids, texts, images, clusters = _columns(captions)
    parses = parse_texts(texts, pipeline=pipeline, cache=cache, threads=threads, progress=progress)
    features = caption_features(texts, parses)
    return Granularity(
        name or (captions.name if isinstance(captions, Dataset) else "captions"),
        ids,
        images,
        frozen(clusters),
        {feature: frozen(features[feature]) for feature in FEATURES},
        parses.pipeline,
    )


def _columns(captions: Dataset | Mapping[str, str] | Iterable[str]) -> tuple[Ids, tuple[str, ...], Ids, Array]:
    if isinstance(captions, Dataset):
        taken = captions.caption_ids, captions.texts, captions.image_ids, captions.caption_image
    elif isinstance(captions, str):
        raise InputError("captions is a single text", expected="a list of texts", fix="put it into a list")
    elif not isinstance(captions, Iterable):
        raise InputError(f"{captions!r:.60} is not a list of captions", expected="texts, {id: text} or a dataset")
    else:
        pairs = captions if isinstance(captions, Mapping) else dict(enumerate(captions))
        ids = tuple(map(str, pairs))
        texts = tuple(pairs.values())
        for row, text in enumerate(texts):
            if not isinstance(text, str) or not text.strip():
                raise InputError(
                    f"caption {ids[row]!r} is {text!r:.60}", row=row, expected="a non-empty text",
                    fix="write the caption or remove it",
                )  # fmt: skip
        taken = ids, texts, ids, np.arange(len(ids))
    if not taken[0]:
        raise InputError(
            "no captions", expected="at least one caption", fix="check the file and the options of its reader"
        )
    return taken


@dataclass(frozen=True)
class GranularityComparison(FeatureComparison[Granularity]):
    """The granularity of several sets side by side."""

    @property
    def title(self) -> str:
        """The heading of a page."""
        return "How fine-grained the captions are"

    def sections(self, **options: Any) -> Iterator[Section]:
        """How every feature is distributed, the means, and the changes against the first set."""
        charts = (
            distribution_lines(
                FEATURES[feature], "per caption", {captions.name: captions.of(feature) for captions in self.sets},
                about="percent of captions with each value",
            )
            for feature in self.features
        )  # fmt: skip
        parts = self.feature_parts(
            FEATURES,
            lambda _, mean: Figure(mean.mean, mean.low, mean.high),
            lambda _, change: Figure.percent(
                change.relative, change.relative_low, change.relative_high, signed=True, unit=" %"
            ),
        )
        yield Section("", (Row(tuple(charts)), *parts))

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {**super().as_dict(), "pipeline": self.sets[0].pipeline}


def compare_granularity(
    sets: Sequence[Granularity],
    *,
    resamples: int = 1000,
    permutations: int = 10_000,
    level: float = 0.95,
    seed: int = 0,
) -> GranularityComparison:
    """Every set's means with intervals, and how each differs from the first: see :func:`compare_features`."""
    return compare_features(
        GranularityComparison, sets, resamples=resamples, permutations=permutations, level=level, seed=seed
    )
