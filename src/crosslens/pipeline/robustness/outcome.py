"""What became of every query under one variant: the run, and beside it what the tables are made from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.core.atomic import atomic_file
from crosslens.core.dataset import Dataset
from crosslens.core.errors import InputError
from crosslens.core.ids import Ids
from crosslens.core.ranking import Ranking
from crosslens.core.relevance import IMAGE_TO_TEXT, TEXT_TO_IMAGE
from crosslens.core.run import Run
from crosslens.metrics.compute import places_of
from crosslens.metrics.total import CUTOFFS
from crosslens.pipeline.sources import TEXT_TO_TEXT
from crosslens.rank import Scorer

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]

_KEY = "crosslens.key"
_COLUMNS = ("query", "cluster", "rank", "hits", "own_score")


@dataclass(frozen=True, eq=False)
class Outcome:
    """One entry per query of the direction that the tables look at; NaN where a query has nothing to find.

    ``rank`` is the place of the best-ranked relevant item, ``hits`` is Hit@1 + Hit@5 + Hit@10 (from 0 to 3: what the
    query adds to ``Rsum``, before it is averaged), ``own`` the query's score with its relevant item.
    """

    run: Run
    direction: str
    query_ids: Ids
    clusters: IntArray
    """The image of every query."""
    rank: FloatArray
    hits: FloatArray
    own: FloatArray


def asking_direction(directions: tuple[str, ...]) -> str:
    """The direction whose queries the tables look at: captions, where captions ask at all."""
    return next(one for one in (TEXT_TO_IMAGE, TEXT_TO_TEXT, IMAGE_TO_TEXT) if one in directions)


def outcome_of(run: Run, direction: str, dataset: Dataset, scorer: Scorer) -> Outcome:
    """Places and hits of every query, and its score with what it should have found."""
    ranking = run.rankings[direction]
    places = places_of(ranking)
    some = ranking.relevant_counts > 0
    rank = np.where(some, places.first(), np.nan)
    hits = np.where(some, np.sum([places.hit(k) for k in CUTOFFS], axis=0), np.nan)
    images = np.arange(len(dataset.image_ids)) if direction == IMAGE_TO_TEXT else dataset.caption_image
    return Outcome(run, direction, ranking.query_ids, images, rank, hits, _own_scores(ranking, scorer))


def _own_scores(ranking: Ranking, scorer: Scorer) -> FloatArray:
    queries, items = ranking.rows, ranking.relevant
    images, captions = (queries, items) if ranking.direction == IMAGE_TO_TEXT else (items, queries)
    own = np.full(len(ranking.query_ids), -np.inf)
    np.maximum.at(own, queries, np.asarray(scorer.exact(images, captions), np.float64))
    return np.where(np.isfinite(own), own, np.nan)


def save_outcome(outcome: Outcome, file: Path, key: str) -> None:
    """Keep what is beside the run; written after it, so that with this file a variant is complete."""
    table = pl.DataFrame(
        {
            "query": pl.Series(outcome.query_ids, dtype=pl.String),
            "cluster": outcome.clusters,
            "rank": outcome.rank,
            "hits": outcome.hits,
            "own_score": outcome.own,
        }
    )
    with atomic_file(file) as partial:
        table.write_parquet(partial, metadata={_KEY: key})


def load_outcome(folder: Path, file: Path, key: str | None, direction: str) -> Outcome | None:
    """A finished variant of this very key; None where it is to be made (again)."""
    if key is None or not file.exists() or not (folder / "run.json").exists():
        return None
    try:
        if pl.read_parquet_metadata(file).get(_KEY) != key:
            return None
        table, run = pl.read_parquet(file), Run.load(folder)
    except (OSError, pl.exceptions.PolarsError, InputError):  # damaged
        return None
    if table.columns != list(_COLUMNS):
        return None
    return Outcome(
        run,
        direction,
        tuple(table["query"]),
        *(table[name].to_numpy() for name in _COLUMNS[1:]),
    )
