"""Two sets of captions of the same images, one model: what better captions change, metric by metric.

The model, the images and the gallery stay; captions change, and so do their ids and even their number. So a caption has
no counterpart, and images are the pairs: they are drawn, and swapped between the sets, with all their captions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.analyze.granularity import granularity as granularity_of
from crosslens.analyze.granularity_comparison import GranularityComparison, compare_granularity
from crosslens.core.dataset import Dataset
from crosslens.core.embeddings import Embeddings
from crosslens.core.errors import MissingExtraError, UsageError
from crosslens.core.progress import Progress
from crosslens.core.run import Run
from crosslens.metrics import MetricRequest, MetricSpec, Ties, family_of, parse_metric, parse_metrics
from crosslens.pipeline.caption_sets_images import matched, told_apart
from crosslens.pipeline.caption_sets_result import CaptionSets, MetricChange
from crosslens.pipeline.caption_sets_samples import per_image, samples_of
from crosslens.pipeline.evaluate import evaluate
from crosslens.pipeline.recipe.model import Encoding, say_skipped
from crosslens.pipeline.sources import aligned
from crosslens.statistics import correct, paired_samples

__all__ = ["METRICS_OF_SETS", "CaptionSets", "MetricChange", "compare_caption_sets"]

METRICS_OF_SETS = (
    "Hit@1", "Hit@5", "Hit@10", "i2t/CappedRecall@5", "i2t/CappedRecall@10", "MRR", "MedR", "DCGcm@10", "Rsum",
)  # fmt: skip
"""What is compared unless asked otherwise: all that the paper's tables of caption sets hold, and ranks."""
_SAME = 1e-12


