"""Robustness studies of ready-made lists: one ranking for each perturbation, made by another program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from crosslens.comparisons import unused_label
from crosslens.core import (
    InputError,
    UsageError,
    accepts_options,
    argument,
    merged_notes,
    reading,
    refuse_other_keywords,
)
from crosslens.data import format_stem, read_run
from crosslens.engine import Progress, shown_progress
from crosslens.metrics import MetricRequest, MetricSpec
from crosslens.perturbations import chosen_perturbations
from crosslens.pipeline.evaluations.evaluation import dataset_facts
from crosslens.pipeline.evaluations.inputs import (
    SAME_SPLIT,
    check_dataset,
    direction_ids,
    lists_by_direction,
    parse_by_direction,
)
from crosslens.pipeline.evaluations.rankers import ORDER_DECIDES
from crosslens.pipeline.options import RobustnessOptions
from crosslens.pipeline.protocols.protocol import follow_in_study, require_perturbations
from crosslens.pipeline.robustness_study.study import Robustness, folder_name, study_folder
from crosslens.pipeline.robustness_study.study_runner import StudyRunner, StudySettings
from crosslens.pipeline.robustness_study.variants import ORIGINAL, Variant, given_variant
from crosslens.storage import fingerprint
from crosslens.values import TEXT_TO_IMAGE, Dataset, RankedLists, Relevance, match_ids

if TYPE_CHECKING:
    from crosslens.pipeline.keywords import ListStudyKeywords

UNPERTURBED = "none"
"""The name of the unperturbed list among those of the perturbations."""
_NAMED = 5
"""How many missing ids a message names."""
_EXAMPLE = "none=plain.run"

Lists = dict[str, RankedLists]
"""The ranked lists of one system by direction."""


def read_runs(sources: Sequence[str], qrels: str | Path | None = None) -> dict[str, tuple[RankedLists, ...]]:
    """The lists by perturbation, from ``NAME=FILE`` words or folders, whose files are named by their perturbation.

    A name that is given twice has a file for each direction. In a folder, ``qrels`` and hidden files are passed over.
    """
    lists: dict[str, list[RankedLists]] = {}
    order = {name: number for number, name in enumerate(chosen_perturbations("everything"))}  # others by name, behind
    for source in sources:
        name, equals, file = source.partition("=")
        if Path(source).is_dir():
            shared = None if qrels is None else Path(qrels).absolute()
            files = [
                path
                for path in sorted(
                    Path(source).iterdir(), key=lambda path: (order.get(format_stem(path), len(order)), path.name)
                )
                if path.is_file() and not path.name.startswith((".", "qrels")) and path.absolute() != shared
            ]
            if not files:
                expected = "a file for each perturbation, named by it, such as char_swap.run.gz; and none.run.gz"
                raise InputError("no lists here", file=source, expected=expected, fix="check the path")
            for path in files:
                lists.setdefault(format_stem(path), []).append(read_run(path))
        elif equals and name and file:
            lists.setdefault(name.strip(), []).append(read_run(file))
        else:
            raise UsageError(
                f"{source!r} is neither NAME=FILE nor a folder", fix=f"write, for example, {_EXAMPLE}", option="runs"
            )
    return {name: tuple(several) for name, several in lists.items()}


def lists_of_runs(dataset: Dataset | None, runs: Mapping[str, Any], directions: tuple[str, ...]) -> dict[str, Lists]:
    """The lists of every perturbation by direction; the unperturbed ones say which directions there are."""
    if UNPERTURBED not in runs:
        names = ", ".join(map(str, runs)) or "nothing"
        raise UsageError(
            f"the unperturbed list is missing: there is no {UNPERTURBED!r} among the lists of {names}",
            fix=f"pass the list of the unchanged queries as {UNPERTURBED!r}",
            option="runs",
        )
    lists = {}
    for name, sources in runs.items():
        with reading(f"the list {name!r}"):
            lists[str(name)] = _of_one(dataset, name, sources, directions)
    for name in lists:
        for having, lacking in ((UNPERTURBED, name), (name, UNPERTURBED)):
            if missing := [direction for direction in lists[having] if direction not in lists[lacking]]:
                raise UsageError(
                    f"{having!r} has lists of {missing[0]}, and {lacking!r} has none",
                    fix=f"pass the same directions for every perturbation, or choose with {argument('directions')}",
                    option="runs",
                )
    return lists


def _of_one(dataset: Dataset | None, name: str, sources: Any, directions: tuple[str, ...]) -> Lists:
    """The lists of one perturbation, in the directions that are chosen."""
    several = sources if isinstance(sources, tuple) else (sources,)
    of_each: list[tuple[str, ...]] = [()] * len(several)  # the ids of the dataset tell
    if len(directions) == len(several):
        of_each = [(direction,) for direction in directions]
    elif dataset is None and len(several) == 1:
        of_each = [directions or (TEXT_TO_IMAGE,)]
    elif dataset is None:
        raise UsageError(
            f"{len(several)} lists of {name!r} and {len(directions)} directions",
            fix="name the direction of each list, in their order",
            option="directions",
        )
    lists: Lists = {}
    for ranked, of_list in zip(several, of_each, strict=True):
        ranked = read_run(ranked) if isinstance(ranked, str | Path) else ranked
        for direction, part in lists_by_direction(dataset, ranked, of_list).items():
            if direction in lists:
                raise UsageError(f"two lists of {name!r} for {direction}", fix="pass one for each direction")
            lists[direction] = part
    missing = [direction for direction in directions if direction not in lists]
    if missing:
        raise UsageError(f"no lists of {name!r} for {missing[0]}", fix="pass them, or leave out the direction")
    return {direction: part for direction, part in lists.items() if direction in directions or not directions}


def check_same_queries(lists: Mapping[str, Lists], dataset: Dataset | None, *, skip_unknown: bool) -> None:
    """Raise for a perturbation whose queries are not those of the unperturbed list."""
    for direction in lists[UNPERTURBED]:
        counted = direction_ids(dataset, direction)[0] if dataset is not None and skip_unknown else None
        for name in lists:
            for having, lacking in ((UNPERTURBED, name), (name, UNPERTURBED)):
                ids = lists[having][direction].query_ids
                missing = match_ids(ids, lists[lacking][direction].query_ids) < 0
                if counted is not None:
                    missing &= match_ids(ids, counted) >= 0
                if not missing.any():
                    continue
                names = [ids[row] for row in np.flatnonzero(missing)]
                queries = "query" if len(names) == 1 else f"{len(names):,} queries:"
                more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
                raise InputError(
                    f"{direction}: the list {lacking!r} lacks {queries} {', '.join(map(repr, names[:_NAMED]))}{more}, "
                    f"which {having!r} has",
                    expected="the same queries in every list", fix="rank every query under every perturbation",
                    code="unknown-id", subject=names[0],
                )  # fmt: skip


def judged_by_direction(relevance: Relevance, lists: Lists) -> dict[str, Relevance]:
    """The judgements of every direction, turned round where they are of the other one."""
    by_direction = {}
    for direction, ranked in lists.items():
        queries, sides = ranked.query_ids, (relevance, relevance.flip())
        # Ids of images and captions may overlap: numbers often do.
        fitting = [int((match_ids(queries, side.query_ids) >= 0).sum()) for side in sides]
        if not any(fitting):
            raise InputError(
                f"{direction}: none of the {len(queries):,} queries of the lists is judged (such as {queries[0]!r})",
                expected=f"judgements of those queries; there are ids such as {relevance.query_ids[0]!r}",
                fix=SAME_SPLIT,
            )
        by_direction[direction] = sides[int(np.argmax(fitting))]
    return by_direction


LIST_METRICS = ("Hit@1", "Hit@5", "Hit@10", "MRR@10")
"""The default metrics: those that lists of ten items allow."""
_NOT_FOR_LISTS = ("seeds", "options", "image_text", "query_caption", "score")


@accepts_options(RobustnessOptions)
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
    **options: Unpack[ListStudyKeywords],
) -> Robustness:
    """Measure what perturbations change, from ranked lists that another program made.

    The tables are those of :func:`robustness`. Lists need ten items each, and may be cut off after that: what they do
    not show is ranked below all they show, and metrics that look deeper raise. Options about making perturbations or
    vectors raise.

    Args:
        runs: The lists by perturbation under names of your own, and the unperturbed ones under ``none``: what
            :func:`crosslens.read_run` returns, plain ``{query: [item, …]}``, a file, or those by direction (``{"i2t":
            …, "t2i": …}``); or a folder whose files have these names. All need lists for the same queries.
        relevance: Which items are relevant; by default a caption of ``dataset`` belongs to its image.
        dataset: Images and their captions.
        perturbed: The changed captions by perturbation (what ``crosslens perturb`` wrote): with them the study knows
            which captions changed, and how.
        metrics: Names of metrics.
        output: A folder for the study.
        overwrite: Replace another study.
        progress: Told how much is done.
    """
    refuse_other_keywords(options, robustness_from_runs)
    study_options = RobustnessOptions.pick(options)
    check_dataset(dataset)
    if dataset is None and relevance is None:
        fix = f"pass {argument('relevance')}, or {argument('dataset')}"
        raise UsageError("ranked lists without judgements", fix=fix)
    for name in _NOT_FOR_LISTS:
        if getattr(study_options, name) != getattr(RobustnessOptions, name):
            problem = f"{argument(name)} cannot change ranked lists that are ready"
            raise UsageError(problem, fix="leave it out", option=name)
    if dataset is not None and study_options.dataset_name is not None:
        problem = f"both {argument('dataset')} and {argument('dataset_name')}"
        raise UsageError(problem, fix="leave out the name", option="dataset_name")
    without = _NOT_FOR_LISTS if dataset is not None else (*_NOT_FOR_LISTS, "match_by")  # there are no texts
    protocol, study_options, metrics = follow_in_study(study_options, metrics, without=without)
    sources = read_runs([str(runs)]) if isinstance(runs, str | Path) else runs
    if len(sources) == 1:
        fix = f"pass {UNPERTURBED!r} and the list of at least one perturbation"
        raise UsageError("one list, and nothing to compare it with", fix=fix, option="runs")
    lists = lists_of_runs(dataset, sources, study_options.directions)
    check_same_queries(lists, dataset, skip_unknown=study_options.skip_unknown)
    shared = None if relevance is None else parse_by_direction(relevance, Relevance)
    if dataset is None and isinstance(shared, Relevance):
        shared = judged_by_direction(shared, lists[UNPERTURBED])
    systems = {ranked.system for by_direction in lists.values() for ranked in by_direction.values()} - {""}
    model = study_options.name or (systems.pop() if len(systems) == 1 else "") or "lists"
    names = [name for name in lists if name != UNPERTURBED]
    require_perturbations(protocol, names)
    # The order of items alone: ties are stable here, and scores may be rounded otherwise.
    orders = {
        name: {way: replace(ranked, scores=np.zeros(0), system="").fingerprint for way, ranked in lists[name].items()}
        for name in lists
    }
    same = [name for name in names if orders[name] == orders[UNPERTURBED] and name not in (perturbed or {})]
    variants = [
        replace(variant, unchanged=variant.perturbation in same)
        for variant in _variants(names, dataset, perturbed or {}, study_options.seed)
    ]
    settings = StudySettings.of(replace(study_options, directions=tuple(lists[UNPERTURBED])), metrics, LIST_METRICS)
    hashes = {
        direction: "" if part is None else part.fingerprint
        for direction, part in (shared if isinstance(shared, Mapping) else {"any": shared}).items()
    }
    judgements_hash = fingerprint("judged", {**hashes, "skip_unknown": str(study_options.skip_unknown)})
    data = {"relevance": judgements_hash, "dataset": "" if dataset is None else dataset.fingerprint}

    def inputs(variant: Variant, _: Progress) -> dict[str, Any]:
        name = UNPERTURBED if variant.label == ORIGINAL else variant.perturbation
        return {"run": lists[name], "relevance": shared, "skip_unknown": study_options.skip_unknown}

    with study_folder(output, settings.key(data), names, overwrite=overwrite) as folder:
        runner = StudyRunner(dataset, variants, settings, folder, shown_progress(progress))
        outcomes = runner.run([(model, inputs)])
        evaluated = {label: outcome.run for label, outcome in outcomes[model].items()}
        ranking = evaluated[ORIGINAL].rankings[settings.table_direction]
        facts: dict[str, Any] = {"queries": len(ranking.query_ids), "fingerprint": data["relevance"]}
        if dataset is not None:
            facts = dataset_facts(dataset)
        elif study_options.dataset_name is not None:
            facts = {"name": study_options.dataset_name, **facts}
        # What was noted about the unperturbed lists, ties in all of them, and what lists cannot tell.
        noted = [(label, str(note)) for label, run in evaluated.items() for note in run.provenance.get("notes", ())]
        notes = [note for label, note in noted if label == ORIGINAL and not note.endswith(ORDER_DECIDES)]
        notes += merged_notes(entry for entry in noted if entry[1].endswith(ORDER_DECIDES))
        if same:
            whose = f"the lists of {', '.join(same)} have" if len(same) > 1 else f"the list of {same[0]} has"
            notes.append(f"{whose} the order of the unperturbed one: no query changed")
        if any(variant.only_lists and not variant.unchanged for variant in variants):
            notes.append(
                "all queries of a list in another order count as changed: which ones were is not known from lists"
            )
        if not ranking.complete:
            notes.append("what a list does not show counts as ranked below it, before and after")
        return runner.result(outcomes, {"dataset": facts}, notes)


def _variants(
    names: Sequence[str], dataset: Dataset | None, perturbed: Mapping[str, Dataset], seed: int
) -> list[Variant]:
    """A variant for each perturbation; where its captions are given, it is known what changed."""
    unknown = [name for name in perturbed if name not in names]
    if unknown and not set(perturbed) & set(names):
        fix = f"name the lists as the perturbations, such as {unknown[0]}"
        raise UsageError(f"there is no list of the perturbed captions {unknown[0]!r}", fix=fix)
    if perturbed and dataset is None:
        raise UsageError("perturbed captions without the dataset", fix=f"pass {argument('dataset')}")
    variants: list[Variant] = []
    for name in names:
        labels = {ORIGINAL, *(variant.label for variant in variants)}
        label = folder_name(unused_label(name, labels, folder_name))
        if name in perturbed and dataset is not None:
            variants.append(replace(given_variant(dataset, name, perturbed[name], seed), label=label))
        else:
            variants.append(Variant(name, seed, label, dataset, only_lists=True))
    return variants
