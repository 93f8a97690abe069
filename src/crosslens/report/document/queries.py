"""The sections of a report with pictures: the first screen, why queries fail, and the most instructive queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import (
    BOTH,
    IMAGE_TO_TEXT,
    UNRANKED,
    Bars,
    Chart,
    CrosslensError,
    Dataset,
    Figure,
    Finding,
    Gauge,
    Run,
    Shares,
    Table,
    Text,
    read_parquet_file,
    split_name,
)
from crosslens.explanations import explain_queries, marked_words, picture_cards, synset_word, table_of_totals
from crosslens.metrics import dataset_name, facts_of, format_count, format_figure
from crosslens.pipeline import StageResult, run_table
from crosslens.report.document.failures import (
    FAILED,
    PHI,
    ChosenQueries,
    TellingFailure,
    choose_queries,
    telling_failures,
)
from crosslens.report.document.inputs import ReportContext
from crosslens.report.document.sections import Content, Html, ReportSection, figure_of, folded_notes, series_of
from crosslens.report.forms.boxes import draw_boxes
from crosslens.report.forms.page import chart_html, marked_html, paragraph
from crosslens.similarity import relevance_pairs

_TABLE = ("Hit@1", "Hit@5", "Hit@10", "MedR", "mAP@R")
_SHARED = 3
"""Of these, how many per direction stand in the table of several runs."""
_MOST_FINDINGS = 10
_MOST_PANELS = 4
"""Of more runs, only the best of each dataset has its failures on the first screen."""
_MOST_TEXTS = 2
"""Captions that stand for a picture."""
_MOST_CONFUSIONS = 8
_MOST_RUNS = 4
"""Runs whose first hits stand beside each other."""
_ON_FIRST_SCREEN, _WITH_BOXES = 20.0, 10.0
"""How important pictures are: above those of single queries, which say something without them."""
_LAST_RANKS = (1, 5, 10, 100)
"""The last rank of each band; what is ranked lower, or not listed, is the band behind."""
BANDS = ("rank 1", "2–5", "6–10", "11–100", "below 100")
_ITEMS = {"t2i": ("image", "caption"), "i2t": ("caption", "image"), "t2t": ("image", "caption")}
"""Per direction: what is retrieved, and what the queries are."""


def _quote(text: str | None) -> str:
    """A caption, in its own direction of writing."""
    return f'<q dir="auto">{escape(text)}</q>' if text else ""


def summary(context: ReportContext) -> ReportSection:
    """Of every run its figure, its ranks and its most telling failures; then what is found, and the main figures."""
    runs = context.inputs.runs
    shown = (
        set(runs) if len(runs) <= _MOST_PANELS else {context.best(own) for own in context.inputs.by_dataset().values()}
    )
    panels = [_panel(context, name, failures=name in shown) for name in runs]
    inside = "".join(html for html, _ in panels)
    first = Html(f'<div class="panels{" alone" if len(runs) == 1 else ""}">{inside}</div>')
    first.charts = tuple(chart for _, charts in panels for chart in charts)
    # What matters most; all findings of an audit are in its folder.
    items = ""
    findings = context.findings
    for finding in findings[:_MOST_FINDINGS]:
        also = f" The same on {escape(', '.join(finding.also))}." if finding.also else ""
        items += (
            f"<li>{escape(finding.text)}{also} "
            f'<small title="{escape(certainty_words(finding))}">{finding.certainty}</small></li>'
        )
    what = "What the audit found" if context.inputs.findings else "What stands out"
    heading = f"<h3>{what}, the first thing first</h3>"
    listed = [f'<div class="findings">{heading}\n<ol>{items}</ol></div>'] if items else []
    return ReportSection("summary", "In short", (first, *listed, _main_figures(context)))


def certainty_words(finding: Finding) -> str:
    """Why a finding is as sure as it says."""
    p = f"p {Figure.p(finding.p).equation} after correction over everything that was looked at" if finding.p else ""
    precision = finding.precision
    measured = (
        f"{100 * precision.value:.0f} % of {precision.n:,} such sentences were true ({precision.where})"
        if precision
        else "how often such sentences are true was not measured"
    )
    return "; ".join(filter(None, (p, measured)))


def _panel(context: ReportContext, name: str, *, failures: bool) -> tuple[str, list[Chart]]:
    """The headline figure of a run, large and with its interval; where its right items are; what goes wrong."""
    run = context.inputs.runs[name]
    several, datasets = len(context.inputs.runs) > 1, len(context.inputs.by_dataset()) > 1
    where = f" on {dataset_name(run)}" if datasets and dataset_name(run) else ""
    item, query = _ITEMS.get(context.direction, ("item", "query"))
    metric, ranks = context.headline(run), context.first_ranks(run)
    charts: list[Chart] = []
    score = ""
    if metric is not None and run[metric].mean == run[metric].mean:
        share = facts_of(metric).unit == "share"
        unit, values = " %" if share else "", run[metric]
        queries = format_count(values.n, query)
        meaning = f"{metric} over {queries}"
        if split_name(metric)[1] == "Hit@1":
            meaning = f"of {queries} {'has' if values.n == 1 else 'have'} a right {item} first"
        large = f"<b>{format_figure(metric, values.mean)}{unit}</b>"
        score = f'<p class="score">{large} {escape(meaning)}</p>'
        title = f"{metric} and its {100 * values.level:g} % interval"
        limits = (0.0, 1.0) if share else None
        charts.append(Gauge(title=title, figure=replace(figure_of(values), unit=unit), limits=limits))
    if ranks is not None and len(ranks):
        title = f"Rank of the first right {item}"
        counts = tuple(map(float, rank_bands(ranks.tolist())))
        charts.append(Shares(title=title, groups=(name,), levels=BANDS, counts=(counts,), heading="run"))
    heading = f"<h3>{escape(name)}{escape(where)}</h3>" if several else ""
    drawn = f'<div class="charts">{"".join(map(chart_html, charts))}</div>'
    telling = _telling(context, name) if failures else ""
    # As a file of its own a chart says whose it is.
    named = [replace(chart, title=f"{chart.title}, {name}") if several else chart for chart in charts]
    return f'<div class="panel">{heading}{score}{drawn}{telling}</div>', named


def rank_bands(ranks: Sequence[int]) -> list[int]:
    """How many ranks are in each of ``BANDS``; a rank of −1 (not listed) is in the last."""
    bands = np.where(np.equal(ranks, UNRANKED), len(_LAST_RANKS), np.searchsorted(_LAST_RANKS, ranks))
    counts: list[int] = np.bincount(bands, minlength=len(BANDS)).tolist()
    return counts


def _telling(context: ReportContext, name: str) -> str:
    """The most telling failures: what was asked, expected and retrieved, and what is wrong."""
    telling = telling_failures(context, name)
    run = context.inputs.runs[name]
    dataset = context.inputs.dataset_of(run)
    if not telling or dataset is None:
        return ""
    texts = _texts(dataset, {failure.row[side] for failure in telling for side in ("ground_truth", "retrieved")})
    cards = [_miss(context, failure, dataset_name(run), texts) for failure in telling]
    about = "The run was sure, and the right answer is far down."
    if all(failure.kind and not failure.doubt for failure in telling):
        about = "The run was sure, the right answer is far down, and what is wrong can be said."
    return f'<h4>Telling failures</h4>{paragraph(about, "facts")}<div class="misses">{"".join(cards)}</div>'


def _texts(dataset: Dataset, images: set[str]) -> dict[str, list[str]]:
    said = dataset.described.captions.filter(pl.col("image").is_in(list(images)))
    return dict(said.group_by("image", maintain_order=True).agg("text").iter_rows())


def _miss(context: ReportContext, failure: TellingFailure, dataset: str, texts: Mapping[str, Sequence[str]]) -> str:
    row = failure.row
    expected, retrieved = row["ground_truth"], row["retrieved"]
    asked = "" if row["text"] is None else f'<p class="query" dir="auto">{escape(row["text"])}</p>'

    def shown(image: str, title: str) -> str:
        """The picture, or captions other than the query in its place."""
        others = [text for text in dict.fromkeys(texts.get(image, ())) if text != row["text"]][:_MOST_TEXTS]
        return context.pictures.photo(dataset, image, f"{title}: {image}", _ON_FIRST_SCREEN) or "".join(
            map(_quote, others)
        )

    sides = {"Expected": shown(expected, "Expected"), "Retrieved first": shown(retrieved, "Retrieved first")}
    if row["text"] is None:
        sides = {
            "Query image": shown(expected, "Query image"),
            "Expected": _quote(next(iter(texts.get(expected, ())), None)),
            "Retrieved first": _quote(row["answer"]),
        }
    figures = [f"<figure><figcaption>{title}</figcaption>{inside}</figure>" for title, inside in sides.items()]
    rank = "not in the list" if row["rank"] is None else f"at rank {row['rank']:,}"
    among = f" of {failure.gallery:,}" if failure.gallery and row["rank"] is not None else ""
    doubt = f'<p class="doubt"><b>Doubtful label.</b> {escape(failure.doubt)}</p>' if failure.doubt else ""
    return (
        f'<article class="miss">{asked}<div class="two">{"".join(figures)}</div>{paragraph(failure.reason)}{doubt}'
        f"{paragraph(f'The expected one is {rank}{among}.', 'facts')}</article>"
    )


def _main_figures(context: ReportContext) -> Table:
    runs = dict(context.inputs.runs)
    chosen = _TABLE if len(runs) == 1 else _TABLE[:_SHARED]
    known = dict.fromkeys(name for run in runs.values() for name in run)
    directions = sorted({split_name(name)[0] for name in known} - {BOTH}, reverse=True)
    metrics = [name for side in directions for metric in chosen if (name := f"{side}/{metric}") in known]
    metrics = metrics or list(next(iter(runs.values())))[:6]
    if len(runs) == 1:
        name, run = next(iter(runs.items()))
        table = run_table(run, [metric for metric in metrics if metric in run.values])
        return replace(table, title=f"The main figures: {name}")
    table = Table(
        ("run", *metrics),
        [(name, *(figure_of(run.values.get(metric), metric) for metric in metrics)) for name, run in runs.items()],
        "l" * (1 + len(metrics)),
        title="The main figures",
    )
    if len(context.inputs.by_dataset()) > 1:  # what is best on one dataset says nothing about another
        return table
    best = set()
    for column, metric in enumerate(metrics, start=1):
        means = {row: run[metric].mean for row, run in enumerate(runs.values()) if metric in run.values}
        finite = {row: mean for row, mean in means.items() if mean == mean}
        if finite:
            target = (max if facts_of(metric).higher_is_better else min)(finite.values())
            best |= {(row, column) for row, mean in finite.items() if mean == target}
    return replace(table, title="The main figures; the best of each column is bold", best=frozenset(best))


def causes(context: ReportContext) -> ReportSection | None:
    """Shares of causes with all runs beside each other; then per run what is confused, and examples."""
    results = context.inputs.stage("explain")
    if not results:
        return None
    about = (
        "A failure has a cause where the first hit contradicts something that the query mentions; it may have several, "
        "or none that the annotation shows."
    )
    parts: list[Content] = [Text.of(about)]
    names = list(dict.fromkeys(row["cause"] for result in results for row in result.payload["causes"]))
    series: dict[str, list[Figure]] = {}
    for result in results:
        by_cause = {row["cause"]: row for row in result.payload["causes"]}
        series[_name(result)] = [Figure.percent(None).of_row(by_cause.get(name), "share") for name in names]
    if names:
        counted = (f"{_name(result)} {format_count(result.payload['failures'], 'failure')}" for result in results)
        shares = Bars(
            title="Causes, as a share of failures", groups=tuple(names), series=series_of(series), heading="cause",
            axis="percent of failures", about=f"The share of failures with each cause: {', '.join(counted)}.",
        )  # fmt: skip
        parts.append(shares)
    for result in results:
        name = _name(result)
        if totals := result.payload.get("totals"):
            table = table_of_totals(result.payload["metrics"], totals)
            parts.append(replace(table, title=f"Concepts over all failures of {name}", folded=True))
        confused = result.payload.get("query_atlas") or result.payload.get("atlas") or ()
        cells = tuple(
            (synset_word(row["expected"]), synset_word(row["shown"]), row["count"], ", ".join(row["examples"][:3]))
            for row in confused[:_MOST_CONFUSIONS]
        )
        header = ("asked for", "shown instead", "failures", "for example")
        parts += [Table(header, cells, title=f"What {name} confuses", folded=True)] if cells else []
    best = context.best(next(iter(context.inputs.by_dataset().values())))
    parts += _examples(context, next((result for result in results if _name(result) == best), results[0]))
    lines = dict.fromkeys(str(line) for result in results for line in result.payload.get("notes", ()))
    parts.append(folded_notes(list(lines), "What the annotation cannot decide"))
    return ReportSection("causes", "Why queries fail", tuple(part for part in parts if part))


def _name(result: StageResult) -> str:
    return result.model or str(result.payload.get("run", ""))


def _examples(context: ReportContext, result: StageResult) -> Iterator[Content]:
    """One failure of each main cause, with both pictures and their boxes."""
    name = next((name for name in (_name(result), *context.inputs.runs) if name in context.inputs.runs), None)
    run = None if name is None else context.inputs.runs[name]
    dataset = None if run is None else context.inputs.dataset_of(run)
    if name is None or run is None or dataset is None:
        return
    # The first failure of each main cause; without the table of failures, the first ones.
    outcomes, most = context.outcomes(name), context.inputs.queries
    chosen = pl.Series(dtype=pl.String) if outcomes is None else outcomes.filter(FAILED)["query"].head(most // 2)
    table = None if result.folder is None else Path(result.folder) / "failures.parquet"
    try:
        if table is not None and table.exists():
            failures = read_parquet_file(table)
            if {"query", "main_cause"} <= set(failures.columns):
                firsts = failures.filter(pl.col("main_cause").is_not_null()).unique("main_cause", maintain_order=True)
                chosen = firsts["query"].head(most)
        explained = explain_queries(run, dataset, list(map(str, chosen)), result.payload.get("direction"))
    except CrosslensError as error:
        context.notes.append(f"No failures are drawn: {error.problem}.")
        return
    if explained:
        yield f"<h4>Failures of {escape(name)}</h4>"
        pictures = (picture for item in explained for picture in (item.right, item.other) if picture is not None)
        if any(entry.box for picture in pictures for entry in picture.objects):
            yield Text.of("Boxes of one number are matched across the pictures; dashed boxes have no match.", note=True)
    for explanation in explained:
        figures = []
        for card in picture_cards(explanation, {}).cards:
            image = str(card.image)
            if card.boxes:
                below = context.pictures.below(dataset_name(run), image, _WITH_BOXES)
                drawn = draw_boxes(card, None, content=below)
            else:
                drawn = context.pictures.photo(dataset_name(run), image, card.title, _WITH_BOXES)
            title = escape(card.title.partition(":")[0])
            said = "".join(map(_quote, card.details))
            figures.append(f"<figure>{drawn}<figcaption><b>{title}</b> {said}</figcaption></figure>")
        sentences = "".join(paragraph(sentence.text) for sentence in explanation.sentences)
        yield (
            f'<article class="failure"><p class="query" dir="auto">{marked_html(marked_words(explanation))}</p>\n'
            f'{sentences}\n<div class="pair">{"".join(figures)}</div></article>'
        )


def queries(context: ReportContext) -> ReportSection | None:
    """The most instructive queries of every kind, with what every run retrieved."""
    parts: list[Content] = []
    by_dataset = context.inputs.by_dataset()
    for name, runs in by_dataset.items():
        shown = list(_instructive(context, runs))
        parts += [f"<h3>{escape(name)}</h3>"] if shown and len(by_dataset) > 1 else []
        parts += shown
    lead = Text.of("A few queries of each kind. A double frame and “✓ right” mark a right answer.")
    return ReportSection("queries", "The most instructive queries", (lead, *parts)) if parts else None


def _instructive(context: ReportContext, runs: dict[str, Run]) -> Iterator[Content]:
    outcomes = {name: own for name in runs if (own := context.outcomes(name)) is not None}
    if not outcomes:
        return
    best = context.best({name: runs[name] for name in outcomes})
    dataset = context.inputs.dataset_of(runs[best])
    assert dataset is not None
    # φ of every failure's first hit, where it can be computed.
    phi, failures = None, outcomes[best].filter(FAILED)
    image = {name: row for row, name in enumerate(dataset.image_ids)}
    caption = {name: row for row, name in enumerate(dataset.caption_ids)}
    sides = ("query", "item") if context.direction == IMAGE_TO_TEXT else ("item", "query")
    with suppress(CrosslensError, KeyError):
        pairs = ([ids[name] for name in failures[side]] for ids, side in zip((image, caption), sides, strict=True))
        values = relevance_pairs(dataset, PHI, *(np.array(rows, np.int64) for rows in pairs))
        phi = pl.DataFrame({"query": failures["query"], "phi": values}, schema={"query": pl.String, "phi": pl.Float64})
    groups = choose_queries(outcomes, best, context.inputs.queries, phi)
    chosen = pl.Series([query for group in groups for query in group.queries], dtype=pl.String)
    rows: dict[str, dict[str, dict[str, Any]]] = {
        name: {row["query"]: row for row in outcomes[name].filter(pl.col("query").is_in(chosen.implode())).to_dicts()}
        for name in dict.fromkeys([*list(outcomes)[:_MOST_RUNS], best])
    }
    images = {row[side] for own in rows.values() for row in own.values() for side in ("ground_truth", "retrieved")}
    texts = _texts(dataset, images)
    for group in groups:
        articles = [
            _query(context, group, number, {name: own[query] for name, own in rows.items() if query in own}, texts)
            for number, query in enumerate(group.queries)
        ]
        yield (
            f"<h4>{escape(group.title)}</h4>\n{paragraph(group.about, 'facts')}\n"
            f'<div class="queries">{"".join(articles)}</div>'
        )


def _query(
    context: ReportContext,
    group: ChosenQueries,
    number: int,
    rows: Mapping[str, Mapping[str, Any]],
    texts: Mapping[str, Sequence[str]],
) -> str:
    """One query: what it asks, the right answer, and the first hit of every run."""
    first = next(iter(rows.values()))
    dataset = dataset_name(context.inputs.runs[next(iter(rows))])
    text, truth = first["text"], first["ground_truth"]
    importance = 1.0 / (1 + number)  # the first of every kind before the second of any

    def other_text(image: str) -> str:
        """A caption of an image that is not the query itself, if there is one."""
        return next((said for said in texts.get(image, ()) if said != text), text or "")

    def figure(kind: str, image: str, alternative: str, said: str) -> str:
        picture = context.pictures.photo(dataset, image, alternative, importance)
        return f'<figure class="{kind}">{picture}<figcaption>{said}</figcaption></figure>'

    what = "Query image" if text is None else "Right image"
    pictured = text is not None and truth in context.inputs.pictures.get(dataset, {})
    said = "" if pictured else _quote(other_text(truth))
    figures = [figure("truth", truth, f"{what} {truth}", f"<b>{what}</b> {said}")]
    for name, row in rows.items():
        right, image = row["rank"] == 1, row["retrieved"]
        rank = "–" if row["rank"] is None else f"{row['rank']:,}"
        badge = '<span class="badge">✓ right</span>' if right else f"right one at rank {rank}"
        said = f"<b>{escape(name)}</b> {badge} {_quote(row['answer'] or other_text(image))}"
        alternative = f"First hit of {name}: {image}, {'right' if right else 'not right'}"
        figures.append(figure("right" if right else "other", image, alternative, said))
    asked = f'<p class="query" dir="auto">{escape(text)}</p>' if text is not None else ""
    return (
        f'<article class="one-query">{asked}<p class="facts"><span class="id">{escape(group.queries[number])}</span> · '
        f'{escape(group.facts[number])}</p><div class="hits">{"".join(figures)}</div></article>'
    )
