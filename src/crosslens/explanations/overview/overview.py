"""All failures of one run: how the concepts of relevant and retrieved images differ, causes, and confused concepts.

Saved as a folder:

``failures.parquet``     one row per failure: every metric, query-agnostic and query-informed, and every cause
``overview.json``        means, correlations, causes, rules, the most frequent confusions, settings and notes
``atlas.parquet``        which concepts are confused with which; ``atlas-query.parquet``: asked for, and shown instead
``rules.csv``            association rules between causes
``comparison.json``      only of two runs: where they fail differently
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import (
    ConflictError,
    Dataset,
    InputError,
    Layout,
    Presented,
    Progress,
    Ranking,
    Run,
    Section,
    argument,
    atomic_folder,
    json_form,
    parquet_bytes,
)
from crosslens.explanations.concepts.metrics import concept_table
from crosslens.explanations.concepts.objects import ImageObjects, objects_of
from crosslens.explanations.failures import failed, query_outcomes, ranking_of
from crosslens.explanations.overview.causes import (
    CAUSES,
    cause_column,
    cause_numbers,
    cause_shares,
    cause_table,
    judge_failures,
    texts_of,
)
from crosslens.explanations.overview.confusions import concept_pairs, confusion_atlas
from crosslens.explanations.overview.evidence import limitations
from crosslens.explanations.overview.sections import overview_sections
from crosslens.explanations.overview.statistics import (
    QUERY,
    association_rules,
    failure_totals,
    metric_correlations,
    metric_means,
)
from crosslens.explanations.words.mentions import QueryMentions, mentioned_concepts
from crosslens.statistics import Bootstrap

TOP = 20
"""Confusions that a summary lists; all of them are a table of its own."""
_SUMMARY, _COMPARISON = "overview.json", "comparison.json"
_LAYOUT = Layout(
    "an overview of failures",
    _SUMMARY,
    ("failures.parquet", "atlas.parquet", "atlas-query.parquet", "rules.csv", _COMPARISON),
)


@dataclass(frozen=True, eq=False)
class Overview(Presented):
    """The summary of all failures of a run.

    ``queries``       every answered query and its relevant image; ``failures`` those that failed, with every metric
                      (those that begin with "query " count only what the query mentions) and cause
    ``metrics``       means and intervals; ``correlations`` of metrics with each other and with the rank
    ``totals``        synsets, matchings and multiplicities over all failures together
    ``causes``        the share of failures by cause; ``cause_numbers`` by how many causes they have; ``rules`` between
                      causes
    ``atlas``         which concepts are confused; ``query_atlas`` what was asked for, and what was shown instead
    ``pairs``         the matched concepts behind the atlas, by failure
    ``notes``         what the annotation cannot decide
    ``names``         what the dataset calls a synset, where that is one name
    ``listed``        how many rules and confusions are shown
    """

    run: str
    dataset: str
    direction: str
    source: str
    queries: pl.DataFrame
    failures: pl.DataFrame
    metrics: pl.DataFrame
    correlations: pl.DataFrame
    causes: pl.DataFrame
    cause_numbers: pl.DataFrame
    rules: pl.DataFrame
    pairs: pl.DataFrame
    atlas: pl.DataFrame
    query_atlas: pl.DataFrame
    notes: tuple[str, ...] = ()
    depth: int | None = None
    level: float = 0.95
    resamples: int = 1000
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    listed: int = 10

    @cached_property
    def totals(self) -> pl.DataFrame:
        return failure_totals(self.failures)

    @property
    def title(self) -> str:
        """The heading of the page."""
        return f"Why {self.run} fails"

    def sections(self, **options: Any) -> Iterator[Section]:
        """Confused concepts, concept metrics, causes and rules."""
        return overview_sections(self)

    def as_dict(self) -> dict[str, Any]:
        """The summary, for JSON: everything but the tables of failures and the tail of the atlas."""
        names = ("run", "dataset", "direction", "source", "depth", "level", "resamples", "seed")
        about = {name: getattr(self, name) for name in names}
        listed = ("metrics", "totals", "correlations", "causes", "cause_numbers", "rules")
        tables = {name: getattr(self, name).to_dicts() for name in listed}
        tops = {name: getattr(self, name).head(TOP).to_dicts() for name in ("atlas", "query_atlas")}
        whole: dict[str, Any] = json_form(
            {
                "format": "crosslens/explain-overview",
                "version": 1,
                **about,
                "queries": self.queries.height,
                "failures": self.failures.height,
                "settings": dict(self.settings),
                **tables,
                **tops,
                "notes": list(self.notes),
            }
        )
        return whole

    def __repr__(self) -> str:
        return f"<Overview of {self.run}: {self.failures.height:,} failures of {self.queries.height:,} queries>"


def explain_run(
    run: Run | Mapping[str, Ranking],
    dataset: Dataset,
    direction: str | None = None,
    *,
    depth: int | None = None,
    threshold: float = 1.0,
    base: str = "ground_truth",
    areas: str = "share",
    minimum: int = 5,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    progress: Progress | None = None,
) -> Overview:
    """Explain every failure of a run, and summarise them.

    ``depth`` replaces the concepts of the atlas by their hypernyms that many steps below the root of WordNet.
    ``threshold``, ``base`` and ``areas`` are those of the size metrics; ``minimum`` is how often a cause must occur to
    be part of a rule. Intervals resample images.
    """
    outcomes = query_outcomes(run, dataset, direction)
    name = run.name if isinstance(run, Run) else "run"
    failures = _failures(outcomes, name)
    objects = objects_of(dataset, areas=areas, progress=progress)
    queries = mentioned_concepts(texts_of(failures), progress=progress)
    mentioned = _mentioned(queries, objects)
    rows = objects.rows(failures["ground_truth"]), objects.rows(failures["retrieved"])
    metrics = _metrics(objects, rows, mentioned, threshold, base)
    judged = judge_failures(failures, dataset, objects, queries, progress)
    causes = cause_table([[judgement for _, judgement in mentions] for mentions in judged])
    table = pl.concat([failures, *metrics, causes], how="horizontal")
    clusters = np.unique(failures["ground_truth"].to_numpy(), return_inverse=True)[1]
    draws = Bootstrap(clusters, resamples, seed)
    pairs = concept_pairs(objects, *rows)
    query_ids = failures["query"].to_list()
    by_cause = table.select(pl.col(cause_column(cause)).alias(cause) for cause in CAUSES)
    return Overview(
        run=name,
        dataset=dataset.name,
        direction=ranking_of(run, direction).direction,
        source=objects.source,
        queries=outcomes.select("query", "ground_truth"),
        failures=table,
        metrics=metric_means(table, draws, level),
        correlations=metric_correlations(table, clusters, resamples=min(resamples, 200), level=level, seed=seed),
        causes=cause_shares(table, draws, level),
        cause_numbers=cause_numbers(table, draws, level),
        rules=association_rules(by_cause, minimum=minimum),
        pairs=pairs,
        atlas=confusion_atlas(pairs, query_ids, depth=depth),
        query_atlas=confusion_atlas(concept_pairs(objects, *rows, mentioned=mentioned), query_ids, depth=depth),
        notes=limitations(dataset, objects, table, queries),
        depth=depth,
        level=level,
        resamples=resamples,
        seed=seed,
        settings={"threshold": threshold, "base": base, "areas": areas, "minimum": minimum},
        names=objects.names_of_synsets(),
    )


def _failures(outcomes: pl.DataFrame, run: str) -> pl.DataFrame:
    failures = outcomes.filter(failed())
    if not failures.height:
        raise InputError(
            f"{run} has no failures in this direction",
            expected="at least one query whose relevant item is not first",
            fix=f"there is nothing to explain; choose another run or another {argument('direction')}",
        )
    return failures


def _metrics(
    objects: ImageObjects, rows: tuple[Any, Any], mentioned: list[frozenset[str]], threshold: float, base: str
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Every concept metric, query-agnostic and query-informed."""
    metrics = concept_table(objects, *rows, threshold=threshold, base=base)
    informed = concept_table(objects, *rows, mentioned=mentioned, threshold=threshold, base=base)
    return metrics, informed.select(pl.all().name.prefix(QUERY))


