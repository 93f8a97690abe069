"""How runs are shown: figures with intervals, what they are, and what they were computed from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

from crosslens.core import (
    SECTIONS,
    Bars,
    Cell,
    FactList,
    Figure,
    Part,
    Section,
    Series,
    Table,
    Text,
    UsageError,
    argument,
)
from crosslens.metrics import (
    dataset_name,
    family_of,
    format_count,
    metric_figure,
    select_metrics,
    spec_of,
    unit_of,
    unit_sentence,
)
from crosslens.pipeline.protocols.protocol import protocol_facts
from crosslens.values import BOTH, DIRECTION_LABELS, MetricValues, Run, split_name, stored_facts

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


@SECTIONS.register("Run")
def run_sections(run: Run) -> Iterator[Section]:
    """The figures of a run, what they are, its protocol, and what is noted about it."""
    metrics = {name: run[name] for name in run}
    by_metric: dict[str, dict[str, MetricValues]] = {}
    for name, values in metrics.items():
        direction, metric = split_name(name)
        by_metric.setdefault(metric, {})[DIRECTION_LABELS.get(direction, direction)] = values
    table, notes = run_table(run), Text(tuple(table_notes(metrics)), note=True)
    parts: list[Part] = [table, notes, *share_bars(f"Metrics of {run.label}", by_metric)]
    facts = protocol_facts(run.protocol) if run.protocol else FactList(())
    parts += [facts] if facts.rows else []
    noted = run.provenance.get("notes", ())
    parts += [Text(tuple(f"note: {note}" for note in noted), note=True)] if noted else []
    yield Section(run.label, tuple(parts))


def runs_table(runs: Sequence[Run], metrics: str | Sequence[str] | None = None) -> Table:
    """One run: metrics down, directions across, with intervals. Several: one row per run, as papers print them.

    Of several, the metrics that every run has, without intervals.
    """
    if len(runs) == 1:
        return run_table(runs[0], metrics)
    shared = [name for name in select_metrics(runs[0], metrics) if all(name in run.values for run in runs)]
    if not shared:
        raise UsageError(
            "the runs have no metric in common",
            fix=f"evaluate them with the same {argument('metrics')}, or export them one at a time",
        )
    titles = [metric if direction == BOTH else f"{direction} {metric}" for direction, metric in map(split_name, shared)]
    rows: list[tuple[Cell, ...]] = [
        (run.label, *(metric_figure(name, run[name].mean) for name in shared)) for run in runs
    ]
    return Table(("model", *titles), tuple(rows), "l" + "r" * len(shared))


def run_table(run: Run, metrics: str | Sequence[str] | None = None) -> Table:
    """One row per metric, one column per direction; figures over both directions, such as ``Rsum``, come last."""
    cells = {split_name(name): run[name] for name in select_metrics(run, metrics)}
    directions = sorted({direction for direction, _ in cells}, key=lambda direction: (direction == BOTH, direction))
    if len(directions) > 1 and directions[-1] == BOTH:
        # A third, nearly empty column would push the table past 80 characters: sums go into the first one.
        directions.pop()
        for direction, metric in [key for key in cells if key[0] == BOTH]:
            cells[directions[0], f"{metric} (both)"] = cells.pop((direction, metric))
    rows: list[tuple[Cell, ...]] = [
        (
            metric,
            *(value_figure(cells[key]) if (key := (direction, metric)) in cells else None for direction in directions),
        )
        for metric in dict.fromkeys(metric for _, metric in cells)
    ]
    title = f"metric (protocol {run.protocol['name']})" if run.protocol else "metric"
    header = (title, *(DIRECTION_LABELS.get(direction, direction) for direction in directions))
    return Table(header, tuple(rows), "l" * len(header))


def value_figure(values: MetricValues) -> Figure:
    """The figure of a metric with its interval."""
    return metric_figure(values.name, values.mean, values.low, values.high)


def run_facts(run: Run) -> dict[str, str]:
    """What a run was made from."""
    provenance: Mapping[str, Any] = run.provenance
    dataset, options, inputs, versions = (
        dict(provenance.get(key) or {}) for key in ("dataset", "options", "inputs", "versions")
    )
    relevance = provenance.get("relevance")
    models = (str(side["model"]) for side in inputs.values() if isinstance(side, Mapping) and side.get("model"))
    facts = {
        "dataset": dataset_name(run),
        "images": dataset.get("images"),
        "captions": dataset.get("captions"),
        "fingerprint of the dataset": dataset.get("fingerprint"),
        "model": ", ".join(dict.fromkeys(models)),
        "protocol": run.protocol.get("name"),
        "score": provenance.get("score"),
        "relevance": relevance.get("source") if isinstance(relevance, Mapping) else None,
        "ties": options.get("ties"),
        "depth of lists": options.get("depth"),
        "seed": options.get("seed"),
        "resamples": options.get("resamples"),
        "fingerprint of the run": run.fingerprint,
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items() if version),
    }
    counts = ("images", "captions", "resamples")
    return {
        label: f"{value:,}" if label in counts and isinstance(value, int) else str(value)
        for label, value in facts.items()
        if value not in (None, "")
    }


def share_bars(title: str, metrics: Mapping[str, Mapping[str, MetricValues]]) -> tuple[Bars, ...]:
    """A chart of the metrics that are shares, by row and series; none where there are none."""
    shares = [
        name
        for name, by_series in metrics.items()
        if all(unit_of(values.name) == "share" for values in by_series.values())
    ]
    if not shares:
        return ()
    series = dict.fromkeys(name for metric in shares for name in metrics[metric])
    absent = Figure.percent(None)
    figures = {
        name: tuple(value_figure(metrics[row][name]) if name in metrics[row] else absent for row in shares)
        for name in series
    }
    bars = tuple(Series(name, values) for name, values in figures.items())
    return (Bars(title=title, groups=tuple(shares), series=bars, heading="metric", axis="%", limits=(0.0, 1.0)),)


def table_notes(values: Mapping[str, MetricValues], *, intervals: bool = True) -> list[str]:
    """The lines under every table: the queries, the unit, the interval, which recall is which."""
    if not values:
        return []
    families = dict.fromkeys(spec.family for spec in map(spec_of, values) if spec is not None)
    definitions = [f"{family}@k: {DEFINITIONS[family]}." for family in families if family in DEFINITIONS]
    bounded = [metric for metric in values.values() if isfinite(metric.low) and isfinite(metric.high)]
    levels = " and ".join(sorted({f"{100 * metric.level:g}%" for metric in bounded}))
    brackets = [f"In brackets: {levels} intervals over images."] if levels and intervals else []
    # Metrics of a plugin that is not loaded, in a run that does not say how they are read.
    assumed = dict.fromkeys(
        split_name(name)[1] for name in values if spec_of(name) is None and stored_facts(name) is None
    )
    unread = [f"{', '.join(assumed)}: shown in percent, as neither the run nor a loaded plugin says the unit."]
    # Graded metrics may skip queries that others count: those that have nothing to compare with.
    least: dict[str, int] = {}
    for name, metric in values.items():
        direction = split_name(name)[0]
        least[direction] = min(metric.excluded, least.get(direction, metric.excluded))
    more = {name: metric.excluded - least[split_name(name)[0]] for name, metric in values.items()}
    skipped = [
        f"{name}: {format_count(number, 'more query')} skipped, as nothing is similar to them."
        for name, number in more.items()
        if number and split_name(name)[0] != BOTH
    ]
    return [_queries(values), *skipped, unit_sentence(values), *(unread if assumed else ()), *brackets, *definitions]


def _queries(values: Mapping[str, MetricValues]) -> str:
    nouns = {"i2t": "image query", "t2i": "caption query", BOTH: "image"}
    sizes: dict[str, tuple[int, int]] = {}
    reasons: dict[str, str] = {}
    for name, metric in values.items():
        if not len(metric.values):  # a published figure
            continue
        direction, size = split_name(name)[0], (metric.n, metric.excluded)
        sizes[direction] = min(sizes.get(direction, size), size, key=lambda size: size[1])
        spec = spec_of(name)
        if spec is None or not family_of(spec).graded:
            reasons[direction] = "without a relevant item"
    if not sizes:
        return "Published figures: their queries are not known, so that there are no intervals."
    if len(sizes) > 1:
        sizes.pop(BOTH, None)  # the images are already there as queries
    parts = [
        format_count(n, nouns.get(direction, "query"))
        + (f" ({excluded:,} more {reasons.get(direction, 'without a relevant or a similar item')})" if excluded else "")
        for direction, (n, excluded) in sizes.items()
    ]
    return ", ".join(parts) + "."
