"""Robustness studies of ready-made lists: one ranking for each perturbation, made by another program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from crosslens.core import Dataset, Progress, Relevance, SilentProgress, UsageError, argument
from crosslens.metrics import MetricRequest, MetricSpec
from crosslens.pipeline.comparison import unused_label
from crosslens.pipeline.evaluation import dataset_facts
from crosslens.pipeline.inputs import check_dataset, parse_by_direction
from crosslens.pipeline.list_ranker import ORDER_DECIDES
from crosslens.pipeline.options import RobustnessOptions, refuse_other_keywords
from crosslens.pipeline.protocols.following import follow_in_study, require_perturbations
from crosslens.pipeline.protocols.protocol import find_protocol
from crosslens.pipeline.robustness_study.given_lists import (
    UNPERTURBED,
    GivenLists,
    check_same_queries,
    judged_by_direction,
    lists_of_runs,
    read_runs,
)
from crosslens.pipeline.robustness_study.study import Robustness
from crosslens.pipeline.robustness_study.study_directory import folder_name, study_directory
from crosslens.pipeline.robustness_study.study_runner import about, run_variants, study_result
from crosslens.pipeline.robustness_study.tables import StudyTables
from crosslens.pipeline.robustness_study.variant_runner import QueryResults, StudySettings, VariantRunner
from crosslens.pipeline.robustness_study.variants import LISTS, ORIGINAL, Variant, given_variant
from crosslens.statistics import correct

LIST_METRICS = ("Hit@1", "Hit@5", "Hit@10", "MRR@10")
"""The default metrics: those that lists of ten items allow."""
_NOT_FOR_LISTS = ("seeds", "options", "image_text", "query_caption", "score")


def robustness_from_runs(
    runs: Mapping[str, Any] | str | Path,
    relevance: Relevance | Mapping[str, Any] | None = None,
    *,
    dataset: Dataset | None = None,
    perturbed: Mapping[str, Dataset] | None = None,
    metrics: str | Iterable[str | MetricSpec | MetricRequest] | None = None,
    output: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> Robustness:
    """Measure what perturbations change, from ranked lists that another program made.

    ``runs`` holds the lists by perturbation under names of your own, and the unperturbed ones under ``none``: what
    :func:`crosslens.read_run` returns, plain ``{query: [item, …]}``, a file, or those by direction
    (``{"i2t": …, "t2i": …}``); or it is a folder whose files have these names. All need lists for the same queries.
    ``relevance`` says which items are relevant; without it, a caption of ``dataset`` belongs to its image.
    ``perturbed`` are the changed captions by perturbation (what ``crosslens perturb`` wrote): with them the study
    knows which captions changed, and how.

    The tables are those of :func:`robustness`. Lists need ten items each, and may be cut off after that: what they do
    not show is ranked below all they show, and metrics that look deeper raise.

    ``options`` are those of :class:`RobustnessOptions` that are not about making perturbations or vectors:
    ``protocol``, ``directions`` (default: that of the ids in the dataset; ``t2i`` without one), ``skip_unknown``,
    ``match_by``, ``correction``, ``permutations``, ``resamples``, ``level``, ``seed``, ``listed``, ``threads``,
    ``name`` (of the model), ``dataset_name``, ``command``.
    """
    refuse_other_keywords(options, robustness_from_runs, RobustnessOptions)
    chosen = RobustnessOptions.pick(options)
    _check(dataset, relevance, chosen)
    protocol = find_protocol(chosen.protocol, "robustness")
    if protocol is not None:
        without = _NOT_FOR_LISTS if dataset is not None else (*_NOT_FOR_LISTS, "match_by")  # there are no texts
        chosen, metrics = follow_in_study(protocol, chosen, metrics, without=without)
    given = _named_runs(runs)
    lists = lists_of_runs(dataset, given, chosen.directions)
    check_same_queries(lists, dataset, skip_unknown=chosen.skip_unknown)
    judged = None if relevance is None else parse_by_direction(relevance, Relevance)
    if dataset is None and isinstance(judged, Relevance):
        judged = judged_by_direction(judged, lists[UNPERTURBED])
    source = GivenLists(chosen.name, lists, judged, skip_unknown=chosen.skip_unknown)
    names = [name for name in lists if name != UNPERTURBED]
    if protocol is not None:
        require_perturbations(protocol, names)
    variants = _variants(names, dataset, perturbed or {}, chosen.seed)
    settings = StudySettings.of(replace(chosen, directions=tuple(lists[UNPERTURBED])), metrics, LIST_METRICS)
    data = {"relevance": source.relevance_key, "dataset": "" if dataset is None else dataset.fingerprint}
    progress = progress or SilentProgress()
    with study_directory(output, settings.key(data), overwrite=overwrite) as directory:
        if directory is not None:
            directory.refuse_loss("perturbations", names)
            directory.refuse_loss("models", {source.name})
            directory.begin()
        runner = VariantRunner(dataset, settings, directory, chosen, progress)
        results = {source.name: run_variants(runner, source, variants)}
        tables = StudyTables(dataset, {variant.label: variant for variant in variants}, results, chosen)
        facts = _facts(dataset, results[source.name][ORIGINAL], chosen, data["relevance"])
        described = about({"dataset": facts}, settings, chosen)
        described["notes"] += _notes(results[source.name], variants)
        return study_result(tables, directory, described, progress)


def _check(dataset: Dataset | None, relevance: Any, options: RobustnessOptions) -> None:
    check_dataset(dataset)
    if dataset is None and relevance is None:
        raise UsageError(
            "ranked lists without judgements", fix=f"pass {argument('relevance')}, or {argument('dataset')}"
        )
    defaults = {entry.name: entry.default for entry in fields(options)}
    for name in _NOT_FOR_LISTS:
        if getattr(options, name) != defaults[name]:
            problem = f"{argument(name)} cannot change ranked lists that are ready"
            raise UsageError(problem, fix="leave it out", option=name)
    if dataset is not None and options.dataset_name is not None:
        problem = f"both {argument('dataset')} and {argument('dataset_name')}"
        raise UsageError(problem, fix="leave out the name", option="dataset_name")
    correct([], options.correction)


def _named_runs(runs: Mapping[str, Any] | str | Path) -> dict[str, Any]:
    if isinstance(runs, str | Path):
        runs = read_runs([str(runs)])
    named = {str(name): lists for name, lists in runs.items()}
    if len(named) == 1:
        raise UsageError(
            "one list, and nothing to compare it with",
            fix=f"pass {UNPERTURBED!r} and the list of at least one perturbation",
            option="runs",
        )
    return named


def _variants(
    names: Sequence[str], dataset: Dataset | None, perturbed: Mapping[str, Dataset], seed: int
) -> list[Variant]:
    """One for each perturbation; those whose captions are given know what changed."""
    unknown = [name for name in perturbed if name not in names]
    if unknown and not set(perturbed) & set(names):
        fix = f"name the lists as the perturbations, such as {unknown[0]}"
        raise UsageError(f"there is no list of the perturbed captions {unknown[0]!r}", fix=fix)
    if perturbed and dataset is None:
        raise UsageError("perturbed captions without the dataset", fix=f"pass {argument('dataset')}")
    variants: list[Variant] = []
    for name in names:
        taken = {ORIGINAL, *(variant.label for variant in variants)}
        label = folder_name(unused_label(name, taken, folder_name))
        if name in perturbed and dataset is not None:
            variants.append(replace(given_variant(dataset, name, perturbed[name], seed), label=label))
        else:
            variants.append(Variant(name, seed, label, LISTS, dataset))
    return variants


def _facts(
    dataset: Dataset | None, original: QueryResults, options: RobustnessOptions, fingerprint: str
) -> dict[str, Any]:
    if dataset is not None:
        return dataset_facts(dataset)
    named = {} if options.dataset_name is None else {"name": options.dataset_name}
    return {**named, "queries": len(original.query_ids), "fingerprint": fingerprint}


def _notes(results: Mapping[str, QueryResults], variants: Sequence[Variant]) -> list[str]:
    """What was noted about the unperturbed lists, ties in others, and what lists cannot tell."""
    original = results[ORIGINAL]
    notes = [str(note) for note in original.run.provenance.get("notes", ())]
    for label, own in results.items():
        ties = [note for note in own.run.provenance.get("notes", ()) if note.endswith(ORDER_DECIDES)]
        notes += [f"{label}: {note}" for note in ties if note not in notes]
    if any(variant.level == LISTS for variant in variants):
        notes.append("which queries a perturbation changed is not known from lists: all of them count as changed")
    if not original.run.rankings[original.direction].complete:
        notes.append("what a list does not show counts as ranked below it, before and after")
    return notes
