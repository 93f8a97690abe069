"""Two sets of captions of the same images, one model: what better captions change, metric by metric.

The model, the images and the gallery stay; captions change, and so do their ids and even their number. So a caption has
no counterpart, and images are the pairs: they are drawn, and swapped between the sets, with all their captions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np
import polars as pl

from crosslens.analyze import compare_granularity, measure_granularity as granularity_of
from crosslens.comparisons import CaptionSets, MetricChange, corrected, primary_metric
from crosslens.core import InputError, MissingExtraError, accepts_options, argument, refuse_other_keywords
from crosslens.data import rename_images
from crosslens.encode import EncodeOptions, encode_dataset, encode_texts, label, require_one_source
from crosslens.engine import Progress
from crosslens.metrics import (
    MetricRequest,
    MetricSpec,
    Ties,
    bounds_of,
    family_of,
    observations,
    parse_metric,
    parse_metrics,
    parts_across,
)
from crosslens.pipeline.evaluations.encoding import load_dual_encoder, note_skipped
from crosslens.pipeline.evaluations.evaluation import evaluate
from crosslens.pipeline.evaluations.inputs import align_both
from crosslens.pipeline.options import CaptionSetOptions
from crosslens.statistics import Samples, paired_samples, same_tests
from crosslens.storage import Array
from crosslens.values import (
    BOTH,
    IMAGE_TO_TEXT,
    TEXT_TO_IMAGE,
    Dataset,
    Embeddings,
    Ids,
    MetricValues,
    Run,
    align_embeddings,
    positions,
    spelled_as,
    split_name,
)

if TYPE_CHECKING:
    from crosslens.pipeline.keywords import CaptionSetKeywords

METRICS_OF_SETS = (
    "Hit@1", "Hit@5", "Hit@10", "i2t/CappedRecall@5", "i2t/CappedRecall@10", "MRR", "MedR", "DCGcm@10", "Rsum",
)  # fmt: skip
"""The default metrics: all that the paper's tables of caption sets hold, and ranks."""
_SAME = 1e-12


@accepts_options(CaptionSetOptions, EncodeOptions)
def compare_caption_sets(
    before: Dataset,
    after: Dataset,
    *,
    model: str | None = None,
    images: Any = None,
    captions: tuple[Any, Any] | None = None,
    metrics: str | Iterable[str | MetricSpec | MetricRequest] | None = None,
    output: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    **options: Unpack[CaptionSetKeywords],
) -> CaptionSets:
    """Evaluate one model on two caption sets of the same images, and compute how every metric changes.

    Differences come with paired intervals and p-values over images, corrected for the number of metrics.

    Args:
        before: The first caption set; images are encoded once, from here.
        after: The other one.
        model: As ``crosslens encode`` names it; instead of one, ``images`` and ``captions``.
        images: Vectors of the images, as an array in the dataset's order or as :class:`Embeddings`.
        captions: Vectors of both sets' captions, likewise.
        metrics: Names of metrics.
        output: A folder for both runs, ``before`` and ``after``; the same call again finds them.
        overwrite: Replace other runs.
        progress: Told how much is done.
    """
    refuse_other_keywords(options, compare_caption_sets)
    encoding, settings = EncodeOptions.pick(options), CaptionSetOptions.pick(options)
    requests = parse_metrics(METRICS_OF_SETS if metrics is None else metrics)
    fix = f"pass {argument('model')}, or the embeddings of images and of both caption sets"
    require_one_source(fix, model=model, embeddings=(images, captions))
    if captions is not None:  # arrays get their ids while the datasets are still in their order
        images, before_captions = align_both(before, images, captions[0])
        after_captions = align_embeddings(captions[1], after.caption_ids, "caption")
    before, after, notes = match_images(before, after, shared=settings.shared_images)
    if captions is None:
        encoder, shared_options = load_dual_encoder(model, encoding), encoding.stream(progress)
        # The texts first: a model that cannot take them should not cost the wait for the pictures.
        texts = encode_texts(encoder, after.texts, **shared_options).rows
        after_captions = Embeddings(after.caption_ids, texts, model=label(encoder))
        encoded = encode_dataset(
            before, encoder, image_folder=encoding.image_folder, skip_bad=encoding.skip_bad, **shared_options
        )
        note_skipped(encoded.skipped, encoding.notify)
        assert encoded.captions is not None
        before, images, before_captions = encoded.dataset, encoded.images, encoded.captions
        after = after.select(before.image_ids) if encoded.skipped else after
    names = _set_names(before, after)
    datasets = {"before": before, "after": after}
    vectors = {"before": before_captions, "after": after_captions}
    shared = ("score", "ties", "folds", "seed", "resamples", "level", "threads", "command")
    runs = {
        side: evaluate(
            dataset, images=images, captions=vectors[side], metrics=requests, name=name,
            output=None if output is None else Path(output) / side, overwrite=overwrite, progress=progress,
            **{key: getattr(settings, key) for key in shared},
        )
        for (side, dataset), name in zip(datasets.items(), names, strict=True)
    }  # fmt: skip
    (changes,) = corrected([_changes(runs, datasets, settings)], settings.correction)
    notes += dict.fromkeys(note for request in requests for note in request.notes)
    graded = [str(request) for request in requests if family_of(request.spec).graded and request.spec.family != "DCGcm"]
    if graded:
        listed = ", ".join(graded)
        notes.append(f"{listed}: similarity is to each set's own captions, so the two sets are not on one scale.")
    granularity = None
    if settings.granularity is not False:
        try:
            sides = [
                granularity_of(dataset, name=name, progress=progress)
                for dataset, name in zip(datasets.values(), names, strict=True)
            ]
            granularity = compare_granularity(
                sides, permutations=settings.permutations, resamples=settings.resamples, level=settings.level,
                seed=settings.seed,
            )  # fmt: skip
        except MissingExtraError as error:
            if settings.granularity:
                raise
            notes.append(f"The captions' granularity is left out: {error.problem} ({error.fix}).")
    return CaptionSets(
        names, (runs["before"], runs["after"]), tuple(changes), granularity, images.model,
        settings.correction, settings.permutations, settings.seed, settings.level,
        tuple(notes), None if output is None else Path(output),
    )  # fmt: skip


