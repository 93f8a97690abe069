"""Is a group of the queries weaker than the others, more than the weakest of so many would be by chance?

Every column that makes groups is searched at once. A permutation gives each image the outcomes of another (its captions
stay together), and the largest deficit of all groups, in its own standard deviations, is compared with the one that was
seen: p holds for the whole search. The figure of the weakest is too low, as it was looked for: what is printed is the
median-unbiased estimate, given that it was large enough to be said.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from crosslens.analyze.subject import Planted, Subject, analysis
from crosslens.core import STATED_SIZE, Effect, Figure, Observation, Presented, Section, Table, Text, finding_kind
from crosslens.language import count_words
from crosslens.metrics import format_count
from crosslens.storage import BoolArray, FloatArray, IntArray, json_form, random_stream
from crosslens.values import IMAGE_TO_TEXT, TEXT_TO_IMAGE, Dataset

NO_VALUE = "(none)"
CAPTION_LENGTH = "caption_length"
"""The words of a caption: a column that every dataset has."""
_MOST_NUMBERS = 12
"""A column of numbers with more distinct values than this is split at its quartiles."""
_BOOKKEEPING = re.compile(
    r"(^|[_\W])(ids?|nr|no|num|number|index|row|seed|urls?|uri|files?|path|hash|md5|sha\d*|date|time|width|height|text)$",
    re.IGNORECASE,
)
"""Names of columns that number rows or say where a picture is from."""
_FEWEST_QUERIES, _FEWEST_IMAGES, _LARGEST_SHARE = 8, 4, 2 / 3
"""A group that is said to be weak has at least so many queries, of so many images, and at most this share of all."""
_PILOT, _STEP, _ENOUGH = 200, 250, 40
"""Permutations that standard deviations are taken from; permutations at a time; once so many are as extreme, p is."""
_CELLS = 4_000_000
_LEVEL, _SURELY = 0.05, 0.01
_MOST_FINDINGS = 5
_SMALL = "small objects"
_QUERIES = {TEXT_TO_IMAGE: "caption", IMAGE_TO_TEXT: "image"}


def label_groups(labels: pl.Series) -> list[tuple[str, IntArray]]:
    """Every group with the rows of its queries: the largest first, bins of numbers in their own order."""
    if labels.dtype.is_numeric() and labels.n_unique() > _MOST_NUMBERS:
        numbers = labels.cast(pl.Float64).fill_null(np.nan).to_numpy()
        edges = np.unique(np.nanquantile(numbers, [0, 0.25, 0.5, 0.75, 1]))
        bins = np.searchsorted(edges[1:-1], numbers, side="right")
        bins[np.isnan(numbers)] = -1
        quartiles = []
        for number in range(max(1, len(edges) - 1)):
            low, high = edges[number], edges[min(number + 1, len(edges) - 1)]
            name = f"[{low:g}, {high:g}{']' if number >= len(edges) - 2 else ')'}"
            quartiles.append((name, np.flatnonzero(bins == number)))
        quartiles.append((NO_VALUE, np.flatnonzero(bins == -1)))
        return [(name, rows) for name, rows in quartiles if len(rows)]
    table = pl.DataFrame({"label": labels}).with_row_index("row")
    if isinstance(labels.dtype, pl.List):
        filled = pl.when(pl.col("label").list.len() > 0).then(pl.col("label"))  # an empty list is no value
        table = table.with_columns(filled).explode("label").unique(maintain_order=True)
    table = table.with_columns(pl.col("label").cast(pl.String).replace("", None).fill_null(NO_VALUE))
    groups = table.group_by("label").agg("row").sort(pl.col("row").list.len(), "label", descending=[True, False])
    return [(str(label), rows.to_numpy()) for label, rows in zip(groups["label"], groups["row"], strict=True)]


def _runs(labels: pl.Series) -> list[tuple[str, IntArray]]:
    """The groups of a column; of numbers also every two or more neighbours, which may be weak together."""
    groups = label_groups(labels)
    if not labels.dtype.is_numeric():
        return groups
    bins = [(name, rows) for name, rows in groups if name not in (NO_VALUE, "NaN")]
    if labels.n_unique() <= _MOST_NUMBERS:
        bins.sort(key=lambda group: float(group[0]))
    for low, (first, _) in enumerate(bins):
        for high in range(low + 2, len(bins) + 1):
            last = bins[high - 1][0]
            ends = (first.partition(",")[0], last.partition(", ")[2]) if first[0] == "[" else (first, last)
            groups.append(
                ((", " if first[0] == "[" else " to ").join(ends), np.concatenate([rows for _, rows in bins[low:high]]))
            )
    return groups


def makes_groups(values: pl.Series) -> bool:
    """Whether a column splits rows into groups, instead of numbering them or saying something else of each."""
    if values.dtype.is_nested() or _BOOKKEEPING.search(values.name):
        return False
    values = values.drop_nulls()
    kinds = values.n_unique()
    if kinds < 2:
        return False
    if values.dtype.is_float():
        whole = bool((values.is_finite() & (values == values.round(0))).all())
        return not (whole and kinds > len(values) / 2) and kinds > 1
    return kinds <= max(2, len(values) // (2 if values.dtype.is_integer() else 5))


def group_columns(dataset: Dataset) -> dict[str, pl.Series]:
    """The columns of images and captions that make groups, those of captions as long as there are captions."""
    captions, images = dataset.captions, dataset.images
    keys = {"caption", "image", "text"}
    columns = {name: captions[name] for name in captions.columns if name not in keys and makes_groups(captions[name])}
    length = count_words(captions["text"]).alias(CAPTION_LENGTH)
    if CAPTION_LENGTH not in captions.columns and length.n_unique() > 1:
        columns[CAPTION_LENGTH] = length
    ids = set(dataset.image_ids)
    for name in images.columns:
        values = images[name]
        names_images = values.dtype == pl.String and set(values.drop_nulls()) <= ids
        if name not in keys | columns.keys() and makes_groups(values) and not names_images:
            columns[name] = values
    return columns


class QueryGroup(NamedTuple):
    """The rows of one value of a column: of images, or of captions where the column is of captions."""

    column: str
    name: str
    direction: str
    of_images: bool
    rows: IntArray

    @property
    def metric(self) -> str:
        return f"{self.direction}/Hit@1"

    @property
    def where(self) -> str:
        """The group as every sentence calls it: ``style “sparse”``, ``queries where “things” is 2``."""
        column = self.column.replace("_", " ")
        bounds = re.fullmatch(r"\[([\d.e+-]+), ([\d.e+-]+)([\])])|(-?[\d.]+ to )?(-?[\d.]+)", self.name)
        if bounds is None:
            return f"{column} “{self.name}”"
        run = bounds[4] or ""
        if self.column != CAPTION_LENGTH:  # a number says nothing beside the bare name of its column
            ends = f"from {bounds[1]} to {'below ' * (bounds[3] == ')')}{bounds[2]}"
            return f"queries where “{column}” is {run + bounds[5] if bounds[5] else ends}"
        if bounds[5]:
            return f"captions of {run}{format_count(int(float(bounds[5])), 'word')}"
        low = math.ceil(float(bounds[1]))
        high = math.floor(float(bounds[2])) if bounds[3] == "]" else math.ceil(float(bounds[2])) - 1
        return f"captions of {low} words" if low == high else f"captions of {low} to {high} words"


class _Outcomes(NamedTuple):
    """The outcomes of captions and of images, by row of the dataset (NaN: not asked), and whose each caption is."""

    owner: IntArray
    captions: FloatArray
    images: FloatArray

    def of(self, direction: str) -> tuple[FloatArray, IntArray]:
        """The outcomes of a direction, and the image of each."""
        return (self.images, np.arange(len(self.images))) if direction == IMAGE_TO_TEXT else (self.captions, self.owner)

    def by_image(self, direction: str) -> tuple[FloatArray, FloatArray]:
        """Sums and numbers of outcomes."""
        values, owner = self.of(direction)
        counts = np.bincount(owner, np.isfinite(values), len(self.images))
        return np.bincount(owner, np.nan_to_num(values), len(self.images)).astype(float), counts.astype(float)

    def members(self, group: QueryGroup) -> BoolArray:
        """Of each caption (of i2t: of each image), whether it was asked and is in the group."""
        values, owner = self.of(group.direction)
        rows = owner if group.of_images else np.arange(len(values))
        return np.isin(rows, group.rows) & np.isfinite(values)

    def without(self, group: QueryGroup) -> _Outcomes:
        """The rest, with nothing of the group."""
        captions, images = self.captions.copy(), self.images.copy()
        captions[np.isin(self.owner, group.rows) if group.of_images else group.rows] = np.nan
        if group.of_images:
            images[group.rows] = np.nan
        return _Outcomes(self.owner, captions, images)


class _Permutations:
    """The deficits of all groups under permutations of images, which keep their captions and stay within strata."""

    def __init__(self, outcomes: _Outcomes, groups: Sequence[QueryGroup], strata: IntArray | None) -> None:
        from scipy.sparse import csr_array, vstack

        sides = {direction: outcomes.by_image(direction) for direction in _QUERIES}
        image_rows = np.flatnonzero(sides[TEXT_TO_IMAGE][1] + sides[IMAGE_TO_TEXT][1])
        self._size = len(groups)
        self._strata = np.zeros(len(image_rows), np.int64) if strata is None else strata[image_rows]

        def matrix(numbers: Sequence[int], rows: IntArray) -> Any:
            return vstack([csr_array(np.isin(rows, groups[n].rows)[None].astype(float)) for n in numbers])

        self._of_images = []  # the groups' numbers, which images are in each, sums and numbers of outcomes by image
        for direction, (sums, counts) in sides.items():
            numbers = [n for n, group in enumerate(groups) if group.of_images and group.direction == direction]
            if numbers:
                self._of_images.append((numbers, matrix(numbers, image_rows), sums[image_rows], counts[image_rows]))
        self._of_captions = [n for n, group in enumerate(groups) if not group.of_images]
        self._blocks: list[tuple[IntArray, FloatArray]] = []
        if self._of_captions:  # captions in blocks of images with as many captions, of one stratum: images × captions
            counts = sides[TEXT_TO_IMAGE][1][image_rows].astype(np.int64)
            rows = np.flatnonzero(np.isfinite(outcomes.captions))
            owners = np.searchsorted(image_rows, outcomes.owner[rows])
            order = np.lexsort([rows, owners, self._strata[owners], counts[owners]])
            rows, owners = rows[order], owners[order]
            self._matrix = matrix(self._of_captions, rows)
            alike = np.flatnonzero(np.diff(counts[owners]) | np.diff(self._strata[owners])) + 1
            for block in np.split(np.arange(len(rows)), alike):
                width = counts[owners[block[0]]]
                self._blocks.append((owners[block[::width]], outcomes.captions[rows[block]].reshape(-1, width)))

    def observed(self) -> FloatArray:
        blocks = [hits.ravel()[None] for _, hits in self._blocks]
        return np.asarray(self._deficits(np.arange(len(self._strata))[None], blocks)[0])

    def draw(self, stream: np.random.Generator, draws: int) -> FloatArray:
        """Deficits, draws × groups."""
        keys = stream.random((draws, len(self._strata)))
        images = np.empty(keys.shape, np.int64)
        images[:, np.argsort(self._strata, kind="stable")] = np.lexsort(
            [keys, np.broadcast_to(self._strata, keys.shape)], axis=-1
        )
        blocks = []
        for owners, hits in self._blocks:
            width = hits.shape[1]
            turned = np.hstack([hits, hits]).ravel()  # an image's captions change places in a circle
            starts = np.argsort(keys[:, owners], axis=1) * (2 * width)
            starts += stream.integers(0, width, starts.shape)
            blocks.append(turned[starts[:, :, None] + np.arange(width)].reshape(draws, -1))
        return self._deficits(images, blocks)

    def _deficits(self, images: IntArray, blocks: Sequence[FloatArray]) -> FloatArray:
        deficits = np.zeros((len(images), self._size))

        def deficit(matrix: Any, outcomes: FloatArray, counts: FloatArray) -> FloatArray:
            sums, inside = (matrix @ outcomes.T).T, (matrix @ counts.T).T
            total, number = outcomes[:1].sum(), counts[:1].sum()
            below = (total - sums) / np.maximum(number - inside, 1) - sums / np.maximum(inside, 1)
            return np.where((inside > 0) & (inside < number), below, 0.0)

        for numbers, matrix, sums, counts in self._of_images:
            deficits[:, numbers] = deficit(matrix, sums[images], counts[images[:1] if np.ptp(counts) == 0 else images])
        if self._of_captions:
            hits = np.concatenate(blocks, axis=1)
            deficits[:, self._of_captions] = deficit(self._matrix, hits, np.ones((1, hits.shape[1])))
        return deficits


def _weakest(
    subject: Subject, outcomes: _Outcomes, groups: Sequence[QueryGroup], permutations: int,
    stream: np.random.Generator, strata: IntArray | None = None,
) -> WeakGroup | None:  # fmt: skip
    """The group with the largest deficit in its own standard deviations, and p of the search; None: nothing varies."""
    if not groups:
        return None
    sampler = _Permutations(outcomes, groups, strata)
    errors, deficits = sampler.draw(stream, _PILOT).std(axis=0), sampler.observed()
    scale = np.where(errors > 1e-12, errors, np.inf)
    if np.isinf(scale).all():
        return None
    top = int(np.argmax(deficits / scale))
    largest = deficits[top] / scale[top]
    step = int(np.clip(_CELLS // max(len(outcomes.captions), 1), 10, _STEP))
    maxima = np.zeros(0)
    while len(maxima) < permutations:
        part = (sampler.draw(stream, min(step, permutations - len(maxima))) / scale).max(axis=1)
        maxima = np.append(maxima, part)
        as_extreme = np.flatnonzero(maxima >= largest - 1e-9)
        if len(as_extreme) >= _ENOUGH:  # Besag and Clifford (1991): valid where drawing stops early
            p = _ENOUGH / (int(as_extreme[_ENOUGH - 1]) + 1)
            break
    else:
        p = (1 + len(as_extreme)) / (1 + permutations)
    group, members = groups[top], outcomes.members(groups[top])
    hits, owner = outcomes.of(group.direction)
    valid = np.isfinite(hits)
    error = _error(hits[valid], members[valid], owner[valid])
    critical = float(np.quantile(maxima, 1 - _LEVEL))  # the largest deficit that chance exceeds in 5 % of permutations
    figures = _after_selection(float(deficits[top]), float(errors[top]), error, critical)
    # It looks weak mostly because it was looked for; within strata, the group is given.
    if strata is None and figures[0] < max(STATED_SIZE, deficits[top] / 2):
        p = max(p, 0.5)
    ids = subject.dataset.image_ids if group.direction == IMAGE_TO_TEXT else subject.dataset.caption_ids
    same = [other for other in groups if other.direction == group.direction and other.column != group.column]
    also = tuple(other.where for other in same if np.array_equal(outcomes.members(other), members))
    every = subject.image_hits if group.direction == IMAGE_TO_TEXT else subject.caption_hits
    return WeakGroup(
        group, int(members.sum()), float(members.sum() / max(np.isfinite(every).sum(), 1)),
        float(hits[valid & ~members].mean()), *figures, p,
        tuple(ids[row] for row in np.flatnonzero(members & (hits < 1))), also,
    )  # fmt: skip


def _after_selection(raw: float, null: float, error: float, critical: float) -> tuple[float, float, float]:
    """A deficit that is only said where it exceeds a limit: its median-unbiased estimate, and an interval.

    The error grows from ``null`` where there is no deficit to ``error`` at the one seen. The lower end is simultaneous
    over all groups, so it excludes 0 exactly where the search is significant; the upper end, which selection cannot
    make too low, is the usual one.
    """
    from scipy.optimize import brentq
    from scipy.special import log_ndtr, ndtri

    def spread(deficit: float) -> float:
        share = float(np.clip(deficit / raw, 0, 1)) if raw > 0 else 0.0
        return float(np.sqrt(max(null**2 + (error**2 - null**2) * share, 1e-12)))

    def excess(deficit: float) -> float:  # P(at least what was seen | it is said) − ½
        limit = min(critical * null, raw)
        chances = log_ndtr(np.array([deficit - raw, deficit - limit]) / spread(deficit))
        return float(np.exp(chances[0] - chances[1])) - 0.5

    low = float(brentq(lambda deficit: (raw - deficit) / spread(deficit) - critical, raw - 20, raw + 1e-12))
    high = min(raw + float(ndtri(1 - _LEVEL / 2)) * error, 1.0)
    value = raw if excess(raw) <= 0 else low if excess(low) >= 0 else float(brentq(excess, low, raw))
    return min(max(value, low), raw), max(low, -1.0), high


def _error(values: FloatArray, inside: BoolArray, images: IntArray) -> float:
    """The standard error of a deficit over images, and at least what the number of outcomes in the group allows."""
    images = np.unique(images, return_inverse=True)[1]
    size = int(images.max(initial=0)) + 1

    def clustered(part: BoolArray) -> float:
        moves = np.bincount(images[part], values[part] - values[part].mean(), size) / part.sum()
        present = len(np.unique(images[part]))
        return float((moves**2).sum()) * present / max(present - 1, 1)

    def least(part: BoolArray) -> float:
        number = float(part.sum()) / alike
        share = (float(values[part].mean()) * number + 1) / (number + 2)
        return share * (1 - share) / number

    everything, mean = np.ones(len(values), bool), float(values.mean())
    alike = float(np.clip(clustered(everything) * len(values) / max(mean * (1 - mean), 1e-9), 1, len(values) / size))
    return float(np.sqrt(sum(max(clustered(part), least(part)) for part in (inside, ~inside))))


@dataclass(frozen=True, eq=False)
class WeakGroup:
    """A group and how far it is below the others, re-estimated; ``p`` is that of the whole search.

    ``share`` is that of all queries, ``missing`` are the ids of its queries that miss; ``also`` says what else the same
    queries are, ``without`` which weaker groups are not among the others.
    """

    group: QueryGroup
    queries: int
    share: float
    others: float
    points: float
    low: float
    high: float
    p: float
    missing: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    @property
    def value(self) -> float:
        """What is left of the others' figure."""
        return float(min(max(self.others - self.points, 0.0), 1.0))

    def observation(self, kind: str, subject: str = "", size: str = "") -> Observation:
        words = {
            "metric": self.group.metric, "size": size,
            "where": self.group.where, "n": format_count(self.queries, _QUERIES[self.group.direction]),
            "points": Figure(self.points, self.low, self.high, scale=100, digits=0, unit=" points"),
            "others": f"the rest (without {'; '.join(self.without)})" if self.without else "the others",
        }  # fmt: skip
        effect, weight = Effect.of("points", self.points, self.low, self.high), max(self.points, 0.0) * self.share
        evidence = [{"query": query} for query in self.missing]
        return Observation(kind, words, effect, weight, self.p, evidence=evidence, subject=subject)

    def as_dict(self) -> dict[str, Any]:
        names = ("queries", "value", "others", "points", "low", "high", "p", "also", "without")
        group = {"column": self.group.column, "group": self.group.name, "direction": self.group.direction}
        return group | {name: getattr(self, name) for name in names}


