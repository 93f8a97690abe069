"""What comparisons found: of runs on the same queries, and of two caption sets of the same images."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isfinite, isnan, nan
from pathlib import Path
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from crosslens.comparisons.paired_queries import SETS, PairedQueries, pair_queries
from crosslens.core import (
    STATED_SIZE,
    Beside,
    Cell,
    Figure,
    Folded,
    Interval,
    Intervals,
    PairedBar,
    PairedBars,
    Part,
    Presented,
    QueryCards,
    Section,
    Table,
    Text,
    Tone,
    UnknownNameError,
)
from crosslens.explanations import join_words
from crosslens.metrics import facts_of, format_count, matching_names, metric_figure, unit_of, unit_sentence
from crosslens.statistics import correct, corrected_words, floor_of_p, permutation_words, significance_sentence
from crosslens.storage import json_form
from crosslens.values import BOTH, DIRECTION_LABELS, IMAGE_TO_TEXT, Run, Statistic, split_name

if TYPE_CHECKING:
    from crosslens.analyze import GranularityComparison
    from crosslens.explanations import RunChanges


_LONGEST_NAME = 40
_NAMED = 4
"""Groups that a title names."""
_WITHIN = 80
"""Percent of the intervals of groups that the axis holds: a few small groups must not squeeze all others."""
_WEAK_MEDIANS = "A median depends on few queries: a test of MedR finds fewer differences than one of MRR."
_MOST_VERDICTS = 3
"""Of more pairs of runs, one sentence is about the best run."""
_GRADED = "NCS"


def difference_figure(result: MetricComparison) -> Figure:
    """The difference of two runs with its interval."""
    return metric_figure(result.metric, result.difference, result.low, result.high, signed=True)


def _comparison_notes(comparison: Comparison) -> Iterator[str]:
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
    if comparison.changes is not None and not any(_GRADED in result.metric for result in results):
        yield f'The runs have no graded metric: evaluate with --metrics "… {_GRADED}[cider]@10" to see one here.'
    yield from comparison.notes


def _with_arrow(name: str, result: MetricComparison | MetricChange) -> str:
    return name if result.higher_is_better else f"{name} ↓"


def _primary_first(result: MetricComparison | MetricChange) -> bool:
    return not result.primary


def run_letters(runs: Sequence[str]) -> dict[str, str]:
    """A letter for each run: ``a``, ``b``, …; a number beyond ``z``."""
    return {run: ascii_lowercase[n] if n < 26 else str(n + 1) for n, run in enumerate(runs)}


def letter_sentence(letters: Mapping[str, str]) -> str:
    """Which run each letter is."""
    return "; ".join(f"{letter}: {run}" for run, letter in letters.items()) + "."


_NOUNS = {"t2i": ("caption", "the image"), "i2t": ("image", "a caption"), "t2t": ("text", "the image")}
"""What asks in a direction, and what is found."""


def _verdict(result: MetricComparison, level: float, runs: Mapping[str, Run]) -> str:
    """What the metric says of two runs: which is better and by how much, that they do not differ, or neither.

    Where one ranked fewer items, it is ahead and not better: a smaller gallery is easier.
    """
    direction, metric = split_name(result.metric)
    names, share = f"{result.baseline} and {result.other}", unit_of(result.metric) == "share"
    if not isfinite(result.p_value):
        return f"{names} could not be tested by {result.metric}."
    if result.difference == result.low == result.high == 0:
        return f"{names} give the same lists."
    if result.adjusted_p < 1 - level:
        ahead = (result.difference > 0) == result.higher_is_better
        better, worse = (result.other, result.baseline) if ahead else (result.baseline, result.other)
        sign = 1 if result.difference > 0 else -1
        low, high = sorted((sign * result.low, sign * result.high))
        amount = metric_figure(result.metric, sign * result.difference)
        depth = re.fullmatch(r"Hit@(\d+)", metric)
        sentence = f"{better} is better than {worse}"
        items = "captions" if direction == IMAGE_TO_TEXT else "images"
        galleries = [
            runs[run].provenance.get("dataset", {}).get(items) if run in runs else None for run in (better, worse)
        ]
        if None not in galleries and galleries[0] != galleries[1]:
            sentence = f"{better}, among {galleries[0]:,} {items}, is ahead of {worse}, among {galleries[1]:,}"
        if depth is not None and direction in _NOUNS:
            query, item = _NOUNS[direction]
            amount = replace(amount, digits=0 if result.difference**2 > 1e-4 and high - low > 0.02 else 1, plain=True)
            among = "" if depth[1] == "1" else f" among the first {depth[1]}"
            sentence += f": of 100 {query}s, it finds {item} of {amount.number} more{among}"
            if direction == IMAGE_TO_TEXT:
                sentence = sentence.replace(f"{item} of {amount.number} more", f"{item} for {amount.number} more")
        else:
            sentence += f" by {amount.number}{' points' if share else ''} of {metric}"
        return f"{sentence} ({amount.write(low)} to {amount.write(high)} are possible)." if low > 0 else f"{sentence}."
    if share and result.low > -STATED_SIZE and result.high < STATED_SIZE:
        return f"{names} do not differ by more than {100 * STATED_SIZE:g} points of {result.metric}."
    return undecided(result)


def undecided(result: MetricComparison) -> str:
    """That a metric does not tell which of two runs is better, and between what their difference is."""
    ends, unit = difference_figure(result), f"of {result.metric}"
    if ends.scale == 100:  # whole points, where an end is not rounded to none at all
        coarse = min(abs(ends.low), abs(ends.high)) >= 0.005 and ends.high - ends.low > 0.02
        ends, unit = replace(ends, digits=0 if coarse else 1), "points"
    between = f"{ends.write(ends.low)} and {ends.write(ends.high)} {unit}"
    between = f": the difference ({result.other} − {result.baseline}) is between {between}" if ends.bounded else ""
    images = format_count(result.images, "image")
    return f"Whether {result.baseline} or {result.other} is better cannot be decided with {images}{between}."


def _facts(result: MetricComparison, comparison: Comparison) -> str:
    """The figures behind a verdict."""
    figures = (metric_figure(result.metric, mean) for mean in (result.baseline_mean, result.other_mean))
    points = " points" if unit_of(result.metric) == "share" else ""
    p = Figure.p(result.adjusted_p, comparison.permutations).equation
    low, high = difference_figure(result).number, difference_figure(result).interval
    means = " → ".join(figure.number for figure in figures)
    return f"{result.metric}, {result.baseline} → {result.other}: {means}, {low}{points} {high}, p {p}."


def query_bar(
    names: tuple[str, str], sets: Mapping[str, Sequence[str]], addresses: tuple[str, ...], *, second_is_ahead: bool
) -> PairedBars:
    """How many queries only either of two runs finds, both or neither; addresses lead to these."""
    tones: tuple[Tone, Tone] = ("bad", "good") if second_is_ahead else ("good", "bad")
    only = [(f"only {_brief(name)} finds", tone) for name, tone in zip(names, tones, strict=True)]
    counts = tuple(map(len, sets.values()))
    bar = PairedBar(format_count(sum(counts), "query"), counts, addresses=addresses)
    levels = (*only, ("both find", ""), ("neither finds", "unsure"))
    return PairedBars(title="The same queries, one by one", levels=levels, rows=(bar,), noun="queries")


def detectable_words(metric: str, smallest: float, images: int) -> str:
    """What differences a dataset could have shown; nothing where that is not known."""
    if not isfinite(smallest):
        return "" if isnan(smallest) else f"No difference can be seen in {format_count(images, 'image')}."
    figure = metric_figure(metric, smallest)
    if unit_of(metric) == "share":
        figure = replace(figure, digits=0 if smallest >= 0.02 else 1, unit=" points")
    text = f"Differences below about {figure.number} can stay unseen in {format_count(images, 'image')}"
    return f"{text}; four times as many halve that."


def _brief(name: str) -> str:
    """A name beside a drawing: a long one loses its middle, as names may differ at their ends."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME // 2]}…{name[1 - _LONGEST_NAME // 2 :]}"


