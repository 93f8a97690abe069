"""How fine-grained captions are: adjectives, phrases, determiners, depth and variety of their concepts, length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.analyze.granularity_features import FEATURES, caption_features
from crosslens.core.dataset import Dataset
from crosslens.core.errors import InputError, UnknownNameError
from crosslens.core.ids import Ids, frozen
from crosslens.core.json_form import json_form
from crosslens.core.progress import Progress
from crosslens.language.parsing import parse_texts
from crosslens.statistics import Bootstrap, Estimate

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Granularity(Mapping[str, float]):
    """The features of a set of captions; as a mapping, the mean of each over the captions.

    ``per_caption`` has one number per caption and feature (NaN: the caption has nothing to take a mean of, and does not
    count). ``clusters`` says for each caption which of ``images`` it belongs to: intervals resample images. Captions
    given without images are an image each.
    """

    name: str
    caption_ids: Ids
    images: Ids
    clusters: Array
    per_caption: Mapping[str, Array]
    pipeline: str = ""

    def __getitem__(self, feature: str) -> float:
        values = self.of(feature)
        counted = values[~np.isnan(values)]
        return float(counted.mean()) if len(counted) else float("nan")

    def __iter__(self) -> Iterator[str]:
        return iter(self.per_caption)

    def __len__(self) -> int:
        return len(self.per_caption)

    def __contains__(self, feature: object) -> bool:
        return feature in self.per_caption

    def of(self, feature: str) -> Array:
        """One value per caption."""
        if feature not in self.per_caption:
            raise UnknownNameError("feature", feature, self.per_caption)
        return self.per_caption[feature]

    def estimates(self, *, resamples: int = 1000, level: float = 0.95, seed: int = 0) -> dict[str, Estimate]:
        """The mean of every feature with its interval, from resampling images."""
        draws = Bootstrap(self.clusters, resamples, seed)
        return {feature: draws.estimate(values, level=level) for feature, values in self.per_caption.items()}

    @cached_property
    def table(self) -> pl.DataFrame:
        """One row per caption: its id, its image, every feature (null where it has none)."""
        return pl.DataFrame(
            {
                "caption": pl.Series(self.caption_ids, dtype=pl.String),
                "image": pl.Series([self.images[one] for one in self.clusters], dtype=pl.String),
                **{name: pl.Series(values, nan_to_null=True) for name, values in self.per_caption.items()},
            }
        )

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: the means."""
        return {"name": self.name, "captions": len(self.caption_ids), "features": json_form(dict(self))}

    def __repr__(self) -> str:
        figures = ", ".join(f"{name}={self[name]:.2f}" for name in self)
        return f"Granularity({self.name!r}, {len(self.caption_ids):,} captions: {figures})"


def granularity(
    captions: Dataset | Mapping[str, str] | Iterable[str],
    *,
    name: str | None = None,
    pipeline: str | None = None,
    cache: str | Path | bool = True,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Granularity:
    """Measure how fine-grained captions are; the result maps every feature to its mean over the captions.

    ``captions`` are texts, ``{id: text}`` or a dataset, whose images make the intervals honest. Captions are parsed by
    spaCy (``pipeline`` names one that is installed; ``cache`` and ``threads`` as in parsing); parses are kept, so that
    a second look takes seconds.
    """
    ids, texts, images, clusters = _taken_apart(captions)
    parses = parse_texts(texts, pipeline=pipeline, cache=cache, threads=threads, progress=progress)
    found = caption_features(texts, parses)
    return Granularity(
        name or (captions.name if isinstance(captions, Dataset) else "captions"),
        ids,
        images,
        frozen(clusters),
        {feature: frozen(found[feature]) for feature in FEATURES},
        parses.pipeline,
    )


def _taken_apart(captions: Dataset | Mapping[str, str] | Iterable[str]) -> tuple[Ids, tuple[str, ...], Ids, Array]:
    if isinstance(captions, Dataset):
        taken = captions.caption_ids, captions.texts, captions.image_ids, captions.caption_image
    elif isinstance(captions, str):
        raise InputError("one text where a list of texts belongs", fix="put it into a list")
    elif not isinstance(captions, Iterable):
        raise InputError(f"{captions!r:.60} is no list of captions", expected="texts, {id: text} or a dataset")
    else:
        pairs = captions if isinstance(captions, Mapping) else dict(enumerate(captions))
        ids = tuple(str(one) for one in pairs)
        texts = tuple(pairs.values())
        for row, text in enumerate(texts):
            if not isinstance(text, str) or not text.strip():
                raise InputError(
                    f"caption {ids[row]!r} is {text!r:.60}", row=row, expected="a non-empty text",
                    fix="write the caption or remove it",
                )  # fmt: skip
        taken = ids, texts, ids, np.arange(len(ids))
    if not taken[0]:
        raise InputError("no captions", expected="at least one caption", fix="check the file and its reader's options")
    return taken