def _group_table(groups: Sequence[WeakGroup], notes: tuple[str, ...]) -> Table:
    rows = [
        (
            _SMALL if weak.group.name == _SMALL else weak.group.where, weak.group.metric, weak.queries,
            Figure.percent(weak.value), Figure.percent(weak.points, weak.low, weak.high), Figure.p(weak.p),
        )
        for weak in groups
    ]  # fmt: skip
    return Table(("group", "metric", "queries", "figure", "points below the others", "p"), rows, "llrrlr", notes=notes)


def _outcomes_of(subject: Subject) -> _Outcomes:
    return _Outcomes(subject.owner, subject.caption_hits, subject.image_hits)


def _groups_of(subject: Subject) -> list[QueryGroup]:
    """Every group of the columns, and every run of an ordered one, in each direction that asks."""
    return [
        QueryGroup(column, name, direction, of_images, rows)
        for column, values in group_columns(subject.dataset).items()
        for of_images in (len(values) != len(subject.caption_hits),)
        for name, rows in _runs(values)
        for direction in ((TEXT_TO_IMAGE, IMAGE_TO_TEXT) if of_images else (TEXT_TO_IMAGE,))
    ]


def _searchable(outcomes: _Outcomes, groups: Iterable[QueryGroup]) -> list[QueryGroup]:
    counts = {direction: np.isfinite(outcomes.of(direction)[0]).sum() for direction in _QUERIES}

    def fits(group: QueryGroup) -> bool:
        inside = outcomes.members(group)
        images = len(np.unique(outcomes.of(group.direction)[1][inside]))
        return _FEWEST_QUERIES <= inside.sum() <= _LARGEST_SHARE * counts[group.direction] and images >= _FEWEST_IMAGES

    return [group for group in groups if fits(group)]


