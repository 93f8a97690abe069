"""How comparisons are shown: of runs, in pairs or all together, and of two caption sets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isfinite
from string import ascii_lowercase
from typing import TYPE_CHECKING

from crosslens.core import (
    BOTH,
    DIRECTION_LABELS,
    Bars,
    Cell,
    FactList,
    Figure,
    Part,
    Section,
    Series,
    Table,
    Text,
    split_name,
)
from crosslens.metrics import format_count, metric_figure, unit_of, unit_sentence
from crosslens.statistics import significance_sentence

if TYPE_CHECKING:
    from crosslens.pipeline.comparison_results import CaptionSets, Comparison, MetricChange, MetricComparison

_MOST_METRICS = 6
"""With more metrics, the queries that differ most are not listed: they would be a wall of ids."""
_WEAK_MEDIANS = "A test of MedR finds about a third of the differences that one of MRR finds: prefer MRR to decide."
_GRADED = "NCS"


def comparison_sections(comparison: Comparison) -> Iterator[Section]:
    """Each run against the first: values, differences, p-values, and who wins where.

    All pairs are one table of the runs' figures, with the letters of the runs that each is significantly better than.
    """
    notes = tuple(_comparison_notes(comparison))
    if comparison.all_pairs:
        yield Section("", (replace(_all_pairs_table(comparison), notes=notes), *_bars(comparison)))
        return
    for other in comparison.others:
        results = [result for result in comparison.results if result.other == other]
        parts: list[Part] = [_pair_table(comparison, results)]
        queries = FactList(tuple(_queries(results)), "Where they differ most (value in the first → in the second)")
        if queries.rows and len(results) <= _MOST_METRICS:
            parts.append(queries)
        if other == comparison.others[-1]:
            parts += [Text(notes, note=True), *_bars(comparison)]
        yield Section(f"{other} against {comparison.baseline}", tuple(parts))


def _pair_table(comparison: Comparison, results: Sequence[MetricComparison]) -> Table:
    """A row per metric: both figures, their difference with its interval, p, and who wins how often."""
    rows = tuple(
        (
            _with_arrow(result.metric, result),
            metric_figure(result.metric, result.baseline_mean),
            metric_figure(result.metric, result.other_mean),
            difference_figure(result),
            Figure.p(result.adjusted_p, comparison.permutations),
            f"{result.wins:,} : {result.losses:,}",
        )
        for result in results
    )
    header = ("metric", comparison.baseline, results[0].other, "difference", "p", "wins : losses")
    return Table(header, rows, "lrrlrr")


def difference_figure(result: MetricComparison) -> Figure:
    """The difference of two runs with its interval."""
    return metric_figure(result.metric, result.difference, result.low, result.high, signed=True)


def _all_pairs_table(comparison: Comparison) -> Table:
    """A row per metric, a column per run: its figure, its interval, the runs it is significantly better than."""
    letters = {run: ascii_lowercase[n] if n < 26 else str(n + 1) for n, run in enumerate(comparison.runs)}
    rows: list[tuple[Cell, ...]] = []
    best = set()
    for number, (name, result) in enumerate({result.metric: result for result in comparison.results}.items()):
        figures = {run: comparison.figures[run][name] for run in comparison.runs}
        marks = {run: "".join(letters[other] for other in comparison.beaten(run, name)) for run in figures}
        cells = (replace(metric_figure(name, *figure), mark=marks[run]) for run, figure in figures.items())
        rows.append((_with_arrow(name, result), *cells))
        leading = (max if result.higher_is_better else min)(mean for mean, *_ in figures.values())
        best |= {(number, column) for column, (mean, *_) in enumerate(figures.values(), start=1) if mean == leading}
    header = ("metric", *(f"{letter}: {run}" for run, letter in letters.items()))
    return Table(header, tuple(rows), "l" * len(header), best=frozenset(best))


def _bars(comparison: Comparison) -> Iterator[Bars]:
    """The shares of all runs side by side; ranks and sums have axes of their own, and stay in tables."""
    names = dict.fromkeys(result.metric for result in comparison.results if unit_of(result.metric) == "share")
    if names and comparison.figures:
        series = tuple(
            Series(run, tuple(metric_figure(name, *comparison.figures[run][name]) for name in names))
            for run in comparison.runs
        )
        bounded = any(figure.bounded for own in series for figure in own.figures)
        yield Bars(
            title="Metrics in percent", about=f"{100 * comparison.level:g}% intervals over images" if bounded else "",
            groups=tuple(names), series=series, heading="metric", axis="%", limits=(0.0, 1.0),
        )  # fmt: skip


def _comparison_notes(comparison: Comparison) -> Iterator[str]:
    results, share = comparison.results, f"{100 * comparison.level:g}%"
    test = "paired permutation test over images"
    yield significance_sentence(test, comparison.permutations, comparison.correction, len(results))
    if comparison.all_pairs:
        yield f"In brackets: {share} intervals over images."
        yield f"Letters: significantly better than these runs (p < {1 - comparison.level:.2g})."
    else:
        yield f"In brackets: {share} interval of the difference, over images."
        yield "Wins and losses: queries on which the second run is better or worse."
    yield unit_sentence(result.metric for result in results)
    if any(not result.higher_is_better for result in results):
        yield "↓: lower is better."
    if any(result.statistic != "mean" for result in results):
        yield _WEAK_MEDIANS
    if comparison.changes is not None:
        if not any(_GRADED in result.metric for result in results):
            yield f'The runs have no graded metric: evaluate with --metrics "… {_GRADED}[cider]@10" to see one here.'
    elif not comparison.all_pairs and len(results) > _MOST_METRICS * len(comparison.others):
        yield "Choose a few metrics to see the queries that differ most."
    yield from comparison.notes


def _queries(results: Sequence[MetricComparison]) -> Iterator[tuple[str, str]]:
    """The queries on which each run gains most, with the value in the first and in the second run."""
    for result in results:
        whole = replace(metric_figure(result.metric, None), digits=3 if unit_of(result.metric) == "number" else 0)
        for better, queries in ((result.other, result.largest_gains), (result.baseline, result.largest_losses)):
            if queries:
                values = (f"{own.query} {whole.write(own.baseline)} → {whole.write(own.other)}" for own in queries)
                yield f"{result.metric}, {better} better", "; ".join(values)


def _with_arrow(name: str, result: MetricComparison | MetricChange) -> str:
    return name if result.higher_is_better else f"{name} ↓"


_OWN = "[scores_from=own]"
"""What every DCGcm would have in its name: a sentence under the table leaves room for the numbers."""


def caption_set_heading(sets: CaptionSets) -> str:
    """What is compared with what, under which model."""
    before, after = (
        name if name.endswith(f"({side})") else f"{name} ({side})"  # sets of the same name have it in theirs
        for name, side in zip(sets.names, ("before", "after"), strict=True)
    )
    return f"{after} against {before}" + (f", {sets.model}" if sets.model else "")


def caption_set_sections(sets: CaptionSets) -> Iterator[Section]:
    """One table per direction, the captions' granularity, and what to know; of a wide one, a row per set instead."""
    by_direction = {
        direction: [result for result in sets.results if split_name(result.metric)[0] == direction]
        for direction in DIRECTION_LABELS
    }
    if sets.wide:
        yield Section("", (_wide_table(sets, [result for results in by_direction.values() for result in results]),))
        return
    tables = [
        _direction_table(sets, results, DIRECTION_LABELS[direction])
        for direction, results in by_direction.items()
        if results
    ]
    yield Section(caption_set_heading(sets), (*tables, Text(tuple(_caption_set_notes(sets)), note=True)))
    if sets.granularity is not None:
        yield Section("The captions themselves", ())
        yield from sets.granularity.sections()


