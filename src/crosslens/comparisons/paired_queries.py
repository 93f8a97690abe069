"""Two runs on the same queries: which queries either finds, how groups differ, and what you would lose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from crosslens.analyze import NO_VALUE, QueryGroup, label_groups, makes_groups
from crosslens.core import CrosslensError, InputError, PictureCard, QueryCard
from crosslens.explanations import dataset_of_run, first_relevant, image_files_of_run
from crosslens.language import count_words
from crosslens.metrics import bounds_of, facts_of
from crosslens.statistics import correct, detectable_difference, paired_permutation
from crosslens.storage import BoolArray, FloatArray, IntArray
from crosslens.values import IMAGE_TO_TEXT, UNRANKED, Ids, Run, match_ids, split_name

CAPTION_LENGTH = "caption_length"
"""The words of a caption query: a column that every run with captions has."""
SAME_TRUTH = "evaluate both runs on the same dataset with the same relevance"
SHOWN_QUERIES = 8
"""Queries of a set that are shown with pictures."""
_FEWEST_QUERIES, _FEWEST_IMAGES = 10, 10
_MOST_GROUPS, _MOST_COLUMNS, _PERMUTATIONS = 16, 6, 2000
"""Values of a column, columns, and permutations of the test of a group: weighted ones estimate what is smaller."""
SETS = ("only_first", "only_second", "both", "neither")


def aligned(name: str, baseline: Run, other: Run) -> tuple[FloatArray, IntArray]:
    """The other run's values in the baseline's order of queries, and the row of each there: −1 where it is not there.

    Queries are matched by id; both runs must count the same ones.
    A query that has no relevant item may be in one of them only: images without captions enlarge the gallery of t2i,
    and change nothing about i2t.
    """
    ours, theirs = baseline[name], other[name]
    for run, compared in ((baseline, other), (other, baseline)):
        rows = _rows_in(run[name].query_ids, compared[name].query_ids)
        valid = ~np.isnan(run[name].values)
        missing = [run[name].query_ids[row] for row in np.flatnonzero(valid & (rows < 0))]
        if missing:
            raise InputError(
                f"{name}: {len(missing):,} of the {int(valid.sum()):,} queries of {run.name!r} are not in "
                f"{compared.name!r}, the first is {missing[0]!r}",
                expected="the same queries in both runs",
                fix=SAME_TRUTH,
            )
    order = _rows_in(ours.query_ids, theirs.query_ids)
    values = np.where(order >= 0, theirs.values[order], np.nan)
    apart = np.isnan(values) != np.isnan(ours.values)
    if apart.any():
        raise InputError(
            f"{name}: {int(apart.sum()):,} queries count in only one of {baseline.name!r} and {other.name!r}, "
            f"the first is {ours.query_ids[int(np.argmax(apart))]!r}",
            expected="queries with the same relevant items in both runs",
            fix=SAME_TRUTH,
        )
    return values, order


def _rows_in(queries: Ids, ids: Ids) -> IntArray:
    """The row of each query among the known ones; −1 without. Runs of one dataset have the same: nothing to look up."""
    return np.arange(len(queries)) if queries == ids else match_ids(queries, ids)


def grouping_columns(run: Run, direction: str) -> pl.DataFrame:
    """The columns that the queries of a direction can be grouped by; those with a text have the length of it, too."""
    table = run.columns.get(direction, pl.DataFrame())
    if "text" not in table.columns or CAPTION_LENGTH in table.columns:
        return table
    return table.with_columns(count_words(table["text"]).alias(CAPTION_LENGTH))


def span_of(metric: str) -> float | None:
    """The largest change that a query's value can have; None where nothing bounds it."""
    low, high = bounds_of(metric) or (0.0, np.inf)
    return high - low if np.isfinite(high - low) else None


def group_words(column: str, group: str) -> str:
    """A group as people read it: lengths of captions as whole numbers of words."""
    if column != CAPTION_LENGTH:
        return group
    return QueryGroup(column, group, "", False, np.zeros(0, np.int64)).where.removeprefix("captions of ")


@dataclass(frozen=True)
class GroupDifference:
    """The queries of one value of a column: both means, their difference with its interval, and what could be seen.

    Interval and p-value are corrected for all groups of all columns.
    """

    column: str
    group: str
    queries: int
    images: int
    first: float
    second: float
    difference: float
    low: float
    high: float
    p_value: float
    adjusted_p: float
    detectable: float

    @property
    def where(self) -> str:
        """The group in a sentence: ``style “sparse”``, ``captions of 7 to 8 words``."""
        if self.column == CAPTION_LENGTH:
            return f"captions of {self.group}"
        return QueryGroup(self.column, self.group, "", False, np.zeros(0, np.int64)).where

    def differs(self, level: float) -> bool:
        return self.adjusted_p < 1 - level and (self.low > 0 or self.high < 0)


