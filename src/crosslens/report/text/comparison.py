"""Comparisons of runs, and of two caption sets, as text."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from math import isfinite
from string import ascii_lowercase

from crosslens.core import BOTH, DIRECTION_LABELS, PAGE_WIDTH, RENDERERS, Grid, percent, split_name
from crosslens.metrics import format_count, format_figure, format_interval, unit_of, unit_sentence, with_intervals
from crosslens.pipeline import (
    CaptionSets,
    Comparison,
    MetricChange,
    MetricComparison,
    QueryDifference,
    significance_sentence,
)
from crosslens.report.text.runs import difference_cells

_MOST_METRICS = 6
"""With more metrics, the queries that differ most are not listed: they would be a wall of ids."""
WEAK_MEDIANS = "A test of MedR finds about a third of the differences that one of MRR finds: prefer MRR to decide."


@RENDERERS.register("Comparison")
def comparison_text(comparison: Comparison, width: int | None = PAGE_WIDTH) -> str:
    """Each run against the first: values, differences, p-values, and who wins where; tables up to ``width``.

    All pairs are one table of the runs' figures, with the letters of the runs that each is significantly better than.
    """
    if comparison.all_pairs:
        return "\n\n".join([_all_pairs_grid(comparison).text(width), "\n".join(_explanation(comparison))])
    parts = []
    for other in comparison.others:
        results = [result for result in comparison.results if result.other == other]
        parts += [f"{other} against {comparison.baseline}", comparison_grid(comparison, results).text(width)]
        if len(results) <= _MOST_METRICS:
            parts.append(_queries(results))
    return "\n\n".join([*(part for part in parts if part), "\n".join(_explanation(comparison))])


def comparison_grid(comparison: Comparison, results: Sequence[MetricComparison]) -> Grid:
    """A row per metric: both figures, their difference with its interval, p, and who wins how often."""
    differences = difference_cells((result.metric, result.difference, result.low, result.high) for result in results)
    rows = tuple(
        (
            result.metric + ("" if result.higher_is_better else " ↓"),
            format_figure(result.metric, result.baseline_mean),
            format_figure(result.metric, result.other_mean),
            difference,
            p_value(result.adjusted_p, comparison.permutations),
            f"{result.wins:,} : {result.losses:,}",
        )
        for result, difference in zip(results, differences, strict=True)
    )
    header = ("metric", comparison.baseline, results[0].other, "difference", "p", "wins : losses")
    return Grid(header, rows, "lrrlrr")


def run_letters(comparison: Comparison) -> dict[str, str]:
    """a, b, c, … for the runs; numbers past z."""
    return {run: ascii_lowercase[n] if n < 26 else str(n + 1) for n, run in enumerate(comparison.runs)}


def _all_pairs_grid(comparison: Comparison) -> Grid:
    """A row per metric, a column per run: its figure, the runs it is significantly better than, its interval."""
    letters = run_letters(comparison)
    names = list(dict.fromkeys(result.metric for result in comparison.results))
    better = {result.metric: result.higher_is_better for result in comparison.results}
    columns = []
    for run in comparison.runs:
        figures = comparison.figures[run]
        marks = ["".join(letters[other] for other in comparison.beaten(run, name)) for name in names]
        shown = zip(names, marks, strict=True)
        means = [f"{format_figure(name, figures[name][0])} {mark}".rstrip() for name, mark in shown]
        columns.append(with_intervals(means, [format_interval(name, *figures[name][1:]) for name in names]))
    rows = tuple(zip((name + ("" if better[name] else " ↓") for name in names), *columns, strict=True))
    header = ("metric", *(f"{letters[run]}: {run}" for run in comparison.runs))
    return Grid(header, rows, "l" * len(header))


def p_value(p: float, permutations: int) -> str:
    """A p-value with as many decimals as the smallest that the test can give: more would claim too much."""
    if not isfinite(p):
        return "–"
    decimals = max(3, len(str(permutations)) - 1)
    least = 10.0**-decimals
    return f"<{least:.{decimals}f}" if p < least / 2 else f"{p:.{decimals}f}"


def _explanation(comparison: Comparison) -> list[str]:
    results = comparison.results
    test = "paired permutation test over images"
    share = f"{100 * comparison.level:g}%"
    if comparison.all_pairs:
        figures = f"In brackets: {share} intervals over images."
        marks = f"Letters: significantly better than these runs (p < {1 - comparison.level:.2g})."
    else:
        figures = f"In brackets: {share} interval of the difference, over images."
        marks = "Wins and losses: queries on which the second run is better or worse."
    testing = significance_sentence(test, comparison.permutations, comparison.correction, len(results))
    sentences = [testing, figures, marks, unit_sentence(result.metric for result in results)]
    if any(not result.higher_is_better for result in results):
        sentences.append("↓: lower is better.")
    if any(result.statistic != "mean" for result in results):
        sentences.append(WEAK_MEDIANS)
    if not comparison.all_pairs and len(results) > _MOST_METRICS * len(comparison.others):
        sentences.append("Choose a few metrics to see the queries that differ most.")
    return [line for sentence in (*sentences, *comparison.notes) for line in textwrap.wrap(sentence, PAGE_WIDTH)]


def _queries(results: Sequence[MetricComparison]) -> str:
    """The queries on which each run gains most, with the value in the first and in the second run."""
    lines = []
    for result in results:
        sides = ((result.other, result.largest_gains), (result.baseline, result.largest_losses))
        for better, queries in sides:
            if queries:
                listed = "; ".join(_query(result.metric, query) for query in queries)
                line = f"{result.metric}, {better} better: {listed}"
                lines += textwrap.wrap(line, PAGE_WIDTH, initial_indent="  ", subsequent_indent="    ")
    return "\n".join(["Where they differ most (value in the first → in the second)", *lines]) if lines else ""


def _query(metric: str, query: QueryDifference) -> str:
    values = (format_figure(metric, value, decimals=0) for value in (query.baseline, query.other))
    return f"{query.query} {' → '.join(values)}"


_OWN = "[scores_from=own]"
"""What every DCGcm would have in its name: a sentence under the table leaves room for the numbers."""


@RENDERERS.register("CaptionSets")
def caption_sets_text(sets: CaptionSets, width: int | None = PAGE_WIDTH, *, wide: bool = False) -> str:
    """One table per direction, the captions' granularity, and what to know; ``wide``: one row per set instead."""
    if wide:
        return _wide_grid(sets).text(width)
    before, after = (
        name if name.endswith(f"({side})") else f"{name} ({side})"  # sets of the same name have it in theirs
        for name, side in zip(sets.names, ("before", "after"), strict=True)
    )
    heading = f"{after} against {before}" + (f", {sets.model}" if sets.model else "")
    parts = ["\n".join(textwrap.wrap(heading, PAGE_WIDTH))]
    for direction, title in DIRECTION_LABELS.items():
        results = _of_direction(sets, direction)
        if results:
            parts.append(f"{title}\n{_direction_grid(sets, results).text(width)}")
    parts.append("\n".join(_caption_set_notes(sets)))
    if sets.granularity is not None:
        parts.append(f"The captions themselves\n\n{sets.granularity.text(width)}")
    return "\n\n".join(parts)


