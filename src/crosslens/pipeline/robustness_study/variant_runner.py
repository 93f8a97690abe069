"""One model on one variant: loaded if it is finished, else encoded, ranked and stored."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import polars as pl

from crosslens.core import (
    IMAGE_TO_TEXT,
    RUN_FILE,
    RUN_LAYOUT,
    TEXT_TO_IMAGE,
    Dataset,
    Embeddings,
    Ids,
    InputError,
    Progress,
    Run,
    SilentProgress,
    UsageError,
    atomic_file,
    current_engine,
    fingerprint,
    parquet_bytes,
    reading,
)
from crosslens.metrics import RSUM_CUTOFFS, metric_plugins, parse_metrics, ranks_of
from crosslens.pipeline.evaluation import evaluate, run_folder
from crosslens.pipeline.inputs import TEXT_TO_TEXT, score_source
from crosslens.pipeline.options import RobustnessOptions
from crosslens.pipeline.rankers import list_clusters
from crosslens.pipeline.robustness_study.study import StudyDirectory
from crosslens.pipeline.robustness_study.variants import ORIGINAL, Variant
from crosslens.rank import Scorer

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]

DEFAULT_METRICS = ("Hit@1", "Hit@5", "Hit@10", "MRR", "MedR")
BOTH_DIRECTIONS = (IMAGE_TO_TEXT, TEXT_TO_IMAGE)
_KEY, _CONTENT = "crosslens.key", "crosslens.content"
_COLUMNS = ("query", "cluster", "rank", "hits", "own_score")


@dataclass(frozen=True, eq=False)
class QueryResults:
    """One entry per query of the direction that the tables are about; NaN where a query has no relevant item.

    ``rank`` is that of the best-ranked relevant item (infinite where a given list ends before it), ``hits`` is
    Hit@1 + Hit@5 + Hit@10 (from 0 to 3: what the query adds to ``Rsum``, before it is averaged), ``own`` the query's
    score with its relevant item.
    """

    run: Run
    direction: str
    query_ids: Ids
    clusters: IntArray
    """The image of every query."""
    rank: FloatArray
    hits: FloatArray
    own: FloatArray

    @staticmethod
    def of(run: Run, direction: str, clusters: IntArray, scorer: Scorer | None) -> QueryResults:
        """Rank and hits of every query, and its score with its relevant item; NaN without a scorer."""
        ranking = run.rankings[direction]
        ranks = ranks_of(ranking)
        some = ranking.relevant_counts > 0
        rank = np.where(some, ranks.first_listed(), np.nan)
        try:
            hits = np.where(some, np.sum([ranks.hit(k) for k in RSUM_CUTOFFS], axis=0), np.nan)
        except InputError as error:
            deepest = f"at least {RSUM_CUTOFFS[-1]} items: a study counts Hit@1 + Hit@5 + Hit@10 of every query"
            raise InputError(error.problem, expected=deepest, fix="pass longer lists") from error
        own = np.full(len(rank), -np.inf)
        if scorer is not None:
            queries, items = ranking.rows, ranking.relevant
            images, captions = (queries, items) if direction == IMAGE_TO_TEXT else (items, queries)
            np.maximum.at(own, queries, np.asarray(scorer.exact(images, captions), np.float64))
        own = np.where(np.isfinite(own), own, np.nan)
        return QueryResults(run, direction, ranking.query_ids, clusters, rank, hits, own)

    def save(self, folder: Path, key: str) -> None:
        """Write what is not in the run, beside its folder and after it: with this file a variant is complete."""
        queries = pl.Series(self.query_ids, dtype=pl.String)
        values = (queries, self.clusters, self.rank, self.hits, self.own)
        table = pl.DataFrame(dict(zip(_COLUMNS, values, strict=True)))
        with atomic_file(_results_file(folder)) as partial:
            partial.write_bytes(parquet_bytes(table, metadata={_KEY: key, _CONTENT: _content(table)}))

    @staticmethod
    def load(folder: Path, key: str | None, direction: str) -> QueryResults | None:
        """A finished variant of this key; None where it has to be computed."""
        file = _results_file(folder)
        if key is None or not file.exists() or not (folder / RUN_FILE).exists():
            return None
        try:
            facts = pl.read_parquet_metadata(file)
            if facts.get(_KEY) != key:
                return None
            table, run = pl.read_parquet(file, glob=False), Run.load(folder)
        except (OSError, pl.exceptions.PolarsError, InputError):  # damaged
            return None
        if table.columns != list(_COLUMNS) or facts.get(_CONTENT, _content(table)) != _content(table):
            return None
        arrays = (table[name].to_numpy() for name in _COLUMNS[1:])
        return QueryResults(run, direction, tuple(table["query"]), *arrays)


def _content(table: pl.DataFrame) -> str:
    return fingerprint("results", {"table": table})


def _results_file(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.parquet")


@dataclass(frozen=True)
class StudySettings:
    """What all runs of a study share; stored, and part of their keys."""

    directions: tuple[str, ...]
    metrics: tuple[str, ...]
    score: str | None
    text: str
    query: int | str
    shared_images: bool
    resamples: int
    level: float
    seed: int
    protocol: str | None = None

    @staticmethod
    def of(options: RobustnessOptions, metrics: Any, default_metrics: Sequence[str] = DEFAULT_METRICS) -> StudySettings:
        """With the default directions and metrics, where none are named."""
        text_only = options.image_text is not None
        default = (TEXT_TO_TEXT,) if text_only else BOTH_DIRECTIONS
        directions = tuple(options.directions or default)
        if text_only and directions != default:
            raise UsageError("text-only retrieval has one direction, t2t", fix="leave out the directions")
        for direction in directions:
            if direction not in BOTH_DIRECTIONS and not text_only:
                raise UsageError(
                    "t2t is for text-only retrieval"
                    if direction == TEXT_TO_TEXT
                    else f"unknown direction {direction!r}",
                    fix="use i2t or t2i; for text-only retrieval set image_text",
                )
        sums = ("Rsum",) if set(BOTH_DIRECTIONS) <= set(directions) else ()
        requests = parse_metrics((*default_metrics, *sums) if metrics is None else metrics)
        text = str(getattr(options.image_text, "name", options.image_text)) if text_only else ""
        return StudySettings(
            directions, tuple(map(str, requests)), options.score, text, options.query_caption,
            options.shared_images, options.resamples, options.level, options.seed, options.protocol,
        )  # fmt: skip

    @property
    def table_direction(self) -> str:
        """The direction whose queries the tables are about: captions, where captions are queries at all."""
        return next(name for name in (TEXT_TO_IMAGE, TEXT_TO_TEXT, IMAGE_TO_TEXT) if name in self.directions)

    def key(self, data: Mapping[str, str], perturbation_options: Mapping[str, Any] | None = None) -> str:
        """Equal for two studies whose runs can be in one folder; ``data`` are fingerprints of what they share."""
        perturbing = {"perturbing": repr(sorted(perturbation_options.items()))} if perturbation_options else {}
        plugins = metric_plugins(parse_metrics(self.metrics))
        code = {"plugins": plugins} if plugins else {}
        own = {name: value for name, value in vars(self).items() if name != "protocol" or value is not None}
        return fingerprint("robustness", {**data, **own, **perturbing, **code})


class ResultSource(Protocol):
    """What a model gives for the dataset and for its variants: vectors, or ranked lists."""

    name: str

    def key(self, variant: Variant | None) -> str | None:
        """A hash of what the results depend on, without computing them; None where that is not known."""

    def inputs(self, variant: Variant | None, progress: Progress) -> dict[str, Any]:
        """What is evaluated, as keywords of :func:`evaluate`: of a variant, or of the original (None)."""


class NamedVariant(NamedTuple):
    """A model on a variant: what it is called, what its results depend on (None: unknown), and where they are."""

    label: str
    name: str
    key: str | None
    folder: Path | None

    def load(self, direction: str) -> QueryResults | None:
        return None if self.folder is None else QueryResults.load(self.folder, self.key, direction)


@dataclass(frozen=True)
class VariantRunner:
    """Evaluates models on the dataset and on its variants."""

    dataset: Dataset | None
    settings: StudySettings
    directory: StudyDirectory | None
    options: RobustnessOptions
    progress: Progress

    def run(self, source: ResultSource, variant: Variant | None) -> QueryResults:
        """The results on a variant, or on the original (None): stored ones, or new ones that are then stored."""
        named = self.named(source, variant)
        results = named.load(self.settings.table_direction)
        if results is None:
            progress = PrefixedProgress(self.progress, named.name)
            inputs = source.inputs(variant, progress)
            results = self.measure(inputs, self.dataset_of(variant), named.name, named.folder, progress)
            self.save(results, named)
        return results

    def named(self, source: ResultSource, variant: Variant | None) -> NamedVariant:
        """A model on a variant, and where its results are."""
        label, vectors = ORIGINAL if variant is None else variant.label, source.key(variant)
        key = None if vectors is None else fingerprint("outcome", {"vectors": vectors, **vars(self.settings)})
        folder = None if self.directory is None else self.directory.run_folder(source.name, label)
        return NamedVariant(label, f"{source.name}, {label}", key, folder)

    def save(self, results: QueryResults, named: NamedVariant) -> None:
        if named.folder is not None and self.directory is not None:
            results.save(named.folder, named.key or "")
            self.directory.changed = True

    def dataset_of(self, variant: Variant | None) -> Dataset | None:
        return self.dataset if variant is None else variant.dataset

    def measure(
        self, inputs: Mapping[str, Any], dataset: Dataset | None, name: str, folder: Path | None, progress: Progress
    ) -> QueryResults:
        settings, direction = self.settings, self.settings.table_direction
        with reading(name) if "run" in inputs else nullcontext():
            run = evaluate(
                dataset, **inputs, directions=settings.directions, metrics=settings.metrics,
                score=settings.score, resamples=settings.resamples, level=settings.level, seed=settings.seed,
                threads=self.options.threads, name=name, output=folder, overwrite=True, command=self.options.command,
                progress=progress,
            )  # fmt: skip
            if dataset is None or "run" in inputs:
                return QueryResults.of(run, direction, list_clusters(run.rankings)[direction], None)
            clusters = np.arange(len(dataset.image_ids)) if direction == IMAGE_TO_TEXT else dataset.caption_image
            scorer = score_source(dataset, **inputs, score=settings.score).scorer
            return QueryResults.of(run, direction, clusters, scorer)


class PrefixedProgress:
    """Progress labelled with a model and variant."""

    def __init__(self, progress: Progress, prefix: str) -> None:
        self._progress, self._prefix = progress, prefix

    def start(self, label: str, total: int) -> None:
        self._progress.start(f"{self._prefix}: {label}", total)

    def advance(self, steps: int = 1) -> None:
        self._progress.advance(steps)

    def finish(self) -> None:
        self._progress.finish()


VariantTask = tuple[str, Dataset | None, Mapping[str, Any]]
"""One evaluation: its name, its dataset, and the inputs that differ from the others'."""