def _tone(difference: float, higher_is_better: bool, settled: bool) -> Tone:
    return "unsure" if not settled else "good" if (difference > 0) == higher_is_better else "bad"


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
    statistic: Statistic = "mean"
    higher_is_better: bool = True
    images: int = 0
    smallest_p: float = nan
    """The smallest corrected p-value that so many images can give."""
    detectable: float = nan
    """The smallest difference that such a test finds in 80 % of datasets like this one, before any correction."""
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
        names = ", ".join(dict.fromkeys(result.metric for result in undecided))
        least = min(result.smallest_p for result in undecided)
        yield f"Cannot be decided with {images}, as no corrected p is below {least:.2g}: {names}."


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
    compared: tuple[Run, ...] = field(default=(), repr=False, compare=False)

    @cached_property
    def paired(self) -> Mapping[str, PairedQueries]:
        """Run → its queries beside those of the first run, by the primary metric."""
        primary = next((result.metric for result in self.results if result.primary), None)
        if primary is None or self.all_pairs:
            return {}
        options = {name: getattr(self, name) for name in ("level", "correction", "permutations", "seed")}
        return {other.name: pair_queries(self.compared[0], other, primary, **options) for other in self.compared[1:]}

    @property
    def _by_name(self) -> Mapping[str, Run]:
        return {run.name: run for run in self.compared}

    @property
    def title(self) -> str:
        of_two = len(self.others) == 1 and not self.all_pairs
        return f"{self.others[0]} against {self.baseline}" if of_two else "Runs compared"

    def sections(self, address: Callable[[str, str], str] | None = None) -> Iterator[Section]:
        """Each run against the first: the verdict, the queries behind it, differences by group, all metrics.

        ``address(run, query)`` is the page of a query, where there is one, and ``address(run, "both")`` that of a set.
        All pairs are one table of the runs' figures, with the letters of the runs that each is significantly better
        than.
        """
        notes = tuple(_comparison_notes(self))
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
            short_notes = (letter_sentence(letters), *notes)
            table = replace(table, narrow=replace(table, header=("metric", *letters.values()), notes=short_notes))
            yield Section("", (Text(self.verdicts), table))
        for other in () if self.all_pairs else self.others:
            results = sorted((result for result in self.results if result.other == other), key=_primary_first)
            paired = self.paired.get(other)
            yield from self._answer(results[0], paired, address)
            if paired is not None:
                yield from _group_sections(paired, self.level)
                yield from () if self.changes is not None else _query_sections(paired, address)
            yield Section("", (self._table(results, notes if other == self.others[-1] else ()),))
        if self.changes is not None:
            yield from self.changes.sections()

    def _answer(
        self, result: MetricComparison, paired: PairedQueries | None, address: Callable[[str, str], str] | None
    ) -> Iterator[Section]:
        """The verdict in a sentence, both figures on one scale, and how many queries each finds alone."""
        names = result.baseline, result.other
        shared = metric_figure(result.metric, None)
        rows = tuple(
            Interval(replace(shared, value=value, low=low, high=high), _brief(name))
            for name in names
            for value, low, high in [self.figures.get(name, {}).get(result.metric, (nan, nan, nan))]
            if isfinite(value)
        )
        share = unit_of(result.metric) == "share"
        facts = _facts(result, self), detectable_words(result.metric, result.detectable, result.images)
        parts: list[Part] = [Text.of(*facts)]
        if rows:
            subtitle = f"{format_count(result.n, 'query')} of {format_count(result.images, 'image')}"
            limits = (0.0, 1.0) if share else None
            strip = Intervals(
                title=result.metric, about=subtitle, rows=rows, heading="run", axis="%" * share, limits=limits
            )
            parts.insert(0, strip)
        if paired is not None and paired.sets:
            ahead = (result.difference >= 0) == result.higher_is_better
            to = (f"#{name}-{result.other}" if address is None else address(result.other, name) for name in SETS)
            addresses = () if self.changes is not None and address is None else tuple(to)
            parts.append(query_bar(names, paired.sets, addresses, second_is_ahead=ahead))
        yield Section(_verdict(result, self.level, self._by_name), tuple(parts))

    def _table(self, results: Sequence[MetricComparison], notes: tuple[str, ...]) -> Table:
        """A row per metric of two runs; the narrower a terminal, the less of it is in columns of its own."""
        words, title = notes, f"All {len(results)} metrics" if len(results) > 1 else "The metric"
        names, numbered = (self.baseline, results[0].other), ("1st", "2nd")

        def form(
            narrow: Table | None, titles: tuple[str, str] = numbered, *, role: bool = False, queries: bool = True
        ) -> Table:
            rows = tuple(
                (
                    _with_arrow(result.metric, result) + ("" if role or not result.primary else " †"),
                    *(("primary" if result.primary else "secondary",) if role else ()),
                    metric_figure(result.metric, result.baseline_mean),
                    metric_figure(result.metric, result.other_mean),
                    difference_figure(result),
                    Figure.p(result.adjusted_p, self.permutations),
                    *((f"{result.wins:,} : {result.losses:,}",) if queries else ()),
                )
                for result in results
                if result.same_as is None
            )
            header = ("metric", *("role",) * role, *titles, "difference", "p", *("won : lost",) * queries)
            legend = (
                "" if role else "†: the primary metric.",
                f"1st: {names[0]}; 2nd: {names[1]}." if titles == numbered else "",
                "" if queries else "Won and lost queries do not fit: see --json.",
            )
            notes = (*([" ".join(filter(None, legend))] if any(legend) else []), *words)
            align = "l" + "l" * role + "rrlr" + "r" * queries
            return Table(header, rows, align, title, notes, narrow=narrow, aside=True)

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
        return tuple(f"{_verdict(result, self.level, self._by_name)} {_facts(result, self)}" for result in results)

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
            **({"queries": self.paired} if self.compared else {}),
            "notes": self.notes,
            **({} if self.changes is None else {"changes": self.changes}),
        }
        return json_form(content)


