"""All failures of one run: how the concepts of right and retrieved images differ, what was wrong, and as a habit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from crosslens.core.dataset import Dataset
from crosslens.core.errors import InputError
from crosslens.core.json_form import json_form
from crosslens.core.progress import Progress, Silent, stage
from crosslens.core.ranking import Ranking
from crosslens.core.run import Run
from crosslens.explain.concepts.attributes import FAMILIES as LOOKS
from crosslens.explain.concepts.metrics import METRICS, TALLIES, concept_table
from crosslens.explain.concepts.objects import ImageObjects, objects_of
from crosslens.explain.failures import outcomes_of, ranking_of
from crosslens.explain.overview.atlas import concept_pairs, confusion_atlas
from crosslens.explain.overview.causes import CAUSES, cause_column, cause_shares, cause_table
from crosslens.explain.overview.judging import Witnesses, judge
from crosslens.explain.overview.metrics import QUERY, metric_correlations, metric_means
from crosslens.explain.overview.notes import blind_spots
from crosslens.explain.overview.rules import association_rules
from crosslens.explain.words.query_words import QueryWords, mentioned_concepts
from crosslens.statistics import Bootstrap

TOP = 20
"""Entries of an atlas that a summary lists; the whole is a table of its own."""


@dataclass(frozen=True, eq=False)
class Overview:
    """What is found over all failures of a run.

    ``queries``       every answered query and its right image; ``failures`` those that failed, with every metric (those
                      that begin with "query " count only what the query mentions) and cause
    ``metrics``       means and intervals; ``correlations`` of metrics with each other and with the rank
    ``causes``        the share of failures by cause; ``rules`` between causes
    ``atlas``         what is taken for what; ``query_atlas`` what was asked for, and what was shown instead
    ``pairs``         the matched concepts behind the atlas, by failure
    ``notes``         what the annotation cannot see
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

    def as_dict(self) -> dict[str, Any]:
        """The summary, for JSON: everything but the tables of failures and the tail of the atlas."""
        about = {
            name: getattr(self, name)
            for name in ("run", "dataset", "direction", "source", "depth", "level", "resamples", "seed")
        }
        tables = {name: getattr(self, name).to_dicts() for name in ("metrics", "correlations", "causes", "rules")}
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


def overview(
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
    """Explain every failure of a run, and sum up.

    ``depth`` lifts the concepts of the atlas to their kinds, that many steps below the top of WordNet's tree.
    ``threshold``, ``base`` and ``areas`` are those of the size metrics; ``minimum`` is how often a cause must occur to
    be part of a rule. Intervals resample images.
    """
    outcomes = outcomes_of(run, dataset, direction)
    failed = outcomes.filter(pl.col("rank").is_null() | (pl.col("rank") != 1))
    name = run.name if isinstance(run, Run) else "run"
    if not failed.height:
        raise InputError(
            f"{name} has no failures in this direction",
            expected="at least one query whose right item is not first",
            fix="there is nothing to explain; choose another run or another --direction",
        )
    objects = objects_of(dataset, areas=areas, progress=progress)
    words = _query_words(failed, progress)
    table, mentioned = _measured(failed, objects, words, threshold, base)
    table = pl.concat([table, _causes(failed, dataset, objects, words, progress)], how="horizontal")
    clusters = np.unique(failed["ground_truth"].to_numpy(), return_inverse=True)[1]
    draws = Bootstrap(clusters, resamples, seed)
    pairs = concept_pairs(objects, *_rows(failed, objects))
    asked = concept_pairs(objects, *_rows(failed, objects), mentioned=mentioned)
    names = failed["query"].to_list()
    return Overview(
        name,
        dataset.name,
        ranking_of(run, direction).direction,
        objects.source,
        outcomes.select("query", "ground_truth"),
        table,
        metric_means(table, draws, level),
        metric_correlations(table, clusters, resamples=min(resamples, 200), level=level, seed=seed),
        cause_shares(table, draws, level),
        association_rules(table.select(cause_column(one) for one in CAUSES).rename(_plain_name), minimum=minimum),
        pairs,
        confusion_atlas(pairs, names, depth=depth),
        confusion_atlas(asked, names, depth=depth),
        blind_spots(dataset, objects, table, words),
        depth, level, resamples, seed,
        {"threshold": threshold, "base": base, "areas": areas, "minimum": minimum},
    )  # fmt: skip


def _query_words(failed: pl.DataFrame, progress: Progress | None) -> list[QueryWords]:
    """What each query mentions; where an image asks, what the caption says that it found."""
    texts = failed["text"].fill_null(failed["answer"]).fill_null("")
    return mentioned_concepts(texts.to_list(), progress=progress)


def _rows(failed: pl.DataFrame, objects: ImageObjects) -> tuple[Any, Any]:
    return objects.rows(failed["ground_truth"]), objects.rows(failed["retrieved"])


def _measured(
    failed: pl.DataFrame, objects: ImageObjects, words: list[QueryWords], threshold: float, base: str
) -> tuple[pl.DataFrame, list[frozenset[str]]]:
    """The failures with every concept metric, query-agnostic and query-informed, and what each query mentions."""
    right, wrong = _rows(failed, objects)
    mentioned = _mentioned(words, objects)
    every = concept_table(objects, right, wrong, threshold=threshold, base=base)
    asked = concept_table(objects, right, wrong, mentioned=mentioned, threshold=threshold, base=base)
    renamed = asked.rename({one: QUERY + one for one in (*METRICS, *TALLIES)})
    return pl.concat([failed, every, renamed], how="horizontal"), mentioned


def _mentioned(words: list[QueryWords], objects: ImageObjects) -> list[frozenset[str]]:
    """Per query the annotated concepts that it speaks of; each name is looked up once."""
    names = {word.thing: QueryWords("", (word,)) for query in words for word in query.of("object")}
    spoken = {name: query.mentioned(objects.synsets) for name, query in names.items()}
    return [frozenset().union(*(spoken[word.thing] for word in query.of("object"))) for query in words]


def _causes(
    failed: pl.DataFrame, dataset: Dataset, objects: ImageObjects, words: list[QueryWords], progress: Progress | None
) -> pl.DataFrame:
    sides = "ground_truth" if failed["text"][0] is None else "retrieved"
    looks = [image for image, query in zip(failed[sides], words, strict=True) if any(map(query.of, LOOKS))]
    images = [*failed["ground_truth"], *failed["retrieved"]]
    known = Witnesses.of(dataset, objects, images, looks=looks, progress=progress)
    found = []
    with stage(progress or Silent(), "judging failures", failed.height) as shown:
        rows = failed.select("query", "text", "item", "ground_truth", "retrieved").iter_rows()
        for (query, text, item, right, wrong), mentions in zip(rows, words, strict=True):
            # An image that asks is judged by the caption it found: that one's own image bears its words out.
            asked = (query, right, wrong) if text is not None else (item, wrong, right)
            found.append(judge(mentions, *asked, known))
            shown.advance()
    return cause_table(found)


def _plain_name(column: str) -> str:
    return column.removeprefix("cause_").replace("_", " ")