def _changes(
    runs: Mapping[str, Run], datasets: Mapping[str, Dataset], settings: CaptionSetOptions
) -> list[MetricChange]:
    changes, tests = [], []
    primary = primary_metric(list(runs["before"]), settings.primary)
    for name in sorted(runs["before"], key=lambda name: name != primary):
        spec = parse_metric(name).spec
        before = runs["before"][name]
        change = paired_samples(
            samples_of(name, spec, runs, datasets, cast(Ties, settings.ties), settings.folds),
            statistic=before.statistic, permutations=settings.permutations, resamples=settings.resamples,
            level=settings.level, seed=settings.seed, bounds=bounds_of(name),
        )  # fmt: skip
        tests.append(change.test)
        higher_is_better = family_of(spec).higher_is_better
        gain = per_image(runs["after"][name], datasets["after"]) - per_image(before, datasets["before"])
        gain = np.nan_to_num(gain if higher_is_better else -gain)
        changes.append(
            MetricChange(
                name, change.before, change.after, change.test.difference, *change.test.interval, change.relative,
                change.relative_low, change.relative_high, change.test.p_value, change.test.p_value,
                change.test.clusters, int((gain > _SAME).sum()), int((gain < -_SAME).sum()), before.statistic,
                higher_is_better, primary=name == primary,
            )
        )  # fmt: skip
    return [
        change if first == number else replace(change, same_as=changes[first].metric)
        for number, (change, first) in enumerate(zip(changes, same_tests(tests), strict=True))
    ]


def match_images(before: Dataset, after: Dataset, *, shared: bool) -> tuple[Dataset, Dataset, list[str]]:
    """Both sets over the same images in the order of ``before``, and what was left out for that.

    Unless ``shared``, a difference raises. An image without captions in both sets stays in the gallery. An image may be
    called with the ending of its file in one set and without it in the other.
    """
    after = rename_images(after, spelled_as(before.image_ids, after.image_ids))
    present = set(after.image_ids)
    common = [image for image in before.image_ids if image in present]
    if not common:
        raise InputError(
            f"{before.name!r} and {after.name!r} share no image: one has {before.image_ids[0]!r}, the other "
            f"{after.image_ids[0]!r}",
            expected="two sets of captions of the same images, under the same ids",
            fix="read both so that ids agree; the reader fine_grained has coco_ids=true for COCO's own ids",
        )
    notes: list[str] = []
    first, second = _set_names(before, after)
    _require(before, set(after.image_ids), f"{first!r} are not in {second!r}", shared, notes)
    _require(after, set(before.image_ids), f"{second!r} are not in {first!r}", shared, notes)
    before, after = (side if list(side.image_ids) == common else side.select(common) for side in (before, after))
    captioned = [set(side.captions["image"]) for side in (before, after)]
    without = [set(common) - captioned[0], set(common) - captioned[1]]
    _require(before, captioned[1] | without[0], f"{first!r} are without a caption in {second!r}", shared, notes)
    _require(after, captioned[0] | without[1], f"{second!r} are without a caption in {first!r}", shared, notes)
    in_both = pl.Series("image", sorted(captioned[0] & captioned[1]), dtype=pl.String)
    if not len(in_both):
        raise InputError("no image has captions in both sets", fix="check that both are of the same split")
    before, after = (
        replace(side, captions=side.captions.filter(pl.col("image").is_in(in_both.implode())))
        for side in (before, after)
    )
    return before, after, notes


