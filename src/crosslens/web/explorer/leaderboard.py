"""All runs in one table: filtered, sorted by a metric, the best of each dataset marked; and two of them compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from crosslens.core import BOTH, Run, UsageError, split_name
from crosslens.pipeline import Comparison, compare
from crosslens.web.explorer.models import (
    ComparisonView,
    MetricRow,
    QueryExample,
    RunFigure,
    RunList,
    RunRow,
    number,
)
from crosslens.web.run_folders import RunSummary

_USUAL = ("Hit@1", "Hit@5", "Hit@10", "Recall@1", "Recall@5", "Recall@10", "MRR", "mAP@R", "MedR", "Rsum")
_SHOWN = 8
_MANY_VALUES, _PERMUTATIONS, _FEW = 200_000, 10_000, 1_000


def run_row(summary: RunSummary) -> RunRow:
    """A run as the leaderboard shows it."""
    return RunRow(
        id=summary.id,
        name=summary.name,
        location=summary.location,
        dataset=summary.dataset,
        dataset_name=summary.dataset_name,
        problem=summary.problem,
        figures={name: _figure(values) for name, values in summary.metrics.items()},
    )


def _figure(values: Mapping[str, Any]) -> RunFigure:
    return RunFigure(
        mean=number(values.get("mean")),
        low=number(values.get("low")),
        high=number(values.get("high")),
        n=int(values.get("n") or 0),
        unit=str(values.get("unit", "share")),
        higher_is_better=bool(values.get("higher_is_better", True)),
    )


def leaderboard(
    summaries: Sequence[RunSummary],
    *,
    dataset: str = "",
    name: str = "",
    metric: str = "",
    sort: str = "",
    descending: bool = True,
) -> RunList:
    """The runs whose name or location holds every word of ``name``, with the metrics that hold a word of ``metric``.

    Damaged runs come last; they match by location only.
    """
    rows = [run_row(summary) for summary in summaries]
    words = name.lower().split()
    chosen = [
        row
        for row in rows
        if (not dataset or row.dataset == dataset or row.problem is not None)
        if all(word in f"{row.name}\n{row.location}".lower() for word in words)
    ]
    every = list(dict.fromkeys(known for row in rows for known in row.figures))
    metrics = _shown(every, metric.lower().split())
    if sort and sort in every:
        chosen.sort(key=lambda row: _key(row, sort, descending))
    chosen.sort(key=lambda row: row.problem is not None)
    return RunList(
        runs=chosen,
        total=len(rows),
        metrics=metrics,
        all_metrics=every,
        datasets={row.dataset: row.dataset_name for row in rows if row.dataset},
        best=_best(chosen, metrics),
    )


def _shown(metrics: Sequence[str], words: Sequence[str]) -> list[str]:
    """The metrics that contain one of the words; without words, the usual ones."""
    if words:
        return [metric for metric in metrics if any(word in metric.lower() for word in words)]
    usual = [metric for wanted in _USUAL for metric in metrics if split_name(metric)[1] == wanted]
    ordered = sorted(usual[:_SHOWN], key=lambda metric: (split_name(metric)[0] != "t2i", split_name(metric)[0] == BOTH))
    return ordered or list(metrics)[:_SHOWN]


def _key(row: RunRow, metric: str, descending: bool) -> tuple[bool, float]:
    figure = row.figures.get(metric)
    mean = None if figure is None else figure.mean
    return mean is None, 0.0 if mean is None else (-mean if descending else mean)


def _best(rows: Iterable[RunRow], metrics: Sequence[str]) -> dict[str, list[str]]:
    by_dataset: dict[str, list[RunRow]] = {}
    for row in rows:
        if row.problem is None:
            by_dataset.setdefault(row.dataset or row.dataset_name, []).append(row)
    best: dict[str, list[str]] = {metric: [] for metric in metrics}
    for members in by_dataset.values():
        for metric in metrics if len(members) > 1 else ():
            figures = {row.id: row.figures[metric] for row in members if metric in row.figures}
            means = {run: figure.mean for run, figure in figures.items() if figure.mean is not None}
            if means:
                higher = all(figure.higher_is_better for figure in figures.values())
                top = (max if higher else min)(means.values())
                best[metric] += [run for run, mean in means.items() if mean == top]
    return best


def compare_two(first: RunSummary, second: RunSummary, runs: tuple[Run, Run], metric: str = "") -> ComparisonView:
    """A paired comparison of two runs on the metrics that they share and that contain a word of ``metric``.

    Large runs are tested with fewer permutations, so that a page does not take minutes: the view says how many.
    """
    if first.id == second.id:
        raise UsageError("a run is compared with itself", fix="choose two different runs")
    words = metric.lower().split()
    names = [name for name in runs[0] if not words or any(word in name.lower() for word in words)]
    shared = [name for name in names if name in runs[1].values]
    if not shared:
        raise UsageError("the two runs share no metric", fix="choose runs of the same evaluation")
    size = sum(len(runs[0][name].values) for name in shared)
    permutations = _PERMUTATIONS if size <= _MANY_VALUES else _FEW
    return _view(first, second, compare(*runs, metrics=shared, permutations=permutations))


def _view(first: RunSummary, second: RunSummary, comparison: Comparison) -> ComparisonView:
    baseline, other = run_row(first), run_row(second)
    rows = [
        MetricRow(
            metric=result.metric,
            unit=baseline.figures[result.metric].unit,
            higher_is_better=result.higher_is_better,
            baseline=number(result.baseline_mean),
            other=number(result.other_mean),
            difference=number(result.difference),
            low=number(result.low),
            high=number(result.high),
            p_value=number(result.p_value),
            adjusted_p=number(result.adjusted_p),
            queries=result.n,
            wins=result.wins,
            losses=result.losses,
            ties=result.ties,
            largest_gains=[_example(query) for query in result.largest_gains],
            largest_losses=[_example(query) for query in result.largest_losses],
        )
        for result in comparison.results
    ]
    return ComparisonView(
        baseline=baseline,
        other=other,
        level=comparison.level,
        permutations=comparison.permutations,
        correction=comparison.correction,
        metrics=rows,
        notes=list(comparison.notes),
    )


def _example(query: Any) -> QueryExample:
    return QueryExample(query=query.query, baseline=number(query.baseline), other=number(query.other))
