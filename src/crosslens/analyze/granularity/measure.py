"""How fine-grained captions are: adjectives, phrases, determiners, depth and variety of their concepts, length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.analyze.granularity.features import FEATURES, caption_features
from crosslens.core import (
    Dataset,
    Ids,
    InputError,
    Printable,
    Progress,
    UnknownNameError,
    UsageError,
    derive_seed,
    frozen,
    json_form,
    match_ids,
)
from crosslens.language import parse_texts
from crosslens.statistics import Bootstrap, Estimate, Samples, paired_samples

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Granularity(Mapping[str, float]):
    """The features of a set of captions; as a mapping, the mean of each over the captions.

    ``per_caption`` has one number per caption and feature (NaN: the caption has nothing to take a mean of, and does not
    count). ``clusters`` says for each caption which of ``images`` it belongs to: intervals resample images. Captions
    without images are an image each.
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
                "image": pl.Series([self.images[row] for row in self.clusters], dtype=pl.String),
                **{name: pl.Series(values, nan_to_null=True) for name, values in self.per_caption.items()},
            }
        )

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: the means."""
        return {"name": self.name, "captions": len(self.caption_ids), "features": json_form(dict(self))}

    def __repr__(self) -> str:
        figures = ", ".join(f"{name}={self[name]:.2f}" for name in self)
        return f"Granularity({self.name!r}, {len(self.caption_ids):,} captions: {figures})"


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
class FeatureChange:
    """How the mean of a feature differs from the first set's; ``relative`` is a share of the first set's mean.

    Paired: the images are the same, and were resampled together. Only then there is a p-value.
    """

    difference: float
    low: float
    high: float
    relative: float
    relative_low: float
    relative_high: float
    paired: bool
    p_value: float


@dataclass(frozen=True)
class GranularityComparison(Printable):
    """Several sets; ``means`` and ``changes`` by set and feature, in order. The first set has no changes."""

    sets: tuple[Granularity, ...]
    means: Mapping[str, Mapping[str, Estimate]]
    changes: Mapping[str, Mapping[str, FeatureChange]]
    level: float
    permutations: int

    def only(self, features: Sequence[str]) -> GranularityComparison:
        """The same with these features alone, in this order."""
        kept = [feature for feature in features if feature in next(iter(self.means.values()))]
        means = {name: {feature: own[feature] for feature in kept} for name, own in self.means.items()}
        changes = {name: {feature: own[feature] for feature in kept} for name, own in self.changes.items()}
        return replace(self, means=means, changes=changes)

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        by_name = {captions.name: captions for captions in self.sets}
        return {
            "level": self.level,
            "permutations": self.permutations,
            "pipeline": self.sets[0].pipeline,
            "datasets": [
                {
                    "name": name,
                    "captions": len(by_name[name].caption_ids),
                    "images": len(np.unique(by_name[name].clusters)),
                    "features": {
                        feature: {
                            **json_form(asdict(mean)),
                            "captions": int((~np.isnan(by_name[name].of(feature))).sum()),
                            "change": json_form(asdict(self.changes[name][feature])) if name in self.changes else None,
                        }
                        for feature, mean in means.items()
                    },
                }
                for name, means in self.means.items()
            ],
        }


def compare_granularity(
    sets: Sequence[Granularity],
    *,
    resamples: int = 1000,
    permutations: int = 10_000,
    level: float = 0.95,
    seed: int = 0,
) -> GranularityComparison:
    """Every set's means with intervals, and how each differs from the first.

    Where two sets have captions of the same images, images are resampled once for both, which separates what the
    captions add from what the images are like. Otherwise each set is resampled by itself, and there is no p-value.
    """
    if not sets:
        raise UsageError("no captions to compare", fix="pass at least one set")
    first, *others = named = _named(sets)
    resampling = _Resampling(resamples, permutations, level, seed)
    return GranularityComparison(
        named,
        {captions.name: captions.estimates(resamples=resamples, level=level, seed=seed) for captions in named},
        {captions.name: resampling.changes(first, captions, number) for number, captions in enumerate(others, start=1)},
        level,
        permutations,
    )


@dataclass(frozen=True)
class _Resampling:
    resamples: int
    permutations: int
    level: float
    seed: int

    def changes(self, first: Granularity, other: Granularity, number: int) -> dict[str, FeatureChange]:
        """Every feature of the other set against the first; ``number`` of the set derives its seed."""
        rows = _same_images(first, other)
        if rows is None:
            return {feature: self._unpaired(first, other, feature, number) for feature in first}
        return {feature: self._paired(first, other, feature, rows) for feature in first}

    def _paired(self, first: Granularity, other: Granularity, feature: str, rows: Array) -> FeatureChange:
        change = paired_samples(Samples(first.of(feature), first.clusters, other.of(feature), rows), **asdict(self))
        relative = change.relative, change.relative_low, change.relative_high
        return FeatureChange(change.test.difference, *change.test.interval, *relative, True, change.test.p_value)

    def _unpaired(self, first: Granularity, other: Granularity, feature: str, number: int) -> FeatureChange:
        """Two samples of different images: each is resampled by itself."""
        nan = float("nan")
        difference = other[feature] - first[feature]
        relative = other[feature] / first[feature] - 1 if first[feature] else nan
        if not self.resamples or min(len(np.unique(captions.clusters)) for captions in (first, other)) < 2:
            return FeatureChange(difference, nan, nan, relative, nan, nan, False, nan)
        seed = derive_seed(self.seed, "apart", number)
        before = Bootstrap(first.clusters, self.resamples, self.seed).replicates(first.of(feature))
        after = Bootstrap(other.clusters, self.resamples, seed).replicates(other.of(feature))
        tails = [(1 - self.level) / 2, (1 + self.level) / 2]
        with np.errstate(invalid="ignore", divide="ignore"):
            low, high = np.quantile(after - before, tails)
            ratios = after / before - 1
        ends = np.quantile(ratios, tails) if np.isfinite(ratios).all() else (nan, nan)
        return FeatureChange(difference, float(low), float(high), relative, float(ends[0]), float(ends[1]), False, nan)


def _same_images(first: Granularity, other: Granularity) -> Array | None:
    """For every caption of the other set the row of its image in the first; None unless both have the same images."""
    ours, theirs = np.unique(first.clusters), np.unique(other.clusters)
    rows = match_ids([other.images[row] for row in theirs], [first.images[row] for row in ours])
    if len(ours) != len(theirs) or (rows < 0).any():
        return None
    return np.asarray(ours[rows][np.searchsorted(theirs, other.clusters)], np.int64)


def _named(sets: Sequence[Granularity]) -> tuple[Granularity, ...]:
    """Sets of the same name get a number."""
    taken: list[str] = []
    for captions in sets:
        label, number = captions.name, 1
        while label in taken:
            number += 1
            label = f"{captions.name} ({number})"
        taken.append(label)
    return tuple(replace(captions, name=label) for captions, label in zip(sets, taken, strict=True))