def _with_neighbours(group: QueryGroup, groups: Iterable[QueryGroup], outcomes: _Outcomes) -> QueryGroup:
    """A run of an ordered column with what adjoins it there and is below the rest: of a slope, the steepest is said."""
    hits, inside = outcomes.of(group.direction)[0], outcomes.members(group)
    rows = [group.rows]
    same = [run for run in groups if (run.column, run.direction) == (group.column, group.direction)]
    for run in (run for run in same if np.isin(group.rows, run.rows).all()):
        wider = outcomes.members(run)
        if (further := hits[wider & ~inside]).size and further.mean() < np.nanmean(hits[~wider]):
            rows.append(run.rows)
    return group._replace(rows=np.unique(np.concatenate(rows)))


# Objects

_SPREAD = 2.0
"""Where the areas of the middle half of the images differ by less than this factor, size means little."""
_PER_STRATUM = 10
"""Images that a value of a column has on average, for sizes to be compared within it."""


def object_areas(dataset: Dataset) -> dict[str, FloatArray]:
    """By what is meant with the size of the objects: the share of each picture that they take; NaN without boxes.

    Where pictures have no size, in pixels.
    """
    objects = dataset.objects
    if objects is None or not objects.height:
        return {}
    boxes = objects.filter(pl.col("w").is_not_null()).with_columns(area=pl.col("w") * pl.col("h"))
    if {"width", "height"} <= set(dataset.images.columns):
        sizes = dataset.images.select("image", pixels=pl.col("width").cast(pl.Float64) * pl.col("height"))
        boxes = boxes.join(sizes, on="image").with_columns(pl.col("area") / pl.col("pixels"))
    texts = dataset.captions.group_by("image").agg(words=pl.col("text").str.to_lowercase().str.join(" "))
    match = pl.col("name").is_not_null() & pl.col("words").str.contains(pl.col("name").str.to_lowercase(), literal=True)
    mentioned = boxes.join(texts, on="image").filter(match)
    area, areas = pl.col("area"), {}
    for meaning, table, figure in (
        ("main", boxes, area.max()), ("mentioned", mentioned, area.max()), ("mean", boxes, area.mean())
    ):  # fmt: skip
        by_image = dict(table.group_by("image").agg(figure).iter_rows())
        areas[meaning] = np.array([by_image.get(image) or np.nan for image in dataset.image_ids], np.float64)
    areas["mentioned"] = np.where(np.isnan(areas["mentioned"]), areas["main"], areas["mentioned"])
    return areas


