"""One direction of a run, ready for pages: queries with texts, ranks and values, searched, filtered and sorted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from threading import Lock
from typing import Literal

import numpy as np
import polars as pl

from crosslens.core import (
    BOTH,
    IMAGE_TO_TEXT,
    UNRANKED,
    Array,
    CrosslensError,
    Dataset,
    InputError,
    IntArray,
    Ranking,
    Run,
    UnknownNameError,
    json_form,
    split_name,
)
from crosslens.explanations import first_relevant, ranking_of
from crosslens.pipeline import group_members, group_names
from crosslens.web.background import RecentCache
from crosslens.web.security import Services

Rows = IntArray
_DIRECTIONS = ("t2i", "t2t", "i2t")
RANK, ORDER = "rank", "order"
"""What queries can be sorted by besides metrics: the rank of the first relevant item; the dataset's own order."""
MOST_VALUES, _CACHED = 200, 16


@dataclass(frozen=True)
class ItemView:
    """An item: an image, or a caption with its ``text`` and the ``image`` it belongs to."""

    item: str
    rank: int | None
    score: float | None
    relevant: bool
    image: str | None
    text: str | None
    has_picture: bool


@dataclass(frozen=True)
class QueryFilter:
    """Which queries, and in which order."""

    search: str = ""
    sort: str = ORDER
    descending: bool = False
    group: str = ""
    value: str = ""
    outcome: Literal["", "hit", "failed"] = ""


def directions_of(run: Run) -> list[str]:
    """The directions that a run has values for, captions as queries first."""
    known = {split_name(name)[0] for name in run} - {BOTH}
    return sorted(known, key=lambda name: (_DIRECTIONS.index(name) if name in _DIRECTIONS else len(_DIRECTIONS), name))