def _require(dataset: Dataset, allowed: set[str], what: str, shared: bool, notes: list[str]) -> None:
    """Raise, or with ``shared`` note, that some images are not among the allowed ones."""
    missing = [image for image in dataset.image_ids if image not in allowed]
    if not missing:
        return
    problem = f"{len(missing):,} of the {len(dataset.image_ids):,} images of {what}"
    if not shared:
        raise InputError(
            f"{problem}, the first is {missing[0]!r}",
            expected="two sets of captions of the same images",
            fix=f"pass {argument('shared_images', True)} to compare the images that both have",
        )
    notes.append(f"Left out: {problem}.")


def samples_of(
    name: str, spec: MetricSpec, runs: Mapping[str, Run], datasets: Mapping[str, Dataset], ties: Ties, folds: int
) -> list[Samples]:
    """The values that a metric averages, before and after: one part, or one per direction for a sum, per fold."""
    sides = {side: _parts(name, spec, run, datasets[side], ties) for side, run in runs.items()}
    images = len(datasets["before"].image_ids)
    fold = np.repeat(np.arange(folds), [len(part) for part in np.array_split(np.arange(images), folds)])
    samples = []
    for direction, (before, before_images) in sides["before"].items():
        after, after_images = sides["after"][direction]
        for stratum in range(folds):
            first, second = fold[before_images] == stratum, fold[after_images] == stratum
            part = (before[first], before_images[first], after[second], after_images[second])
            if not (np.isnan(part[0]).all() or np.isnan(part[2]).all()):
                samples.append((direction, stratum, part))
    counts = {key: sum(direction == key for direction, _, _ in samples) for key in sides["before"]}
    return [Samples(*part, stratum=stratum, weight=1 / counts[direction]) for direction, stratum, part in samples]


def per_image(values: MetricValues, dataset: Dataset) -> Array:
    """The mean over an image's own queries; NaN for an image without any."""
    rows = _image_rows(values.query_ids, dataset)
    counted = ~np.isnan(values.values)
    sums = np.bincount(rows[counted], values.values[counted], len(dataset.image_ids))
    counts = np.bincount(rows[counted], minlength=len(dataset.image_ids))
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _parts(name: str, spec: MetricSpec, run: Run, dataset: Dataset, ties: Ties) -> dict[str, tuple[Array, Array]]:
    """The values behind a metric and the row of the image of each; by direction for a sum over directions."""
    family = family_of(spec)
    if split_name(name)[0] == BOTH and not family.graded:
        rankings = {direction: run.rankings[direction] for direction in (IMAGE_TO_TEXT, TEXT_TO_IMAGE)}
        parts = parts_across(spec, rankings, ties)
        return {
            direction: (parts[direction], _image_rows(ranking.query_ids, dataset))
            for direction, ranking in rankings.items()
        }
    rows = _image_rows(run[name].query_ids, dataset)
    if family.pooled(spec):
        values, queries = observations(spec, run.rankings[split_name(name)[0]], ties)
        assert queries is not None
        return {name: (values, rows[queries])}
    return {name: (run[name].values, rows)}


def _image_rows(queries: Ids, dataset: Dataset) -> Array:
    """The row of each query's image, whichever side the queries are on."""
    if queries == dataset.image_ids:
        return np.arange(len(queries))
    if queries == dataset.caption_ids:
        return dataset.caption_image
    image_of = dict(zip(dataset.caption_ids, dataset.captions["image"], strict=True))
    return positions([image_of.get(query, query) for query in queries], dataset.image_ids, "image")


def _set_names(before: Dataset, after: Dataset) -> tuple[str, str]:
    """The names of two sets, told apart where they are the same."""
    if before.name != after.name:
        return before.name, after.name
    return f"{before.name} (before)", f"{after.name} (after)"
