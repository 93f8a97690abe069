"""Judgements as files with a row per judgement: .csv, .jsonl."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from crosslens.web.judging.tasks.answers import Answer
from crosslens.web.judging.tasks.content import ItemContent

_FORMULA = r"[=+\-@\t\r]"
"""How a cell begins that a spreadsheet program may run as a formula; an apostrophe in front makes it a text."""


@dataclass(frozen=True)
class ExportedItem:
    """An item with what was finally decided about it."""

    id: str
    kind: str
    content: ItemContent
    expected: Mapping[str, Any] | None = None


def answers_csv(table: pl.DataFrame, items: Sequence[ExportedItem], adjudicated: Mapping[str, Answer]) -> str:
    """A row per judgement, labels joined by ``; ``; no spreadsheet program runs a cell as a formula."""
    rows = [
        {**row, "labels": "; ".join(row["labels"]), "metrics": json.dumps(row["metrics"], ensure_ascii=False)}
        for row in answer_rows(table, items, adjudicated)
    ]
    schema = dict.fromkeys(_COLUMNS, pl.String) | {"rating": pl.Float64, "seconds": pl.Float64}
    frame = pl.DataFrame(rows, schema=schema)
    return frame.with_columns(pl.col(pl.String).str.replace(f"^('*{_FORMULA})", "'${1}")).write_csv()


def answers_jsonl(table: pl.DataFrame, items: Sequence[ExportedItem], adjudicated: Mapping[str, Answer]) -> str:
    """The same, one JSON object per line."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in answer_rows(table, items, adjudicated))


_COLUMNS = (
    "item", "kind", "judge", "source", "labels", "rating", "text", "seconds", "created", "image", "caption",
    "shown_text", "expected", "metrics",
)  # fmt: skip


def answer_rows(
    table: pl.DataFrame, items: Sequence[ExportedItem], adjudicated: Mapping[str, Answer]
) -> list[dict[str, Any]]:
    """A row per judgement and per adjudicated answer, whose source is ``adjudicated``."""
    known = {item.id: item for item in items}
    rows = [
        _row(known[row["item"]], row["account"], row["source"], row["labels"], row["rating"], row["text"])
        | {"seconds": row["seconds"], "created": row["created"].isoformat() if row["created"] else None}
        for row in table.iter_rows(named=True)
    ]
    rows += [
        _row(known[item], "", "adjudicated", list(answer.labels), answer.rating, answer.text)
        for item, answer in adjudicated.items()
    ]
    return [{name: row.get(name) for name in _COLUMNS} for row in rows]


def _row(
    item: ExportedItem, judge: str, source: str, labels: Sequence[str], rating: float | None, text: str | None
) -> dict[str, Any]:
    about = item.content.about
    return {
        "item": item.id, "kind": item.kind, "judge": judge, "source": source, "labels": list(labels),
        "rating": rating, "text": text or "", "image": about.get("image"), "caption": about.get("caption"),
        "shown_text": " / ".join(shown.text for shown in item.content.texts),
        "expected": "; ".join((item.expected or {}).get("labels", ())), "metrics": about.get("metrics", {}),
    }  # fmt: skip
