"""The values behind a metric on two caption sets, each with the image it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from crosslens.core.dataset import Dataset
from crosslens.core.ids import Ids, positions
from crosslens.core.metric_values import MetricValues
from crosslens.core.relevance import IMAGE_TO_TEXT, TEXT_TO_IMAGE
from crosslens.core.run import Run, split_name
from crosslens.metrics import MetricSpec, Ties, family_of, observations
from crosslens.metrics.compute import parts_across
from crosslens.statistics import Samples

Array = np.ndarray[Any, Any]
Part = tuple[Array, Array]
"""Values, and the row of the image of each."""


def samples_of(
    name: str, spec: MetricSpec, runs: Mapping[str, Run], datasets: Mapping[str, Dataset], ties: Ties, folds: int
) -> list[Samples]:
    """What the figure of a metric is made of, before and after: one part, one per direction for a sum, per fold."""
    sides = {side: _parts(name, spec, run, datasets[side], ties) for side, run in runs.items()}
    images = len(datasets["before"].image_ids)
    fold = np.repeat(np.arange(folds), [len(part) for part in np.array_split(np.arange(images), folds)])
    found = []
    for direction, (before, before_images) in sides["before"].items():
        after, after_images = sides["after"][direction]
        for stratum in range(folds):
            first, second = fold[before_images] == stratum, fold[after_images] == stratum
            part = (before[first], before_images[first], after[second], after_images[second])
            if not (np.isnan(part[0]).all() or np.isnan(part[2]).all()):
                found.append((direction, stratum, part))
    counted = {direction: sum(one == direction for one, _, _ in found) for direction in sides["before"]}
    return [Samples(*part, stratum=stratum, weight=1 / counted[one]) for one, stratum, part in found]


def per_image(values: MetricValues, dataset: Dataset) -> Array:
    """The mean over an image's own queries; NaN for an image without any."""
    rows = _image_rows(values.query_ids, dataset)
    counted = ~np.isnan(values.values)
    sums = np.bincount(rows[counted], values.values[counted], len(dataset.image_ids))
    counts = np.bincount(rows[counted], minlength=len(dataset.image_ids))
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _parts(name: str, spec: MetricSpec, run: Run, dataset: Dataset, ties: Ties) -> dict[str, Part]:
    family = family_of(spec)
    if family.across and not family.graded:
        rankings = {one: run.rankings[one] for one in (IMAGE_TO_TEXT, TEXT_TO_IMAGE)}
        parts = parts_across(spec, rankings, ties)
        return {one: (parts[one], _image_rows(rankings[one].query_ids, dataset)) for one in rankings}
    one = run[name]
    rows = _image_rows(one.query_ids, dataset)
    if family.pooled(spec):
        values, queries = observations(spec, run.rankings[split_name(name)[0]], ties)
        assert queries is not None
        return {name: (values, rows[queries])}
    return {name: (one.values, rows)}


def _image_rows(queries: Ids, dataset: Dataset) -> Array:
    """The row of each query's image, whichever side the queries are on."""
    if queries == dataset.image_ids:
        return np.arange(len(queries))
    if queries == dataset.caption_ids:
        return dataset.caption_image
    image_of: Mapping[str, str] = dict(zip(dataset.caption_ids, dataset.captions["image"], strict=True))
    return positions([image_of.get(one, one) for one in queries], dataset.image_ids, "image")
