"""Runs as tables of a terminal, and groups as bars."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite

from crosslens.core import (
    BOTH,
    DIRECTION_LABELS as DIRECTION_LABELS,
    PAGE_WIDTH,
    Grid,
    MetricValues,
    Run,
    UsageError,
    argument,
    split_name,
    stored_facts,
)
from crosslens.metrics import (
    family_of,
    format_count,
    format_figure,
    format_interval,
    spec_of,
    unit_of,
    unit_sentence,
    with_intervals,
)
from crosslens.report.selection import select_metrics
from crosslens.report.text.protocols import protocol_text

DEFINITIONS = {
    "Hit": "any relevant item in the top k: the “R@k” of most image–text papers",
    "Recall": "relevant items in the top k ÷ all relevant items",
    "CappedRecall": "relevant items in the top k ÷ the smaller of k and all relevant items",
    "NCS": "φ of the top k ÷ the largest φ there is for k items",
    "SR": "share of the m items most similar by φ that is in the top k",
    "SRhit": "any of the m items most similar by φ in the top k",
    "DCGcm": "1 for a labelled item, the named model's score for another, discounted by rank; not normalised",
}
"""Three metrics are called recall, and three NCS; every table says which one it holds."""


def run_table(
    run: Run, metrics: str | Sequence[str] | None = None, width: int | None = None, *, explained: bool = True
) -> str:
    """A run as a person reads it: its figures, then what they are and what they were computed from."""
    chosen = {name: run[name] for name in select_metrics(run, metrics)}
    parts = [run.label, run_grid(run, metrics).text(width)]
    if explained:
        parts += ["\n".join(table_notes(chosen)), protocol_text(run.protocol, width)]
    return "\n\n".join(part for part in parts if part)


def runs_grid(runs: Sequence[Run], metrics: str | Sequence[str] | None = None) -> Grid:
    """One run: metrics down, directions across, with intervals. Several: one row per run, as papers print them."""
    return run_grid(runs[0], metrics) if len(runs) == 1 else models_grid(runs, metrics)


def run_grid(run: Run, metrics: str | Sequence[str] | None = None) -> Grid:
    """One row per metric, one column per direction; figures over both directions, such as ``Rsum``, come last."""
    named = {split_name(name): run[name] for name in select_metrics(run, metrics)}
    directions = sorted({direction for direction, _ in named}, key=lambda direction: (direction == BOTH, direction))
    if len(directions) > 1 and directions[-1] == BOTH:
        # A third, nearly empty column would push the table past 80 characters: sums go into the first one.
        directions.pop()
        for direction, metric in [key for key in named if key[0] == BOTH]:
            named[directions[0], f"{metric} (both)"] = named.pop((direction, metric))
    rows = list(dict.fromkeys(metric for _, metric in named))
    columns = [value_cells([named.get((direction, metric)) for metric in rows]) for direction in directions]
    title = f"metric (protocol {run.protocol['name']})" if run.protocol else "metric"
    header = (title, *(DIRECTION_LABELS.get(direction, direction) for direction in directions))
    return Grid(header, tuple(zip(rows, *columns, strict=True)), "l" * len(header))


def models_grid(runs: Sequence[Run], metrics: str | Sequence[str] | None = None) -> Grid:
    """One row per run, as papers print them: the metrics that every run has, without intervals."""
    shared = [name for name in select_metrics(runs[0], metrics) if all(name in run.values for run in runs)]
    if not shared:
        raise UsageError(
            "the runs have no metric in common",
            fix=f"evaluate them with the same {argument('metrics')}, or export them one at a time",
        )
    titles = [metric if direction == BOTH else f"{direction} {metric}" for direction, metric in map(split_name, shared)]
    rows = tuple((run.label, *(format_figure(name, run[name].mean) for name in shared)) for run in runs)
    return Grid(("model", *titles), rows, "l" + "r" * len(shared))


def value_cells(values: Sequence[MetricValues | None]) -> list[str]:
    """One column of figures with intervals; a cell without a value is empty."""
    return with_intervals(
        ["" if metric is None else format_figure(metric.name, metric.mean) for metric in values],
        ["" if metric is None else format_interval(metric.name, metric.low, metric.high) for metric in values],
    )


def difference_cells(changes: Iterable[tuple[str, float, float, float]]) -> list[str]:
    """One column of differences with intervals, from metrics, differences, and their low and high ends."""
    changes = list(changes)
    return with_intervals(
        [format_figure(metric, difference, signed=True) for metric, difference, _, _ in changes],
        [format_interval(metric, low, high, signed=True) for metric, _, low, high in changes],
    )


def table_notes(values: Mapping[str, MetricValues], *, intervals: bool = True) -> list[str]:
    """The lines under every table: the queries, the unit, the interval, which recall is which."""
    families = dict.fromkeys(spec.family for spec in map(spec_of, values) if spec is not None)
    definitions = [f"{family}@k: {DEFINITIONS[family]}." for family in families if family in DEFINITIONS]
    bounded = [metric for metric in values.values() if format_interval(metric.name, metric.low, metric.high)]
    levels = " and ".join(sorted({f"{100 * metric.level:g}%" for metric in bounded}))
    brackets = [f"In brackets: {levels} intervals over images."] if levels and intervals else []
    if not values:
        return []
    return [_queries(values), *_skipped(values), unit_sentence(values), *_assumed(values), *brackets, *definitions]


def _assumed(values: Mapping[str, MetricValues]) -> list[str]:
    """Metrics of a plugin that is not loaded, in a run that does not say how they are read."""
    names = dict.fromkeys(
        split_name(name)[1] for name in values if spec_of(name) is None and stored_facts(name) is None
    )
    return (
        [f"{', '.join(names)}: shown in percent, as neither the run nor a loaded plugin says the unit."]
        if names
        else []
    )


def _queries(values: Mapping[str, MetricValues]) -> str:
    nouns = {"i2t": "image query", "t2i": "caption query", BOTH: "image"}
    sizes: dict[str, tuple[int, int]] = {}
    reasons: dict[str, str] = {}
    for name, metric in values.items():
        direction, size = split_name(name)[0], (metric.n, metric.excluded)
        sizes[direction] = min(sizes.get(direction, size), size, key=lambda size: size[1])
        spec = spec_of(name)
        if spec is None or not family_of(spec).graded:
            reasons[direction] = "without a relevant item"
    if len(sizes) > 1:
        sizes.pop(BOTH, None)  # the images are already there as queries
    parts = [
        format_count(n, nouns.get(direction, "query"))
        + (f" ({excluded:,} more {reasons.get(direction, 'without a relevant or a similar item')})" if excluded else "")
        for direction, (n, excluded) in sizes.items()
    ]
    return ", ".join(parts) + "."


def _skipped(values: Mapping[str, MetricValues]) -> list[str]:
    """Graded metrics may skip queries that others count: those that have nothing to compare with."""
    least: dict[str, int] = {}
    for name, metric in values.items():
        direction = split_name(name)[0]
        least[direction] = min(metric.excluded, least.get(direction, metric.excluded))
    more = {name: metric.excluded - least[split_name(name)[0]] for name, metric in values.items()}
    return [
        f"{name}: {format_count(number, 'more query')} skipped, as nothing is similar to them."
        for name, number in more.items()
        if number and split_name(name)[0] != BOTH
    ]


_PARTS = " ▏▎▍▌▋▊▉█"
_LONGEST, _SHORTEST = 30, 8


def terminal_bars(column: str, groups: Mapping[str, MetricValues], width: int | None = None) -> str:
    """A row per group of a share, in the order given: its queries, its figure, and a bar (full at 100 %)."""
    values = list(groups.values())
    assert values
    assert unit_of(values[0].name) == "share"
    header = (column, "queries", split_name(values[0].name)[1], "")
    counts = [f"{metric.n:,}" for metric in values]
    figures = value_cells(values)
    bare = Grid(header, tuple((*row, "") for row in zip(groups, counts, figures, strict=True)), "lrll")
    room = max(_SHORTEST, min(_LONGEST, (width or PAGE_WIDTH) - bare.width))
    rows = tuple((*row[:3], text_bar(metric.mean, room)) for row, metric in zip(bare.rows, values, strict=True))
    return Grid(header, rows, "lrll").text()


def text_bar(share: float, room: int) -> str:
    """A bar of eighths of a character; a share above nothing shows at least one."""
    if not isfinite(share) or share <= 0:
        return ""
    eighths = max(1, round(8 * room * min(share, 1.0)))
    return "█" * (eighths // 8) + _PARTS[eighths % 8].strip()
