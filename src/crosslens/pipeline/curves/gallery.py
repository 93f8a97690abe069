"""Metrics against the size of the gallery: exact for smaller ones, extrapolated beyond."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from crosslens.core import IMAGE_TO_TEXT, Progress, Run, SilentProgress, UsageError, split_name, stage
from crosslens.metrics import MetricRequest, MetricSpec, parse_metrics, require_expectation
from crosslens.pipeline.comparison import run_labels
from crosslens.pipeline.curves.order import order_changes, with_correction
from crosslens.pipeline.curves.ranked_run import RankedRun
from crosslens.pipeline.curves.results import GalleryCurves, GalleryPoint

GALLERY_METRICS = ("Hit@1", "MRR", "MedR")
"""Those of a curve that names none, in every direction that all runs have."""
_MOST = 1000
_LARGEST = 10**12
_SIZE = r"([0-9][0-9_]{0,15}(?:e[0-9]{1,2})?)"
_PART = re.compile(rf"\s*{_SIZE}\s*(?:\.\.\s*{_SIZE}\s*)?")


def gallery_curve(
    runs: Sequence[Run],
    metrics: str | Iterable[str | MetricSpec | MetricRequest] | None = None,
    *,
    sizes: Sequence[int] | None = None,
    seed: int = 0,
    resamples: int = 1000,
    level: float = 0.95,
    permutations: int = 10_000,
    correction: str = "holm",
    progress: Progress | None = None,
) -> GalleryCurves:
    """What metrics of runs would be in galleries of other sizes, from their exact ranks.

    Up to a run's own gallery, a figure is the exact expectation over all sub-galleries of that size that hold the
    query's relevant items (MedR: the median over queries and sub-galleries together). Beyond it, the figure is
    extrapolated and marked so. Two runs whose order depends on the size are named, with paired tests.
    """
    runs = tuple(runs)
    if not runs:
        raise UsageError("no runs", fix="name at least one")
    requests = _requests(runs, metrics)
    directions = dict.fromkeys(direction for direction, _ in requests)
    labels = run_labels(runs)
    ranked = {
        (label, direction): RankedRun(run, direction, resamples, level, seed)
        for label, run in zip(labels, runs, strict=True)
        for direction in directions
    }
    chosen = _sizes(ranked, sizes)
    points: dict[str, dict[str, tuple[GalleryPoint, ...]]] = {label: {} for label in labels}
    with stage(progress or SilentProgress(), "curves", len(labels) * len(requests)) as shown:
        for label, (direction, spec) in product(labels, requests):
            own = ranked[label, direction]
            within = [size for size in chosen if sizes is not None or size <= own.galleries.gallery]
            points[label][f"{direction}/{spec}"] = tuple(own.point(spec, size) for size in within)
            shown.advance(1)
    galleries = {label: {name: ranked[label, name].galleries.gallery for name in directions} for label in labels}
    changes = order_changes(ranked, labels, requests, chosen, permutations=permutations, seed=seed)
    return GalleryCurves(
        chosen, points, galleries, with_correction(changes, correction), level, correction, _notes(points)
    )


def _requests(runs: Sequence[Run], metrics: Any) -> list[tuple[str, MetricSpec]]:
    """The metrics with their directions: those named, or in every direction that all runs have."""
    shared = [direction for direction in runs[0].rankings if all(direction in run.rankings for run in runs)]
    requests: dict[tuple[str, MetricSpec], None] = {}
    for request in parse_metrics(GALLERY_METRICS if metrics is None else metrics):
        if request.spans_both:
            raise UsageError(
                f"{request} is over two galleries", fix=f"name the direction: t2i/{request} or i2t/{request}"
            )
        require_expectation(request.spec)
        for direction in shared if request.direction is None else (request.direction,):
            requests[direction, request.spec] = None
    if not requests:
        raise UsageError("the runs keep no ranking of the same direction", fix="name runs that keep their rankings")
    return list(requests)


def _sizes(ranked: Mapping[tuple[str, str], RankedRun], sizes: Sequence[int] | None) -> tuple[int, ...]:
    smallest = max(own.galleries.smallest for own in ranked.values())
    if sizes is None:
        return round_sizes(smallest, (own.galleries.gallery for own in ranked.values()))
    if not sizes:
        raise UsageError("no sizes", fix="name some, such as 10,50,150", option="sizes")
    return tuple(sorted(dict.fromkeys(map(int, sizes))))


def _notes(points: Mapping[str, Mapping[str, tuple[GalleryPoint, ...]]]) -> tuple[str, ...]:
    beyond = [metric for own in points.values() for metric, series in own.items()
              if any(point.extrapolated for point in series)]  # fmt: skip
    if not beyond:
        return ()
    notes = ["Beyond a run's own gallery figures are extrapolated from its ranks, not measured."]
    if any(split_name(metric)[0] == IMAGE_TO_TEXT for metric in beyond):
        notes.append(
            "i2t: the captions of an image resemble each other, which the extrapolation does not know; in validation "
            "its figures were too high."
        )
    return tuple(notes)


def parse_sizes(text: str) -> tuple[int, ...]:
    """``10,50,150``, ``2..100``, ``1000,1e6``: ascending, each once."""
    sizes: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part)
        first, last = (_whole(match[1]), _whole(match[2] or match[1])) if match else (0, 0)
        if not 1 <= first <= last <= _LARGEST:
            raise UsageError(
                f"cannot read the sizes {text!r:.60}", fix="write them as 10,50,150, as 2..100 or as 1000,1e6",
                option="sizes",
            )  # fmt: skip
        sizes.update(range(first, min(last, first + _MOST) + 1))
        if len(sizes) > _MOST:
            raise UsageError(f"more than {_MOST:,} sizes", fix="name fewer, such as 10,100,1000", option="sizes")
    return tuple(sorted(sizes))


def round_sizes(smallest: int, galleries: Iterable[int]) -> tuple[int, ...]:
    """1, 2, 5, 10, …, from the smallest possible size to the largest gallery, and the size of every gallery."""
    galleries = set(galleries)
    steps = (factor * 10**power for power in range(13) for factor in (1, 2, 5))
    return tuple(sorted({size for size in steps if smallest <= size <= max(galleries)} | galleries))


def _whole(text: str) -> int:
    digits, _, power = text.partition("e")
    return int(digits + "0" * int(power or 0))
