"""One direction of a run, ready for pages: queries with texts, ranks and values, and the top of their lists."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import (
    BOTH,
    IMAGE_TO_TEXT,
    UNRANKED,
    CrosslensError,
    Dataset,
    InputError,
    Ranking,
    Run,
    UnknownNameError,
    split_name,
)
from crosslens.explanations import first_relevant, ranking_of
from crosslens.web.explorer.models import ItemView, Outcome, number

Array = np.ndarray[Any, Any]
_ORDER = ("t2i", "t2t", "i2t")


def directions_of(run: Run) -> list[str]:
    """The directions that a run has values for, captions as queries first."""
    known = {split_name(name)[0] for name in run} - {BOTH}
    return sorted(known, key=lambda name: (_ORDER.index(name) if name in _ORDER else len(_ORDER), name))


def direction_of(run: Run, wanted: str | None) -> str:
    """The direction asked for, or the first that the run has."""
    known = directions_of(run)
    if not known:
        raise InputError(
            f"the run {run.name!r} has no values per query", fix="repeat the evaluation", code="no-queries"
        )
    if wanted is not None and wanted not in known:
        raise UnknownNameError("direction of this run", wanted, known)
    return wanted or known[0]


class Retrieval:
    """The queries of one direction of a run. ``dataset`` is None where it cannot be read; ids are all there is then."""

    def __init__(self, run: Run, direction: str, dataset: Dataset | None) -> None:
        self.run, self.direction, self.dataset = run, direction, dataset
        self.metrics = {split_name(name)[1]: run[name] for name in run if split_name(name)[0] == direction}
        self.query_ids = next(iter(self.metrics.values())).query_ids
        self.forward = direction == IMAGE_TO_TEXT

    @cached_property
    def rows(self) -> dict[str, int]:
        """The row of each query."""
        return {query: row for row, query in enumerate(self.query_ids)}

    def row(self, query: str) -> int:
        """The row of a query; an unknown one raises."""
        if query not in self.rows:
            raise InputError(f"no {self.direction} query {query!r:.200} in this run", code="unknown-id", subject=query)
        return self.rows[query]

    @cached_property
    def ranking(self) -> Ranking | None:
        """The lists, with ids written as the dataset writes them; None where the run keeps none."""
        try:
            return ranking_of(self.run, self.direction, self.dataset)
        except CrosslensError:
            return None

    @cached_property
    def _ranking_rows(self) -> Array:
        """The row in the ranking of each query; −1 where there is none."""
        ranking = self.run.rankings[self.direction]
        if ranking.query_ids == self.query_ids:
            return np.arange(len(self.query_ids))
        known = {query: row for row, query in enumerate(ranking.query_ids)}
        return np.array([known.get(query, UNRANKED) for query in self.query_ids], np.int64)

    @cached_property
    def item_rows(self) -> dict[str, int]:
        """The position of each item in the gallery."""
        return {} if self.ranking is None else {item: row for row, item in enumerate(self.ranking.item_ids)}

    @cached_property
    def ranks(self) -> Array:
        """The rank of the first relevant item of each query; −1 where it is unknown."""
        if self.ranking is None:
            return np.full(len(self.query_ids), UNRANKED, np.int64)
        _, rank = first_relevant(self.ranking)
        return np.where(self._ranking_rows >= 0, rank[self._ranking_rows], UNRANKED)

    @cached_property
    def outcomes(self) -> Array:
        """``hit``, ``failed`` or ``unknown`` for each query."""
        if self.ranking is None:
            first = self.metrics.get("Hit@1")
            if first is None:
                return np.full(len(self.query_ids), "unknown")
            values = first.values
            return np.where(np.isnan(values), "unknown", np.where(values > 0, "hit", "failed"))
        best, _ = first_relevant(self.ranking)
        judged = (self._ranking_rows >= 0) & (best[self._ranking_rows] != UNRANKED)
        return np.where(judged, np.where(self.ranks == 1, "hit", "failed"), "unknown")

    def outcome(self, row: int) -> Outcome:
        """What became of a query."""
        outcome: Outcome = str(self.outcomes[row])  # type: ignore[assignment]
        return outcome

    def rank(self, row: int) -> int | None:
        """The rank of the first relevant item of a query."""
        rank = int(self.ranks[row])
        return None if rank == UNRANKED else rank

    def values(self, row: int) -> dict[str, float | None]:
        """The metrics of a query."""
        return {name: number(float(metric.values[row])) for name, metric in self.metrics.items()}

    @cached_property
    def texts(self) -> pl.Series:
        """The text of each query; of an image query, its captions."""
        if self.forward:
            return self._image_texts()
        columns = self.run.columns.get(self.direction)
        if columns is not None and "text" in columns.columns and columns["text"].dtype == pl.String:
            return columns["text"]
        if self.dataset is None:
            return pl.Series("text", [None] * len(self.query_ids), dtype=pl.String)
        known = self.dataset.caption_rows
        texts = [self.dataset.texts[known[query]] if query in known else None for query in self.query_ids]
        return pl.Series("text", texts, dtype=pl.String)

    def _image_texts(self) -> pl.Series:
        queries = pl.DataFrame({"image": self.query_names}, schema={"image": pl.String})
        if self.dataset is None:
            return pl.Series("text", [None] * queries.height, dtype=pl.String)
        captions = self.dataset.captions.group_by("image").agg(pl.col("text").str.join(" · "))
        return queries.join(captions, on="image", how="left", maintain_order="left")["text"]

    @cached_property
    def query_names(self) -> tuple[str, ...]:
        """The queries as the dataset writes their ids."""
        if self.ranking is None or self.run.rankings[self.direction].query_ids != self.query_ids:
            return tuple(self.query_ids)
        return tuple(self.ranking.query_ids)

    def text(self, row: int) -> str | None:
        """The text of a caption query."""
        return None if self.forward else self.texts[row]

    def top(self, row: int, k: int) -> list[ItemView]:
        """The first ``k`` items of a query's list."""
        position = self._ranking_rows[row] if self.ranking is not None else UNRANKED
        if self.ranking is None or position == UNRANKED:
            return []
        right = set(self._relevant(row).tolist())
        kept = [item for item in self.ranking.top_items[position][:k].tolist() if item != UNRANKED]
        scores = self.ranking.top_scores[position][: len(kept)].tolist()
        return [
            self.item(item, rank, score, item in right)
            for rank, (item, score) in enumerate(zip(kept, scores, strict=True), start=1)
        ]

    def relevant(self, row: int, most: int) -> list[ItemView]:
        """The relevant items of a query with their ranks, the best first."""
        if self.ranking is None or self._ranking_rows[row] == UNRANKED:
            return []
        part = self._part(row)
        above, before = self.ranking.above[part], self.ranking.tied_before[part]
        ranks = np.where(above == UNRANKED, np.iinfo(np.int64).max, 1 + above + before)
        order = [index for index in np.argsort(ranks, kind="stable") if self.ranking.grades[part][index] > 0][:most]
        return [
            self.item(
                int(self.ranking.relevant[part][index]),
                None if above[index] == UNRANKED else int(ranks[index]),
                None,
                True,
            )
            for index in order
        ]

    def _part(self, row: int) -> slice:
        assert self.ranking is not None
        position = self._ranking_rows[row]
        return slice(int(self.ranking.offsets[position]), int(self.ranking.offsets[position + 1]))

    def _relevant(self, row: int) -> Array:
        assert self.ranking is not None
        part = self._part(row)
        return self.ranking.relevant[part][self.ranking.grades[part] > 0]

    def item(self, item: int, rank: int | None, score: float | None, relevant: bool) -> ItemView:
        """An item of the gallery; a caption comes with its text and image where the dataset has it."""
        assert self.ranking is not None
        name = self.ranking.item_ids[item]
        image: str | None = None if self.forward else name
        text: str | None = None
        row = self.dataset.caption_rows.get(name) if self.forward and self.dataset is not None else None
        if self.dataset is not None and row is not None:
            image, text = self.dataset.image_ids[self.dataset.caption_image[row]], self.dataset.texts[row]
        return ItemView(item=name, rank=rank, score=number(score), relevant=relevant, image=image, text=text)