def _wide_table(sets: CaptionSets, results: Sequence[MetricChange]) -> Table:
    """One row per set, as papers print them: first image to text, then text to image, then sums."""
    directions = [split_name(result.metric)[0] for result in results]
    titles = [
        _short(result.metric) if direction == BOTH else f"{direction} {_short(result.metric)}"
        for direction, result in zip(directions, results, strict=True)
    ]
    before, after = sets.names
    rows: tuple[tuple[Cell, ...], ...] = (
        (before, *(_figure(result, result.before) for result in results)),
        (after, *(_figure(result, result.after) for result in results)),
    )
    return Table(("captions", *titles), rows, "l" + "r" * len(titles))


def _direction_table(sets: CaptionSets, results: Sequence[MetricChange], title: str) -> Table:
    rows = tuple(
        (
            _with_arrow(_short(result.metric), result),
            _figure(result, result.before),
            _figure(result, result.after),
            replace(_figure(result, result.difference), low=result.low, high=result.high, signed=True),
            Figure.percent(result.relative, signed=True, unit=" %"),
            Figure.p(result.adjusted_p, sets.permutations),
        )
        for result in results
    )
    return Table(("metric", "before", "after", "difference", "relative", "p"), rows, "lrrlrr", title=title)


def _caption_set_notes(sets: CaptionSets) -> Iterator[str]:
    before, after = (run.provenance["dataset"] for run in sets.runs)
    captions = f"{before['captions']:,} captions before and {after['captions']:,} captions after"
    yield f"{format_count(before['images'], 'image')}, {captions}."
    yield unit_sentence(result.metric for result in sets.results).replace(_OWN, "")
    if any(isfinite(result.low) for result in sets.results):
        share = f"{100 * sets.level:g}%"
        yield f"In brackets: {share} interval of the difference; images are drawn with their captions of both sets."
    test = "permutation test that swaps the sets image by image"
    yield significance_sentence(test, sets.permutations, sets.correction, len(sets.results))
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
