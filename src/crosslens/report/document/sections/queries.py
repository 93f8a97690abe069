"""The most instructive queries, with what every run retrieved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

import polars as pl

from crosslens.core import Dataset, Run
from crosslens.report.document.choice import QueryGroup, choose_queries, similarity_of_hits
from crosslens.report.document.context import ReportContext
from crosslens.report.document.parts import Section, paragraph, quote

_MOST_RUNS = 4
"""Runs whose first hits stand beside each other."""


def queries(context: ReportContext) -> Section | None:
    """Every kind of query, with pictures where there are any."""
    parts: list[str] = []
    several = len(context.inputs.by_dataset()) > 1
    for name, runs in context.inputs.by_dataset().items():
        parts += [f"<h3>{escape(name)}</h3>"] if several else []
        parts += _dataset(context, runs)
    if not any("<article" in part for part in parts):
        return None
    lead = paragraph("A few queries of each kind. A double frame and “✓ right” mark a right answer.")
    return Section("queries", "The most instructive queries", (lead, *parts))


def _dataset(context: ReportContext, runs: dict[str, Run]) -> Iterator[str]:
    outcomes = {name: own for name in runs if (own := context.outcomes(name)) is not None}
    if not outcomes:
        return
    best = context.best({name: runs[name] for name in outcomes})
    dataset = context.inputs.dataset_of(runs[best])
    assert dataset is not None
    phi = similarity_of_hits(outcomes[best], dataset, context.direction)
    groups = choose_queries(outcomes, best, context.inputs.queries, phi)
    chosen = pl.Series([query for group in groups for query in group.queries], dtype=pl.String)
    names = dict.fromkeys([*list(outcomes)[:_MOST_RUNS], best])
    rows = {name: outcomes[name].filter(pl.col("query").is_in(chosen.implode())) for name in names}
    view = _View(context, context.dataset_label(runs[best]), dataset, rows)
    for group in groups:
        articles = [view.article(group, number) for number in range(len(group.queries))]
        yield (
            f"<h4>{escape(group.title)}</h4>\n{paragraph(group.about, 'facts')}\n"
            f'<div class="queries">{"".join(articles)}</div>'
        )


class _View:
    """The queries of one dataset, by id, in every run that is shown."""

    def __init__(
        self, context: ReportContext, name: str, dataset: Dataset, outcomes: Mapping[str, pl.DataFrame]
    ) -> None:
        self._pictures, self._dataset = context.pictures, name
        self._rows: dict[str, dict[str, dict[str, Any]]] = {
            name: {row["query"]: row for row in table.to_dicts()} for name, table in outcomes.items()
        }
        texts = dataset.described.captions.group_by("image", maintain_order=True).agg("text")
        self._said: dict[str, list[str]] = dict(texts.iter_rows())

    def article(self, group: QueryGroup, number: int) -> str:
        """One query: what it asks, the right answer, and the first hit of every run."""
        query = group.queries[number]
        importance = 1.0 / (1 + number)  # the first of every kind before the second of any
        rows = {name: own[query] for name, own in self._rows.items() if query in own}
        first = next(iter(rows.values()))
        asked = f'<p class="query" dir="auto">{escape(first["text"])}</p>' if first["text"] is not None else ""
        truth = self._truth(first, importance)
        hits = "".join(self._hit(name, row, importance) for name, row in rows.items())
        return (
            f'<article class="one-query">{asked}<p class="facts"><span class="id">{escape(query)}</span> · '
            f'{escape(group.facts[number])}</p><div class="hits">{truth}{hits}</div></article>'
        )

    def _truth(self, row: Mapping[str, Any], importance: float) -> str:
        image = row["ground_truth"]
        what = "Right image" if row["text"] is not None else "Query image"
        picture = self._pictures.photo(self._dataset, image, f"{what} {image}", importance)
        said = "" if picture and row["text"] is not None else quote(self._text(image, row["text"]))
        return f'<figure class="truth">{picture}<figcaption><b>{what}</b> {said}</figcaption></figure>'

    def _text(self, image: str, query: str | None = None) -> str:
        """A caption of an image that is not the query itself, if there is one."""
        return next((text for text in self._said.get(image, ()) if text != query), query or "")

    def _hit(self, name: str, row: Mapping[str, Any], importance: float) -> str:
        right = row["rank"] == 1
        state = "right" if right else "not right"
        picture = self._pictures.photo(
            self._dataset, row["retrieved"], f"First hit of {name}: {row['retrieved']}, {state}", importance
        )
        badge = '<span class="badge">✓ right</span>' if right else f"right one at rank {_rank(row['rank'])}"
        said = quote(row["answer"] or self._text(row["retrieved"], row["text"]))
        return (
            f'<figure class="{"right" if right else "other"}">{picture}<figcaption><b>{escape(name)}</b> '
            f"{badge} {said}</figcaption></figure>"
        )


def _rank(rank: int | None) -> str:
    return "–" if rank is None else f"{rank:,}"
