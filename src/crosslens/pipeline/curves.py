"""Metrics as curves: semantic recall against m, and metrics against the size of the gallery, exact and extrapolated."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from itertools import combinations, pairwise, product
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from crosslens.comparisons import run_labels
from crosslens.core import (
    Cell,
    InputError,
    Lines,
    Presented,
    Section,
    Series,
    Table,
    Text,
    UsageError,
    accepts_options,
    argument,
    refuse_other_keywords,
)
from crosslens.data import ARRAY_SUFFIXES
from crosslens.engine import Progress, shown_progress, stage
from crosslens.metrics import (
    LargerGalleries,
    MetricRequest,
    MetricSpec,
    SubGalleries,
    bounds_of,
    facts_of,
    family_of,
    format_count,
    measure,
    metric_figure,
    parse_metric,
    parse_metrics,
    require_expectation,
    unit_sentence,
)
from crosslens.pipeline.evaluations.graded_relevance import GradedRelevance
from crosslens.pipeline.evaluations.inputs import direction_ids
from crosslens.pipeline.options import SignificanceOptions
from crosslens.statistics import Bootstrap, Estimate, PairedTest, correct, paired_permutation, same_tests
from crosslens.storage import FloatArray, IntArray, json_form
from crosslens.values import (
    DIRECTION_LABELS,
    IMAGE_TO_TEXT,
    TEXT_TO_IMAGE,
    Dataset,
    MetricValues,
    Ranking,
    Relevance,
    Run,
    match_ids,
    split_name,
)

if TYPE_CHECKING:
    from crosslens.pipeline.keywords import IntervalKeywords, SignificanceKeywords

CURVE_FAMILIES = ("SR", "SRhit")
_WORDS = {"SR": "share of them retrieved", "SRhit": "any of them retrieved"}
_MOST_NUMBERS = 1000
_MOST_COUNTS, _MOST_SIZES = 12, 20
"""Rows of the tables on a terminal."""
_STAR = "*"


def order_sentence(change: OrderChange, correction: str) -> str:
    """Which runs change places where, and whether that is more than chance."""
    unit = " points" if facts_of(change.metric).unit == "share" else ""
    leads = ", ".join(
        f"{lead.leader} leads by {metric_figure(change.metric, lead.difference)}{unit} at {lead.size:,}"
        + ("" if lead.adjusted_p is None else f", p = {lead.adjusted_p:.2g}")
        for lead in change.leads
    )
    sizes = " and ".join(f"{size:,}" for size in change.changes_at)
    chance = "not tested"
    if change.tested:
        chance = "each lead is more than chance" if change.significant() else "not every lead is more than chance"
        chance += "" if correction == "none" else f" (paired tests, corrected: {correction})"
    return f"{change.metric}: {' and '.join(change.runs)} change places at {sizes} items: {leads}; {chance}."


@dataclass(frozen=True)
class GalleryPoint:
    """A figure at one size, with its interval over images; ``extrapolated`` beyond the run's own gallery."""

    size: int
    mean: float
    low: float
    high: float
    extrapolated: bool = False


@dataclass(frozen=True)
class Lead:
    """Where a run is ahead of another by most, and whether that is chance."""

    leader: str
    size: int
    difference: float
    p_value: float | None = None
    adjusted_p: float | None = None


@dataclass(frozen=True)
class OrderChange:
    """Two runs whose order depends on the gallery: who leads where, and the sizes at which that changes."""

    metric: str
    runs: tuple[str, str]
    changes_at: tuple[int, ...]
    leads: tuple[Lead, ...]

    @property
    def tested(self) -> bool:
        """Whether there are p-values: not for medians, nor where the runs have different queries."""
        return all(lead.adjusted_p is not None for lead in self.leads)

    def significant(self) -> bool:
        return all(lead.adjusted_p is not None and lead.adjusted_p < 0.05 for lead in self.leads)

    def as_dict(self) -> dict[str, Any]:
        return json_form({**vars(self), "significant": self.significant() if self.tested else None})


