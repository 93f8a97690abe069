"""The main job: scores or lists in, a :class:`Run` with every metric, interval and ranking out."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from crosslens.core.dataset import Dataset
from crosslens.core.errors import InputError, UsageError
from crosslens.core.fingerprint import fingerprint
from crosslens.core.lists import RankedLists
from crosslens.core.progress import Progress, Silent
from crosslens.core.ranking import Ranking
from crosslens.core.relevance import IMAGE_TO_TEXT, TEXT_TO_IMAGE, Relevance
from crosslens.core.run import Run
from crosslens.metrics import (
    MetricRequest,
    MetricSpec,
    Ties,
    compute,
    compute_across,
    family_of,
    measure,
    parse_metrics,
)
from crosslens.pipeline.columns import columns_of
from crosslens.pipeline.grading import Grading
from crosslens.pipeline.jobs import Job, ListJob, Means, ScoreJob
from crosslens.pipeline.workplace import Workplace

if TYPE_CHECKING:
    from crosslens.encode import SecondStage

Array = np.ndarray[Any, Any]


def evaluate(
    dataset: Dataset | None = None,
    *,
    images: Any = None,
    captions: Any = None,
    scores: Any = None,
    run: RankedLists | Mapping[str, Any] | None = None,
    relevance: Relevance | Mapping[str, Any] | None = None,
    second_stage: SecondStage | None = None,
    phi: Mapping[str, Any] | None = None,
    scores_from: Mapping[str, Any] | None = None,
    metrics: str | Iterable[str | MetricSpec | MetricRequest] | None = None,
    directions: Sequence[str] | None = None,
    score: str | None = None,
    ties: Ties = "stable",
    folds: int = 1,
    depth: int = 10,
    seed: int = 0,
    resamples: int = 1000,
    level: float = 0.95,
    backend: str = "numpy",
    device: str | None = None,
    tile: int | None = None,
    threads: int | None = None,
    name: str | None = None,
    output: str | Path | None = None,
    overwrite: bool = False,
    recipe: str = "",
    command: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Run:
    """Evaluate embeddings, a score matrix or ready-made lists.

    ``images`` and ``captions`` are arrays aligned with the dataset's ids, or :class:`Embeddings`, which are matched by
    id; ``scores`` is an images × captions matrix; ``run`` holds ranked lists, which may come without a dataset if
    ``relevance`` says what is relevant. Without ``relevance`` a caption belongs to its image. Lists and judgements may
    also be plain ``{query: [item, …]}``, and given by direction: ``{"i2t": …, "t2i": …}``. ``score`` names the score
    function (default: by the kind of embeddings), ``folds`` ranks within that many consecutive parts of the images.
    ``second_stage`` has a pair scorer re-order the top of every list before anything is measured; lists that a run
    keeps then hold no more places than it re-ordered. For graded metrics, ``phi`` gives names to similarities of your
    own (``{"mine": matrix}``, a file or a function, asked for as ``NCS[mine]@10``), and ``scores_from`` to relevance
    encoders (``DCGcm[scores_from=clip]@10``): a score matrix, or a pair of image and caption embeddings.

    With ``output`` the run is written as a folder; calling again with the same inputs resumes or returns what is
    there, and a different run in the same place raises unless ``overwrite``. ``backend``, ``device``, ``tile`` and
    ``threads`` change how fast the result comes, never the result.
    """
    if dataset is not None and not isinstance(dataset, Dataset):
        raise UsageError(f"not a dataset: {dataset!r}", fix="pass what load_dataset returns")
    requests = parse_metrics(metrics)
    options = {
        "metrics": [str(request) for request in requests],
        "ties": ties,
        "folds": folds,
        "depth": depth,
        "seed": seed,
        "resamples": resamples,
        "level": level,
    }
    provenance: dict[str, Any] = {"options": options}
    if dataset is not None:
        provenance["dataset"] = {
            "name": dataset.name,
            "images": len(dataset.image_ids),
            "captions": len(dataset.caption_ids),
            "fingerprint": dataset.fingerprint,
        }
    if run is not None:
        if images is not None or captions is not None or scores is not None:
            raise UsageError("both ready-made lists and scores", fix="pass run= alone, or embeddings, or scores=")
        job: Job = ListJob(dataset, run, relevance, directions, folds)
    else:
        if dataset is None:
            raise UsageError("scores without a dataset", fix="pass the dataset whose ids the scores are aligned with")
        job = ScoreJob(dataset, images, captions, scores, score, relevance, directions, folds)
    grading = Grading(requests, dataset, phi, scores_from)
    if depth > 0:
        looked_at = (request.spec.cutoff or 0 for request in requests)
        options["depth"] = depth = max(depth, *looked_at, grading.places(job.relevance))
    deep = depth if second_stage is None else max(depth, second_stage.depth)
    provenance |= {**job.description, **grading.description}
    if second_stage is not None:
        provenance["second_stage"] = second_stage.description
    key = fingerprint("evaluation", provenance)
    provenance |= {
        "key": key,
        "notes": [*dict.fromkeys(note for request in requests for note in request.notes), *_said_of(second_stage)],
        "seed": seed,
        "versions": _versions(),
        "computed_with": {"backend": backend, "device": device} if run is None else {},
        "command": list(command or ()),
    }
    place = None if output is None else Workplace(output, key, overwrite=overwrite)
    if place is not None and place.finished is not None:
        return place.finished
    progress = progress or Silent()
    stored = {} if place is None else {one: place.ranking(one) for one in job.directions}
    if stored and all(stored.values()):
        rankings = {one: ranking for one, ranking in stored.items() if ranking is not None}
    else:
        checkpoint = None if place is None else place.checkpoint
        rankings = job.rank(deep, Means(backend, device, tile, threads, progress, checkpoint))
        if second_stage is not None:
            rankings = {one: second_stage.reorder(two, depth, progress) for one, two in rankings.items()}
        if place is not None:
            place.keep(rankings)
    clusters = job.clusters(rankings)
    if metrics is None:
        requests, notes = _possible(requests, rankings, clusters, ties)
        provenance["notes"] += notes
    with _scratch(place) as folder:
        gains, prints = grading.gains(job.relevance, job.parts, folder=folder, threads=threads, progress=progress)
        values = measure(
            rankings, clusters, requests,
            ties=ties, strata=job.strata, resamples=resamples, level=level, seed=seed, gains=gains,
        )  # fmt: skip
    for one, found in prints.items():
        provenance["similarities"][one] |= found
    provenance["notes"] += grading.notes(rankings)
    result = Run(
        name or _name_of(output, provenance),
        values,
        rankings,
        columns_of(dataset, rankings),
        provenance,
        recipe,
    )
    if place is not None:
        place.finish(result)
    return result


@contextmanager
def _scratch(place: Workplace | None) -> Iterator[Path]:
    """A folder for what is too large for memory, and is not needed afterwards."""
    if place is not None:
        yield place.checkpoint
        return
    with TemporaryDirectory(prefix="crosslens-") as folder:
        yield Path(folder)


def _said_of(second_stage: SecondStage | None) -> list[str]:
    if second_stage is None:
        return []
    return [f"the first {second_stage.depth:,} places of every list are in the order of {second_stage.scorer.name}"]


def _possible(
    requests: list[MetricRequest], rankings: Mapping[str, Ranking], clusters: Mapping[str, Array], ties: Ties
) -> tuple[list[MetricRequest], list[str]]:
    """Of the default metrics those that can be had here, and a note on those that cut lists are too short for."""
    if not _can_sum(rankings):
        requests = [request for request in requests if not family_of(request.spec).across]
    if all(ranking.complete for ranking in rankings.values()):
        return requests, []
    possible, short = [], []
    for request in requests:
        try:
            if family_of(request.spec).across:
                compute_across(request.spec, rankings, clusters, ties)
            else:
                for ranking in rankings.values():
                    compute(request.spec, ranking, ties)
            possible.append(request)
        except InputError:
            short.append(str(request))
    if not possible:
        return requests, []
    return possible, [f"left out, as the lists are too short for them: {', '.join(short)}"] if short else []


def _can_sum(rankings: Mapping[str, Ranking]) -> bool:
    """Whether both directions are there, over the same images."""
    if not {IMAGE_TO_TEXT, TEXT_TO_IMAGE} <= set(rankings):
        return False
    t2i = rankings[TEXT_TO_IMAGE]
    return bool((t2i.relevant_counts == 1).all()) and set(t2i.item_ids) <= set(rankings[IMAGE_TO_TEXT].query_ids)


def _name_of(output: str | Path | None, provenance: Mapping[str, Any]) -> str:
    if output is not None:
        return Path(output).resolve().name
    inputs = provenance.get("inputs", {})
    models = {one.get("model") or one.get("system") or "" for one in inputs.values()} - {""}
    name = " + ".join(sorted(models)) or "run"
    return f"{name}, re-ranked by {provenance['second_stage']['model']}" if "second_stage" in provenance else name


def _versions() -> dict[str, str]:
    packages = ("crosslens", "numpy", "scipy", "polars", "numba")
    return {"python": platform.python_version(), **{package: version(package) for package in packages}}
