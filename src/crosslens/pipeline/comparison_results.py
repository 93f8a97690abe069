"""What comparisons found: of runs on the same queries, and of two caption sets of the same images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, nan
from pathlib import Path
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from crosslens.core import (
    BOTH,
    DIRECTION_LABELS,
    Bars,
    Cell,
    FactList,
    Figure,
    Part,
    Presented,
    Run,
    Section,
    Series,
    Statistic,
    Table,
    Text,
    UnknownNameError,
    json_form,
    split_name,
)
from crosslens.metrics import format_count, matching_names, metric_figure, unit_of, unit_sentence
from crosslens.statistics import (
    correct,
    corrected_words,
    floor_of_p,
    permutation_words,
    significance_sentence,
    verdict_words,
)

if TYPE_CHECKING:
    from crosslens.analyze import GranularityComparison
    from crosslens.explanations import RunChanges


_MOST_METRICS = 6
"""With more metrics, the queries that differ most are not listed: they would be a wall of ids."""
_WEAK_MEDIANS = "A median depends on few queries: a test of MedR finds fewer differences than one of MRR."
_MOST_VERDICTS = 3
"""Of more pairs of runs, one sentence is about the best run."""
_GRADED = "NCS"


def difference_figure(result: MetricComparison) -> Figure:
    """The difference of two runs with its interval."""
    return metric_figure(result.metric, result.difference, result.low, result.high, signed=True)


def _bars(comparison: Comparison) -> Iterator[Bars]:
    """The shares of all runs side by side; ranks and sums have axes of their own, and stay in tables."""
    names = dict.fromkeys(result.metric for result in comparison.results if unit_of(result.metric) == "share")
    if names and comparison.figures:
        series = tuple(
            Series(run, tuple(metric_figure(name, *comparison.figures[run][name]) for name in names))
            for run in comparison.runs
        )
        bounded = any(figure.bounded for bars in series for figure in bars.figures)
        yield Bars(
            title="Metrics in percent", about=f"{100 * comparison.level:g}% intervals over images" if bounded else "",
            groups=tuple(names), series=series, heading="metric", axis="%", limits=(0.0, 1.0),
        )  # fmt: skip


def _comparison_notes(comparison: Comparison, queries: bool) -> Iterator[str]:
    results, share = comparison.results, f"{100 * comparison.level:g}%"
    test = "paired permutation test over images"
    yield from significance_sentences(test, results, comparison.permutations, comparison.correction, comparison.level)
    if comparison.all_pairs:
        yield f"In brackets: {share} intervals over images."
        yield f"Letters: significantly better than these runs (p < {1 - comparison.level:.2g})."
    else:
        yield f"In brackets: {share} interval of the difference, over images."
        yield from disagreements(results, comparison.level)
        yield "Won and lost: queries on which the second run is better or worse."
    yield unit_sentence(result.metric for result in results)
    if any(not result.higher_is_better for result in results):
        yield "↓: lower is better."
    if any(result.statistic != "mean" for result in results):
        yield _WEAK_MEDIANS
    if comparison.changes is not None:
        if not any(_GRADED in result.metric for result in results):
            yield f'The runs have no graded metric: evaluate with --metrics "… {_GRADED}[cider]@10" to see one here.'
    elif queries and not comparison.all_pairs and len(results) > _MOST_METRICS * len(comparison.others):
        yield "Choose a few metrics to see the queries that differ most."
    yield from comparison.notes


def _queries(results: Sequence[MetricComparison]) -> Iterator[tuple[str, str]]:
    """The queries on which each run gains most, with the value in the first and in the second run."""
    for result in results:
        whole = replace(metric_figure(result.metric, None), digits=3 if unit_of(result.metric) == "number" else 0)
        for better, queries in ((result.other, result.largest_gains), (result.baseline, result.largest_losses)):
            if queries:
                values = (
                    f"{differing.query} {whole.write(differing.baseline)} → {whole.write(differing.other)}"
                    for differing in queries
                )
                yield f"{result.metric}, {better} better", "; ".join(values)


def _with_arrow(name: str, result: MetricComparison | MetricChange) -> str:
    return name if result.higher_is_better else f"{name} ↓"


def _role(result: MetricComparison | MetricChange) -> str:
    return "primary" if result.primary else "secondary"


def _primary_first(result: MetricComparison | MetricChange) -> bool:
    return not result.primary


def run_letters(runs: Sequence[str]) -> dict[str, str]:
    """A letter for each run: ``a``, ``b``, …; a number beyond ``z``."""
    return {run: ascii_lowercase[n] if n < 26 else str(n + 1) for n, run in enumerate(runs)}


def letter_sentence(letters: Mapping[str, str]) -> str:
    """Which run each letter is."""
    return "; ".join(f"{letter}: {run}" for run, letter in letters.items()) + "."


def _verdict(result: MetricComparison, comparison: Comparison) -> str:
    """What the primary metric says of two runs."""
    by = f"By {result.metric}, the primary metric, {result.other}"
    if not isfinite(result.p_value):
        return f"{by} and {result.baseline} could not be tested."
    if not result.difference:
        return f"{by} and {result.baseline} are equal."
    ahead = "ahead of" if (result.difference > 0) == result.higher_is_better else "behind"
    amount = metric_figure(result.metric, abs(result.difference)).number
    amount += " points" if unit_of(result.metric) == "share" else ""
    words = verdict_words(result.adjusted_p, result.smallest_p, result.images, comparison.level)
    p = Figure.p(result.adjusted_p, comparison.permutations).equation
    return f"{by} is {ahead} {result.baseline} by {amount}: {words} (p {p})."


_OWN = "[scores_from=own]"
"""What every DCGcm would have in its name: a sentence under the table leaves room for the numbers."""


def _caption_set_notes(sets: CaptionSets) -> Iterator[str]:
    before, after = (run.provenance["dataset"] for run in sets.runs)
    captions = f"{before['captions']:,} captions before and {after['captions']:,} captions after"
    yield f"{format_count(before['images'], 'image')}, {captions}."
    yield unit_sentence(result.metric for result in sets.results).replace(_OWN, "")
    if any(isfinite(result.low) for result in sets.results):
        share = f"{100 * sets.level:g}%"
        yield f"In brackets: {share} interval of the difference; images are drawn with their captions of both sets."
        yield from disagreements(sets.results, sets.level)
    test = "permutation test that swaps the sets image by image"
    yield from significance_sentences(test, sets.results, sets.permutations, sets.correction, sets.level)
    if any(_OWN in result.metric for result in sets.results):
        yield "DCGcm: unlabelled items count by the evaluated model's own scores (scores_from=own)."
    if any(not result.higher_is_better for result in sets.results):
        yield "↓: lower is better."
    yield from sets.notes


def _short(metric: str) -> str:
    return split_name(metric)[1].replace(_OWN, "")


def _figure(result: MetricChange, value: float) -> Figure:
    """A plain number (DCGcm) has two decimals, as the papers print it."""
    figure = metric_figure(result.metric, value)
    return replace(figure, digits=2) if unit_of(result.metric) == "number" else figure


@dataclass(frozen=True)
class QueryDifference:
    """One query and its value in both runs."""

    query: str
    baseline: float
    other: float


@dataclass(frozen=True)
class MetricComparison:
    """One metric of two runs on the same queries; ``difference`` is other − baseline.

    A query is won where the other run is better: above the baseline, or below it for a metric such as ``MedR``.
    """

    metric: str
    baseline: str
    other: str
    baseline_mean: float
    other_mean: float
    difference: float
    low: float
    high: float
    p_value: float
    adjusted_p: float
    n: int
    wins: int
    losses: int
    ties: int
    largest_gains: tuple[QueryDifference, ...]
    largest_losses: tuple[QueryDifference, ...]
    statistic: Statistic = "mean"
    higher_is_better: bool = True
    images: int = 0
    smallest_p: float = nan
    """The smallest corrected p-value that so many images can give."""
    primary: bool = False
    same_as: str | None = None
    """The metric whose test on these runs is the same; its p-value is that of this one, and counts once."""


@dataclass(frozen=True)
class MetricChange:
    """One metric on two caption sets; ``difference`` is after − before, ``relative`` the same as a share of before.

    ``better`` and ``worse`` count images: by the mean over an image's own queries.
    """

    metric: str
    before: float
    after: float
    difference: float
    low: float
    high: float
    relative: float
    relative_low: float
    relative_high: float
    p_value: float
    adjusted_p: float
    images: int
    better: int
    worse: int
    statistic: Statistic = "mean"
    higher_is_better: bool = True
    smallest_p: float = nan
    primary: bool = False
    same_as: str | None = None


Result = TypeVar("Result", MetricComparison, MetricChange)


def corrected(blocks: Sequence[Sequence[Result]], correction: str) -> list[list[Result]]:
    """The results with corrected p-values; a block is what was compared with one another, such as two runs.

    Primary metrics are corrected among themselves, and so are the secondary ones. What is the same test as another one
    of its block has the p-value of that one.
    """
    adjusted: dict[tuple[int, str], tuple[float, float]] = {}
    for primary in (True, False):
        counted = [
            (number, result)
            for number, block in enumerate(blocks)
            for result in block
            if result.primary == primary and result.same_as is None
        ]
        p_values = correct([result.p_value for _, result in counted], correction)
        tests = int(np.isfinite(p_values).sum())
        for (number, result), p in zip(counted, p_values, strict=True):
            adjusted[number, result.metric] = float(p), floor_of_p(result.images, correction, tests)
    return [
        [
            replace(result, adjusted_p=p, smallest_p=smallest)
            for result in block
            for p, smallest in [adjusted[number, result.same_as or result.metric]]
        ]
        for number, block in enumerate(blocks)
    ]


def disagreements(results: Sequence[MetricComparison | MetricChange], level: float) -> Iterator[str]:
    """Why an interval of a difference leaves out 0 beside a p-value that shows none, where that is printed."""
    apart = [result for result in results if result.adjusted_p >= 1 - level and (result.low > 0 or result.high < 0)]
    for reason, because in (
        (True, "intervals are not corrected for the number of tests"),
        (False, "interval and test are different approximations, which may disagree at the border"),
    ):
        names = dict.fromkeys(result.metric for result in apart if (result.p_value < 1 - level) == reason)
        if names:
            yield f"Without 0 in the interval, and yet p ≥ {1 - level:.2g}: {', '.join(names)}; {because}."


def significance_sentences(
    test: str, results: Sequence[MetricComparison | MetricChange], permutations: int, correction: str, level: float
) -> Iterator[str]:
    """How p-values came about: the test, the corrections, what counts once, and what cannot be decided."""
    counts = {
        primary: sum(
            result.primary == primary and result.same_as is None and isfinite(result.p_value) for result in results
        )
        for primary in (True, False)
    }
    main = next((result.metric for result in results if result.primary), "")
    if main and counts[False]:
        yield f"p: {test}, two-sided; {permutation_words(permutations)}."
        alone, rest = (corrected_words(correction, counts[primary]) for primary in (True, False))
        yield f"{main} is the primary metric, {alone}; the others are secondary, {rest}."
    else:
        yield significance_sentence(test, permutations, correction, sum(counts.values()))
    times = Counter(result.metric for result in results)
    same: dict[str, list[str]] = {}
    for (metric, first), number in Counter((result.metric, result.same_as) for result in results).items():
        if first is not None:
            some = "" if number == times[metric] else f" (in {number} of {times[metric]} comparisons)"
            same.setdefault(first, []).append(f"{metric}{some}")
    for first, others in same.items():
        yield f"The same test as {first} here, counted once: {', '.join(others)}."
    undecided = [result for result in results if result.smallest_p >= 1 - level]
    if undecided:
        images = format_count(min(result.images for result in undecided), "image")
        listed = ", ".join(dict.fromkeys(result.metric for result in undecided))
        least = min(result.smallest_p for result in undecided)
        yield f"Cannot be decided with {images}, as no corrected p is below {least:.2g}: {listed}."


class SignificanceResults(Presented, Generic[Result]):
    """A comparison metric by metric, and how it was tested."""

    results: tuple[Result, ...]
    correction: str
    permutations: int
    seed: int
    level: float

    def __getitem__(self, metric: str) -> Result:
        """The result of a metric; the first, where there are several."""
        results = {result.metric: result for result in reversed(self.results)}
        meant = matching_names(metric, results)
        if len(meant) != 1:
            raise UnknownNameError("metric in this comparison", metric, meant or results)
        return results[meant[0]]

    def test_facts(self) -> dict[str, Any]:
        return {
            "test": "paired permutation over images, two-sided",
            "correction": self.correction,
            "permutations": self.permutations,
            "seed": self.seed,
            "level": self.level,
            "primary": next((result.metric for result in self.results if result.primary), None),
        }


@dataclass(frozen=True)
class Comparison(SignificanceResults[MetricComparison]):
    """The first run against each of the others, or all pairs, metric by metric.

    ``figures`` are each run's own: by run and metric, the mean (or median) and its interval. ``changes`` are those of
    two runs query by query, where they were asked for.
    """

    baseline: str
    others: tuple[str, ...]
    results: tuple[MetricComparison, ...]
    correction: str
    permutations: int
    seed: int
    level: float
    notes: tuple[str, ...] = ()
    all_pairs: bool = False
    figures: Mapping[str, Mapping[str, tuple[float, float, float]]] = field(default_factory=dict)
    changes: RunChanges | None = None

    @property
    def title(self) -> str:
        if self.changes is not None:
            return self.changes.title
        return (
            "Runs compared" if len(self.others) > 1 or self.all_pairs else f"{self.others[0]} against {self.baseline}"
        )

    def sections(self, *, queries: bool = True) -> Iterator[Section]:
        """Each run against the first, and what changed; with the ``queries`` that differ most.

        All pairs are one table of the runs' figures, with the letters of the runs that each is significantly better
        than.
        """
        notes = tuple(_comparison_notes(self, queries))
        if self.all_pairs:
            letters = run_letters(self.runs)
            lines: list[tuple[Cell, ...]] = []
            best = set()
            metrics = {result.metric: result for result in sorted(self.results, key=_primary_first)}
            for number, (name, result) in enumerate(metrics.items()):
                figures = {run: self.figures[run][name] for run in self.runs}
                marks = {run: "".join(letters[other] for other in self.beaten(run, name)) for run in figures}
                cells = (replace(metric_figure(name, *figure), mark=marks[run]) for run, figure in figures.items())
                lines.append((_with_arrow(name, result) + (" (primary)" if result.primary else ""), *cells))
                means = [mean for mean, *_ in figures.values()]
                leading = (max if result.higher_is_better else min)(means)
                best |= {(number, column) for column, mean in enumerate(means, start=1) if mean == leading}
            titles = ("metric", *(f"{letter}: {run}" for run, letter in letters.items()))
            table = Table(titles, tuple(lines), "l" * len(titles), notes=notes, best=frozenset(best))
            named = (letter_sentence(letters), *notes)
            table = replace(table, narrow=replace(table, header=("metric", *letters.values()), notes=named))
            yield Section("", (Text(self.verdicts), table, *_bars(self)))
        for other in () if self.all_pairs else self.others:
            results = [result for result in self.results if result.other == other]
            verdicts = tuple(_verdict(result, self) for result in results if result.primary)
            parts: list[Part] = [Text(verdicts), self._table(sorted(results, key=_primary_first))]
            differing = tuple(_queries(results)) if queries and len(results) <= _MOST_METRICS else ()
            if differing:
                parts.append(FactList(differing, "Where they differ most (value in the first → in the second)"))
            if other == self.others[-1]:
                parts += [Text(notes, note=True), *_bars(self)]
            yield Section(f"{other} against {self.baseline}", tuple(parts))
        if self.changes is not None:
            yield from self.changes.sections()

    def _table(self, results: Sequence[MetricComparison]) -> Table:
        """A row per metric of two runs; the narrower a terminal, the less of it is in columns of its own."""
        names, numbered = (self.baseline, results[0].other), ("1st", "2nd")

        def form(
            narrow: Table | None, titles: tuple[str, str] = numbered, *, role: bool = False, queries: bool = True
        ) -> Table:
            rows = tuple(
                (
                    _with_arrow(result.metric, result) + ("" if role or not result.primary else " †"),
                    *((_role(result),) if role else ()),
                    metric_figure(result.metric, result.baseline_mean),
                    metric_figure(result.metric, result.other_mean),
                    difference_figure(result),
                    Figure.p(result.adjusted_p, self.permutations),
                    *((f"{result.wins:,} : {result.losses:,}",) if queries else ()),
                )
                for result in results
            )
            header = ("metric", *("role",) * role, *titles, "difference", "p", *("won : lost",) * queries)
            words = (
                "" if role else "†: the primary metric.",
                f"1st: {names[0]}; 2nd: {names[1]}." if titles == numbered else "",
                "" if queries else "Won and lost queries do not fit: see --json.",
            )
            notes = (" ".join(filter(None, words)),) if any(words) else ()
            return Table(header, rows, "l" + "l" * role + "rrlr" + "r" * queries, notes=notes, narrow=narrow)

        return form(form(form(form(None, queries=False)), names), names, role=True)

    @property
    def verdicts(self) -> tuple[str, ...]:
        """What the primary metric says of each two runs; of many, of the best and the one nearest to it."""
        results = [result for result in self.results if result.primary]
        if self.all_pairs and len(results) > _MOST_VERDICTS:
            means = {run: self.figures[run][results[0].metric][0] for run in self.runs}
            best = (max if results[0].higher_is_better else min)(means, key=means.__getitem__)
            nearest = min(
                (result for result in results if best in (result.baseline, result.other)),
                key=lambda result: abs(result.difference),
            )
            results = [nearest]
        return tuple(_verdict(result, self) for result in results)

    @property
    def runs(self) -> tuple[str, ...]:
        return self.baseline, *self.others

    def beaten(self, run: str, metric: str) -> tuple[str, ...]:
        """The runs that ``run`` is significantly better than: corrected p below 1 − level."""
        names = []
        for result in self.results:
            if result.metric == metric and result.adjusted_p < 1 - self.level:
                better = (result.difference > 0) == result.higher_is_better
                winner, loser = (result.other, result.baseline) if better else (result.baseline, result.other)
                if winner == run:
                    names.append(loser)
        return tuple(names)

    def as_dict(self) -> dict[str, Any]:
        content = {
            "baseline": self.baseline,
            "others": self.others,
            "all_pairs": self.all_pairs,
            **self.test_facts(),
            "figures": {
                run: {name: dict(zip(("mean", "low", "high"), values, strict=True)) for name, values in metrics.items()}
                for run, metrics in self.figures.items()
            },
            "comparisons": self.results,
            "notes": self.notes,
        }
        return {**json_form(content), **({} if self.changes is None else {"changes": self.changes.as_dict()})}


@dataclass(frozen=True)
class CaptionSets(SignificanceResults[MetricChange]):
    """Two caption sets under one model: the change of every metric, both runs, and the captions' granularity.

    ``folder`` is where both runs were written, if they were. A ``wide`` table has a row per set, as papers print them.
    """

    names: tuple[str, str]
    runs: tuple[Run, Run]
    results: tuple[MetricChange, ...]
    granularity: GranularityComparison | None
    model: str
    correction: str
    permutations: int
    seed: int
    level: float
    notes: tuple[str, ...] = ()
    folder: Path | None = None
    wide: bool = False

    @property
    def title(self) -> str:
        before, after = (
            name if name.endswith(f"({side})") else f"{name} ({side})"  # self of the same name have it in theirs
            for name, side in zip(self.names, ("before", "after"), strict=True)
        )
        return f"{after} against {before}" + (f", {self.model}" if self.model else "")

    def sections(self) -> Iterator[Section]:
        by_direction = {
            direction: [result for result in self.results if split_name(result.metric)[0] == direction]
            for direction in DIRECTION_LABELS
        }
        if self.wide:
            columns: list[tuple[Any, ...]] = [("captions", *self.names)]
            for direction, results in by_direction.items():
                for result in results:
                    title = _short(result.metric) if direction == BOTH else f"{direction} {_short(result.metric)}"
                    columns.append((title, _figure(result, result.before), _figure(result, result.after)))
            header, *wide = zip(*columns, strict=True)
            yield Section("", (Table(header, tuple(wide)),))
            return
        tables = []
        for direction, results in by_direction.items():
            if not results:
                continue
            rows = tuple(
                (
                    _with_arrow(_short(result.metric), result) + (" (primary)" if result.primary else ""),
                    _figure(result, result.before),
                    _figure(result, result.after),
                    replace(_figure(result, result.difference), low=result.low, high=result.high, signed=True),
                    Figure.percent(result.relative, signed=True, unit=" %"),
                    Figure.p(result.adjusted_p, self.permutations),
                )
                for result in results
            )
            header = ("metric", "before", "after", "difference", "relative", "p")
            tables.append(Table(header, rows, "lrrlrr", DIRECTION_LABELS[direction]))
        yield Section(self.title, (*tables, Text(tuple(_caption_set_notes(self)), note=True)))
        if self.granularity is not None:
            yield Section("The captions themselves", ())
            yield from self.granularity.sections()

    def as_dict(self) -> dict[str, Any]:
        return {
            "model": self.model,
            **{
                side: {"name": name, **{key: run.provenance["dataset"][key] for key in ("images", "captions")}}
                for side, name, run in zip(("before", "after"), self.names, self.runs, strict=True)
            },
            **self.test_facts(),
            "metrics": json_form({result.metric: result for result in self.results}),
            "granularity": self.granularity and self.granularity.as_dict(),
            "notes": list(self.notes),
            "folder": self.folder and str(self.folder),
        }
