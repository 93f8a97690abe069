"""Numbers of every caption of a set: their means with intervals, how they are distributed and differ between sets."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, inf, isfinite
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import polars as pl

from crosslens.core import (
    Cell,
    Figure,
    Lines,
    Part,
    Presented,
    Section,
    Series,
    Table,
    Text,
    UnknownNameError,
    UsageError,
)
from crosslens.metrics import format_count
from crosslens.statistics import Bootstrap, Estimate, Samples, paired_samples
from crosslens.storage import Array, json_form
from crosslens.values import Ids, distinct_names, match_ids

Features = TypeVar("Features", bound="CaptionFeatures")
_STEPS = 28
"""Steps that many values are cut into."""
_FEW = 30
"""Whole numbers up to this are shown one by one."""
_OUTER = 0.998
"""The share of values that is drawn: the few beyond would flatten everything else."""


@dataclass(frozen=True, eq=False)
class CaptionFeatures(Presented, Mapping[str, float]):
    """The features of a set of captions; as a mapping, the mean of each over the captions.

    It is shown as a comparison of one set.

    ``per_caption`` has one number per caption and feature (NaN: the caption does not count). ``clusters`` says for each
    caption which of ``images`` it belongs to: intervals resample images.
    """

    name: str
    caption_ids: Ids
    images: Ids
    clusters: Array
    per_caption: Mapping[str, Array]

    shares: ClassVar[frozenset[str]] = frozenset()
    """Features that are at most 1."""

    @abstractmethod
    def alone(self) -> FeatureComparison[Any]:
        """A comparison that holds this set and no other."""

    @property
    def title(self) -> str:
        return self.alone().title

    def sections(self) -> Iterable[Section]:
        return self.alone().sections()

    def as_dict(self) -> dict[str, Any]:
        return self.alone().as_dict()

    def __getitem__(self, feature: str) -> float:
        values = self.of(feature)
        present = values[~np.isnan(values)]
        return float(present.mean()) if len(present) else float("nan")

    def __iter__(self) -> Iterator[str]:
        return iter(self.per_caption)

    def __len__(self) -> int:
        return len(self.per_caption)

    def of(self, feature: str) -> Array:
        """One value per caption."""
        if feature not in self.per_caption:
            raise UnknownNameError("feature", feature, self.per_caption)
        return self.per_caption[feature]

    def only(self, features: Sequence[str]) -> Self:
        """Only these features, in this order."""
        return replace(self, per_caption={feature: self.of(feature) for feature in features})

    def estimates(self, *, resamples: int = 1000, level: float = 0.95, seed: int = 0) -> dict[str, Estimate]:
        """The mean of every feature with its interval, from resampling images."""
        draws = Bootstrap(self.clusters, resamples, seed)
        return {
            feature: draws.estimate(values, level=level, bounds=self.bounds(feature))
            for feature, values in self.per_caption.items()
        }

    def bounds(self, feature: str) -> tuple[float, float]:
        """The lowest and the highest value of a feature; counts have no highest one."""
        return (0.0, 1.0 if feature in self.shares else inf)

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

    def __repr__(self) -> str:
        figures = ", ".join(f"{name}={self[name]:.2f}" for name in self)
        return f"{type(self).__name__}({self.name!r}, {len(self.caption_ids):,} captions: {figures})"


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
class FeatureComparison(Presented, Generic[Features]):
    """Several sets; ``means`` and ``changes`` by set and feature, in order. The first set has no changes."""

    sets: tuple[Features, ...]
    means: Mapping[str, Mapping[str, Estimate]]
    changes: Mapping[str, Mapping[str, FeatureChange]]
    level: float
    permutations: int

    @classmethod
    def of(
        cls,
        sets: Sequence[Features],
        *,
        resamples: int = 1000,
        permutations: int = 10_000,
        level: float = 0.95,
        seed: int = 0,
    ) -> Self:
        """Every set's means with intervals, and how each differs from the first.

        Where two sets have captions of the same images, both sides of an image are resampled together, which separates
        what the captions add from what the images are like. Otherwise each image is of one side only, and there is no
        p-value.
        """
        if not sets:
            raise UsageError("no captions to compare", fix="pass at least one set")
        names = distinct_names(captions.name for captions in sets)
        distinct = tuple(replace(part, name=name) for part, name in zip(sets, names, strict=True))
        means = {part.name: part.estimates(resamples=resamples, level=level, seed=seed) for part in distinct}
        first, *others = distinct
        changes: dict[str, dict[str, FeatureChange]] = {}
        for other in others:
            ours, theirs = np.unique(first.clusters), np.unique(other.clusters)
            rows = match_ids([other.images[row] for row in theirs], [first.images[row] for row in ours])
            same_images = len(ours) == len(theirs) and not (rows < 0).any()
            images = ours[rows] if same_images else ours.max(initial=-1) + 1 + np.arange(len(theirs))
            clusters = np.asarray(images[np.searchsorted(theirs, other.clusters)], np.int64)
            tests = permutations if same_images else 0
            feature_changes = changes[other.name] = {}
            for feature in first:
                samples = Samples(first.of(feature), first.clusters, other.of(feature), clusters)
                change = paired_samples(
                    samples,
                    resamples=resamples,
                    permutations=tests,
                    level=level,
                    seed=seed,
                    bounds=first.bounds(feature),
                )
                relative, test = (change.relative, change.relative_low, change.relative_high), change.test
                feature_changes[feature] = FeatureChange(
                    test.difference, *test.interval, *relative, same_images, test.p_value
                )
        return cls(distinct, means, changes, level, permutations)

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(next(iter(self.means.values())))

    def only(self, features: Sequence[str]) -> Self:
        """Only these features, in this order."""
        present = [feature for feature in features if feature in self.features]
        means = {name: {feature: figures[feature] for feature in present} for name, figures in self.means.items()}
        changes = {name: {feature: figures[feature] for feature in present} for name, figures in self.changes.items()}
        return replace(self, means=means, changes=changes)

    @property
    def table(self) -> pl.DataFrame:
        """One row per caption of every set, with the name of its set."""
        return pl.concat([part.table.select(pl.lit(part.name).alias("dataset"), pl.all()) for part in self.sets])

    def feature_parts(
        self,
        labels: Mapping[str, str],
        mean: Callable[[str, Estimate], Figure],
        change: Callable[[str, FeatureChange], Figure],
    ) -> tuple[Part, ...]:
        """A table of means, one of changes against the first set, and what both are."""
        means: tuple[tuple[Cell, ...], ...] = tuple(
            (labels[feature], *(mean(feature, figures[feature]) for figures in self.means.values()))
            for feature in self.features
        )
        changes: tuple[tuple[Cell, ...], ...] = tuple(
            (labels[feature], *(change(feature, figures[feature]) for figures in self.changes.values()))
            for feature in self.features
        )
        first = self.sets[0].name
        changed = [Table(("feature", *self.changes), changes, title=f"Change against {first}")] if self.changes else []
        sizes = [
            f"{format_count(len(captions.caption_ids), 'caption')} of "
            f"{format_count(len(np.unique(captions.clusters)), 'image')}"
            for captions in self.sets
        ]
        size_words = ", ".join(f"{captions.name} {size}" for captions, size in zip(self.sets, sizes, strict=True))
        if len(set(sizes)) == 1:
            size_words = sizes[0] + (" each" if len(sizes) > 1 else "")
        notes = [f"Means per caption: {size_words}."]
        if any(isfinite(estimate.low) for figures in self.means.values() for estimate in figures.values()):
            notes.append(f"In brackets: {100 * self.level:g}% intervals from resampling images.")
        paired = [name for name, figures in self.changes.items() if all(figure.paired for figure in figures.values())]
        unpaired = [name for name in self.changes if name not in paired]
        if paired:
            notes.append(f"Changes against {first} are paired by image: {', '.join(paired)}.")
        if unpaired:
            notes.append(f"Not the same images as {first}, so drawn apart: {', '.join(unpaired)}.")
        return Table(("feature", *self.means), means), *changed, Text(tuple(notes), note=True)

    def as_dict(self) -> dict[str, Any]:
        datasets = []
        for captions in self.sets:
            features, changes = {}, self.changes.get(captions.name)
            for feature, mean in self.means[captions.name].items():
                count = int((~np.isnan(captions.of(feature))).sum())
                change = None if changes is None else json_form(changes[feature])
                features[feature] = {**json_form(mean), "captions": count, "change": change}
            images = len(np.unique(captions.clusters))
            datasets.append(
                {"name": captions.name, "captions": len(captions.caption_ids), "images": images, "features": features}
            )
        return {"level": self.level, "permutations": self.permutations, "datasets": datasets}


def value_steps(samples: Iterable[Array]) -> Array:
    """The bounds of the steps: around whole numbers where there are few, else equal parts of what there is."""
    together = np.concatenate([values[~np.isnan(values)] for values in samples])
    if not len(together):
        return np.array([-0.5, 0.5])
    low, high = np.quantile(together, [1 - _OUTER, _OUTER])
    if (together == np.round(together)).all():
        low, high = np.floor(low), np.ceil(high)
        step = max(1, ceil((high - low + 1) / _FEW))
        return np.arange(low, high + step + 1, step)[: ceil((high - low + 1) / step) + 1] - 0.5
    return np.linspace(low, high if high > low else low + 1, _STEPS + 1)


def distribution_lines(
    title: str, axis: str, samples: Mapping[str, Array], edges: Array | None = None, **more: Any
) -> Lines:
    """The share of each sample's values in each step, in percent; NaN does not count."""
    edges = value_steps(samples.values()) if edges is None else edges
    series = []
    for name, values in samples.items():
        values = values[~np.isnan(values)]
        shares = np.histogram(values, edges)[0] / max(1, len(values))
        series.append(Series(name, tuple(Figure.percent(share, unit=" %") for share in shares.tolist())))
    top = max((figure.value or 0.0 for line in series for figure in line.figures), default=0.0)
    middles = np.round((edges[1:] + edges[:-1]) / 2, 4).tolist()
    return Lines(title=title, across=tuple(middles), series=tuple(series), axis=axis, limits=(0.0, top or 1.0), **more)
