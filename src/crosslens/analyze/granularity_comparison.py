"""The granularity of several sets of captions side by side: means, changes against the first, and how sure they are."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite
from typing import Any

import numpy as np

from crosslens.analyze.granularity import Granularity
from crosslens.analyze.granularity_features import FEATURES
from crosslens.core.errors import UsageError
from crosslens.core.grid import PAGE_WIDTH, Grid
from crosslens.core.json_form import json_form
from crosslens.core.seeds import derive_seed
from crosslens.metrics.figures import count
from crosslens.statistics import Bootstrap, Estimate, Samples, paired_samples

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class FeatureChange:
    """How the mean of a feature differs from the first set's; ``relative`` is a share of the first set's mean.

    Paired: the images are the same, and were drawn together. The p-value is there only then.
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
class GranularityComparison:
    """Several sets; ``means`` and ``changes`` by set and feature, in the order given. The first set has no changes."""

    sets: tuple[Granularity, ...]
    means: Mapping[str, Mapping[str, Estimate]]
    changes: Mapping[str, Mapping[str, FeatureChange]]
    level: float
    permutations: int

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        facts = {one.name: one for one in self.sets}
        return {
            "level": self.level,
            "permutations": self.permutations,
            "pipeline": self.sets[0].pipeline,
            "datasets": [
                {
                    "name": name,
                    "captions": len(facts[name].caption_ids),
                    "images": len(np.unique(facts[name].clusters)),
                    "features": {
                        feature: {
                            **json_form(asdict(mean)),
                            "captions": int((~np.isnan(facts[name].of(feature))).sum()),
                            "change": json_form(asdict(self.changes[name][feature])) if name in self.changes else None,
                        }
                        for feature, mean in means.items()
                    },
                }
                for name, means in self.means.items()
            ],
        }

    def text(self, width: int | None = PAGE_WIDTH) -> str:
        """A table of means, and one of changes against the first set; columns that do not fit go on below."""
        means = {name: _column([_mean(found[one]) for one in FEATURES]) for name, found in self.means.items()}
        changes = {name: _column([_change(found[one]) for one in FEATURES]) for name, found in self.changes.items()}
        parts = [_grid(means).text(width)]
        if changes:
            parts.append(f"Change against {self.sets[0].name}\n\n{_grid(changes).text(width)}")
        return "\n\n".join([*parts, "\n".join(self._explanation())])

    def __str__(self) -> str:
        return self.text()

    def _explanation(self) -> list[str]:
        sizes = [
            f"{count(len(one.caption_ids), 'caption')} of {count(len(np.unique(one.clusters)), 'image')}"
            for one in self.sets
        ]
        if len(set(sizes)) == 1:
            said = sizes[0] + (" each" if len(sizes) > 1 else "")
        else:
            said = ", ".join(f"{one.name} {size}" for one, size in zip(self.sets, sizes, strict=True))
        sentences = [f"Means per caption: {said}."]
        if any(isfinite(one.low) for means in self.means.values() for one in means.values()):
            sentences.append(f"In brackets: {100 * self.level:g}% intervals from resampling images.")
        sentences += self._said_of_pairs()
        return [line for sentence in sentences for line in textwrap.wrap(sentence, PAGE_WIDTH)]

    def _said_of_pairs(self) -> list[str]:
        first = self.sets[0].name
        paired = [name for name, changes in self.changes.items() if all(one.paired for one in changes.values())]
        apart = [name for name in self.changes if name not in paired]
        said = []
        if paired:
            said.append(f"Changes against {first} are paired by image: {', '.join(paired)}.")
        if apart:
            said.append(f"Not the same images as {first}, so drawn apart: {', '.join(apart)}.")
        return said


def compare_granularity(
    sets: Sequence[Granularity],
    *,
    resamples: int = 1000,
    permutations: int = 10_000,
    level: float = 0.95,
    seed: int = 0,
) -> GranularityComparison:
    """Every set's means with intervals, and how each differs from the first.

    Where two sets have captions of the same images, images are drawn once for both: what a caption gains is then told
    from what the images are like. Otherwise they are drawn apart, and there is no p-value.
    """
    if not sets:
        raise UsageError("no captions to look at", fix="pass at least one set")
    named = _named(sets)
    return GranularityComparison(
        named,
        {one.name: one.estimates(resamples=resamples, level=level, seed=seed) for one in named},
        {
            one.name: _changes(named[0], one, resamples, permutations, level, seed, place)
            for place, one in enumerate(named[1:], start=1)
        },
        level,
        permutations,
    )


