"""One direction of a run, ready for pages: queries with texts, ranks and values, searched, filtered and sorted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from threading import Lock
from typing import Any, Literal

import numpy as np
import polars as pl

from crosslens.analyze import NO_VALUE, label_groups, makes_groups
from crosslens.comparisons import grouping_columns
from crosslens.core import CrosslensError, InputError, UnknownNameError
from crosslens.explanations import first_relevant, list_scores, ranking_of
from crosslens.metrics import bounds_of
from crosslens.statistics import Estimate, estimate
from crosslens.storage import Array, FloatArray, IntArray, json_form, random_stream
from crosslens.values import BOTH, IMAGE_TO_TEXT, UNRANKED, Dataset, Ranking, Run, split_name
from crosslens.web.background import RecentCache
from crosslens.web.security import Services

Rows = IntArray
_DIRECTIONS = ("t2i", "t2t", "i2t")
SUREST, NEAREST, RANDOM, ORDER, RANK = "surest", "nearest", "random", "order", "rank"
"""What queries can be sorted by besides metrics: misses by how far the first item leads the relevant one, largest or
the smallest lead first; at random; the dataset's order; the rank of the first relevant item."""
BANDS: Mapping[str, tuple[float, float]] = {"hit": (1, 1), "2-5": (2, 5), "6-10": (6, 10), "11-": (11, np.inf)}
"""Ranks of the first relevant item that queries are filtered by."""
SIDES: Mapping[str, tuple[bool, bool]] = {
    "only_this": (True, False), "only_other": (False, True), "both": (True, True), "neither": (False, False),
}  # fmt: skip
"""Whether this run and another one find a query."""
_MOST_CHOICES, _MOST_FACETS, _CACHED, _FIGURES = 12, 8, 16, 512


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
    """Which queries, and in which order.

    ``where`` has at most one ``column=value`` per column. ``outcome``: ``failed`` or one of BANDS. ``side`` is one of
    SIDES, with respect to the run ``against``.
    """

    search: str = ""
    sort: str = SUREST
    descending: bool = False
    where: tuple[str, ...] = ()
    outcome: Literal["", "failed", "hit", "2-5", "6-10", "11-"] = ""
    against: str = ""
    side: Literal["", "only_this", "only_other", "both", "neither"] = ""

    @property
    def columns(self) -> dict[str, str]:
        """Column → the value that queries must have."""
        pairs = [text.partition("=") for text in self.where]
        return {column: value for column, _, value in pairs}

    def choosing(self, facet: str, value: str) -> QueryFilter:
        """The same with another value of a facet; with the one that it has, without."""
        if facet in ("outcome", "side"):
            picked: Any = "" if getattr(self, facet) == value else value
            return replace(self, outcome=picked) if facet == "outcome" else replace(self, side=picked)
        columns = {**self.columns, facet: "" if self.columns.get(facet) == value else value}
        return replace(self, where=tuple(f"{name}={picked}" for name, picked in columns.items() if picked))


@dataclass(frozen=True)
class CountedValue:
    """A value that queries can be filtered by: how many of those that match all other facets have it, and their mean.

    The mean is of the figure that follows the filter; None where no query counts in it.
    """

    value: str
    count: int
    mean: float | None