def compare_caption_sets(
    before: Dataset,
    after: Dataset,
    *,
    model: str | None = None,
    images: Any = None,
    captions: tuple[Any, Any] | None = None,
    image_folder: str | Path | None = None,
    encoding: Encoding | None = None,
    precision: str = "fp32",
    skip_bad: bool = False,
    shared_images: bool = False,
    metrics: str | Iterable[str | MetricSpec | MetricRequest] | None = None,
    score: str | None = None,
    ties: Ties = "stable",
    folds: int = 1,
    granularity: bool | None = None,
    correction: str = "holm",
    permutations: int = 10_000,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    threads: int | None = None,
    output: str | Path | None = None,
    overwrite: bool = False,
    command: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> CaptionSets:
    """Evaluate one model on two caption sets of the same images, and say how every metric changes.

    Give a ``model`` (as ``crosslens encode`` names them; images are encoded once, from ``before``), or the embeddings
    of the ``images`` and of both sets' ``captions``, as arrays in the datasets' order or as :class:`Embeddings`. Both
    sets must have the same images; ``shared_images`` keeps those that are captioned in both. Differences come with
    paired intervals and p-values over images, corrected for the number of metrics. ``granularity`` measures the
    captions themselves, too (None: where the extra ``language`` is installed). With ``output`` both runs are written
    there, as ``before`` and ``after``, and the same call again finds them.
    """
    correct([], correction)
    requests = parse_metrics(METRICS_OF_SETS if metrics is None else metrics)
    if model is None and (images is None or captions is None):
        raise UsageError("nothing to evaluate", fix="pass model= (--model), or images= and captions=(before, after)")
    if model is not None and (images is not None or captions is not None):
        raise UsageError("both a model and embeddings", fix="pass one or the other")
    vectors = None if captions is None else _given(before, after, images, captions)
    before, after, notes = matched(before, after, shared=shared_images)
    if vectors is None:
        assert model is not None
        how = encoding or Encoding()
        before, after, vectors = _encoded(before, after, model, image_folder, how, precision, skip_bad, progress)
    names = told_apart(before.name, after.name)
    runs = {
        side: evaluate(
            dataset, images=vectors.images, captions=embedded, metrics=requests, score=score, ties=ties, folds=folds,
            seed=seed, resamples=resamples, level=level, threads=threads, name=label, command=command,
            output=None if output is None else Path(output) / side, overwrite=overwrite, progress=progress,
        )
        for side, dataset, embedded, label in (
            ("before", before, vectors.before, names[0]), ("after", after, vectors.after, names[1]),
        )
    }  # fmt: skip
    changes = _changes(runs, {"before": before, "after": after}, ties, folds, permutations, resamples, level, seed)
    adjusted = correct([one.p_value for one in changes], correction)
    grain, more = _granularity(granularity, before, after, names, permutations, resamples, level, seed, progress)
    return CaptionSets(
        names,
        (runs["before"], runs["after"]),
        tuple(replace(one, adjusted_p=float(p)) for one, p in zip(changes, adjusted, strict=True)),
        grain,
        vectors.images.model,
        correction,
        permutations,
        seed,
        level,
        (*notes, *dict.fromkeys(note for one in requests for note in one.notes), *_about_phi(requests), *more),
    )


@dataclass(frozen=True)
class _Vectors:
    images: Embeddings
    before: Embeddings
    after: Embeddings


def _given(before: Dataset, after: Dataset, images: Any, captions: tuple[Any, Any]) -> _Vectors:
    """Arrays get their ids here, while the datasets are still in the order that the arrays are in."""
    return _Vectors(
        aligned(images, before.image_ids, "image"),
        aligned(captions[0], before.caption_ids, "caption"),
        aligned(captions[1], after.caption_ids, "caption"),
    )


def _encoded(
    before: Dataset, after: Dataset, model: str, image_folder: str | Path | None, how: Encoding, precision: str,
    skip_bad: bool, progress: Progress | None,
) -> tuple[Dataset, Dataset, _Vectors]:  # fmt: skip
    from crosslens.encode import Cache, encode_dataset, load_encoder
    from crosslens.encode.encoder import IMAGES, TEXTS, demand, label
    from crosslens.encode.stream import encode_texts

    encoder = load_encoder(model, device=how.device, precision=precision, offline=how.offline, tell=how.tell)
    for ability in (IMAGES, TEXTS):
        demand(encoder, ability)
    cache = Cache(how.cache, tell=how.tell) if how.use_cache else None
    # The texts first: a model that cannot take them should not cost the wait for the pictures.
    texts = encode_texts(
        encoder, after.texts, cache=cache, batch_size=how.batch_size, precision=precision, progress=progress
    )
    captions = Embeddings(after.caption_ids, texts.rows, model=label(encoder))
    found = encode_dataset(
        before, encoder, image_folder=image_folder, cache=cache, batch_size=how.batch_size, precision=precision,
        skip_bad=skip_bad, progress=progress,
    )  # fmt: skip
    say_skipped(found.skipped, how.tell)
    assert found.images is not None
    assert found.captions is not None
    kept = after.select(found.dataset.image_ids) if found.skipped else after
    return found.dataset, kept, _Vectors(found.images, found.captions, captions)


def _changes(
    runs: Mapping[str, Run], datasets: Mapping[str, Dataset], ties: Ties, folds: int, permutations: int,
    resamples: int, level: float, seed: int,
) -> list[MetricChange]:  # fmt: skip
    found = []
    for name in runs["before"]:
        spec = parse_metric(name).spec
        one = runs["before"][name]
        change = paired_samples(
            samples_of(name, spec, runs, datasets, ties, folds),
            statistic=one.statistic, permutations=permutations, resamples=resamples, level=level, seed=seed,
        )  # fmt: skip
        better = family_of(spec).higher_is_better
        gain = per_image(runs["after"][name], datasets["after"]) - per_image(one, datasets["before"])
        gain = np.nan_to_num(gain if better else -gain)
        found.append(
            MetricChange(
                name, change.before, change.after, change.test.difference, *change.test.interval, change.relative,
                change.relative_low, change.relative_high, change.test.p_value, change.test.p_value,
                change.test.clusters, int((gain > _SAME).sum()), int((gain < -_SAME).sum()), one.statistic, better,
            )
        )  # fmt: skip
    return found


def _granularity(
    asked: bool | None, before: Dataset, after: Dataset, names: tuple[str, str], permutations: int, resamples: int,
    level: float, seed: int, progress: Progress | None,
) -> tuple[GranularityComparison | None, list[str]]:  # fmt: skip
    if asked is False:
        return None, []
    try:
        sides = [
            granularity_of(one, name=name, progress=progress)
            for one, name in zip((before, after), names, strict=True)
        ]  # fmt: skip
    except MissingExtraError as error:
        if asked:
            raise
        return None, [f"The captions' granularity is left out: {error.problem} ({error.fix})."]
    options: dict[str, Any] = {"permutations": permutations, "resamples": resamples, "level": level, "seed": seed}
    return compare_granularity(sides, **options), []


def _about_phi(requests: Sequence[MetricRequest]) -> list[str]:
    graded = [str(one) for one in requests if family_of(one.spec).graded and one.spec.family != "DCGcm"]
    if not graded:
        return []
    return [f"{', '.join(graded)}: similarity is to each set's own captions, so the sets are measured by two rulers."]