def _changes(
    first: Granularity, other: Granularity, resamples: int, permutations: int, level: float, seed: int, place: int
) -> dict[str, FeatureChange]:
    rows = _same_images(first, other)
    if rows is None:
        return {one: _apart(first, other, one, resamples, level, seed, place) for one in first}
    found = {}
    for feature in first:
        change = paired_samples(
            Samples(first.of(feature), first.clusters, other.of(feature), rows),
            resamples=resamples, permutations=permutations, level=level, seed=seed,
        )  # fmt: skip
        bounds = change.relative, change.relative_low, change.relative_high
        found[feature] = FeatureChange(
            change.test.difference, *change.test.interval, *bounds, True, change.test.p_value
        )
    return found


def _apart(
    first: Granularity, other: Granularity, feature: str, resamples: int, level: float, seed: int, place: int
) -> FeatureChange:
    """Two samples of different images: each is resampled by itself."""
    nothing = float("nan")
    difference = other[feature] - first[feature]
    relative = other[feature] / first[feature] - 1 if first[feature] else nothing
    if not resamples or min(len(np.unique(one.clusters)) for one in (first, other)) < 2:
        return FeatureChange(difference, nothing, nothing, relative, nothing, nothing, False, nothing)
    before = Bootstrap(first.clusters, resamples, seed).replicates(first.of(feature))
    after = Bootstrap(other.clusters, resamples, derive_seed(seed, "apart", place)).replicates(other.of(feature))
    tails = [(1 - level) / 2, (1 + level) / 2]
    with np.errstate(invalid="ignore", divide="ignore"):
        low, high = np.quantile(after - before, tails)
        ratios = after / before - 1
    ends = np.quantile(ratios, tails) if np.isfinite(ratios).all() else (nothing, nothing)
    return FeatureChange(difference, float(low), float(high), relative, float(ends[0]), float(ends[1]), False, nothing)


def _same_images(first: Granularity, other: Granularity) -> Array | None:
    """For every caption of the other set the row of its image in the first; None unless both have the same images."""
    place = {first.images[row]: row for row in np.unique(first.clusters)}
    theirs = {row: place.get(other.images[row]) for row in np.unique(other.clusters)}
    if len(theirs) != len(place) or None in theirs.values():
        return None
    return np.array([theirs[row] for row in other.clusters], np.int64)


def _named(sets: Sequence[Granularity]) -> tuple[Granularity, ...]:
    """Sets of one name are told apart by a number."""
    taken: list[str] = []
    for one in sets:
        label, number = one.name, 1
        while label in taken:
            number += 1
            label = f"{one.name} ({number})"
        taken.append(label)
    return tuple(replace(one, name=label) for one, label in zip(sets, taken, strict=True))


def _column(cells: Sequence[tuple[str, str]]) -> list[str]:
    room = max(len(number) for number, _ in cells)
    return [f"{number:>{room}}  {bounds}".rstrip() for number, bounds in cells]


def _grid(columns: Mapping[str, Sequence[str]]) -> Grid:
    rows = tuple(zip(FEATURES.values(), *columns.values(), strict=True))
    return Grid(("feature", *columns), rows, "l" * (len(columns) + 1))


def _mean(one: Estimate) -> tuple[str, str]:
    if not isfinite(one.mean):
        return "–", ""
    return f"{one.mean:.2f}", f"[{one.low:.2f}, {one.high:.2f}]" if isfinite(one.low) else ""


def _change(one: FeatureChange) -> tuple[str, str]:
    if not isfinite(one.relative):
        return "–", ""
    bounds = f"[{_percent(one.relative_low)}, {_percent(one.relative_high)}]" if isfinite(one.relative_low) else ""
    return f"{_percent(one.relative)} %", bounds


def _percent(share: float) -> str:
    return f"{round(100 * share, 1) + 0.0:+.1f}"  # no "-0.0"