class Retrieval:
    """The queries of one direction of a run. ``dataset`` is None where it cannot be read; ids are all there is then.

    ``has_picture`` says whether there is a picture of an image.
    """

    def __init__(
        self, run: Run, direction: str, dataset: Dataset | None,
        has_picture: Callable[[str | None], bool] = lambda image: False,
    ) -> None:  # fmt: skip
        self.run, self.direction, self.dataset, self.has_picture = run, direction, dataset, has_picture
        self.metrics = {split_name(name)[1]: run[name] for name in run if split_name(name)[0] == direction}
        self.query_ids = next(iter(self.metrics.values())).query_ids
        self.forward = direction == IMAGE_TO_TEXT
        self._lock = Lock()
        self._groups: dict[str, dict[str, Rows]] = {}
        self._orders: dict[tuple[str, bool], Rows] = {}

    @cached_property
    def rows(self) -> dict[str, int]:
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

    def rank(self, row: int) -> int | None:
        rank = int(self.ranks[row])
        return None if rank == UNRANKED else rank

    def rank_of(self, query: str) -> int | None:
        return self.rank(self.rows[query]) if query in self.rows else None

    def text_of(self, query: str) -> str | None:
        return self.texts[self.rows[query]] if query in self.rows else None

    def values(self, row: int) -> dict[str, float | None]:
        return {name: json_form(float(metric.values[row])) for name, metric in self.metrics.items()}

    @cached_property
    def texts(self) -> pl.Series:
        """The text of each query; of an image query, its captions."""
        if self.forward and self.dataset is not None:
            queries = pl.DataFrame({"image": self.query_names}, schema={"image": pl.String})
            captions = self.dataset.captions.group_by("image").agg(pl.col("text").str.join(" · "))
            return queries.join(captions, on="image", how="left", maintain_order="left")["text"]
        columns = self.run.columns.get(self.direction)
        if not self.forward and columns is not None and columns.schema.get("text") == pl.String:
            return columns["text"]
        if self.dataset is None:
            return pl.Series("text", [None] * len(self.query_ids), dtype=pl.String)
        known = self.dataset.caption_rows
        texts = [self.dataset.texts[known[query]] if query in known else None for query in self.query_ids]
        return pl.Series("text", texts, dtype=pl.String)

    @cached_property
    def query_names(self) -> tuple[str, ...]:
        """The queries as the dataset writes their ids."""
        if self.ranking is None or self.run.rankings[self.direction].query_ids != self.query_ids:
            return tuple(self.query_ids)
        return tuple(self.ranking.query_ids)

    def top(self, row: int, k: int) -> list[ItemView]:
        position = self._ranking_rows[row] if self.ranking is not None else UNRANKED
        if self.ranking is None or position == UNRANKED:
            return []
        part = self._part(row)
        right = set(self.ranking.relevant[part][self.ranking.grades[part] > 0].tolist())
        items = [item for item in self.ranking.top_items[position][:k].tolist() if item != UNRANKED]
        scores = self.ranking.top_scores[position][: len(items)].tolist()
        return [
            self._item(item, rank, score, item in right)
            for rank, (item, score) in enumerate(zip(items, scores, strict=True), start=1)
        ]

    def relevant(self, row: int, most: int) -> list[ItemView]:
        """The relevant items of a query with their ranks, the best first."""
        if self.ranking is None or self._ranking_rows[row] == UNRANKED:
            return []
        part = self._part(row)
        above, before = self.ranking.above[part], self.ranking.tied_before[part]
        ranks = np.where(above == UNRANKED, np.iinfo(np.int64).max, 1 + above + before)
        order = [index for index in np.argsort(ranks, kind="stable") if self.ranking.grades[part][index] > 0][:most]
        known = [(self.ranking.relevant[part][index], above[index] != UNRANKED, ranks[index]) for index in order]
        return [self._item(int(item), int(rank) if is_ranked else None, None, True) for item, is_ranked, rank in known]

    def wrong_queries(self, item: str) -> list[tuple[int, str]]:
        """Queries with the item in their kept list although it is not relevant to them, with its rank, best first."""
        if self.ranking is None or item not in self.item_rows:
            return []
        number, ids = self.item_rows[item], self.run.rankings[self.direction].query_ids
        rows, ranks = np.nonzero(self.ranking.top_items == number)
        relevant = set(self.ranking.rows[(self.ranking.relevant == number) & (self.ranking.grades > 0)].tolist())
        order = [index for index in np.argsort(ranks, kind="stable") if int(rows[index]) not in relevant]
        return [(int(ranks[index]) + 1, ids[rows[index]]) for index in order]

    def _part(self, row: int) -> slice:
        assert self.ranking is not None
        position = self._ranking_rows[row]
        return slice(int(self.ranking.offsets[position]), int(self.ranking.offsets[position + 1]))

    def _item(self, item: int, rank: int | None, score: float | None, relevant: bool) -> ItemView:
        """An item of the gallery; a caption comes with its text and image where the dataset has it."""
        assert self.ranking is not None
        name = self.ranking.item_ids[item]
        image: str | None = None if self.forward else name
        text: str | None = None
        row = self.dataset.caption_rows.get(name) if self.forward and self.dataset is not None else None
        if self.dataset is not None and row is not None:
            image, text = self.dataset.image_ids[self.dataset.caption_image[row]], self.dataset.texts[row]
        return ItemView(name, rank, json_form(score), relevant, image, text, self.has_picture(image))

    @cached_property
    def _words(self) -> pl.Series:
        """Text and id of each query in lower case."""
        ids = pl.Series("id", self.query_ids, dtype=pl.String)
        texts = self.texts.fill_null("")
        return pl.select(pl.concat_str([texts, pl.lit("\n"), ids]).str.to_lowercase()).to_series()

    @cached_property
    def groups(self) -> list[str]:
        """The columns that queries of this direction can be filtered by."""
        columns = self.run.columns.get(self.direction)
        if columns is None:
            return []
        usable = []
        for name in group_names(self.run):
            values = columns[name] if name in columns.columns else None
            if values is None:
                usable += ["caption_length"] if name == "caption_length" and not self.forward else []
            elif values.null_count() < len(values) and not (
                values.dtype == pl.String and values.n_unique() > max(MOST_VALUES, len(values) // 2)
            ):
                usable.append(name)
        return usable

    def group_rows(self, column: str) -> dict[str, Rows]:
        """The rows of each group of a column, the largest group first."""
        if column not in self.groups:
            raise UnknownNameError("column", column, self.groups)
        with self._lock:
            if column not in self._groups:
                try:
                    members = group_members(self.run, self.direction, column)
                except CrosslensError:
                    members = {}
                self._groups[column] = {
                    value: np.array([self.rows[query] for query in queries], np.int64)
                    for value, queries in members.items()
                }
            return self._groups[column]

    def select(self, chosen: QueryFilter) -> Rows:
        """The rows that match, in order. Queries without a value come last, whichever way they are sorted."""
        matching = np.ones(len(self.query_ids), np.bool_)
        if chosen.group and chosen.value:
            groups = self.group_rows(chosen.group)
            if chosen.value not in groups:
                raise UnknownNameError(f"value of {chosen.group}", chosen.value, groups)
            matching[:] = False
            matching[groups[chosen.value]] = True
        if chosen.outcome:
            matching &= self.outcomes == chosen.outcome
        for word in chosen.search.lower().split():
            matching &= self._words.str.contains(word, literal=True).to_numpy()
        order = self._order(chosen.sort, chosen.descending)
        rows: Rows = order[matching[order]]
        return rows

    def _order(self, sort: str, descending: bool) -> Rows:
        """All rows in an order, equal ones as in the dataset; kept, for sorting takes longer than all the rest."""
        keys = {ORDER: None, RANK: self.ranks} | {n: m.values for n, m in self.metrics.items()}
        if sort not in keys:
            raise UnknownNameError("order", sort, keys)
        with self._lock:
            if (sort, descending) not in self._orders:
                if (values := keys[sort]) is None:
                    rows = np.arange(len(self.query_ids))
                    rows = rows[::-1] if descending else rows
                else:
                    numbers = values.astype(np.float64)
                    # A rank of −1 is unknown.
                    unknown = np.isnan(numbers) | ((numbers < 0) & (values.dtype.kind == "i"))
                    rows = np.lexsort((-numbers if descending else numbers, unknown))
                self._orders[sort, descending] = rows
            return self._orders[sort, descending]


class QueryTables:
    """Queries of runs by run and direction, made when first looked at and kept while they are in use."""

    def __init__(self, services: Services) -> None:
        self.services, self.library = services, services.library
        self._retrievals: RecentCache[Retrieval] = RecentCache(_CACHED)

    def dataset_if_known(self, run: str) -> tuple[Dataset | None, str | None]:
        """The dataset of a run, or why it cannot be read."""
        try:
            return self.library.dataset_of(run), None
        except (CrosslensError, OSError) as error:
            return None, error.problem if isinstance(error, CrosslensError) else "the dataset cannot be read"

    def retrieval(self, run: str, direction: str | None) -> Retrieval:
        """The queries of a direction of a run; of the first that it has, where none is named."""
        opened = self.library.run(run)
        known = directions_of(opened)
        if not known:
            problem = f"the run {opened.name!r} has no values per query"
            raise InputError(problem, fix="repeat the evaluation", code="no-queries")
        if direction is not None and direction not in known:
            raise UnknownNameError("direction of this run", direction, known)
        chosen, summary = direction or known[0], self.library.summary(run)

        def make() -> Retrieval:
            return Retrieval(opened, chosen, self.dataset_if_known(run)[0], partial(self.has_picture, summary.dataset))

        return self._retrievals.get((run, summary.signature, chosen), make)

    def retrieval_if_known(self, run: str, direction: str) -> Retrieval | None:
        """One direction of a run; None where the run cannot be read, or has no such direction."""
        try:
            return self.retrieval(run, direction)
        except (CrosslensError, OSError):
            return None

    def has_picture(self, dataset: str, image: str | None) -> bool:
        return image is not None and bool(dataset) and self.services.pictures.exists(dataset, image)