@dataclass(frozen=True, eq=False)
class ObjectSizes(Presented):
    """The images with the smallest third of objects against the rest; None: no boxes, or sizes that hardly differ.

    ``below`` is the share of the picture that is meant with small.
    """

    small: WeakGroup | None
    below: float = 0.0
    images: int = 0

    title = "By the size of objects"

    def sections(self) -> Iterator[Section]:
        if self.small is None:
            yield Section(self.title, (Text(("No boxes of objects, or of hardly different sizes.",), note=True),))
            return
        notes = (
            f"Small: the third of {self.images:,} images whose objects take the smallest part of the picture.",
            "p: permutations of images, also within each value of the columns and each number of objects.",
        )
        yield Section(self.title, (_group_table((self.small,), notes),))

    def findings(self) -> Iterator[Observation]:
        if self.small is not None:
            size = f"less than {100 * self.below:.2g} % of the picture" if self.below < 1 else "the smallest third"
            yield self.small.observation("object-size", size=f"of {size}")

    def as_dict(self) -> dict[str, Any]:
        return json_form(self)


def look_at_object_sizes(subject: Subject, *, permutations: int = 3000) -> ObjectSizes:
    """Whether images whose objects are small are found less often, whatever their columns and number of objects are."""
    dataset, outcomes, groups = subject.dataset, _outcomes_of(subject), []
    has_queries = outcomes.by_image(TEXT_TO_IMAGE)[1] + outcomes.by_image(IMAGE_TO_TEXT)[1] > 0
    limits: dict[str, float] = {}
    boxed = np.zeros(len(has_queries), bool)
    for meaning, areas in object_areas(dataset).items():
        present = np.isfinite(areas) & has_queries
        if present.sum() < 3 * _FEWEST_QUERIES:
            continue
        low, limit, high = np.quantile(areas[present], [0.25, 1 / 3, 0.75])
        if high >= _SPREAD * low:
            rows = np.flatnonzero(present & (areas < limit))
            limits[meaning], boxed = float(limit), boxed | present
            groups += [QueryGroup(meaning, _SMALL, direction, True, rows) for direction in _QUERIES]
    outcomes = outcomes.without(QueryGroup("", "", TEXT_TO_IMAGE, True, np.flatnonzero(~boxed)))
    stream = random_stream(subject.seed, "object sizes")
    groups = _searchable(outcomes, groups)
    weakest = _weakest(subject, outcomes, groups, permutations, stream)
    if weakest is None or dataset.objects is None:
        return ObjectSizes(None)
    counts = dict(dataset.objects.group_by("image").len().iter_rows())
    number = pl.Series("objects", [counts.get(image, 0) for image in dataset.image_ids])
    p, columns = weakest.p, [values for values in group_columns(dataset).values() if len(values) == len(number)]
    for values in (number, *columns) if p <= _LEVEL else ():
        strata, labelled = np.zeros(len(number), np.int64), label_groups(values)
        for stratum, (_, rows) in enumerate(labelled):
            strata[rows] = stratum
        if 1 < len(labelled) <= boxed.sum() / _PER_STRATUM:  # small objects may be those of a task that is hard
            within = _weakest(subject, outcomes, [weakest.group], permutations, stream, strata)
            if within is None or within.p > _LEVEL:  # a guard: it is no further thing that was looked for
                p = max(p, 1.0 if within is None else within.p)
    return ObjectSizes(replace(weakest, p=p), limits[weakest.group.column], int(boxed.sum()))