def _of_direction(sets: CaptionSets, direction: str) -> list[MetricChange]:
    return [result for result in sets.results if split_name(result.metric)[0] == direction]


def _wide_grid(sets: CaptionSets) -> Grid:
    """One row per set, as papers print them: first image to text, then text to image, then sums."""
    ordered = {
        (_short(result.metric) if direction == BOTH else f"{direction} {_short(result.metric)}"): result
        for direction in DIRECTION_LABELS
        for result in _of_direction(sets, direction)
    }
    before = [_figure(result.metric, result.before) for result in ordered.values()]
    after = [_figure(result.metric, result.after) for result in ordered.values()]
    rows = ((sets.names[0], *before), (sets.names[1], *after))
    return Grid(("captions", *ordered), rows, "l" + "r" * len(ordered))


def _direction_grid(sets: CaptionSets, results: Sequence[MetricChange]) -> Grid:
    differences = with_intervals(
        [_figure(result.metric, result.difference, signed=True) for result in results],
        [
            format_interval(result.metric, result.low, result.high, _decimals(result.metric), signed=True)
            for result in results
        ],
    )
    rows = tuple(
        (
            _short(result.metric) + ("" if result.higher_is_better else " ↓"),
            _figure(result.metric, result.before),
            _figure(result.metric, result.after),
            difference,
            percent(result.relative, signed=True, unit=" %"),
            p_value(result.adjusted_p, sets.permutations),
        )
        for result, difference in zip(results, differences, strict=True)
    )
    return Grid(("metric", "before", "after", "difference", "relative", "p"), rows, "lrrlrr")


def _caption_set_notes(sets: CaptionSets) -> list[str]:
    before, after = (run.provenance["dataset"] for run in sets.runs)
    captions = f"{before['captions']:,} captions before and {after['captions']:,} captions after"
    test = "permutation test that swaps the sets image by image"
    sentences = [
        f"{format_count(before['images'], 'image')}, {captions}.",
        unit_sentence(result.metric for result in sets.results).replace(_OWN, ""),
        significance_sentence(test, sets.permutations, sets.correction, len(sets.results)),
    ]
    if any(isfinite(result.low) for result in sets.results):
        sentences.insert(
            2,
            f"In brackets: {100 * sets.level:g}% interval of the difference; images are drawn with their captions "
            "of both sets.",
        )
    if any(_OWN in result.metric for result in sets.results):
        sentences.append("DCGcm: unlabelled items count by the evaluated model's own scores (scores_from=own).")
    if any(not result.higher_is_better for result in sets.results):
        sentences.append("↓: lower is better.")
    return [line for sentence in (*sentences, *sets.notes) for line in textwrap.wrap(sentence, PAGE_WIDTH)]


def _short(metric: str) -> str:
    return split_name(metric)[1].replace(_OWN, "")


def _decimals(metric: str) -> int:
    """A plain number (DCGcm) with two decimals, as the papers print it: ``format_figure`` adds three."""
    return -1 if unit_of(metric) == "number" else 1


def _figure(metric: str, value: float, *, signed: bool = False) -> str:
    return format_figure(metric, value, _decimals(metric), signed=signed)
