"""Is a group of the queries weaker than the others, more than the weakest of so many would be by chance?

Every column that makes groups is searched at once. A permutation gives each image the outcomes of another (its captions
stay together), and the largest deficit of all groups, in its own standard deviations, is compared with the one that was
seen: p holds for the whole search. The figure of the weakest is too low, as it was looked for: what is printed is the
median-unbiased estimate, given that it was large enough to be said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from crosslens.analyze.subject import Planted, Subject
from crosslens.core import (
    IMAGE_TO_TEXT,
    STATED_SIZE,
    TEXT_TO_IMAGE,
    BoolArray,
    Dataset,
    Effect,
    Embeddings,
    Figure,
    FloatArray,
    IntArray,
    Observation,
    Presented,
    Section,
    Table,
    Text,
    finding_kind,
    random_stream,
)
from crosslens.language import count_words

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
_METRICS = {TEXT_TO_IMAGE: "t2i/Hit@1", IMAGE_TO_TEXT: "i2t/Hit@1"}


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
    def where(self) -> str:
        bounds = re.fullmatch(r"\[(\d+), (\d+)([\])])", self.name) if self.column == CAPTION_LENGTH else None
        if bounds is None:
            return f"{self.column} = {self.name}"
        low, high = int(bounds[1]), int(bounds[2]) - (bounds[3] == ")")
        return f"captions of {low} words" if low == high else f"captions of {low} to {high} words"


class _Outcomes(NamedTuple):
    """Sums and numbers of outcomes by image in both directions, and the outcomes of captions (NaN: not asked)."""

    owner: IntArray
    captions: FloatArray
    images: FloatArray

    def by_image(self, direction: str) -> tuple[FloatArray, FloatArray]:
        if direction == IMAGE_TO_TEXT:
            return np.nan_to_num(self.images), np.isfinite(self.images).astype(float)
        asked = np.isfinite(self.captions)
        size = len(self.images)
        sums = np.bincount(self.owner[asked], self.captions[asked], size)
        return sums.astype(float), np.bincount(self.owner[asked], minlength=size).astype(float)

    def members(self, group: QueryGroup) -> BoolArray:
        """Of each caption (of i2t: of each image) that was asked, whether it is in the group; not: False."""
        rows = np.zeros(len(self.images if group.of_images else self.captions), bool)
        rows[group.rows] = True
        if group.direction == IMAGE_TO_TEXT:
            return rows & np.isfinite(self.images)
        return (rows[self.owner] if group.of_images else rows) & np.isfinite(self.captions)

    def split(self, group: QueryGroup) -> tuple[FloatArray, FloatArray, IntArray]:
        """The outcomes of a direction, whether each is in the group, and the image of each."""
        by_image = group.direction == IMAGE_TO_TEXT
        values = self.images if by_image else self.captions
        asked = np.isfinite(values)
        owner = np.arange(len(values)) if by_image else self.owner
        return values[asked], self.members(group)[asked].astype(float), owner[asked]

    def without(self, group: QueryGroup) -> _Outcomes:
        """The rest, with nothing of the group."""
        captions, images = self.captions.copy(), self.images.copy()
        if group.of_images:
            images[group.rows] = np.nan
            captions[np.isin(self.owner, group.rows)] = np.nan
        else:
            captions[group.rows] = np.nan
        return _Outcomes(self.owner, captions, images)


class _Permutations:
    """The deficits of all groups under permutations of images, which keep their captions and stay within strata."""

    def __init__(self, outcomes: _Outcomes, groups: Sequence[QueryGroup], strata: IntArray | None) -> None:
        from scipy.sparse import csr_array

        self.groups = groups
        sides = [outcomes.by_image(direction) for direction in _METRICS]
        asked = np.flatnonzero(sides[0][1] + sides[1][1])
        self._strata = np.zeros(len(asked), np.int64) if strata is None else strata[asked]
        self._base = np.argsort(self._strata, kind="stable")
        self._sides = [(sums[asked], counts[asked]) for sums, counts in sides]
        place = np.full(len(outcomes.images), -1)
        place[asked] = np.arange(len(asked))

        def matrix(columns: Sequence[int], rows_of: Sequence[IntArray], size: int) -> Any:
            pointers = np.repeat(np.arange(len(columns)), [len(rows) for rows in rows_of])
            rows = np.concatenate([*rows_of, np.zeros(0, np.int64)])
            return csr_array((np.ones(len(rows)), (pointers, rows)), shape=(len(columns), size))

        self._of_images = []  # direction, the groups' numbers, which images are in each
        for side, direction in enumerate(_METRICS):
            numbers = [n for n, group in enumerate(groups) if group.of_images and group.direction == direction]
            rows_of = [place[groups[n].rows][place[groups[n].rows] >= 0] for n in numbers]
            self._of_images.append((side, numbers, matrix(numbers, rows_of, len(asked))))
        # Captions in blocks of images with as many captions, of one stratum: images × captions.
        counts = self._sides[0][1].astype(np.int64)
        self._hits = np.nan_to_num(outcomes.captions)
        rows = np.flatnonzero(np.isfinite(outcomes.captions))
        owners = place[outcomes.owner[rows]]
        order = np.lexsort([rows, owners, self._strata[owners], counts[owners]])
        rows, owners = rows[order], owners[order]
        self._number = np.full(len(outcomes.captions), -1)
        self._number[rows] = np.arange(len(rows))
        self._total, self._captions = float(self._hits[rows].sum()), len(rows)
        numbers = [n for n, group in enumerate(groups) if not group.of_images]
        rows_of = [self._number[groups[n].rows][self._number[groups[n].rows] >= 0] for n in numbers]
        self._of_captions = (numbers, matrix(numbers, rows_of, len(rows)))
        self._in_group = np.array([len(part) for part in rows_of], float)
        self._blocks: list[tuple[slice, IntArray, FloatArray]] = []
        if len(rows):
            label = counts[owners] * (self._strata.max(initial=0) + 1) + self._strata[owners]
            starts = np.flatnonzero(np.diff(label, prepend=label[0] - 1))
            for start, end in zip(starts, [*starts[1:], len(rows)], strict=True):
                per_image = int(counts[owners[start]])
                hits = self._hits[rows[start:end]].reshape(-1, per_image)
                self._blocks.append((slice(start, end), owners[start:end:per_image], hits))

    def seen(self) -> FloatArray:
        images, blocks = np.arange(len(self._strata))[None], [hits.ravel()[None] for *_, hits in self._blocks]
        return np.asarray(self._deficits(images, blocks)[0])

    def draw(self, stream: np.random.Generator, draws: int) -> FloatArray:
        """Deficits, draws × groups."""
        keys = stream.random((draws, len(self._strata)))
        images = np.empty(keys.shape, np.int64)
        images[:, self._base] = np.lexsort([keys, np.broadcast_to(self._strata, keys.shape)], axis=-1)
        blocks = []
        for _, owners, hits in self._blocks if self._of_captions[0] else ():
            each = hits.shape[1]
            turned = np.hstack([hits, hits]).ravel()  # an image's captions change places in a circle
            starts = np.argsort(keys[:, owners], axis=1) * (2 * each)
            starts += stream.integers(0, each, starts.shape)
            blocks.append(turned[starts[:, :, None] + np.arange(each)].reshape(draws, -1))
        return self._deficits(images, blocks)

    def _deficits(self, images: IntArray, blocks: Sequence[FloatArray]) -> FloatArray:
        deficits = np.zeros((len(images), len(self.groups)))

        def deficit(sums: FloatArray, counts: FloatArray, total: float, number: float) -> FloatArray:
            rest = number - counts
            out: FloatArray = np.where(
                (counts > 0) & (rest > 0), (total - sums) / np.maximum(rest, 1) - sums / np.maximum(counts, 1), 0.0
            )
            return out

        for side, numbers, matrix in self._of_images:
            if numbers:
                sums, counts = self._sides[side]
                inside = (matrix @ sums[images].T).T
                size = (matrix @ (counts if np.ptp(counts) == 0 else counts[images]).T).T
                deficits[:, numbers] = deficit(inside, size, float(sums.sum()), float(counts.sum()))
        numbers, matrix = self._of_captions
        if numbers and self._blocks:
            hits = np.concatenate(list(blocks), axis=1)
            deficits[:, numbers] = deficit((matrix @ hits.T).T, self._in_group, self._total, self._captions)
        return deficits


class _Weakest(NamedTuple):
    group: QueryGroup
    deficit: float
    error: float
    """The standard deviation of the deficit where there is none."""
    critical: float
    """The largest of all deficits, in standard deviations, that chance exceeds in 5 % of permutations."""
    p: float
    also: tuple[QueryGroup, ...]


def _weakest(
    outcomes: _Outcomes, groups: Sequence[QueryGroup], permutations: int, stream: np.random.Generator,
    strata: IntArray | None = None,
) -> _Weakest | None:  # fmt: skip
    """The group with the largest deficit in its own standard deviations, and p of the search; None: nothing varies."""
    drawn = _Permutations(outcomes, groups, strata)
    errors = drawn.draw(stream, _PILOT).std(axis=0)
    seen, varies = drawn.seen(), errors > 1e-12
    if not varies.any():
        return None
    scale = np.where(varies, errors, np.inf)
    top = int(np.argmax(seen / scale))
    largest = seen[top] / scale[top]
    step = int(np.clip(_CELLS // max(len(outcomes.captions), 1), 10, _STEP))
    maxima = np.zeros(0)
    while len(maxima) < permutations:
        part = (drawn.draw(stream, min(step, permutations - len(maxima))) / scale).max(axis=1)
        maxima = np.append(maxima, part)
        as_extreme = np.flatnonzero(maxima >= largest - 1e-9)
        if len(as_extreme) >= _ENOUGH:  # Besag and Clifford (1991): valid where drawing stops early
            p = _ENOUGH / (int(as_extreme[_ENOUGH - 1]) + 1)
            break
    else:
        p = (1 + len(as_extreme)) / (1 + permutations)
    inside = outcomes.members(groups[top])
    also = tuple(
        other
        for number, other in enumerate(groups)
        if number != top and other.direction == groups[top].direction
        and np.array_equal(outcomes.members(other), inside)
    )  # fmt: skip
    return _Weakest(groups[top], float(seen[top]), float(errors[top]), float(np.quantile(maxima, 1 - _LEVEL)), p, also)


def _after_selection(seen: float, null: float, error: float, critical: float) -> tuple[float, float, float]:
    """A deficit that is only said where it exceeds a limit: its median-unbiased estimate, and an interval.

    The error grows from ``null`` where there is no deficit to ``error`` at the one seen. The lower end is simultaneous
    over all groups, so it excludes 0 exactly where the search is significant; the upper end, which selection cannot
    make too low, is the usual one.
    """
    from scipy.optimize import brentq
    from scipy.special import log_ndtr, ndtri

    def spread(deficit: float) -> float:
        share = float(np.clip(deficit / seen, 0, 1)) if seen > 0 else 0.0
        return float(np.sqrt(max(null**2 + (error**2 - null**2) * share, 1e-12)))

    def excess(deficit: float) -> float:  # P(at least what was seen | it is said) − ½
        limit = min(critical * null, seen)
        chances = log_ndtr(np.array([deficit - seen, deficit - limit]) / spread(deficit))
        return float(np.exp(chances[0] - chances[1])) - 0.5

    low = float(brentq(lambda deficit: (seen - deficit) / spread(deficit) - critical, seen - 20, seen + 1e-12))
    high = min(seen + float(ndtri(1 - _LEVEL / 2)) * error, 1.0)
    value = seen if excess(seen) <= 0 else low if excess(low) >= 0 else float(brentq(excess, low, seen))
    return min(max(value, low), seen), max(low, -1.0), high


def _error(values: FloatArray, inside: FloatArray, images: IntArray) -> float:
    """The standard error of a deficit over images, and at least what the number of outcomes in the group allows."""
    images = np.unique(images, return_inverse=True)[1]
    size = int(images.max(initial=0)) + 1

    def clustered(chosen: BoolArray) -> float:
        moves = np.bincount(images[chosen], values[chosen] - values[chosen].mean(), size) / chosen.sum()
        present = len(np.unique(images[chosen]))
        return float((moves**2).sum()) * present / max(present - 1, 1)

    def least(chosen: BoolArray) -> float:
        number = float(chosen.sum()) / alike
        hits = float(values[chosen].mean()) * number
        share = (hits + 1) / (number + 2)
        return share * (1 - share) / number

    everything, mean = np.ones(len(values), bool), float(values.mean())
    alike = float(np.clip(clustered(everything) * len(values) / max(mean * (1 - mean), 1e-9), 1, len(values) / size))
    parts = inside > 0, inside == 0
    return float(np.sqrt(sum(max(clustered(part), least(part)) for part in parts)))


@dataclass(frozen=True, eq=False)
class WeakGroup:
    """A group and how far it is below the others, re-estimated; ``p`` is that of the whole search.

    ``missing`` are the ids of its queries that miss; ``also`` says what else the same queries are, ``without`` which
    weaker groups are not among the others.
    """

    column: str
    group: str
    where: str
    direction: str
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

    @property
    def words(self) -> dict[str, Any]:
        unit = "images" if self.direction == IMAGE_TO_TEXT else "captions"
        return {
            "metric": _METRICS[self.direction],
            "value": f"{100 * self.value:.0f} %",
            "column": self.column,
            "group": self.group,
            "where": self.where,
            "n": f"{self.queries:,} {unit}",
            "points": f"{100 * self.points:.0f} points",
            "interval": f"[{100 * self.low:.0f}, {100 * self.high:.0f}]",
            "others": f"the rest (without {'; '.join(self.without)})" if self.without else "the others",
        }

    def observation(self, kind: str, subject: str) -> Observation:
        effect = Effect(self.points, self.low, self.high, "points")
        weight = max(self.points, 0.0) * self.share
        evidence = [{"query": query} for query in self.missing]
        p = self.p if self.points >= STATED_SIZE else 1.0  # what is left of a chance finding is not worth a sentence
        return Observation(kind, self.words, effect, weight, p=p, evidence=evidence, subject=subject)

    def as_dict(self) -> dict[str, Any]:
        return {
            "column": self.column, "group": self.group, "direction": self.direction, "queries": self.queries,
            "value": self.value, "others": self.others, "points": self.points, "low": self.low, "high": self.high,
            "p": self.p, "also": list(self.also), "without": list(self.without),
        }  # fmt: skip


def _weak_group(subject: Subject, outcomes: _Outcomes, weakest: _Weakest, at_least: float = 0.0) -> WeakGroup:
    group = weakest.group
    values, inside, images = outcomes.split(group)
    error = _error(values, inside, images)
    points, low, high = _after_selection(weakest.deficit, weakest.error, error, weakest.critical)
    by_image = group.direction == IMAGE_TO_TEXT
    ids = subject.dataset.image_ids if by_image else subject.dataset.caption_ids
    hits = outcomes.images if by_image else outcomes.captions
    missing = tuple(ids[row] for row in np.flatnonzero(outcomes.members(group) & (hits == 0)))
    asked = int(np.isfinite(subject.image_hits if by_image else subject.caption_hits).sum())
    return WeakGroup(
        group.column, group.name, group.where, group.direction, int(inside.sum()), float(inside.sum()) / max(asked, 1),
        float(values[inside == 0].mean()), points, low, high, max(weakest.p, at_least), missing,
        tuple(other.where for other in weakest.also),
    )  # fmt: skip


def _group_table(groups: Sequence[WeakGroup], notes: tuple[str, ...]) -> Table:
    rows = [
        (
            group.where, _METRICS[group.direction], group.queries, Figure.percent(group.value),
            Figure(group.points, group.low, group.high, scale=100, digits=1), Figure.p(group.p),
        )
        for group in groups
    ]  # fmt: skip
    return Table(("group", "metric", "queries", "figure", "points below the others", "p"), rows, "llrrlr", notes=notes)


def _outcomes_of(subject: Subject) -> _Outcomes:
    return _Outcomes(subject.owner, subject.caption_hits, subject.image_hits)


def _groups_of(subject: Subject, columns: Mapping[str, pl.Series]) -> list[QueryGroup]:
    """Every group of the columns in each direction that asks."""
    groups = []
    for column, values in columns.items():
        of_images = len(values) != len(subject.caption_hits)
        for name, rows in label_groups(values):
            directions = [TEXT_TO_IMAGE, *([IMAGE_TO_TEXT] if of_images else [])]
            groups += [QueryGroup(column, name, direction, of_images, rows) for direction in directions]
    return groups


def _searchable(outcomes: _Outcomes, groups: Iterable[QueryGroup]) -> list[QueryGroup]:
    asked = {direction: int(outcomes.by_image(direction)[1].sum()) for direction in _METRICS}

    def fits(group: QueryGroup) -> bool:
        inside = outcomes.members(group)
        size = int(inside.sum())
        images = size if group.direction == IMAGE_TO_TEXT else len(np.unique(outcomes.owner[inside]))
        most = _LARGEST_SHARE * asked[group.direction]
        return _FEWEST_QUERIES <= size <= most and images >= _FEWEST_IMAGES

    return [group for group in groups if fits(group)]


# Objects

_SMALL = "small objects"
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
    named = pl.col("name").is_not_null() & pl.col("words").str.contains(pl.col("name").str.to_lowercase(), literal=True)
    mentioned = boxes.join(texts, on="image").filter(named)
    meanings = {"main": boxes, "mentioned": mentioned, "mean": boxes}
    areas = {}
    for meaning, table in meanings.items():
        figure = pl.col("area").mean() if meaning == "mean" else pl.col("area").max()
        by_image = dict(table.group_by("image").agg(figure).iter_rows())
        areas[meaning] = np.array([by_image.get(image) or np.nan for image in dataset.image_ids], np.float64)
    missing = np.isnan(areas["mentioned"])
    areas["mentioned"][missing] = areas["main"][missing]
    return areas


@dataclass(frozen=True, eq=False)
class ObjectSizes(Presented):
    """The images with the smallest third of objects against the rest; None: no boxes, or sizes that hardly differ.

    ``below`` is the share of the picture that is meant with small.
    """

    small: WeakGroup | None
    below: float = 0.0
    images: int = 0
    rows: IntArray = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)

    @property
    def title(self) -> str:
        return "By the size of objects"

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
            seen = self.small.observation("object-size", "")
            size = (
                f"of less than {100 * self.below:.2g} % of the picture" if self.below < 1 else "of the smallest third"
            )
            yield replace(seen, words={**seen.words, "size": size})

    def as_dict(self) -> dict[str, Any]:
        small = None if self.small is None else self.small.as_dict()
        return {"small": small, "below": self.below, "images": self.images}


def look_at_object_sizes(subject: Subject, *, permutations: int = 3000) -> ObjectSizes:
    """Whether images whose objects are small are found less often, whatever their columns and number of objects are."""
    dataset, outcomes, groups = subject.dataset, _outcomes_of(subject), []
    asked = outcomes.by_image(TEXT_TO_IMAGE)[1] + outcomes.by_image(IMAGE_TO_TEXT)[1] > 0
    limits: dict[str, float] = {}
    boxed: BoolArray = np.zeros(len(asked), bool)
    for meaning, areas in object_areas(dataset).items():
        present = np.isfinite(areas) & asked
        if present.sum() < 3 * _FEWEST_QUERIES:
            continue
        low, limit, high = np.quantile(areas[present], [0.25, 1 / 3, 0.75])
        if high >= _SPREAD * low:
            rows = np.flatnonzero(present & (areas < limit))
            limits[meaning], boxed = float(limit), boxed | present
            groups += [QueryGroup(meaning, _SMALL, direction, True, rows) for direction in _METRICS]
    bare = QueryGroup("", "", TEXT_TO_IMAGE, True, np.flatnonzero(~boxed))
    outcomes = outcomes.without(bare)
    groups = _searchable(outcomes, groups)
    stream = random_stream(subject.seed, "object sizes")
    weakest = _weakest(outcomes, groups, permutations, stream) if groups else None
    if weakest is None:
        return ObjectSizes(None)
    assert dataset.objects is not None
    p = weakest.p
    counts = dict(dataset.objects.group_by("image").len().iter_rows())
    number = pl.Series("objects", [counts.get(image, 0) for image in dataset.image_ids])
    columns = [values for values in group_columns(dataset).values() if len(values) == dataset.images.height]
    for values in (number, *columns) if p <= _LEVEL else ():
        strata = np.zeros(dataset.images.height, np.int64)
        labelled = label_groups(values)
        for stratum, (_, rows) in enumerate(labelled):
            strata[rows] = stratum
        if 1 < len(labelled) <= boxed.sum() / _PER_STRATUM:  # small objects may be those of a task that is hard
            within = _weakest(outcomes, [weakest.group], permutations, stream, strata)
            p = max(p, 1.0 if within is None else within.p)
    small = replace(_weak_group(subject, outcomes, weakest, p), where=_SMALL)
    return ObjectSizes(small, limits[weakest.group.column], int(boxed.sum()), weakest.group.rows)


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

    @property
    def title(self) -> str:
        return "The weakest groups"

    @property
    def weak(self) -> tuple[WeakGroup, ...]:
        """Those that are weaker than chance allows."""
        return tuple(group for group in self.groups if group.p <= _LEVEL)

    def sections(self) -> Iterator[Section]:
        columns = ", ".join(f"{column} ({number})" for column, number in self.searched.items()) or "none"
        looked = f"Groups searched, of at least {_FEWEST_QUERIES} queries: {columns}."
        if not self.weak:
            p = f", p {Figure.p(self.groups[0].p, self.permutations).equation}" if self.groups else ""
            sentence = f"No group is weaker than the weakest of so many is by chance{p}."
            yield Section(self.title, (Text((sentence, looked)),))
            yield from self.sizes.sections()
            return
        notes = (
            "p: permutations of images with their captions, of the largest deficit of all groups and columns.",
            "Figures are re-estimated: the weakest of many groups looks weaker than it is. In brackets: 95% intervals.",
            looked,
        )
        yield Section(self.title, (_group_table(self.weak, notes),))
        yield from self.sizes.sections()

    def findings(self) -> Iterator[Observation]:
        for group in self.groups:
            yield group.observation("group", f"{group.column}={group.group}")
        yield from self.sizes.findings()

    def as_dict(self) -> dict[str, Any]:
        groups = [group.as_dict() for group in self.groups]
        sizes = self.sizes.as_dict()
        return {"groups": groups, "searched": dict(self.searched), "permutations": self.permutations, "sizes": sizes}


def look_at_groups(
    subject: Subject, columns: Mapping[str, pl.Series | Sequence[Any]] | None = None, *, permutations: int = 3000
) -> WeakGroups:
    """Search all groups for those below the others; ``columns`` (per caption or per image) instead of the dataset's.

    After a weak group, what is left is searched again, so that what another column says of the same queries is not
    said twice.
    """
    named = group_columns(subject.dataset) if columns is None else {
        name: pl.Series(name, values) for name, values in columns.items()
    }  # fmt: skip
    outcomes, groups = _outcomes_of(subject), _groups_of(subject, named)
    sizes = look_at_object_sizes(subject, permutations=permutations)
    left_out: list[str] = []
    if sizes.small is not None and sizes.small.p <= _SURELY:
        left_out.append(_SMALL)
        outcomes = outcomes.without(QueryGroup(_SMALL, _SMALL, TEXT_TO_IMAGE, True, sizes.rows))
    stream = random_stream(subject.seed, "weak groups")
    searched: dict[str, int] = {}
    weak: list[WeakGroup] = []
    while len(weak) < _MOST_FINDINGS:
        candidates = _searchable(outcomes, groups)
        if not weak:
            searched = {name: len({g.name for g in candidates if g.column == name}) for name in named}
        weakest = _weakest(outcomes, candidates, permutations, stream) if candidates else None
        if weakest is None:
            break
        below = _weak_group(subject, outcomes, weakest, weak[-1].p if weak else 0.0)
        weak.append(replace(below, without=tuple(left_out)))
        if weak[-1].p > _LEVEL:
            break
        outcomes = outcomes.without(weakest.group)
        left_out.append(weakest.group.where)
    return WeakGroups(tuple(weak), {name: number for name, number in searched.items() if number}, permutations, sizes)


# Plants

_NOISE = (0.5, 0.7, 1, 1.4, 2, 2.8, 4, 5.6, 8)


def has_vectors(subject: Subject) -> bool:
    """Whether both sides are single vectors, into which a defect can be planted."""
    sides = subject.images, subject.captions
    return all(side is not None and side.kind == "single" for side in sides)


def with_misses(subject: Subject, captions: IntArray, of_images: bool, stream: np.random.Generator) -> Subject:
    """Noise into the vectors of these captions, or of their images, until none of the captions finds its image."""
    side = "images" if of_images else "captions"
    vectors: Embeddings = getattr(subject, side)
    values = np.array(vectors.vectors, np.float32)
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    left, planted = captions, subject
    for scale in _NOISE:
        left = left[planted.caption_hits[left] == 1]
        rows = np.unique(subject.owner[left]) if of_images else left
        if not len(rows):
            break
        noise = stream.standard_normal((len(rows), values.shape[1])) / values.shape[1] ** 0.5
        noisy = values[rows] + scale * lengths[rows] * noise
        values[rows] = noisy * lengths[rows] / np.maximum(np.linalg.norm(noisy, axis=1, keepdims=True), 1e-9)
        planted = replace(subject, **{side: Embeddings(vectors.ids, values.copy())}).ranked()  # type: ignore[arg-type]
    return planted


def _spoilt(
    subject: Subject, captions: IntArray, share: float, of_images: bool, stream: np.random.Generator
) -> Planted:
    """So many of the captions, of those that find their image, no longer do."""
    hits = captions[subject.caption_hits[captions] == 1]
    number = min(round(share * len(captions)), len(hits))
    chosen = stream.permutation(hits)[:number]
    dataset = subject.dataset
    ids = {dataset.caption_ids[row] for row in captions} | {dataset.image_ids[subject.owner[row]] for row in captions}
    return Planted(with_misses(subject, chosen, of_images, stream), frozenset(ids) if number else frozenset())


@finding_kind(
    "group",
    "{metric} is about {value} for {where} ({n}), {points} {interval} below {others}.",
    stage="groups", strengths=(0.1, 0.25, 0.5), strength_words="a group of which {:.0%} more captions miss",
    causes=("object-size",),
)  # fmt: skip
def plant_weak_group(subject: Subject, strength: float, stream: np.random.Generator) -> Planted:
    """A group of about 40 captions that are found less often; where no column has one, of a new column."""
    if not has_vectors(subject):
        return Planted(subject, frozenset())
    asked = np.isfinite(subject.caption_hits)
    columns = group_columns(subject.dataset)
    outcomes = _outcomes_of(subject)
    groups = _searchable(outcomes, _groups_of(subject, columns))
    usual = [
        group
        for group in groups
        if group.direction == TEXT_TO_IMAGE and 20 <= outcomes.members(group).sum() <= max(100, asked.sum() // 10)
    ]
    if usual:
        captions = np.flatnonzero(outcomes.members(usual[int(stream.integers(len(usual)))]))
        return _spoilt(subject, captions, strength, False, stream)
    images = subject.dataset.images
    parts = max(3, int(asked.sum()) // 40)
    labels = stream.integers(0, parts, images.height)
    table = images.with_columns(pl.Series("part", [f"part {label}" for label in labels]))
    marked = replace(subject, dataset=replace(subject.dataset, images=table))
    return _spoilt(marked, np.flatnonzero(asked & (labels[subject.owner] == 0)), strength, False, stream)


@finding_kind(
    "object-size",
    "{metric} is about {value} where objects are small ({size}; {n}), {points} {interval} below {others}.",
    stage="groups", strengths=(0.1, 0.25, 0.5), strength_words="noise in {:.0%} of the images with small objects",
    causes=("group",),
)  # fmt: skip
def plant_small_objects(subject: Subject, strength: float, stream: np.random.Generator) -> Planted:
    """Noise in the vectors of images whose main object is in the smallest third."""
    areas = object_areas(subject.dataset).get("main")
    if areas is None or not has_vectors(subject) or not np.isfinite(areas).any():
        return Planted(subject, frozenset())
    small = np.nan_to_num(areas, nan=np.inf) < np.nanquantile(areas, 1 / 3)
    captions = np.flatnonzero(small[subject.owner] & np.isfinite(subject.caption_hits))
    images = np.unique(subject.owner[captions])
    # Noise in an image concerns all of its captions: so many images.
    chosen = np.isin(subject.owner, stream.permutation(images)[: round(strength * len(images))])
    hits = np.flatnonzero(chosen & (subject.caption_hits == 1))
    ids = {subject.dataset.image_ids[row] for row in images} | {subject.dataset.caption_ids[row] for row in captions}
    return Planted(with_misses(subject, hits, True, stream), frozenset(ids) if len(hits) else frozenset())