# All groups


@dataclass(frozen=True, eq=False)
class WeakGroups(Presented):
    """The weakest group first, then those that are weak without it; the last may be what chance allows.

    ``searched`` has the number of groups of each column; ``sizes`` are the images with small objects, which are left
    out of the groups where they are found less often.
    """

    groups: tuple[WeakGroup, ...]
    searched: Mapping[str, int]
    permutations: int
    sizes: ObjectSizes

    title = "The weakest groups"

    @property
    def weak(self) -> tuple[WeakGroup, ...]:
        """Those that are weaker than chance allows."""
        return tuple(group for group in self.groups if group.p <= _LEVEL)

    def sections(self) -> Iterator[Section]:
        columns = ", ".join(f"{column} ({number})" for column, number in self.searched.items()) or "none"
        looked = f"Groups searched, of at least {_FEWEST_QUERIES} queries: {columns}."
        p = f", p {Figure.p(self.groups[0].p, self.permutations).equation}" if self.groups else ""
        notes = (
            "p: permutations of images with their captions, of the largest deficit of all groups and columns.",
            "Figures are re-estimated: the weakest of many groups looks weaker than it is. In brackets: 95% intervals.",
            looked,
        )
        none = Text((f"No group is weaker than the weakest of so many is by chance{p}.", looked))
        yield Section(self.title, (_group_table(self.weak, notes) if self.weak else none,))
        yield from self.sizes.sections()

    def findings(self) -> Iterator[Observation]:
        for group in self.groups:
            yield group.observation("group", f"{group.group.column}={group.group.name}")
        yield from self.sizes.findings()

    def as_dict(self) -> dict[str, Any]:
        return json_form(self)