def _group_sections(paired: PairedQueries, level: float) -> Iterator[Section]:
    """Differences by group on one axis; those that the correction for all groups leaves are coloured."""
    if not paired.groups:
        return
    metric, upward = paired.metric, facts_of(paired.metric).higher_is_better
    settled = [group for group in paired.groups if group.differs(level)]
    settled.sort(key=lambda group: -abs(group.difference))
    claims = []
    for run, ahead in zip(paired.runs, (not upward, upward), strict=True):
        names = [group.where for group in settled if (group.difference > 0) == ahead]
        more = [format_count(len(names) - _NAMED, "more group")] if len(names) > _NAMED else []
        if len(names) == len(paired.groups) > 1:
            claims.append(f"{run} is ahead in each of the {len(names)} groups")
        elif names:
            claims.append(f"{run} is ahead for {join_words([*names[:_NAMED], *more])}")
    ends = sorted(max(abs(group.low), abs(group.high)) for group in paired.groups if isfinite(group.low))
    largest = max([*ends[: _WITHIN * len(ends) // 100], *(abs(group.difference) for group in paired.groups)]) or 1.0
    by_column: dict[str, list[Interval]] = {}
    for group in paired.groups:
        figure = metric_figure(metric, group.difference, group.low, group.high, signed=True)
        means = " → ".join(metric_figure(metric, mean).number for mean in (group.first, group.second))
        tone = _tone(group.difference, upward, group.differs(level))
        by_column.setdefault(group.column, []).append(Interval(figure, group.group, means, tone=tone))
    axis = "points" if unit_of(metric) == "share" else ""
    columns: tuple[list[Part], list[Part]] = [], []
    lengths = [0, 0]
    for column, rows in sorted(by_column.items(), key=lambda item: -len(item[1])):
        shortest = lengths.index(min(lengths))
        lengths[shortest] += len(rows) + 3
        title = f"by {column.replace('_', ' ')}"
        columns[shortest].append(Intervals(
            title=title, rows=tuple(rows), heading=column, axis=axis, limits=(-largest, largest), mark=0.0
        ))  # fmt: skip
    middle = sorted(paired.groups, key=lambda group: group.detectable)[len(paired.groups) // 2]
    tests = format_count(len(paired.groups), "group")
    notes = (
        f"{metric}, {' → '.join(paired.runs)}. Intervals and tests are corrected for {tests}; grey may be chance.",
        detectable_words(metric, middle.detectable, middle.images).replace("Differences", "In a group, differences"),
    )
    title = f"{'; '.join(claims)}." if claims else "No group differs by more than chance explains."
    beside = Beside(tuple(tuple(column) for column in columns if column), even=True)
    yield Section(title, (beside, Text.of(*notes, note=True)), target="groups")


def _query_sections(paired: PairedQueries, address: Callable[[str, str], str] | None) -> Iterator[Section]:
    """The queries of each set: those that one run finds alone with pictures, of the others ids."""
    first, second = paired.runs
    only = f"Only {first} finds: what you would lose with {second}", f"Only {second} finds: what you would gain"
    words = (*only, "Both find", "Neither finds")
    folds = []
    for (name, queries), title in zip(paired.sets.items(), words, strict=False):
        if not queries:
            continue
        cards = paired.examples[name]
        if address is not None:
            cards = tuple(replace(card, address=address(second, card.query)) for card in cards)
        lead = f"{format_count(len(queries), 'query')}, the largest change of rank first."
        missing = f"Pictures are missing: {paired.problem}." if paired.problem else ""
        parts = (Text.of(lead, missing, note=True), QueryCards(cards, files={} if address else paired.pictures, most=4))
        target = f"{name}-{second}"
        if name == "only_first":
            yield Section(title, parts, target=target)
        else:
            folds.append(Folded(title, parts, about=format_count(len(queries), "query"), target=target))
    if folds:
        yield Section("", tuple(folds))


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
            name if name.endswith(f"({side})") else f"{name} ({side})"  # sets of the same name have it in theirs
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
        content = {
            "model": self.model,
            **{
                side: {"name": name, **{key: run.provenance["dataset"][key] for key in ("images", "captions")}}
                for side, name, run in zip(("before", "after"), self.names, self.runs, strict=True)
            },
            **self.test_facts(),
            "metrics": {result.metric: result for result in self.results},
            **{name: getattr(self, name) for name in ("granularity", "notes", "folder")},
        }
        return json_form(content)


@dataclass(frozen=True)
class CaptionSetsOfModels(Presented):
    """The same two caption sets under several models: what changes on average, and under each."""

    models: tuple[CaptionSets, ...]

    @property
    def title(self) -> str:
        return f"Two caption sets, {len(self.models):,} models"

    @cached_property
    def means(self) -> dict[str, dict[str, float]]:
        """By metric, the mean over models of its values and of its relative change, which papers report in percent."""
        names = ("before", "after", "difference", "relative")
        return {
            result.metric: {
                name: float(np.mean([getattr(sets[result.metric], name) for sets in self.models])) for name in names
            }
            for result in self.models[0].results
        }

    def sections(self) -> Iterator[Section]:
        rows: list[tuple[Cell, ...]] = []
        for result in self.models[0].results:
            mean = self.means[result.metric]
            figures = (replace(_figure(result, mean[name]), signed=name == "difference")
                    for name in ("before", "after", "difference"))  # fmt: skip
            rows.append((result.metric, *figures, Figure.percent(mean["relative"], signed=True, unit=" %")))
        note = "Relative: the mean of the models' relative changes, not the change of the mean."
        header = ("metric", "before", "after", "difference", "relative")
        yield Section("", (Table(header, tuple(rows), title="Mean over models", notes=(note,)),))
        for sets in self.models:
            yield from sets.sections()

    def as_dict(self) -> dict[str, Any]:
        return json_form({"means": self.means, "models": {sets.model: sets for sets in self.models}})