@dataclass(frozen=True)
class GalleryCurves(Presented):
    """``points[run][metric]`` are the figures by size; ``galleries[run][direction]`` is how many items were ranked."""

    sizes: tuple[int, ...]
    points: Mapping[str, Mapping[str, tuple[GalleryPoint, ...]]]
    galleries: Mapping[str, Mapping[str, int]]
    order_changes: tuple[OrderChange, ...]
    level: float
    correction: str
    notes: tuple[str, ...] = ()

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(next(iter(self.points.values())))

    title = "Metrics against the size of the gallery"

    def sections(self) -> Iterator[Section]:
        for metric in self.metrics:
            direction, name = split_name(metric)
            title = f"{name} against the size of the gallery, {DIRECTION_LABELS.get(direction, direction)}"
            measured = {run: float(sizes[direction]) for run, sizes in self.galleries.items()}
            subtitle = f"{100 * self.level:g}% intervals over images; items ranked: "
            subtitle += ", ".join(f"{run} {size:,.0f}" for run, size in measured.items())
            subtitle += "; dotted, hollow points: extrapolated" if self.notes else ""
            figures = {
                run: {point.size: metric_figure(metric, point.mean, point.low, point.high) for point in metrics[metric]}
                for run, metrics in self.points.items()
            }
            absent = metric_figure(metric, None)
            series = (
                Series(run, tuple(by_size.get(size, absent) for size in self.sizes)) for run, by_size in figures.items()
            )
            lines = Lines(
                title=title, across=tuple(map(float, self.sizes)), series=tuple(series), axis="items in the gallery",
                about=subtitle, logarithmic=True, measured=measured,
                limits=(0.0, 1.0) if bounds_of(metric) == (0, 1) else None,
            )  # fmt: skip
            for run, metrics in self.points.items():
                for point in metrics[metric]:
                    if point.extrapolated:
                        figures[run][point.size] = replace(figures[run][point.size], mark=_STAR)
            rows = tuple((f"{size:,}", *(by_size.get(size) for by_size in figures.values())) for size in self.sizes)
            table = Table(("items", *self.points), rows, "r" * (1 + len(figures)), most=_MOST_SIZES)
            yield Section(title, (lines, table))
        facts = [
            unit_sentence(self.metrics),
            "Expected over all sub-galleries of a size that hold the query's relevant items, from the exact ranks; "
            f"{100 * self.level:g}% intervals over images.",
        ]
        if self.notes:
            facts.append(f"Beyond a run's own gallery ({_STAR}) figures are extrapolated from its ranks, not measured.")
        changes = [order_sentence(change, self.correction) for change in self.order_changes]
        if len(self.points) > 1 and not changes:
            changes = ["No two runs change places."]
        yield Section("", (Text.of(*facts, *self.notes[1:], *changes),))

    def as_dict(self) -> dict[str, Any]:
        content = {"over": "gallery", "sizes": self.sizes, "galleries": self.galleries, "runs": self.points}
        facts = {name: getattr(self, name) for name in ("order_changes", "level", "correction", "notes")}
        return json_form({**content, **facts})


_HALF = 1e-12
"""Rounding must not decide whether a share is one half."""


