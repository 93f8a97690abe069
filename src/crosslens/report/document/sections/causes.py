"""Why queries fail: how often each cause, which things are confused, and failures with their boxes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from html import escape
from pathlib import Path

import polars as pl

from crosslens.core import Bars, CrosslensError, Figure, Grid, read_parquet_file
from crosslens.explanations import (
    Explanation,
    explain_queries,
    marked_words,
    picture_cards,
    synset_word,
    table_of_totals,
)
from crosslens.metrics import format_count
from crosslens.pipeline import StageResult
from crosslens.report.document.context import ReportContext
from crosslens.report.document.parts import Content, ReportSection, notes, series_of, stored_figure, table_of
from crosslens.report.forms.boxes import draw_boxes
from crosslens.report.forms.page import marked_html, paragraph

_MOST_CONFUSIONS = 8
_IMPORTANCE = 10.0
"""Of the pictures here, above those of single queries: boxes say nothing without them."""


def causes(context: ReportContext) -> ReportSection | None:
    """Shares of causes with all runs beside each other; then per run what is confused, and examples."""
    results = context.inputs.stage("explain")
    if not results:
        return None
    parts: list[Content] = [
        paragraph(
            "A failure has a cause where the first hit contradicts something that the query mentions; it may have "
            "several, or none that the annotation shows."
        ),
        *_shares(results),
    ]
    for result in results:
        parts += [*_totals(result), *_confusions(result)]
    best = context.best(next(iter(context.inputs.by_dataset().values())))
    parts += _examples(context, next((result for result in results if _name(result) == best), results[0]))
    lines = dict.fromkeys(str(line) for result in results for line in result.payload.get("notes", ()))
    return ReportSection(
        "causes", "Why queries fail", (*parts, notes(list(lines), "What the annotation cannot decide"))
    )


def _name(result: StageResult) -> str:
    return result.model or str(result.payload.get("run", ""))


def _shares(results: list[StageResult]) -> Iterator[Content]:
    names = list(dict.fromkeys(row["cause"] for result in results for row in result.payload["causes"]))
    series: dict[str, list[Figure]] = {}
    for result in results:
        by_cause = {row["cause"]: row for row in result.payload["causes"]}
        series[_name(result)] = [stored_figure(by_cause.get(name), Figure.percent(None), "share") for name in names]
    if names:
        counts = ", ".join(
            f"{_name(result)} {format_count(result.payload['failures'], 'failure')}" for result in results
        )
        yield Bars(
            title="Causes, as a share of failures", groups=tuple(names), series=series_of(series), heading="cause",
            axis="percent of failures", about=f"The share of failures with each cause: {counts}.",
        )  # fmt: skip


def _totals(result: StageResult) -> Iterator[Content]:
    if totals := result.payload.get("totals"):
        table = table_of_totals(result.payload["metrics"], totals)
        yield replace(table, title=f"Concepts over all failures of {_name(result)}", folded=True)


def _confusions(result: StageResult) -> Iterator[Content]:
    rows = result.payload.get("query_atlas") or result.payload.get("atlas") or ()
    cells = tuple(
        (synset_word(row["expected"]), synset_word(row["shown"]), f"{row['count']:,}", ", ".join(row["examples"][:3]))
        for row in rows[:_MOST_CONFUSIONS]
    )
    if cells:
        grid = Grid(("asked for", "shown instead", "failures", "for example"), cells, "llrl")
        yield table_of(f"What {_name(result)} confuses", grid, shown=False)


def _examples(context: ReportContext, result: StageResult) -> Iterator[Content]:
    """One failure of each main cause, with both pictures and their boxes."""
    name = next((name for name in (_name(result), *context.inputs.runs) if name in context.inputs.runs), None)
    dataset = None if name is None else context.inputs.dataset_of(context.inputs.runs[name])
    if name is None or dataset is None:
        return
    try:
        chosen = _chosen(context, result, name)
        explained = explain_queries(context.inputs.runs[name], dataset, chosen, result.payload.get("direction"))
    except CrosslensError as error:
        context.notes.append(f"No failures are drawn: {error.problem}.")
        return
    if explained:
        yield f"<h4>Failures of {escape(name)}</h4>"
        pictures = (picture for item in explained for picture in (item.right, item.other) if picture is not None)
        if any(entry.box for picture in pictures for entry in picture.objects):
            yield paragraph("Boxes of one number are matched across the pictures; dashed boxes have no match.", "facts")
    for explanation in explained:
        yield _article(context, explanation, context.dataset_label(context.inputs.runs[name]))


def _chosen(context: ReportContext, result: StageResult, name: str) -> list[str]:
    """The first failure of each main cause; without the table of failures, the first ones."""
    table = None if result.folder is None else Path(result.folder) / "failures.parquet"
    if table is not None and table.exists():
        failures = read_parquet_file(table)
        if {"query", "main_cause"} <= set(failures.columns):
            firsts = failures.filter(pl.col("main_cause").is_not_null()).unique("main_cause", maintain_order=True)
            return [str(query) for query in firsts["query"]][: context.inputs.queries]
    outcomes = context.outcomes(name)
    if outcomes is None:
        return []
    failed = outcomes.filter(pl.col("rank").is_null() | (pl.col("rank") != 1))
    return [str(query) for query in failed["query"].head(context.inputs.queries // 2)]


def _article(context: ReportContext, explained: Explanation, dataset: str) -> str:
    figures = []
    for card in picture_cards(explained, {}).cards:
        image = str(card.image)
        if card.boxes:
            drawn = draw_boxes(card, None, content=context.pictures.below(dataset, image, _IMPORTANCE))
        else:
            drawn = context.pictures.photo(dataset, image, card.title, _IMPORTANCE)
        title = card.title.partition(":")[0]
        said = "".join(f'<q dir="auto">{escape(line)}</q>' for line in card.details)
        figures.append(f"<figure>{drawn}<figcaption><b>{escape(title)}</b> {said}</figcaption></figure>")
    sentences = "".join(paragraph(sentence.text) for sentence in explained.sentences)
    return (
        f'<article class="failure"><p class="query" dir="auto">{marked_html(marked_words(explained))}</p>\n'
        f'{sentences}\n<div class="pair">{"".join(figures)}</div></article>'
    )