def evaluate_variant(work: tuple[VariantRunner, Mapping[str, Any]], task: VariantTask) -> QueryResults:
    """The results of one variant; ``work`` has what all read: the settings, and inputs that variants leave alone."""
    (runner, shared), (name, dataset, changed) = work, task
    unchanged = {key: value for key, value in shared.items() if key not in changed}
    return runner.measure({**unchanged, **changed}, dataset, name, None, SilentProgress())


def run_in_tasks(
    runner: VariantRunner, source: ResultSource, variants: Sequence[Variant | None]
) -> dict[str, QueryResults]:
    """The results of a model on these variants; finished ones are loaded, each new one is stored when it is done."""
    named = [runner.named(source, variant) for variant in variants]
    stored = {entry.label: entry.load(runner.settings.table_direction) for entry in named}
    missing = [(variant, entry) for variant, entry in zip(variants, named, strict=True) if stored[entry.label] is None]
    results = {label: loaded for label, loaded in stored.items() if loaded is not None}
    for entry, computed in zip((entry for _, entry in missing), _computed(runner, source, missing), strict=True):
        if entry.folder is not None:
            with run_folder(entry.folder, computed.run.provenance["key"], overwrite=True) as (work, finished):
                if finished is None and work is not None:
                    computed.run.write_into(work.new)
                    work.publish(RUN_LAYOUT)
        runner.save(computed, entry)
        results[entry.label] = computed
    return {entry.label: results[entry.label] for entry in named}


