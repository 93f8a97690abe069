"""One model on one variant: loaded if it is finished, else encoded, ranked and stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import polars as pl

from crosslens.core import (
    IMAGE_TO_TEXT,
    RUN_FILE,
    TEXT_TO_IMAGE,
    Dataset,
    Ids,
    InputError,
    Progress,
    Ranking,
    Run,
    UsageError,
    atomic_file,
    fingerprint,
    parquet_bytes,
    reading,
)
from crosslens.metrics import RSUM_CUTOFFS, metric_plugins, parse_metrics, ranks_of
from crosslens.pipeline.evaluation import evaluate
from crosslens.pipeline.inputs import score_source
from crosslens.pipeline.known_ids import TEXT_TO_TEXT
from crosslens.pipeline.list_ranker import list_clusters
from crosslens.pipeline.options import RobustnessOptions
from crosslens.pipeline.robustness_study.study_directory import StudyDirectory
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
        own = np.full(len(rank), np.nan) if scorer is None else _own_scores(ranking, scorer)
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


def _own_scores(ranking: Ranking, scorer: Scorer) -> FloatArray:
    queries, items = ranking.rows, ranking.relevant
    images, captions = (queries, items) if ranking.direction == IMAGE_TO_TEXT else (items, queries)
    own = np.full(len(ranking.query_ids), -np.inf)
    np.maximum.at(own, queries, np.asarray(scorer.exact(images, captions), np.float64))
    return np.where(np.isfinite(own), own, np.nan)


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
        """The same for two studies whose runs can be in one folder; ``data`` are fingerprints of what they share."""
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
        """Results that are stored; None where they have to be computed."""
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
        """Keep new results whose run is in its folder."""
        if named.folder is not None and self.directory is not None:
            results.save(named.folder, named.key or "")
            self.directory.changed = True

    def dataset_of(self, variant: Variant | None) -> Dataset | None:
        """The dataset with the variant's captions."""
        return self.dataset if variant is None else variant.dataset

    def measure(
        self, inputs: Mapping[str, Any], dataset: Dataset | None, name: str, folder: Path | None, progress: Progress
    ) -> QueryResults:
        """Evaluate a variant, with its run in a folder."""
        with reading(name) if "run" in inputs else nullcontext():
            return self._measure(inputs, dataset, name, folder, progress)

    def _measure(
        self, inputs: Mapping[str, Any], dataset: Dataset | None, name: str, folder: Path | None, progress: Progress
    ) -> QueryResults:
        settings = self.settings
        run = evaluate(
            dataset, **inputs, directions=settings.directions, metrics=settings.metrics,
            score=settings.score, resamples=settings.resamples, level=settings.level, seed=settings.seed,
            threads=self.options.threads, name=name, output=folder, overwrite=True, command=self.options.command,
            progress=progress,
        )  # fmt: skip
        direction = settings.table_direction
        if dataset is None or "run" in inputs:
            return QueryResults.of(run, direction, list_clusters(run.rankings)[direction], None)
        clusters = np.arange(len(dataset.image_ids)) if direction == IMAGE_TO_TEXT else dataset.caption_image
        return QueryResults.of(run, direction, clusters, score_source(dataset, **inputs, score=settings.score).scorer)


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