def _mentioned(queries: list[QueryMentions], objects: ImageObjects) -> list[frozenset[str]]:
    """Per query the annotated concepts that it mentions; each noun is looked up once."""
    mentions = {mention.noun: QueryMentions("", (mention,)) for query in queries for mention in query.of("object")}
    synsets = {noun: query.mentioned(objects.synsets) for noun, query in mentions.items()}
    return [frozenset().union(*(synsets[mention.noun] for mention in query.of("object"))) for query in queries]


def save_overview(
    overview: Overview, path: str | Path, *, comparison: dict[str, Any] | None = None, overwrite: bool = False
) -> Path:
    """Write the folder, whole or not at all; the same overview gives the same bytes.

    A folder that holds another overview is kept unless ``overwrite``; one with other files is never replaced.
    """
    path = Path(path)
    summary = _json(overview.as_dict())
    if _LAYOUT.holds(path):
        stored = path / _SUMMARY
        if not overwrite and stored.exists() and stored.read_text(encoding="utf-8") != summary:
            raise ConflictError(
                f"{path} already contains a different overview",
                fix=f"choose another folder, or pass {argument('overwrite', True)}",
            )
    with atomic_folder(path, _LAYOUT) as folder:
        tables = {"failures": overview.failures, "atlas": overview.atlas, "atlas-query": overview.query_atlas}
        for name, table in tables.items():
            (folder / f"{name}.parquet").write_bytes(parquet_bytes(table))
        overview.rules.with_columns(pl.col("if").list.join(" + ")).write_csv(folder / "rules.csv")
        if comparison is not None:
            (folder / _COMPARISON).write_text(_json(json_form(comparison)), encoding="utf-8")
        (folder / _SUMMARY).write_text(summary, encoding="utf-8")
    return path


def _json(content: Any) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