@dataclass(frozen=True, eq=False)
class PairedQueries:
    """Two runs by the metric that decides: sets of queries, differences by group, and the queries that changed most.

    ``sets`` has the ids of queries that only the first run finds, only the second, both or neither: those whose rank
    changes most first. It is empty where the metric does not say whether a query is found. ``examples`` shows the first
    queries of each of the first two sets; ``pictures`` are files of their images, and ``problem`` says why there are
    none.
    """

    metric: str
    runs: tuple[str, str]
    sets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    groups: tuple[GroupDifference, ...] = ()
    examples: Mapping[str, tuple[QueryCard, ...]] = field(default_factory=dict, metadata={"json": False})
    pictures: Mapping[str, str] = field(default_factory=dict, metadata={"json": False})
    problem: str | None = field(default=None, metadata={"json": False})

    @property
    def images(self) -> list[str]:
        """The images that are shown."""
        cards = (card for queries in self.examples.values() for query in queries for card in query.pictures)
        return list(dict.fromkeys(card.image for card in cards if card.image is not None))


def pair_queries(
    first: Run, second: Run, metric: str, *, level: float, correction: str = "holm", permutations: int = 10_000,
    seed: int = 0,
) -> PairedQueries:  # fmt: skip
    """The queries of two runs side by side, by the metric that decides, and the files of their pictures."""
    direction, facts = split_name(metric)[0], facts_of(metric)
    if facts.pooled or direction not in ("t2i", "i2t", "t2t"):
        return PairedQueries(metric, (first.name, second.name))
    values, _order = aligned(metric, first, second)
    groups = _groups(first, metric, values, level, correction, min(permutations, _PERMUTATIONS), seed)
    result = PairedQueries(metric, (first.name, second.name), query_sets(first, second, metric), groups)
    if not result.sets:
        return result
    sides, sets = [_Side(run, direction) for run in (first, second)], result.sets
    examples = {
        name: tuple(
            QueryCard(query, sides[0].text(query) or "", _cards(query, sides, result.runs))
            for query in sets[name][:SHOWN_QUERIES]
        )
        for name in SETS
    }
    result = replace(result, examples=examples)
    files, problem = _pictures(first, result.images)
    examples = {name: tuple(_with_ids(card, files) for card in queries) for name, queries in result.examples.items()}
    return replace(result, examples=examples, pictures=files, problem=problem)


def query_sets(first: Run, second: Run, metric: str) -> dict[str, tuple[str, ...]]:
    """The queries that only the first run finds, only the second, both or neither: largest changes of rank first."""
    direction, ids = split_name(metric)[0], first[metric].query_ids
    hits, hit = _hits(first[metric].values, aligned(metric, first, second)[0]), f"{direction}/Hit@1"
    # Where the metric does not say what is found, Hit@1 of the same queries does.
    if not hits and hit in first.values and hit in second.values and first[hit].query_ids == ids:
        hits = _hits(first[hit].values, aligned(hit, first, second)[0])
    if not hits:
        return {}
    ranks = [side.ranks_of(ids) for side in (_Side(first, direction), _Side(second, direction))]
    change = np.abs(np.log(ranks[0]) - np.log(ranks[1]))
    sets = {}
    for name, (before, after) in zip(SETS, ((1, 0), (0, 1), (1, 1), (0, 0)), strict=True):
        rows = np.flatnonzero((hits[0] == before) & (hits[1] == after))
        sets[name] = tuple(ids[row] for row in rows[np.argsort(-change[rows], kind="stable")])
    return sets


def _hits(first: FloatArray, second: FloatArray) -> tuple[BoolArray, BoolArray] | tuple[()]:
    """Whether each run finds each query; NaN (as 2) where it does not count; nothing where values are not 0 and 1."""
    values = np.concatenate([first, second])
    if not np.isin(values[~np.isnan(values)], (0.0, 1.0)).all():
        return ()
    valid = ~np.isnan(first)
    return np.where(valid, first, 2.0), np.where(valid, second, 2.0)


