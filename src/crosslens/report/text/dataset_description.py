"""What a dataset holds, as text: its statistics, and how fine-grained its captions are."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from math import isfinite
from textwrap import wrap
from typing import Any

import numpy as np

from crosslens.analyze import (
    BAND_FEATURES,
    FEATURES,
    DatasetDiscriminability,
    DiscriminabilityComparison,
    FeatureChange,
    FeatureComparison,
    GranularityComparison,
    entropy_histogram,
)
from crosslens.core import PAGE_WIDTH, RENDERERS, Grid, decimal, percent, two_columns
from crosslens.data import DatasetDescription
from crosslens.metrics import format_count
from crosslens.statistics import Estimate


@RENDERERS.register("DatasetDescription")
def description_text(result: DatasetDescription, width: int | None = PAGE_WIDTH) -> str:
    """A line per statistic, then the problems."""
    rows = [
        ("images", f"{result.images:,}" + _aside(result.images_without_captions, "without a caption")),
        ("captions", f"{result.captions:,}"),
        ("captions per image", str(result.captions_per_image)),
        ("  images by count", ", ".join(f"{count}: {n:,}" for count, n in result.captions_histogram.items())),
        ("words per caption", str(result.words)),
        ("characters per caption", str(result.characters)),
        ("repeated captions", f"{result.repeated_within:,} within an image, {result.repeated_across:,} across images"),
        ("objects", f"{result.objects:,}" + _aside(result.objects_without_box, "without a box")),
        ("relations", f"{result.relations:,}"),
        ("columns to group by", ", ".join(f"{name} ({n})" for name, n in result.groups.items()) or "none"),
        ("problems", "none" if not result.problems else ""),
    ]
    columns = width or PAGE_WIDTH
    problems = [wrap(text, columns, initial_indent="  - ", subsequent_indent="    ") for text in result.problems]
    return "\n".join([result.name, two_columns(rows), *(line for lines in problems for line in lines)])


def _aside(count: int, what: str) -> str:
    return f" ({count:,} {what})" if count else ""


@RENDERERS.register("GranularityComparison")
def granularity_text(result: GranularityComparison, width: int | None = PAGE_WIDTH) -> str:
    """A table of means, and one of changes against the first set; columns that do not fit go on below."""
    means = {name: [_mean(row[feature]) for feature in result.features] for name, row in result.means.items()}
    changes = {name: [_change(row[feature]) for feature in result.features] for name, row in result.changes.items()}
    tables = _feature_tables(result, FEATURES, means, changes, width)
    return "\n\n".join([*tables, "\n".join(_explanation(result))])


@RENDERERS.register("DiscriminabilityComparison")
def discriminability_text(
    result: DiscriminabilityComparison, width: int | None = PAGE_WIDTH, *, shown: int = 10
) -> str:
    """Means, changes in nats and points, then of each dataset the histogram and the captions at both ends."""
    first = result.sets[0]
    labels = {
        "dis": "dis(t), nats", "relative": f"of ln {first.check.k} = {math.log(first.check.k):.2f}", **BAND_FEATURES,
    }  # fmt: skip
    means = {name: [_entropy(key, row[key]) for key in result.features] for name, row in result.means.items()}
    changes = {name: [_moved(key, row[key]) for key in result.features] for name, row in result.changes.items()}
    parts = [*_feature_tables(result, labels, means, changes, width), "\n".join(_explanation(result))]
    for captions in result.sets:
        check, (low, high) = captions.check, captions.band
        parts.append(
            f"{captions.name}: {len(captions.gallery):,} images, temperature {check.temperature:.4g}, band {low:.2f} "
            f"to {high:.2f} (·)\n{entropy_histogram(check.values, check.k, captions.eta)}"
        )
        for least, title in ((True, "least discriminable"), (False, "most discriminable")) if shown else ():
            parts.append(f"{captions.name}, {title}\n\n{_captions_grid(captions, shown, least, width).text(width)}")
    return "\n\n".join(parts)


def _captions_grid(captions: DatasetDiscriminability, shown: int, least: bool, width: int | None) -> Grid:
    rows = captions.extremes(shown, least=least).select("dis", "caption", "text").iter_rows()
    cells = [(f"{value:.3f}", caption, text) for value, caption, text in rows]
    used = len("0.000") + max((len(caption) for _, caption, _ in cells), default=0) + 6
    room = max(30, (width or PAGE_WIDTH) - used)
    return Grid(("dis", "caption", "text"), tuple((*head, shorten(text, room)) for *head, text in cells), "rll")


def shorten(text: str, room: int) -> str:
    """A text in one line of at most ``room`` letters; what is cut off is marked."""
    line = " ".join(text.split())
    return line if len(line) <= room else line[: room - 1].rstrip() + "…"


def _entropy(feature: str, estimate: Estimate) -> tuple[str, str]:
    if feature == "dis":
        return _mean(estimate)
    bounds = f"[{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]" if isfinite(estimate.low) else ""
    return f"{100 * estimate.mean:.1f} %", bounds


def _moved(feature: str, change: FeatureChange) -> tuple[str, str]:
    """In nats, or in points of percent."""
    scale, digits, unit = (1, 2, "") if feature == "dis" else (100, 1, " pp")
    number, low, high = (
        decimal(scale * value, digits, signed=True) for value in (change.difference, change.low, change.high)
    )
    return f"{number}{unit}", f"[{low}, {high}]" if isfinite(change.low) else ""


Cells = Mapping[str, Sequence[tuple[str, str]]]


def _feature_tables(
    result: FeatureComparison[Any], labels: Mapping[str, str], means: Cells, changes: Cells, width: int | None
) -> list[str]:
    names = [labels[feature] for feature in result.features]
    tables = [_grid(names, means).text(width)]
    if changes:
        tables.append(f"Change against {result.sets[0].name}\n\n{_grid(names, changes).text(width)}")
    return tables


def _explanation(result: FeatureComparison[Any]) -> list[str]:
    sizes = [
        f"{format_count(len(captions.caption_ids), 'caption')} of "
        f"{format_count(len(np.unique(captions.clusters)), 'image')}"
        for captions in result.sets
    ]
    if len(set(sizes)) == 1:
        listed = sizes[0] + (" each" if len(sizes) > 1 else "")
    else:
        listed = ", ".join(f"{captions.name} {size}" for captions, size in zip(result.sets, sizes, strict=True))
    sentences = [f"Means per caption: {listed}."]
    if any(isfinite(estimate.low) for means in result.means.values() for estimate in means.values()):
        sentences.append(f"In brackets: {100 * result.level:g}% intervals from resampling images.")
    first = result.sets[0].name
    paired = [name for name, changes in result.changes.items() if all(change.paired for change in changes.values())]
    unpaired = [name for name in result.changes if name not in paired]
    if paired:
        sentences.append(f"Changes against {first} are paired by image: {', '.join(paired)}.")
    if unpaired:
        sentences.append(f"Not the same images as {first}, so drawn apart: {', '.join(unpaired)}.")
    return [line for sentence in sentences for line in textwrap.wrap(sentence, PAGE_WIDTH)]


def _column(cells: Sequence[tuple[str, str]]) -> list[str]:
    room = max(len(number) for number, _ in cells)
    return [f"{number:>{room}}  {bounds}".rstrip() for number, bounds in cells]


def _grid(names: Sequence[str], columns: Cells) -> Grid:
    rows = tuple(zip(names, *map(_column, columns.values()), strict=True))
    return Grid(("feature", *columns), rows, "l" * (len(columns) + 1))


def _mean(estimate: Estimate) -> tuple[str, str]:
    if not isfinite(estimate.mean):
        return "–", ""
    bounds = f"[{estimate.low:.2f}, {estimate.high:.2f}]" if isfinite(estimate.low) else ""
    return f"{estimate.mean:.2f}", bounds


def _change(change: FeatureChange) -> tuple[str, str]:
    low, high = change.relative_low, change.relative_high
    if not isfinite(change.relative):
        return "–", ""
    interval = f"[{percent(low, signed=True)}, {percent(high, signed=True)}]" if isfinite(low) else ""
    return f"{percent(change.relative, signed=True)} %", interval