def _computed(
    runner: VariantRunner, source: ResultSource, missing: Sequence[tuple[Variant | None, NamedVariant]]
) -> Iterator[QueryResults]:
    if not missing:
        return
    first = source.inputs(missing[0][0], PrefixedProgress(runner.progress, missing[0][1].name))
    plain = replace(runner.options, image_text=None, options=None)  # models stay here: they have encoded already
    work = (replace(runner, directory=None, options=plain, progress=SilentProgress(), dataset=None), first)

    def tasks() -> Iterator[VariantTask]:
        for number, (variant, entry) in enumerate(missing):
            progress = PrefixedProgress(runner.progress, entry.name)
            inputs = source.inputs(variant, progress) if number else first
            changed = {key: value for key, value in inputs.items() if value is not first.get(key)}
            yield entry.name, runner.dataset_of(variant), changed

    finished = 0

    def show(task: VariantTask) -> None:
        nonlocal finished
        finished += 1
        runner.progress.start(f"{source.name}: variants", len(missing))  # encoding has shown its own bar meanwhile
        runner.progress.advance(finished)

    arrays = (value for value in first.values() if isinstance(value, Embeddings | np.ndarray))
    size = sum(math.prod(value.shape) * value.dtype.itemsize for value in arrays)  # what a variant takes, at most
    try:
        yield from current_engine().run(evaluate_variant, work, tasks(), done=show, size=size)
    finally:
        runner.progress.finish()