@analysis("groups")
def look_at_groups(subject: Subject, *, permutations: int = 3000) -> WeakGroups:
    """Which groups of captions, of all columns that make groups, are below the others.

    After a weak group, what is left is searched again: not the neighbours that it has in an ordered column, nor a group
    that was mostly said, so that what another column says of the same queries is not said twice.
    """
    outcomes, groups = _outcomes_of(subject), _groups_of(subject)
    ordered = {column for column, values in group_columns(subject.dataset).items() if values.dtype.is_numeric()}
    sizes = look_at_object_sizes(subject, permutations=permutations)
    left_out: list[str] = []
    if sizes.small is not None and sizes.small.p <= _SURELY:
        left_out.append(_SMALL)
        outcomes = outcomes.without(sizes.small.group)
    stream = random_stream(subject.seed, "weak groups")
    candidates = _searchable(outcomes, groups)
    columns = dict.fromkeys(group.column for group in candidates)
    searched = {column: len({group.name for group in candidates if group.column == column}) for column in columns}
    weak: list[WeakGroup] = []
    start = untold = outcomes
    while len(weak) < _MOST_FINDINGS and (not weak or weak[-1].p <= _LEVEL):
        weakest = _weakest(subject, outcomes, candidates, permutations, stream)
        if weakest is None:
            break
        p = max(weakest.p, weak[-1].p if weak else 0.0)
        weak.append(replace(weakest, p=p, without=tuple(left_out)))
        left_out.append(weakest.group.where)
        is_run = weakest.group.column in ordered
        told = _with_neighbours(weakest.group, candidates, outcomes) if is_run else weakest.group
        untold = untold.without(told)
        groups = [
            group for group in groups
            if (left := untold.members(group).sum()) > (whole := start.members(group).sum()) / 2
            and (left == whole or not is_run or group.column != told.column)
        ]  # fmt: skip
        outcomes = outcomes.without(weakest.group)
        candidates = _searchable(outcomes, groups)
    return WeakGroups(tuple(weak), searched, permutations, sizes)


