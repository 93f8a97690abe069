"""The first screen: per run a figure with its interval, the ranks and telling failures; then sentences and a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape

import polars as pl

from crosslens.core import UNRANKED, Cell, Chart, Gauge, Run, Shares, Table, percent, split_name
from crosslens.metrics import facts_of, format_count, format_figure
from crosslens.pipeline import run_table
from crosslens.report.document.context import ReportContext
from crosslens.report.document.facts import (
    annotation_sentence,
    cause_sentence,
    cost_sentence,
    missing_sentence,
    tie_sentence,
    weakest_group,
)
from crosslens.report.document.parts import Content, Html, ReportSection, figure_of, quote
from crosslens.report.document.telling import TellingFailure, telling_failures
from crosslens.report.forms.page import chart_html, paragraph

_TABLE = ("Hit@1", "Hit@5", "Hit@10", "MedR", "mAP@R")
_PER_DATASET = {"Where does it fail?": 2, "How sure?": 2, "How good?": 2}
"""The three answers, and how many sentences of each a dataset gets where there are several."""
_SHARED = 3
"""Of these, how many per direction stand in the table of several runs."""
_MOST_FINDINGS = 10
_MOST_PANELS = 4
"""Of more runs, only the best of each dataset has its failures on the first screen."""
_MOST_TEXTS = 2
"""Captions that stand for a picture."""
_IMPORTANCE = 20.0
"""Of the pictures here, above all others."""
_LAST_RANKS = (1, 5, 10, 100)
"""The last rank of each band; what is ranked lower, or not listed, is the band behind."""
BANDS = ("rank 1", "2–5", "6–10", "11–100", "below 100")
_ITEMS = {"t2i": ("image", "caption"), "i2t": ("caption", "image"), "t2t": ("image", "caption")}
"""Per direction: what is retrieved, and what the queries are."""


def summary(context: ReportContext) -> ReportSection:
    """Of every run its figure, its ranks and its most telling failures; then what surprises, and three answers."""
    runs = context.inputs.runs
    shown = (
        set(runs) if len(runs) <= _MOST_PANELS else {context.best(own) for own in context.inputs.by_dataset().values()}
    )
    panels = [_panel(context, name, failures=name in shown) for name in runs]
    inside = "".join(html for html, _ in panels)
    first = Html(f'<div class="panels{" alone" if len(runs) == 1 else ""}">{inside}</div>')
    first.charts = tuple(chart for _, charts in panels for chart in charts)
    parts: list[Content] = [first, _findings(context), _answers(context), _table(context)]
    return ReportSection("summary", "In short", tuple(part for part in parts if part))


def _panel(context: ReportContext, name: str, *, failures: bool) -> tuple[str, list[Chart]]:
    """The headline figure of a run, large and with its interval; where its right items are; what goes wrong."""
    run = context.inputs.runs[name]
    several, datasets = len(context.inputs.runs) > 1, len(context.inputs.by_dataset()) > 1
    where = f" on {context.dataset_label(run)}" if datasets and context.dataset_label(run) else ""
    item, _ = _ITEMS.get(context.direction, ("item", "query"))
    metric, ranks = context.headline(run), context.first_ranks(run)
    charts: list[Chart] = []
    score = ""
    if metric is not None and run[metric].mean == run[metric].mean:
        share = facts_of(metric).unit == "share"
        unit, values = " %" if share else "", run[metric]
        large = f"<b>{format_figure(metric, values.mean)}{unit}</b>"
        score = f'<p class="score">{large} {escape(_meaning(metric, values.n))}</p>'
        title = f"{metric} and its {100 * values.level:g} % interval"
        limits = (0.0, 1.0) if share else None
        charts.append(Gauge(title=title, figure=replace(figure_of(values), unit=unit), limits=limits))
    if ranks is not None and len(ranks):
        title = f"Rank of the first right {item}"
        counts = tuple(map(float, rank_bands(ranks.tolist())))
        charts.append(Shares(title=title, groups=(name,), levels=BANDS, counts=(counts,), heading="run"))
    heading = f"<h3>{escape(name)}{escape(where)}</h3>" if several else ""
    drawn = f'<div class="charts">{"".join(map(chart_html, charts))}</div>'
    told = _failures(context, name) if failures else ""
    # As a file of its own a chart says whose it is.
    named = [replace(chart, title=f"{chart.title}, {name}") if several else chart for chart in charts]
    return f'<div class="panel">{heading}{score}{drawn}{told}</div>', named


def rank_bands(ranks: Sequence[int]) -> list[int]:
    """How many ranks are in each of ``BANDS``; a rank of −1 (not listed) is in the last."""
    counts = [0] * len(BANDS)
    for rank in ranks:
        band = next((index for index, last in enumerate(_LAST_RANKS) if rank <= last), len(_LAST_RANKS))
        counts[len(_LAST_RANKS) if rank == UNRANKED else band] += 1
    return counts


def _meaning(metric: str, queries: int) -> str:
    direction, short = split_name(metric)
    item, query = _ITEMS.get(direction, ("item", "query"))
    if short != "Hit@1":
        return f"{metric} over {format_count(queries, query)}"
    return f"of {format_count(queries, query)} {'has' if queries == 1 else 'have'} a right {item} first"


def _failures(context: ReportContext, name: str) -> str:
    """The most telling failures: what was asked, expected and retrieved, and what is wrong."""
    telling = telling_failures(context, name)
    run = context.inputs.runs[name]
    dataset = context.inputs.dataset_of(run)
    if not telling or dataset is None:
        return ""
    images = {failure.row[side] for failure in telling for side in ("ground_truth", "retrieved")}
    said = dataset.described.captions.filter(pl.col("image").is_in(list(images)))
    texts: dict[str, list[str]] = dict(said.group_by("image", maintain_order=True).agg("text").iter_rows())
    cards = [_card(context, failure, context.dataset_label(run), texts) for failure in telling]
    about = "The run was sure, and the right answer is far down."
    if all(failure.kind and not failure.doubt for failure in telling):
        about = "The run was sure, the right answer is far down, and what is wrong can be said."
    return f'<h4>Telling failures</h4>{paragraph(about, "facts")}<div class="misses">{"".join(cards)}</div>'


def _card(context: ReportContext, failure: TellingFailure, dataset: str, texts: Mapping[str, Sequence[str]]) -> str:
    row = failure.row
    expected, retrieved = row["ground_truth"], row["retrieved"]
    asked = "" if row["text"] is None else f'<p class="query" dir="auto">{escape(row["text"])}</p>'

    def shown(image: str, title: str) -> str:
        """The picture, or captions other than the query in its place."""
        told = [text for text in dict.fromkeys(texts.get(image, ())) if text != row["text"]][:_MOST_TEXTS]
        return context.pictures.photo(dataset, image, f"{title}: {image}", _IMPORTANCE) or "".join(map(quote, told))

    sides = {"Expected": shown(expected, "Expected"), "Retrieved first": shown(retrieved, "Retrieved first")}
    if row["text"] is None:
        own = quote(next(iter(texts.get(expected, ())), None))
        sides = {
            "Query image": shown(expected, "Query image"),
            "Expected": own,
            "Retrieved first": quote(row["answer"]),
        }
    figures = [f"<figure><figcaption>{title}</figcaption>{inside}</figure>" for title, inside in sides.items()]
    rank = "not in the list" if row["rank"] is None else f"at rank {row['rank']:,}"
    among = f" of {failure.gallery:,}" if failure.gallery and row["rank"] is not None else ""
    doubt = f'<p class="doubt"><b>Doubtful label.</b> {escape(failure.doubt)}</p>' if failure.doubt else ""
    return (
        f'<article class="miss">{asked}<div class="two">{"".join(figures)}</div>{paragraph(failure.reason)}{doubt}'
        f"{paragraph(f'The expected one is {rank}{among}.', 'facts')}</article>"
    )


def _findings(context: ReportContext) -> str:
    if not context.inputs.findings:
        return ""
    chosen = sorted(context.inputs.findings, key=lambda finding: -finding.importance)[:_MOST_FINDINGS]
    several = len(context.inputs.runs) > 1
    items = ""
    for finding in chosen:
        about = finding.model or finding.dataset
        whose = f"<b>{escape(about)}</b>: " if several and about and about not in finding.text else ""
        items += f"<li>{whose}{escape(finding.text)}</li>"
    return f'<div class="findings"><h3>What the audit found, the most important first</h3>\n<ol>{items}</ol></div>'


def _answers(context: ReportContext) -> str:
    """The three answers; with several datasets, a part of each per dataset."""
    answers = dict.fromkeys(_PER_DATASET, "")
    grouped = context.inputs.by_dataset()
    for dataset, runs in grouped.items():
        best = context.best(runs)
        told = (_where(context, runs, best), _how_sure(context, runs, best), _how_good(context, dataset, runs, best))
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
    values, point = run[metric], figure_of(run[metric])
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


def _table(context: ReportContext) -> Content:
    runs = dict(context.inputs.runs)
    several = len(context.inputs.by_dataset()) > 1
    chosen = _TABLE if len(runs) == 1 else _TABLE[:_SHARED]
    metrics = context.shared_metrics(list(runs.values()), chosen) or list(next(iter(runs.values())))[:6]
    if len(runs) == 1:
        name, run = next(iter(runs.items()))
        table = run_table(run, [metric for metric in metrics if metric in run.values])
        return replace(table, title=f"The main figures: {name}")
    rows: list[tuple[Cell, ...]] = [
        (name, *(figure_of(run.values.get(metric), metric) for metric in metrics)) for name, run in runs.items()
    ]
    table = Table(("run", *metrics), tuple(rows), "l" * (1 + len(metrics)), title="The main figures")
    if several:  # what is best on one dataset says nothing about another
        return table
    best = frozenset(_best_cells(runs, metrics))
    return replace(table, title="The main figures; the best of each column is bold", best=best)


def _best_cells(runs: dict[str, Run], metrics: list[str]) -> set[tuple[int, int]]:
    cells = set()
    for column, metric in enumerate(metrics, start=1):
        means = {row: run[metric].mean for row, run in enumerate(runs.values()) if metric in run.values}
        finite = {row: mean for row, mean in means.items() if mean == mean}
        if finite:
            target = (max if facts_of(metric).higher_is_better else min)(finite.values())
            cells |= {(row, column) for row, mean in finite.items() if mean == target}
    return cells
