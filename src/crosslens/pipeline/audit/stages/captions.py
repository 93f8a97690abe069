"""The dataset: labels that may be wrong, matches that nobody annotated, and how fine-grained captions are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from crosslens.analyze import (
    MissingPositives,
    assess_label_quality,
    compare_granularity,
    find_missing_positives,
    measure_granularity,
)
from crosslens.core import TEXT_TO_IMAGE, Dataset, InputError, MissingExtraError, Run
from crosslens.data import image_files, outer_file, write_qrels
from crosslens.explanations import TEXT_TO_TEXT, failed_queries, query_outcomes
from crosslens.pipeline.audit.needs import A_DATASET, LANGUAGE, SEVERAL_CAPTIONS
from crosslens.pipeline.audit.options import AuditOptions
from crosslens.pipeline.audit.stage import DATASET, StageOutput, StageWork, audit_stage
from crosslens.similarity import load_similarity

_LISTED = 10
"""Labels that a result holds; all of them are in a file."""


@audit_stage("label-quality", about=DATASET, order=40, needs=(A_DATASET,), cost=(3, 3))
def label_quality(work: StageWork) -> StageOutput:
    """Labels that a person should review, with reasons."""
    dataset = work.queried_dataset()
    result = assess_label_quality(
        dataset,
        {name: run for name, run in work.loaded().items() if _asks(run, dataset)},
        pictures=_pictures(dataset, work),
        words=LANGUAGE.missing(work) is None,
        progress=work.progress,
    )
    folder = work.stage_folder("label-quality")
    file = folder / "review.csv"
    folder.mkdir(parents=True, exist_ok=True)
    result.write(file, result.suspects)
    runs = " ".join(str(audited.folder) for audited in work.runs.values())
    payload = {**replace(result, shown=min(_LISTED, result.suspects)).as_dict(), "files": [str(file)]}
    return StageOutput(payload, f"crosslens analyze labels {runs} -o {file} --limit {result.suspects}", folder)


def _asks(run: Run, dataset: Dataset) -> bool:
    """Whether the queries of a run are captions of the dataset; text-only retrieval may ask with another text set."""
    asked = run.rankings.get(TEXT_TO_IMAGE, run.rankings.get(TEXT_TO_TEXT))
    return asked is not None and set(asked.query_ids) <= set(dataset.caption_ids)


def _pictures(dataset: Dataset, work: StageWork) -> dict[str, str]:
    """The image files that exist, by image."""
    folder = next(iter(work.runs.values())).source.recipe.model.image_folder
    try:
        paths = image_files(dataset, folder, skip_bad=True)
    except InputError:
        if folder is not None:
            raise
        return {}
    paired = zip(dataset.image_ids, paths, strict=True)
    return {image: path for image, path in paired if outer_file(path).is_file()}


@audit_stage("missing-positives", about=DATASET, order=50, needs=(A_DATASET, SEVERAL_CAPTIONS), cost=(1, 0.5))
def missing_positives(work: StageWork) -> StageOutput:
    """Matches that nobody annotated, and how many misses retrieve one."""
    dataset, options, phi = work.labelled_dataset(), work.options, _phi(work.options)
    result = find_missing_positives(
        dataset, phi, resamples=options.resamples, seed=options.seed, threads=options.threads,
        progress=work.progress,
    )  # fmt: skip
    folder = work.stage_folder("missing-positives")
    folder.mkdir(parents=True, exist_ok=True)
    qrels, table = folder / "completed.qrels", folder / "missing.csv"
    write_qrels(result.relevance(), qrels)
    result.write_table(table)
    payload = {**result.as_dict(), "files": [str(qrels), str(table)], "misses": _misses(result, work)}
    source = next(iter(work.runs.values())).source
    words = f"{source.dataset_words}{source.query_words}"
    command = f"crosslens missing-positives --dataset {words} --phi {phi} -o {qrels} --table {table}"
    return StageOutput(payload, command, folder)


def _phi(options: AuditOptions) -> str:
    """``semantic`` agrees best with people, and takes minutes."""
    if options.similarity is not None or options.quick:
        return options.phi
    try:
        load_similarity("semantic")
    except MissingExtraError:
        return options.phi
    return "semantic"


def _misses(result: MissingPositives, work: StageWork) -> dict[str, dict[str, int]]:
    """Of each run's failed caption queries, how many retrieve an image that is a missing positive."""
    pairs = result.relevance(extra_only=True)
    missing = {(pairs.query_ids[row], pairs.item_ids[item]) for row, item in zip(pairs.rows, pairs.items, strict=True)}
    counts: dict[str, dict[str, int]] = {}
    for name, run in work.loaded().items():
        if _asks(run, result.dataset):
            failures = failed_queries(run, result.dataset)
            fitting = sum(pair in missing for pair in zip(failures["retrieved"], failures["query"], strict=True))
            queries = query_outcomes(run, result.dataset).height
            counts[name] = {"queries": queries, "misses": failures.height, "fitting": fitting}
    return counts


@audit_stage("granularity", about=DATASET, order=60, needs=(A_DATASET, LANGUAGE), cost=(2, 2))
def granularity(work: StageWork) -> StageOutput:
    """How fine-grained the captions are."""
    options = work.options
    measured = measure_granularity(work.known_dataset, threads=options.threads, progress=work.progress)
    compared = compare_granularity([measured], resamples=options.resamples, level=options.level, seed=options.seed)
    words = next(iter(work.runs.values())).source.dataset_words
    payload: dict[str, Any] = {**compared.as_dict(), "files": []}
    return StageOutput(payload, f"crosslens analyze granularity --dataset {words}")