# Plants

_NOISE = (0.5, 0.7, 1, 1.4, 2, 2.8, 4, 5.6, 8)


def with_misses(subject: Subject, captions: IntArray, stream: np.random.Generator, *, of_images: bool) -> Subject:
    """Noise into the vectors of these captions, or of their images, until none of the captions finds its image."""
    side = "images" if of_images else "captions"
    values = np.array(getattr(subject, side).vectors, np.float32)
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    hits, planted = captions, subject
    for scale in _NOISE:
        hits = hits[planted.caption_hits[hits] == 1]
        rows = np.unique(subject.owner[hits]) if of_images else hits
        if not len(rows):
            break
        noise = stream.standard_normal((len(rows), values.shape[1])) / values.shape[1] ** 0.5
        noisy = values[rows] + scale * lengths[rows] * noise
        values[rows] = noisy * lengths[rows] / np.maximum(np.linalg.norm(noisy, axis=1, keepdims=True), 1e-9)
        planted = subject.with_vectors(**{side: values.copy()})
    return planted


@finding_kind(
    "group",
    "For {where} ({n}), {metric} is about {points} below {others}.",
    stage="groups", strengths=(0.1, 0.25, 0.5), strength_words="a group of which {:.0%} more captions miss",
    causes=("object-size",), searched=True,
)  # fmt: skip
def plant_weak_group(subject: Subject, strength: float, stream: np.random.Generator) -> Planted:
    """A group of about 40 captions that are found less often; where no column has one, of a new column."""
    if not subject.has_vectors:
        return Planted(subject)
    outcomes, is_query = _outcomes_of(subject), np.isfinite(subject.caption_hits)
    every = _searchable(outcomes, (group for group in _groups_of(subject) if group.direction == TEXT_TO_IMAGE))
    most = max(100, is_query.sum() // 10)
    usual = [inside for inside in map(outcomes.members, every) if 20 <= inside.sum() <= most]
    if usual:
        inside = usual[int(stream.integers(len(usual)))]
    else:
        images = subject.dataset.images
        labels = stream.integers(0, max(3, int(is_query.sum()) // 40), images.height)
        table = images.with_columns(pl.Series("part", [f"part {label}" for label in labels]))
        subject = replace(subject, dataset=replace(subject.dataset, images=table))
        inside = is_query & (labels[subject.owner] == 0)
    captions = np.flatnonzero(inside)
    hits = stream.permutation(captions[subject.caption_hits[captions] == 1])[: round(strength * len(captions))]
    return _spoilt(subject, captions, hits, stream, of_images=False)


@finding_kind(
    "object-size",
    "Where objects are small ({size}; {n}), {metric} is about {points} below {others}.",
    stage="groups", strengths=(0.1, 0.25, 0.5), strength_words="noise in {:.0%} of the images with small objects",
    causes=("group",), searched=True,
)  # fmt: skip
def plant_small_objects(subject: Subject, strength: float, stream: np.random.Generator) -> Planted:
    """Noise in the vectors of images whose main object is in the smallest third."""
    areas = object_areas(subject.dataset).get("main")
    if areas is None or not subject.has_vectors or not np.isfinite(areas).any():
        return Planted(subject)
    small = np.nan_to_num(areas, nan=np.inf) < np.nanquantile(areas, 1 / 3)
    captions = np.flatnonzero(small[subject.owner] & np.isfinite(subject.caption_hits))
    images = np.unique(subject.owner[captions])
    # Noise in an image concerns all of its captions: so many images.
    noisy = np.isin(subject.owner, stream.permutation(images)[: round(strength * len(images))])
    return _spoilt(subject, captions, np.flatnonzero(noisy & (subject.caption_hits == 1)), stream, of_images=True)


def _spoilt(
    subject: Subject, captions: IntArray, hits: IntArray, stream: np.random.Generator, *, of_images: bool
) -> Planted:
    """A group of captions, of which these no longer find their image."""
    spoilt = with_misses(subject, hits, stream, of_images=of_images)
    return Planted.at(spoilt, captions=captions, images=subject.owner[captions]) if len(hits) else Planted(spoilt)