class RankedRun:
    """One direction of one run, in galleries of any size."""

    def __init__(self, run: Run, direction: str, options: SignificanceOptions) -> None:
        ranking = ranking_of(run, direction)
        self.query_ids = ranking.query_ids
        self.clusters = _clusters(run, direction)
        self.galleries = SubGalleries(ranking, run.provenance.get("options", {}).get("ties", "stable"))
        self._draws = Bootstrap(self.clusters, options.resamples, options.seed)
        self._level = options.level

    @cached_property
    def _larger(self) -> LargerGalleries:
        return LargerGalleries(self.galleries, self.clusters, self._draws.resamples, self._draws.seed)

    def point(self, spec: MetricSpec, size: int) -> GalleryPoint:
        beyond = size > self.galleries.gallery
        if beyond:
            figure = self._larger.estimate(spec, size, self._level)
        elif spec.family == "MedR":
            figure = self._median(spec, size)
        else:
            rows, bounds = self.galleries.positions.rows if spec.has("all") else None, family_of(spec).bounds()
            figure = self._draws.estimate(self._values(spec, size), level=self._level, rows=rows, bounds=bounds)
        return GalleryPoint(size, figure.mean, figure.low, figure.high, beyond)

    def figure(self, spec: MetricSpec, size: int) -> float:
        if spec.family == "MedR":
            return self._median(spec, size, interval=False).mean
        return float(np.nanmean(self._values(spec, size)))

    def _values(self, spec: MetricSpec, size: int) -> FloatArray:
        return self.galleries.pair_ranks(size) if spec.has("all") else self.galleries.values(spec, size)

    def _median(self, spec: MetricSpec, size: int, *, interval: bool = True) -> Estimate:
        """The median over queries and sub-galleries together: where the expected Hit@k passes one half.

        Its interval is where the interval of Hit@k contains one half (Woodruff's).
        """
        each = spec.has("all")
        rows = self.galleries.positions.rows if each else None

        def share(k: int) -> float:
            return float(np.nanmean(self.galleries.within(k, size, each=each)))

        def ends(k: int) -> Estimate:
            values = np.clip(self.galleries.within(k, size, each=each), 0, 1)
            return self._draws.estimate(values, level=self._level, rows=rows, bounds=(0, 1))

        lower = _first(size, lambda k: share(k) >= 0.5 - _HALF)
        upper = _first(size, lambda k: share(k) > 0.5 + _HALF, lower)
        middle = float((lower + upper) // 2 if spec.has("floor") else (lower + upper) / 2)
        if not interval or not np.isfinite(ends(lower).low):
            return Estimate(middle, float("nan"), float("nan"))
        low = _first(lower, lambda k: ends(k).high >= 0.5)
        high = _first(size, lambda k: ends(k).low >= 0.5, upper)
        return Estimate(middle, float(low), float(high))


def _first(last: int, holds: Callable[[int], bool], start: int = 1) -> int:
    """The smallest k from ``start`` to ``last`` from which on it holds; ``last`` where it never does."""
    low, high = start, max(start, last)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def ranking_of(run: Run, direction: str) -> Ranking:
    """The ranking of a direction; raises where the run has none, or has one for each fold."""
    if direction not in run.rankings:
        directions = ", ".join(run.rankings) or "none"
        raise UsageError(f"{run.name} has no ranking of {direction}", fix=f"choose one that it has: {directions}")
    if run.provenance.get("options", {}).get("folds", 1) != 1:
        raise UsageError(f"{run.name} was ranked within folds", fix="evaluate it without folds for a curve")
    return run.rankings[direction]


def _clusters(run: Run, direction: str) -> IntArray:
    """The image of every query of a direction."""
    clusters = [values.clusters for name, values in run.values.items() if split_name(name)[0] == direction]
    return clusters[0] if clusters else np.arange(len(run.rankings[direction].query_ids))


_EQUAL = 1e-12


def order_changes(
    ranked: Mapping[tuple[str, str], RankedRun],
    labels: Sequence[str],
    requests: Sequence[tuple[str, MetricSpec]],
    sizes: Sequence[int],
    options: SignificanceOptions,
) -> tuple[OrderChange, ...]:
    """Every pair of runs whose order differs between two of the sizes that both have exactly."""
    changes = []
    tests: dict[tuple[str, str], list[PairedTest]] = {names: [] for names in combinations(labels, 2)}
    for names, (direction, spec) in product(tests, requests):
        pair = _Pair(ranked[names[0], direction], ranked[names[1], direction], spec)
        stretches = pair.stretches([size for size in sizes if size <= pair.largest])
        if len(stretches) > 1:
            leads = tuple(pair.lead(names, stretch, options, tests[names]) for stretch in stretches)
            changes_at = tuple(pair.change(before[-1][0], after[0][0]) for before, after in pairwise(stretches))
            changes.append(OrderChange(f"{direction}/{spec}", names, changes_at, leads))
    values = [lead.p_value for change in changes for lead in change.leads if lead.p_value is not None]
    same: list[int] = []
    for of_pair in tests.values():
        same += [len(same) + position for position in same_tests(of_pair)]
    adjusted = iter(correct(values, options.correction, same))  # all together

    def corrected(lead: Lead) -> Lead:
        return lead if lead.p_value is None else replace(lead, adjusted_p=float(next(adjusted)))

    metrics = [f"{direction}/{spec}" for direction, spec in requests]
    ordered = [replace(change, leads=tuple(map(corrected, change.leads))) for change in changes]
    return tuple(sorted(ordered, key=lambda change: metrics.index(change.metric)))


class _Pair:
    """Two runs and a metric; a positive difference means that the first one is better."""

    def __init__(self, first: RankedRun, second: RankedRun, spec: MetricSpec) -> None:
        self.first, self.second, self.spec = first, second, spec
        self.largest = min(first.galleries.gallery, second.galleries.gallery)
        self._sign = 1 if family_of(spec).higher_is_better else -1

    def difference(self, size: int) -> float:
        """How far the first run is ahead; 0 where rounding decides."""
        difference = self._sign * (self.first.figure(self.spec, size) - self.second.figure(self.spec, size))
        return 0.0 if abs(difference) < _EQUAL else difference

    def stretches(self, sizes: Sequence[int]) -> list[list[tuple[int, float]]]:
        """Consecutive sizes with the same run ahead, each with the difference; equal figures belong to none."""
        stretches: list[list[tuple[int, float]]] = []
        for size in sizes:
            difference = self.difference(size)
            if difference and stretches and (difference > 0) == (stretches[-1][0][1] > 0):
                stretches[-1].append((size, difference))
            elif difference:
                stretches.append([(size, difference)])
        return stretches

    def change(self, before: int, after: int) -> int:
        """The first size after ``before`` at which the other run is ahead, as it is at ``after``."""
        ahead = self.difference(after) > 0
        while after - before > 1:
            middle = (before + after) // 2
            difference = self.difference(middle)
            before, after = (before, middle) if difference and (difference > 0) == ahead else (middle, after)
        return after

    def lead(
        self, labels: tuple[str, str], stretch: Sequence[tuple[int, float]], options: SignificanceOptions,
        tests: list[PairedTest],
    ) -> Lead:  # fmt: skip
        """Where one of the runs is ahead by most in a stretch; tested where both have a value of every query.

        Its test is appended to ``tests``.
        """
        size, difference = max(stretch, key=lambda entry: abs(entry[1]))
        lead = Lead(labels[0] if difference > 0 else labels[1], size, abs(difference))
        rows = match_ids(self.first.query_ids, self.second.query_ids)
        same_queries = (rows >= 0).all() and len(rows) == len(self.second.query_ids)
        if self.spec.family == "MedR" or self.spec.has("all") or not same_queries:
            return lead
        ours, theirs = (run.galleries.values(self.spec, size) for run in (self.first, self.second))
        if not np.array_equal(np.isnan(ours), np.isnan(theirs[rows])):
            return lead
        drawn: Any = {"permutations": options.permutations, "resamples": 0, "seed": options.seed}
        test = paired_permutation(ours, theirs[rows], self.first.clusters, **drawn)
        tests.append(test)
        return replace(lead, p_value=test.p_value)


GALLERY_METRICS = ("Hit@1", "MRR", "MedR")
"""The metrics of a curve that names none, in every direction that all runs have."""


@accepts_options(SignificanceOptions)
def gallery_curve(
    runs: Sequence[Run],
    metrics: str | Iterable[str | MetricSpec | MetricRequest] | None = None,
    *,
    sizes: Sequence[int] | None = None,
    progress: Progress | None = None,
    **options: Unpack[SignificanceKeywords],
) -> GalleryCurves:
    """What metrics of runs would be in galleries of other sizes, from their exact ranks.

    Up to a run's own gallery, a figure is the exact expectation over all sub-galleries of that size that hold the
    query's relevant items (MedR: the median over queries and sub-galleries together). Beyond it, the figure is
    extrapolated and marked so. Two runs whose order depends on the size are named, with paired tests.

    Args:
        runs: Runs with their rankings.
        metrics: Names of metrics; by default Hit@1, MRR and MedR of all directions.
        sizes: Sizes of galleries; by default 1, 2, 5, 10, … and the runs' own.
        progress: Told how much is done.
    """
    refuse_other_keywords(options, gallery_curve)
    tested, runs = SignificanceOptions.pick(options), tuple(runs)
    if not runs:
        raise UsageError("no runs", fix="name at least one")
    shared = [direction for direction in runs[0].rankings if all(direction in run.rankings for run in runs)]
    directed_specs: dict[tuple[str, MetricSpec], None] = {}
    for request in parse_metrics(GALLERY_METRICS if metrics is None else metrics):
        if request.spans_both:
            fix = f"name the direction: t2i/{request} or i2t/{request}"
            raise UsageError(f"{request} is over two galleries", fix=fix)
        require_expectation(request.spec)
        for direction in shared if request.direction is None else (request.direction,):
            directed_specs[direction, request.spec] = None
    if not directed_specs:
        raise UsageError("the runs keep no ranking of the same direction", fix="name runs that keep their rankings")
    requests = list(directed_specs)
    directions = dict.fromkeys(direction for direction, _ in requests)
    labels = run_labels(runs)
    ranked = {
        (label, direction): RankedRun(run, direction, tested)
        for label, run in zip(labels, runs, strict=True)
        for direction in directions
    }
    ranked_galleries = [run.galleries for run in ranked.values()]
    if sizes is None:
        smallest = max(gallery.smallest for gallery in ranked_galleries)
        gallery_sizes = round_sizes(smallest, (gallery.gallery for gallery in ranked_galleries))
    elif not sizes:
        raise UsageError("no sizes", fix="name some, such as 10,50,150", option="sizes")
    else:
        gallery_sizes = tuple(sorted(dict.fromkeys(map(int, sizes))))
    points: dict[str, dict[str, tuple[GalleryPoint, ...]]] = {label: {} for label in labels}
    with stage(shown_progress(progress), "curves", len(labels) * len(requests)) as bar:
        for label, (direction, spec) in product(labels, requests):
            run = ranked[label, direction]
            within = [size for size in gallery_sizes if sizes is not None or size <= run.galleries.gallery]
            points[label][f"{direction}/{spec}"] = tuple(run.point(spec, size) for size in within)
            bar.advance(1)
    galleries = {label: {name: ranked[label, name].galleries.gallery for name in directions} for label in labels}
    changes = order_changes(ranked, labels, requests, gallery_sizes, tested)
    beyond = [metric for metrics in points.values() for metric, series in metrics.items()
              if any(point.extrapolated for point in series)]  # fmt: skip
    notes = []
    if beyond:
        notes.append("Beyond a run's own gallery figures are extrapolated from its ranks, not measured.")
    if any(split_name(metric)[0] == IMAGE_TO_TEXT for metric in beyond):
        notes.append(
            "i2t: the captions of an image resemble each other, which the extrapolation does not know; in validation "
            "its figures were too high."
        )
    return GalleryCurves(gallery_sizes, points, galleries, changes, tested.level, tested.correction, tuple(notes))


def parse_sizes(text: str) -> tuple[int, ...]:
    """``10,50,150``, ``2..100``, ``1000,1e6``: ascending, each once."""
    size = r"([0-9][0-9_]{0,15}(?:e[0-9]{1,2})?)"
    return tuple(sorted(set(_numbers(text, "sizes", size, "10,50,150, as 2..100 or as 1000,1e6", 10**12))))


def parse_counts(text: str, name: str = "m") -> tuple[int, ...]:
    """Values of m (or of ``name``) as people write them: ``1..50``, ``1,5,10``, ``1..10,20,30``."""
    return tuple(dict.fromkeys(_numbers(text, f"values of {name}", r"([1-9]\d*)", "1..50, or as 1,5,10,20")))


def _numbers(text: str, what: str, number: str, examples: str, largest: float = inf) -> list[int]:
    numbers: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(rf"\s*{number}\s*(?:\.\.\s*{number}\s*)?", part)
        first, last = (int(Decimal(match[1])), int(Decimal(match[2] or match[1]))) if match else (0, 0)
        if not 1 <= first <= last <= largest:
            raise UsageError(f"cannot read the {what} {text!r:.60}", fix=f"write them as {examples}")
        numbers += range(first, min(last, first + _MOST_NUMBERS) + 1)
        if len(numbers) > _MOST_NUMBERS:
            raise UsageError(f"more than {_MOST_NUMBERS:,} {what}", fix="name fewer, such as 1,5,10,20,50")
    return numbers


def round_sizes(smallest: int, galleries: Iterable[int]) -> tuple[int, ...]:
    """1, 2, 5, 10, …, from the smallest possible size to the largest gallery, and the size of every gallery."""
    galleries = set(galleries)
    steps = (factor * 10**power for power in range(13) for factor in (1, 2, 5))
    return tuple(sorted({size for size in steps if smallest <= size <= max(galleries)} | galleries))


@dataclass(frozen=True)
class Curves(Presented):
    """``values[run][family]`` holds one figure for each of ``counts``, the values of m."""

    phi: str
    k: int
    direction: str
    non_gt: bool
    counts: tuple[int, ...]
    values: Mapping[str, Mapping[str, tuple[MetricValues, ...]]]
    dataset: str = ""
    similarity: Mapping[str, Any] | None = None
    by_image: bool = False

    title = "Semantic recall against m"

    def sections(self) -> Iterator[Section]:
        where = ", outside the ground truth" if self.non_gt else ""
        direction = DIRECTION_LABELS.get(self.direction, self.direction)
        heading = f"Semantic recall at {self.k} against m, {direction}{where}"
        columns = [
            (run, family, families[family]) for run, families in self.values.items() for family in CURVE_FAMILIES
        ]
        figures = [values for *_, points in columns for values in points]
        facts = [
            f"m images that the captions of the query's image vote for by {self.phi} count as relevant"
            if self.by_image
            else f"m items most similar by {self.phi} count as relevant",
            self.dataset,
            format_count(
                max(values.n for values in figures), "caption query" if self.direction == "t2i" else "image query"
            ),
            f"bands: {100 * figures[0].level:g}% intervals over images" if isfinite(figures[0].low) else "",
        ]
        subtitle = " · ".join(fact for fact in facts if fact)
        lines = Lines(
            title=heading, about=subtitle, across=tuple(map(float, self.counts)),
            series=tuple(
                Series(
                f"{run}: {_WORDS[family]} ({family})",
                tuple(metric_figure(values.name, values.mean, values.low, values.high) for values in points),
            )
            for run, family, points in columns
            ),
            axis="m, how many of the most similar items count",
        )  # fmt: skip
        rows: list[tuple[Cell, ...]] = [
            (str(m), *(metric_figure(points[index].name, points[index].mean) for *_, points in columns))
            for index, m in enumerate(self.counts)
        ]
        header = ("m", *(f"{run} {family}" for run, family, _ in columns))
        table = Table(header, tuple(rows), "r" * len(header), most=_MOST_COUNTS)
        yield Section(heading, (lines, table, Text.of(f"In percent. {subtitle}.")))

    def as_dict(self) -> dict[str, Any]:
        names = ("dataset", "direction", "k", "non_gt", "by_image")
        facts = {"phi": self.phi, "similarity": self.similarity or {}, **{name: getattr(self, name) for name in names}}
        return json_form({**facts, "m": self.counts, "runs": self.values})


@accepts_options((SignificanceOptions, "resamples level seed"))
def curve(
    runs: Sequence[Run],
    dataset: Dataset,
    phi: Any = "cider",
    *,
    m: Sequence[int] = tuple(range(1, 51)),
    k: int = 5,
    direction: str = TEXT_TO_IMAGE,
    non_gt: bool = True,
    by_image: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
    **intervals: Unpack[IntervalKeywords],
) -> Curves:
    """``SR[φ, m]@k`` and ``SRhit[φ, m]@k`` of each run for every m, from the rankings that the runs keep.

    ``phi`` is a name, or whatever :func:`crosslens.relevance_matrix` takes. With ``non_gt`` the ground truth is left
    out of both sides, as in FIVE's Figure 3; with ``by_image`` the captions of the query's image vote for m images, as
    in FIVE's code.
    """
    refuse_other_keywords(intervals, curve)
    runs = tuple(runs)
    if not runs:
        raise UsageError("no runs", fix="name at least one")
    name = phi if isinstance(phi, str) and not phi.endswith((*ARRAY_SUFFIXES, ".csv")) else "matrix"
    counts = tuple(dict.fromkeys(map(int, m)))
    flags = ", non-gt" * non_gt + ", by-image" * by_image
    names = [f"{family}[{name}, m={count}{flags}]@{k}" for family in CURVE_FAMILIES for count in counts]
    specs = [parse_metric(metric).spec for metric in names]
    rankings = [ranking_of(run, direction) for run in runs]
    queries, items = direction_ids(dataset, direction)
    for run, ranking in zip(runs, rankings, strict=True):
        # Ready-made lists may name more items, behind those of the dataset.
        if ranking.query_ids != queries or ranking.item_ids[: len(items)] != items:
            raise InputError(
                f"{run.name} is over other images or captions than the dataset {dataset.name!r}",
                expected="runs of one dataset, in its order",
                fix=f"evaluate the runs on the same dataset, or pass theirs: {argument('dataset')}",
            )
    graded = GradedRelevance(parse_metrics(specs), dataset, {name: phi})
    first = rankings[0]
    relevance = Relevance.from_indices(first.query_ids, first.item_ids, first.rows, first.relevant, first.grades)
    gains, fingerprints = graded.gains({direction: relevance}, (), threads=threads, progress=progress)
    values = {}
    for label, run, ranking in zip(run_labels(runs), runs, rankings, strict=True):
        clusters = {direction: _clusters(run, direction)}
        measured = measure({direction: ranking}, clusters, specs, gains=gains, **intervals)
        values[label] = {
            family: tuple(measured[f"{direction}/{spec}"] for spec in specs if spec.family == family)
            for family in CURVE_FAMILIES
        }
    similarity = {**graded.description["similarities"][name], **fingerprints[name]}
    return Curves(name, k, direction, non_gt, counts, values, dataset.name, similarity, by_image)