def directions_of(run: Run) -> list[str]:
    """The directions that a run has values for, captions as queries first."""
    directions = {split_name(name)[0] for name in run} - {BOTH}
    return sorted(
        directions, key=lambda name: (_DIRECTIONS.index(name) if name in _DIRECTIONS else len(_DIRECTIONS), name)
    )


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
        self._figures: RecentCache[Estimate] = RecentCache(_FIGURES)
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
        positions = {query: row for row, query in enumerate(ranking.query_ids)}
        return np.array([positions.get(query, UNRANKED) for query in self.query_ids], np.int64)

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
        has_relevant = (self._ranking_rows >= 0) & (best[self._ranking_rows] != UNRANKED)
        return np.where(has_relevant, np.where(self.ranks == 1, "hit", "failed"), "unknown")

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
        caption_rows = self.dataset.caption_rows
        texts = [self.dataset.texts[caption_rows[query]] if query in caption_rows else None for query in self.query_ids]
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
        best = [(self.ranking.relevant[part][index], above[index] != UNRANKED, ranks[index]) for index in order]
        return [self._item(int(item), int(rank) if is_ranked else None, None, True) for item, is_ranked, rank in best]

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
        """The columns that queries of this direction can be filtered by, those with few values first."""
        table = grouping_columns(self.run, self.direction)
        if table.height != len(self.query_ids):
            return []
        usable = [
            name for name in table.columns
            if name not in ("text", "image", "file") and table[name].null_count() < table.height
            and (table[name].dtype.is_nested() or makes_groups(table[name]))
        ]  # fmt: skip
        return sorted(usable, key=lambda name: len(self.group_rows(name, usable)))

    def group_rows(self, column: str, columns: Sequence[str] | None = None) -> dict[str, Rows]:
        """The rows of each group of a column, the largest group first."""
        if column not in (self.groups if columns is None else columns):
            raise UnknownNameError("column", column, self.groups)
        with self._lock:
            if column not in self._groups:
                labels = label_groups(grouping_columns(self.run, self.direction)[column])
                self._groups[column] = {value: rows for value, rows in labels if value != NO_VALUE}
            return self._groups[column]

    @cached_property
    def metric(self) -> str:
        """The metric whose figure follows the filter: Hit@1, or the first."""
        return "Hit@1" if "Hit@1" in self.metrics else next(iter(self.metrics))

    def figure(self, rows: Rows) -> Estimate:
        """The metric over these queries, with its interval over images; kept for each set of queries."""
        values = self.metrics[self.metric]
        key = hash(np.sort(rows).tobytes())
        return self._figures.get(
            key,
            lambda: estimate(
                values.values[rows], values.clusters[rows], statistic=values.statistic, level=values.level,
                bounds=bounds_of(values.name),
            ),
        )  # fmt: skip

    def facets(self, filters: QueryFilter, other: Retrieval | None = None) -> dict[str, list[CountedValue]]:
        """Facet → its values, counted among the queries that match the search and all other facets."""
        masks = self._masks(filters, other)
        values = self.metrics[self.metric].values
        members: dict[str, dict[str, Array]] = {"outcome": {"failed": self.outcomes == "failed"}}
        members["outcome"] |= {band: self._between(*ends) for band, ends in BANDS.items()}
        if other is not None:
            members["side"] = self._sides(other)
        for column in dict.fromkeys([*filters.columns, *self.groups[:_MOST_FACETS]]):
            choices = list(self.group_rows(column).items())[:_MOST_CHOICES]
            if all(value.isdecimal() for value, _ in choices):
                choices.sort(key=lambda choice: int(choice[0]))
            members[column] = {value: self._mask(rows) for value, rows in choices}
        facets = {}
        for facet, groups in members.items():
            rest = np.logical_and.reduce([mask for name, mask in masks.items() if name != facet])
            rows = {value: values[mask & rest] for value, mask in groups.items()}
            facets[facet] = [
                CountedValue(
                    value, len(numbers), json_form(float(np.nanmean(numbers))) if np.isfinite(numbers).any() else None
                )
                for value, numbers in rows.items()
                if len(numbers) or filters.columns.get(facet) == value
            ]
        return facets

    def _mask(self, rows: Rows) -> Array:
        mask = np.zeros(len(self.query_ids), np.bool_)
        mask[rows] = True
        return mask

    def _between(self, first: float, last: float) -> Array:
        within = (self.ranks >= first) & (self.ranks <= last) & (self.outcomes == "failed")
        return np.asarray(self.outcomes == "hit" if last == 1 else within)

    def _sides(self, other: Retrieval) -> dict[str, Array]:
        """The queries that this run, the other one, both or neither find; those that only one has are in none."""
        rows = np.array([other.rows.get(query, UNRANKED) for query in self.query_ids], np.int64)
        theirs = np.where(rows >= 0, other.outcomes[rows], "unknown")
        judged_by_both = (self.outcomes != "unknown") & (theirs != "unknown")
        ours = self.outcomes == "hit"
        return {
            side: judged_by_both & (ours == this) & ((theirs == "hit") == that) for side, (this, that) in SIDES.items()
        }

    def _masks(self, filters: QueryFilter, other: Retrieval | None) -> dict[str, Array]:
        """Facet → the queries that match what is chosen of it; the search is one of them."""
        matching = np.ones(len(self.query_ids), np.bool_)
        for word in filters.search.lower().split():
            matching &= self._words.str.contains(word, literal=True).to_numpy()
        masks = {"search": matching}
        for column, value in filters.columns.items():
            groups = self.group_rows(column)
            if value not in groups:
                raise UnknownNameError(f"value of {column}", value, groups)
            masks[column] = self._mask(groups[value])
        if filters.outcome == "failed":
            masks["outcome"] = self.outcomes == "failed"
        elif filters.outcome:
            masks["outcome"] = self._between(*BANDS[filters.outcome])
        if filters.side and other is not None:
            masks["side"] = self._sides(other)[filters.side]
        return masks

    def select(self, filters: QueryFilter, other: Retrieval | None = None) -> Rows:
        """The rows that match, in order. Queries without a value come last, whichever way they are sorted."""
        matching = np.logical_and.reduce(list(self._masks(filters, other).values()))
        order = self._order(filters.sort, filters.descending)
        rows: Rows = order[matching[order]]
        return rows

    @cached_property
    def leads(self) -> FloatArray:
        """How far the first item's score is above that of the first relevant one, at least: NaN where not known."""
        if self.ranking is None or not self.ranking.depth:
            return np.full(len(self.query_ids), np.nan)
        first, truth, last = list_scores(self.ranking, first_relevant(self.ranking)[0])
        position = self._ranking_rows
        # Of an item that an imported list leaves out nothing is known: it has no rank.
        ranked = (position >= 0) & (self.outcomes == "failed") & (self.ranks != UNRANKED)
        return np.where(ranked, (first - np.where(np.isnan(truth), last, truth))[position], np.nan)

    def _order(self, sort: str, descending: bool) -> Rows:
        """All rows in an order, equal ones as in the dataset; kept, for sorting takes longer than all the rest."""
        keys = dict.fromkeys((SUREST, NEAREST, RANDOM, ORDER)) | {RANK: self.ranks}
        keys |= {name: metric.values for name, metric in self.metrics.items()}
        if sort not in keys:
            raise UnknownNameError("order", sort, keys)
        with self._lock:
            if (sort, descending) not in self._orders:
                if sort == RANDOM:
                    rows = random_stream(0, "order of queries").permutation(len(self.query_ids))
                elif sort in (SUREST, NEAREST):
                    rows = np.lexsort((-self.leads if sort == SUREST else self.leads, self.outcomes != "failed"))
                elif (values := keys[sort]) is None:
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
        directions = directions_of(opened)
        if not directions:
            problem = f"the run {opened.name!r} has no values per query"
            raise InputError(problem, fix="repeat the evaluation", code="no-queries")
        if direction is not None and direction not in directions:
            raise UnknownNameError("direction of this run", direction, directions)
        name, summary = direction or directions[0], self.library.summary(run)

        def make() -> Retrieval:
            return Retrieval(opened, name, self.dataset_if_known(run)[0], partial(self.has_picture, summary.dataset))

        return self._retrievals.get((run, summary.signature, name), make)

    def retrieval_if_known(self, run: str, direction: str) -> Retrieval | None:
        """One direction of a run; None where the run cannot be read, or has no such direction."""
        try:
            return self.retrieval(run, direction)
        except (CrosslensError, OSError):
            return None

    def has_picture(self, dataset: str, image: str | None) -> bool:
        return image is not None and bool(dataset) and self.services.pictures.exists(dataset, image)
