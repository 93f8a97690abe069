"""The first screen: how good, how sure, where does it fail; in sentences made of the numbers, and one table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape

from crosslens.core import Grid, Run, percent, split_name
from crosslens.metrics import facts_of, format_count, format_figure
from crosslens.report.charts.rank_strips import rank_strip
from crosslens.report.document.context import ReportContext
from crosslens.report.document.facts import (
    annotation_sentence,
    cause_sentence,
    cost_sentence,
    missing_sentence,
    tie_sentence,
    weakest_group,
)
from crosslens.report.document.parts import Section, TableHtml, paragraph, point_of, side_by_side
from crosslens.report.text.runs import run_grid, value_cells

_TABLE = ("Hit@1", "Hit@5", "Hit@10", "MedR", "mAP@R")
_PER_DATASET = {"How good?": 2, "How sure?": 2, "Where does it fail?": 2}
"""The three answers, and how many sentences of each a dataset gets where there are several."""
_SHARED = 3
"""Of these, how many per direction stand in the table of several runs."""
_MOST_FINDINGS = 10
_ITEMS = {"t2i": ("image", "caption"), "i2t": ("caption", "image"), "t2t": ("image", "caption")}
"""Per direction: what is retrieved, and what the queries are."""


def summary(context: ReportContext) -> Section:
    """Three answers, the table behind them, and where the right items are."""
    figures = [_table(context), *_strip(context)]
    parts = [_answers(context), *([side_by_side(figures)] if len(context.inputs.runs) == 1 else figures)]
    if context.inputs.findings:
        parts.append(_findings(context))
    return Section("summary", "In short", tuple(part for part in parts if part))


def _findings(context: ReportContext) -> str:
    chosen = sorted(context.inputs.findings, key=lambda finding: -finding.importance)[:_MOST_FINDINGS]
    several = len(context.inputs.runs) > 1
    items = ""
    for finding in chosen:
        about = finding.model or finding.dataset
        whose = f"<b>{escape(about)}</b>: " if several and about and about not in finding.text else ""
        items += f"<li>{whose}{escape(finding.text)}</li>"
    return f'<div class="findings"><h3>What the audit found</h3>\n<ol>{items}</ol></div>'


def _answers(context: ReportContext) -> str:
    """The three answers; with several datasets, a part of each per dataset."""
    answers = dict.fromkeys(_PER_DATASET, "")
    grouped = context.inputs.by_dataset()
    for dataset, runs in grouped.items():
        best = context.best(runs)
        told = (_how_good(context, dataset, runs, best), _how_sure(context, runs, best), _where(context, runs, best))
        for question, sentences in zip(answers, map(list, told), strict=True):
            shown = sentences[: _PER_DATASET[question] if len(grouped) > 1 else None]
            heading = f"<h4>{escape(dataset or 'no dataset')}</h4>" if len(grouped) > 1 and shown else ""
            answers[question] += heading + "".join(map(paragraph, shown))
    boxes = [f'<div class="answer"><h3>{escape(name)}</h3>{text}</div>' for name, text in answers.items() if text]
    return f'<div class="answers">{"".join(boxes)}</div>'


def _how_good(context: ReportContext, dataset: str, runs: dict[str, Run], best: str) -> Iterator[str]:
    run = runs[best]
    metric = context.headline(run)
    if metric is None:
        return
    whose = best if len(runs) == 1 else f"The best of {len(runs)} runs, {best},"
    yield _sentence(whose, run, metric)
    yield from _leads(context, dataset, best)
    others = [name for name in ("i2t", "t2i") if name != split_name(metric)[0]]
    for direction in others:
        other = f"{direction}/{split_name(metric)[1]}"
        if other in run.values:
            yield _sentence("In the other direction it", run, other)


def _leads(context: ReportContext, dataset: str, best: str) -> Iterator[str]:
    """How far the best run is ahead of the others, and whether that may be chance."""
    comparison = context.comparisons.get(dataset)
    if comparison is None:
        return
    for result in comparison.results:
        if best in (result.baseline, result.other):
            rival = result.other if result.baseline == best else result.baseline
            sign = -1 if result.baseline == best else 1
            low, high = sorted((sign * result.low, sign * result.high))
            points = f"{100 * abs(result.difference):.1f} points"
            span = f"95 % interval {percent(low, signed=True)} to {percent(high, signed=True)}"
            if result.adjusted_p < 1 - comparison.level:
                yield f"It is ahead of {rival} by {points} ({span}; paired test, p = {result.adjusted_p:.2g})."
            else:
                yield f"Its lead over {rival}, {points} ({span}), may be chance (p = {result.adjusted_p:.2g})."


def _sentence(name: str, run: Run, metric: str) -> str:
    """One metric of a run as a sentence."""
    values = run[metric]
    direction, short = split_name(metric)
    item, query = _ITEMS.get(direction, ("item", "query"))
    interval = _interval(metric, values.low, values.high, values.level)
    queries = format_count(values.n, query)
    if short != "Hit@1":
        return f"{name} has {metric} {format_figure(metric, values.mean)}{interval} over {queries}."
    tenth = run.values.get(f"{direction}/Hit@10")
    more = f", and among the first ten for {format_figure(metric, tenth.mean)} %" if tenth is not None else ""
    return f"{name} ranks a right {item} first for {format_figure(metric, values.mean)} % of {queries}{interval}{more}."


def _interval(metric: str, low: float, high: float, level: float) -> str:
    if low != low or high != high:
        return ""
    return f" ({100 * level:g} % interval {format_figure(metric, low)} to {format_figure(metric, high)})"


def _how_sure(context: ReportContext, runs: dict[str, Run], best: str) -> Iterator[str]:
    run = runs[best]
    metric = context.headline(run)
    if metric is None:
        return
    values, point = run[metric], point_of(run[metric])
    images = len(set(values.clusters.tolist()))
    if point.bounded and facts_of(metric).unit == "share":
        wide = 100 * (point.high - point.low)
        yield (
            f"The interval of {metric} is {wide:.1f} points wide: it rests on {format_count(values.n, 'query')} of "
            f"{format_count(images, 'image')}."
        )
    elif not point.bounded:
        yield "There are no intervals: the run was evaluated without resamples."
    yield from _told(
        context,
        lambda: annotation_sentence(context, best),
        lambda: tie_sentence(context, best, metric),
        lambda: missing_sentence(context, best),
    )


def _told(context: ReportContext, *sentences: Callable[[], str]) -> Iterator[str]:
    """The sentences that have something to say; a stored result that cannot be read costs its sentence only."""
    for sentence in sentences:
        if text := context.read_stored(sentence, "the first screen", ""):
            yield text


def _where(context: ReportContext, runs: dict[str, Run], best: str) -> Iterator[str]:
    yield from _told(
        context,
        lambda: weakest_group(context, best),
        lambda: cause_sentence(context, best),
        lambda: cost_sentence(context, best),
    )
    ranks = context.first_ranks(runs[best])
    if ranks is not None and len(ranks):
        failed = int((ranks != 1).sum())
        near = int(((ranks > 1) & (ranks <= 5)).sum())
        if failed:
            yield (
                f"Of {format_count(failed, 'query')} whose first item is wrong, {near:,} have the right one at rank 2 "
                f"to 5."
            )
        else:
            yield "Every query has a right item first."


def _table(context: ReportContext) -> str:
    runs = dict(context.inputs.runs)
    several = len(context.inputs.by_dataset()) > 1
    chosen = _TABLE if len(runs) == 1 else _TABLE[:_SHARED]
    metrics = context.shared_metrics(list(runs.values()), chosen) or list(next(iter(runs.values())))[:6]
    if len(runs) == 1:
        name, run = next(iter(runs.items()))
        return TableHtml(f"The main figures: {name}", run_grid(run, [name for name in metrics if name in run.values]))
    columns = [value_cells([run.values.get(metric) for run in runs.values()]) for metric in metrics]
    rows = tuple(zip(runs, *columns, strict=True))
    grid = Grid(("run", *metrics), rows, "l" * (1 + len(metrics)))
    if several:  # what is best on one dataset says nothing about another
        return TableHtml("The main figures", grid)
    return TableHtml("The main figures; the best of each column is bold", grid, best=_best_cells(runs, metrics))


def _best_cells(runs: dict[str, Run], metrics: list[str]) -> set[tuple[int, int]]:
    cells = set()
    for column, metric in enumerate(metrics, start=1):
        means = {row: run[metric].mean for row, run in enumerate(runs.values()) if metric in run.values}
        finite = {row: mean for row, mean in means.items() if mean == mean}
        if finite:
            target = (max if facts_of(metric).higher_is_better else min)(finite.values())
            cells |= {(row, column) for row, mean in finite.items() if mean == target}
    return cells


def _strip(context: ReportContext) -> list[str]:
    ranks = {name: context.first_ranks(run) for name, run in context.inputs.runs.items()}
    known = {name: [int(rank) for rank in own] for name, own in ranks.items() if own is not None and len(own)}
    return [rank_strip(f"Rank of the first right item, {context.direction}", known)] if known else []
