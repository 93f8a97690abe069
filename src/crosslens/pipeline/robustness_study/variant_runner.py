"""One model on one variant: loaded if it is finished, else encoded, ranked and stored."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    FloatArray,
    Ids,
    InputError,
    IntArray,
    Progress,
    Run,
    SilentProgress,
    UsageError,
    atomic_file,
    current_engine,
    fingerprint,
    note_resumed,
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

DEFAULT_METRICS = ("Hit@1", "Hit@5", "Hit@10", "MRR", "MedR")
BOTH_DIRECTIONS = (IMAGE_TO_TEXT, TEXT_TO_IMAGE)
_KEY, _CONTENT = "crosslens.key", "crosslens.content"
_COLUMNS = ("query", "cluster", "rank", "hits", "own_score")


@dataclass(frozen=True, eq=False)
class QueryResults:
    """One entry per query of the direction that the tables are about; NaN where a query has no relevant item.

    ``rank`` is that of the best-ranked relevant item (infinite where a given list ends before it), ``hits`` is
    Hit@1 + Hit@5 + Hit@10 (from 0 to 3: what the query adds to ``Rsum``, before it is averaged), ``own_score`` the
    query's score with its relevant item.
    """

    run: Run
    direction: str
    query_ids: Ids
    clusters: IntArray
    """The image of every query."""
    rank: FloatArray
    hits: FloatArray
    own_score: FloatArray

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
        own_score = np.full(len(rank), -np.inf)
        if scorer is not None:
            queries, items = ranking.rows, ranking.relevant
            images, captions = (queries, items) if direction == IMAGE_TO_TEXT else (items, queries)
            np.maximum.at(own_score, queries, np.asarray(scorer.exact(images, captions), np.float64))
        own_score = np.where(np.isfinite(own_score), own_score, np.nan)
        return QueryResults(run, direction, ranking.query_ids, clusters, rank, hits, own_score)

    def save(self, folder: Path, key: str) -> None:
        """Write what is not in the run, beside its folder and after it: with this file a variant is complete."""
        queries = pl.Series(self.query_ids, dtype=pl.String)
        values = (queries, self.clusters, self.rank, self.hits, self.own_score)
        table = pl.DataFrame(dict(zip(_COLUMNS, values, strict=True)))
        with atomic_file(folder.with_name(f"{folder.name}.parquet")) as partial:
            partial.write_bytes(parquet_bytes(table, metadata={_KEY: key, _CONTENT: _content(table)}))

    @staticmethod
    def load(folder: Path, key: str | None, direction: str) -> QueryResults | None:
        """A finished variant of this key; None where it has to be computed."""
        file = folder.with_name(f"{folder.name}.parquet")
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
        settings = {name: value for name, value in vars(self).items() if name != "protocol" or value is not None}
        return fingerprint("robustness", {**data, **settings, **perturbing, **code})


class ResultSource(Protocol):
    """What a model gives for the dataset and for its variants: vectors, or ranked lists."""

    name: str

    def key(self, variant: Variant | None) -> str | None:
        """A hash of what the results depend on, without computing them; None where that is not known."""

    def inputs(self, variant: Variant | None, progress: Progress) -> dict[str, Any]:
        """What is evaluated, as keywords of :func:`evaluate`: of a variant, or of the original (None)."""


class VariantTask(NamedTuple):
    """A model on a variant, or on the original (None): what its results depend on, if known, and where they are."""

    label: str
    name: str
    variant: Variant | None
    key: str | None
    folder: Path | None


@dataclass(frozen=True)
class VariantRunner:
    """Evaluates models on the dataset and on its variants."""

    dataset: Dataset | None
    settings: StudySettings
    directory: StudyDirectory | None
    options: RobustnessOptions
    progress: Progress

    def run(
        self, sources: Iterable[ResultSource], variants: Sequence[Variant], models: int = 1
    ) -> dict[str, dict[str, QueryResults]]:
        """The results of every model on the original and on every variant.

        The names of the ``models`` are known when they are loaded; work on them comes after.
        """
        results: dict[str, dict[str, QueryResults]] = {}
        for number, source in enumerate(sources, start=1):
            if self.directory is not None:
                self.directory.refuse_loss("models", {*results, source.name}, unnamed=models - number)
                self.directory.begin()
            results[source.name] = self._run_variants(source, (None, *variants))
        return results

    def _run_variants(self, source: ResultSource, variants: Sequence[Variant | None]) -> dict[str, QueryResults]:
        """Finished variants are loaded, each new one is stored when it is done."""
        tasks, stored = [], {}
        for variant in variants:
            label, vectors = ORIGINAL if variant is None else variant.label, source.key(variant)
            key = None if vectors is None else fingerprint("outcome", {"vectors": vectors, **vars(self.settings)})
            folder = None if self.directory is None else self.directory.run_folder(source.name, label)
            tasks.append(VariantTask(label, f"{source.name}, {label}", variant, key, folder))
            direction = self.settings.table_direction
            stored[label] = None if folder is None else QueryResults.load(folder, key, direction)
        results = {label: loaded for label, loaded in stored.items() if loaded is not None}
        missing = [task for task in tasks if task.label not in results]
        if missing:
            note_resumed(self.progress, source.name, len(results), len(tasks), "result")
        for task, computed in zip(missing, self._compute(source, missing), strict=True):
            if task.folder is not None and self.directory is not None:
                if current_engine().distributed:
                    with run_folder(task.folder, computed.run.provenance["key"], overwrite=True) as (work, finished):
                        if finished is None and work is not None:
                            computed.run.write_into(work.new)
                            work.publish(RUN_LAYOUT)
                computed.save(task.folder, task.key or "")
                self.directory.changed = True
            results[task.label] = computed
        return {task.label: results[task.label] for task in tasks}

    def _compute(self, source: ResultSource, missing: Sequence[VariantTask]) -> Iterator[QueryResults]:
        if not missing:
            return
        engine = current_engine()
        shared = source.inputs(missing[0].variant, PrefixedProgress(self.progress, missing[0].name))
        runner = self
        if engine.distributed:  # models stay here: they have encoded already
            plain = replace(self.options, image_text=None, options=None)
            runner = replace(self, directory=None, options=plain, progress=SilentProgress(), dataset=None)

        def tasks() -> Iterator[Evaluation]:
            for number, task in enumerate(missing):
                inputs = shared
                if number:
                    inputs = source.inputs(task.variant, PrefixedProgress(self.progress, task.name))
                changed = {key: value for key, value in inputs.items() if value is not shared.get(key)}
                dataset = self.dataset if task.variant is None else task.variant.dataset
                yield task.name, dataset, changed, None if engine.distributed else task.folder

        finished = 0

        def show(_: Evaluation) -> None:
            nonlocal finished
            finished += 1
            if engine.distributed:  # encoding has shown its own bar meanwhile
                self.progress.start(f"{source.name}: variants", len(missing))
                self.progress.advance(finished)

        arrays = (value for value in shared.values() if isinstance(value, Embeddings | np.ndarray))
        size = sum(math.prod(value.shape) * value.dtype.itemsize for value in arrays)  # what a variant takes, at most
        try:
            yield from engine.run(evaluate_variant, (runner, shared), tasks(), done=show, size=size)
        finally:
            if engine.distributed:
                self.progress.finish()


Evaluation = tuple[str, Dataset | None, Mapping[str, Any], Path | None]
"""One evaluation: its name, its dataset, the inputs that differ from the others', and where its run is written."""


