"""Judgements as files with a row per judgement, .csv or .jsonl; and such files read again, to the same bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core import InputError, is_finite_number, reading
from crosslens.data import format_suffix, read_records, read_table
from crosslens.web.judging.tasks.answers import Answer
from crosslens.web.judging.tasks.content import ItemContent

ADJUDICATED = "adjudicated"
"""The source of what the owner decided."""
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
        _row(known[item], "", ADJUDICATED, list(answer.labels), answer.rating, answer.text)
        for item, answer in adjudicated.items()
    ]
    return [{name: row.get(name) for name in _COLUMNS} for row in rows]


@dataclass(frozen=True)
class AnswerRow:
    """A judgement as an export holds it; of what its item shows, there are image, caption and text."""

    item: str
    kind: str
    judge: str
    source: str
    answer: Answer
    seconds: float
    created: datetime | None
    image: str | None
    caption: str | None
    shown_text: str
    expected: tuple[str, ...]
    metrics: Mapping[str, Any]


def is_answer_file(columns: Sequence[str]) -> bool:
    """Whether a table is an export of answers."""
    return set(_COLUMNS) <= set(columns)


def read_answers(path: Path) -> list[AnswerRow] | None:
    """The judgements of an export, .csv or .jsonl; None for a table of another kind."""
    suffix = format_suffix(path)
    if suffix not in (".csv", ".jsonl"):
        return None
    with reading(path):
        if suffix == ".jsonl":
            records = read_records(path)
            rows, row_name = list(records.rows), records.row_name
            if not rows or not is_answer_file(list(rows[0])):
                return None
        else:
            frame, row_name = read_table(path)
            if not is_answer_file(frame.columns):
                return None
            rows = [_from_cells(row) for row in frame.iter_rows(named=True)]
        return [_read(row, row_name(number)) for number, row in enumerate(rows)]


def _from_cells(row: Mapping[str, str]) -> dict[str, Any]:
    cells = {name: re.sub(f"^'('*{_FORMULA})", r"\1", cell) for name, cell in row.items()}
    try:
        metrics = json.loads(cells["metrics"])
    except (ValueError, RecursionError):
        metrics = None
    return {**cells, "labels": cells["labels"].split("; ") if cells["labels"] else [], "metrics": metrics}


def _read(row: Mapping[str, Any], place: int | str) -> AnswerRow:
    try:
        rating, seconds, created = row["rating"], row["seconds"], row["created"]
        rating = None if rating in (None, "") else float(rating)
        if rating is not None and rating != int(rating):
            raise ValueError
        answer = Answer(tuple(map(str, row["labels"])), None if rating is None else int(rating), str(row["text"] or ""))
        taken = 0.0 if seconds in (None, "") else float(seconds)
        moment = datetime.fromisoformat(created) if created else None
        if not is_finite_number(taken) or (moment is not None and moment.tzinfo is None):
            raise ValueError
        expected = tuple(label for label in str(row["expected"] or "").split("; ") if label)
        named = {name: None if row[name] in (None, "") else str(row[name]) for name in ("image", "caption")}
        return AnswerRow(
            str(row["item"]), str(row["kind"]), str(row["judge"] or ""), str(row["source"]), answer, taken, moment,
            named["image"], named["caption"], str(row["shown_text"] or ""), expected, dict(row["metrics"]),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise InputError(
            "not a judgement as crosslens judging export writes it", row=place, fix="export the project again"
        ) from error


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