def _groups(
    run: Run, metric: str, values: FloatArray, level: float, correction: str, permutations: int, seed: int
) -> tuple[GroupDifference, ...]:
    """The difference in every group of every column, the largest first within a column; corrected for all of them."""
    ours, bounds = run[metric], bounds_of(metric)
    if ours.statistic != "mean" or not run.columns:
        return ()
    direction = split_name(metric)[0]
    table = grouping_columns(run, direction)
    if table.height != len(ours.query_ids):
        return ()
    valid, candidates = ~np.isnan(values), []
    columns = [name for name in table.columns if name != "text" and makes_groups(table[name])]
    for column in sorted(columns, key=lambda name: (name == CAPTION_LENGTH, table[name].n_unique()))[:_MOST_COLUMNS]:
        groups = []
        for name, members in label_groups(table[column])[:_MOST_GROUPS]:
            rows = members[valid[members]]
            images = len(np.unique(ours.clusters[rows]))
            if name != NO_VALUE and len(rows) >= _FEWEST_QUERIES and images >= _FEWEST_IMAGES:
                groups.append((column, group_words(column, name), rows, images))
        candidates += groups if len(groups) > 1 else []
    results = []
    for column, name, rows, images in candidates:
        clusters = ours.clusters[rows]
        test = paired_permutation(
            values[rows], ours.values[rows], clusters, permutations=permutations, seed=seed, bounds=bounds,
            level=1 - (1 - level) / len(candidates),
        )  # fmt: skip
        smallest = detectable_difference(
            values[rows] - ours.values[rows], clusters, level=level, tests=len(candidates), span=span_of(metric)
        )
        mean, other_mean = (float(side[rows].mean()) for side in (ours.values, values))
        figures = (test.difference, test.low, test.high, test.p_value, test.p_value, smallest)
        results.append(GroupDifference(column, name, len(rows), images, mean, other_mean, *figures))
    adjusted = correct([group.p_value for group in results], correction)
    order = list(dict.fromkeys(group.column for group in results))
    results = [replace(group, adjusted_p=float(p)) for group, p in zip(results, adjusted, strict=True)]
    return tuple(sorted(results, key=lambda group: (order.index(group.column), -group.difference)))


class _Side:
    """One direction of a run: what it puts first for a query, and where the first relevant item is."""

    def __init__(self, run: Run, direction: str) -> None:
        self.run, self.by_image = run, direction == IMAGE_TO_TEXT
        self.ranking = run.rankings.get(direction)
        self.rows = {} if self.ranking is None else {query: row for row, query in enumerate(self.ranking.query_ids)}
        self.rank = np.zeros(0, np.int64) if self.ranking is None else first_relevant(self.ranking)[1]
        self.texts: dict[str, str] = {}
        for name, table in run.columns.items():  # of captions, whichever direction has them
            metric = next((full_name for full_name in run.values if split_name(full_name)[0] == name), None)
            if name != IMAGE_TO_TEXT and metric is not None and table.schema.get("text") == pl.String:
                self.texts |= dict(zip(run[metric].query_ids, table["text"], strict=True))

    def ranks_of(self, queries: Ids) -> FloatArray:
        """The rank of the first relevant item; behind the whole gallery where it is unknown."""
        if self.ranking is None:
            return np.ones(len(queries))
        rows = np.array([self.rows.get(query, UNRANKED) for query in queries], np.int64)
        ranks = np.where(rows >= 0, self.rank[rows], UNRANKED)
        return np.where(ranks == UNRANKED, len(self.ranking.item_ids) + 1, ranks).astype(np.float64)

    def text(self, query: str) -> str | None:
        return None if self.by_image else self.texts.get(query)

    def hit(self, query: str) -> tuple[str | None, int | None, bool]:
        """What is first, the rank of the first relevant item, and whether these are the same."""
        row = self.rows.get(query)
        if self.ranking is None or row is None or not self.ranking.depth or self.ranking.top_items[row, 0] == UNRANKED:
            return None, None, False
        rank = int(self.rank[row])
        return self.ranking.item_ids[self.ranking.top_items[row, 0]], None if rank == UNRANKED else rank, rank == 1


def _cards(query: str, sides: list[_Side], runs: tuple[str, str]) -> tuple[PictureCard, ...]:
    """The query image, if it is one; then what either run puts first."""
    cards = [PictureCard(f"image {query}", (), query)] if sides[0].by_image else []
    for side, run in zip(sides, runs, strict=True):
        item, rank, right = side.hit(query)
        if item is not None:
            where = "" if right else " · right not in its list" if rank is None else f" · right at {rank:,}"
            text = (side.texts.get(item, item),) if side.by_image else ()
            image = None if side.by_image else item
            cards.append(PictureCard(run + where, text, image, mark="right" if right else "wrong"))
    return tuple(cards)


def _with_ids(card: QueryCard, files: Mapping[str, str]) -> QueryCard:
    """The card with the ids of images that have no picture."""
    pictures = (
        item if item.image is None or item.image in files else replace(item, lines=(*item.lines, item.image))
        for item in card.pictures
    )
    return replace(card, pictures=tuple(pictures))


def _pictures(run: Run, images: list[str]) -> tuple[Mapping[str, str], str | None]:
    """The files of these images; none, and why, where the dataset of the run is not there."""
    try:
        return image_files_of_run(run, dataset_of_run(run), images)
    except (CrosslensError, OSError) as error:
        return {}, error.problem if isinstance(error, CrosslensError) else "the dataset cannot be read"