def evaluate_variant(work: tuple[VariantRunner, Mapping[str, Any]], task: Evaluation) -> QueryResults:
    """The results of one variant; ``work`` has what all read: the settings, and inputs that variants leave alone."""
    (runner, shared), (name, dataset, changed, folder) = work, task
    settings, direction = runner.settings, runner.settings.table_direction
    inputs = {**shared, **changed}
    with reading(name) if "run" in inputs else nullcontext():
        run = evaluate(
            dataset, **inputs, directions=settings.directions, metrics=settings.metrics,
            score=settings.score, resamples=settings.resamples, level=settings.level, seed=settings.seed,
            threads=runner.options.threads, name=name, output=folder, overwrite=True, command=runner.options.command,
            progress=PrefixedProgress(runner.progress, name),
        )  # fmt: skip
        if dataset is None or "run" in inputs:
            return QueryResults.of(run, direction, list_clusters(run.rankings)[direction], None)
        clusters = np.arange(len(dataset.image_ids)) if direction == IMAGE_TO_TEXT else dataset.caption_image
        return QueryResults.of(run, direction, clusters, score_source(dataset, **inputs, score=settings.score).scorer)


class PrefixedProgress:
    """Progress labelled with a model and variant."""

    def __init__(self, progress: Progress, prefix: str) -> None:
        self._prefix, self.advance, self.finish, self._start = prefix, progress.advance, progress.finish, progress.start
        self._note = getattr(progress, "note", lambda _: None)

    def start(self, label: str, total: int) -> None:
        self._start(f"{self._prefix}: {label}", total)

    def note(self, text: str) -> None:
        self._note(f"{self._prefix}: {text}")
