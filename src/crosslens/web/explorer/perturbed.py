"""What perturbations do to a query: the changed caption, and how far its rank moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from crosslens.pipeline import Robustness
from crosslens.web.explorer.models import EditSpan, PerturbationList, PerturbationRow
from crosslens.web.explorer.tables import QueryTables


def perturbations_of(tables: QueryTables, run: str, direction: str | None, query: str) -> PerturbationList:
    """The query under every perturbation, over the studies of its dataset in the served folder."""
    own = tables.table(run, direction).retrieval
    own.row(query)
    library = tables.services.library
    studies = library.studies(library.summary(run).dataset)
    rows = [
        row
        for location, study in studies.items()
        if study.direction == own.direction
        for row in _rows(location, study, query)
    ]
    name = library.summary(run).name
    return PerturbationList(rows=sorted(rows, key=lambda row: row.model != name))  # the run's own first


def _rows(location: str, study: Robustness, query: str) -> list[PerturbationRow]:
    changes = study.queries.filter((pl.col("query") == query) & (pl.col("seed") == pl.col("seed").min()))
    captions = study.captions.filter(pl.col("caption") == query) if study.captions.height else study.captions
    texts = {(row["perturbation"], row["seed"]): row for row in captions.to_dicts()}
    return [
        PerturbationRow(
            study=location,
            model=row["model"],
            perturbation=row["perturbation"],
            applied=bool(row["applied"]),
            rank_before=_rank(row["rank_before"]),
            rank_after=_rank(row["rank_after"]),
            spans=_spans(texts.get((row["perturbation"], row["seed"]))),
        )
        for row in changes.to_dicts()
    ]


def _rank(value: float | None) -> int | None:
    return None if value is None or value != value else int(value)


def _spans(caption: dict[str, Any] | None) -> list[EditSpan]:
    """The caption from left to right: what stayed, what was changed, what stayed, …"""
    if caption is None:
        return []
    original, position = str(caption["original"]), 0
    spans: list[EditSpan] = []
    edits: Sequence[dict[str, Any]] = caption["edits"] or ()
    for edit in edits:
        spans += _kept(original[position : edit["start"]])
        spans.append(EditSpan(before=edit["before"], after=edit["after"]))
        position = edit["end"]
    return [*spans, *_kept(original[position:])]


def _kept(text: str) -> list[EditSpan]:
    return [EditSpan(before=text, after=text)] if text else []
