"""Judgements as files: a row per judgement (.csv, .jsonl), tasks for Label Studio (.json), judged pairs (.parquet)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from crosslens.web.judging.results.table import MODEL
from crosslens.web.judging.tasks.answers import Answer
from crosslens.web.judging.tasks.content import ItemContent

_FORMULA = r"[=+\-@\t\r]"
"""How a cell begins that a spreadsheet program may run as a formula; an apostrophe in front makes it a text."""
CHOICES, RATING, TEXT = "labels", "rating", "text"
"""Names of the controls in the labelling interface of Label Studio."""


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


def label_studio_tasks(
    table: pl.DataFrame, items: Sequence[ExportedItem], adjudicated: Mapping[str, Answer], pictures: str = ""
) -> list[dict[str, Any]]:
    """Tasks with annotations (of people) and predictions (of models), as Label Studio imports them.

    ``pictures`` is what stands before ``dataset/image`` in the address of a picture. Annotations name nobody as author,
    because Label Studio refuses people it does not know: their names are in the task's data, in the same order. The
    adjudicated answer is an annotation that is marked as ground truth.
    """
    answers: dict[str, list[dict[str, Any]]] = {}
    for row in table.iter_rows(named=True):
        answers.setdefault(row["item"], []).append(row)
    return [_task(item, answers.get(item.id, []), adjudicated.get(item.id), pictures) for item in items]


def _task(
    item: ExportedItem, answers: Sequence[Mapping[str, Any]], final: Answer | None, pictures: str
) -> dict[str, Any]:
    people = [row for row in answers if row["source"] != MODEL]
    shown = item.content.pictures
    data: dict[str, Any] = {
        f"image{number or ''}": f"{pictures}{picture.dataset}/{picture.image}" for number, picture in enumerate(shown)
    }
    data |= {f"text{number or ''}": text.text for number, text in enumerate(item.content.texts)}
    data |= {"item": item.id, "kind": item.kind, "judges": [row["account"] for row in people]}
    data |= {name: value for name, value in item.content.about.items() if name in ("run", "query", "caption")}
    target = "image" if shown else "text"
    annotations = [
        {
            "result": _result(row["labels"], row["rating"], row["text"], target),
            "lead_time": row["seconds"],
            "ground_truth": False,
        }
        for row in people
    ]
    if final is not None:
        result = _result(final.labels, final.rating, final.text, target)
        annotations.append({"result": result, "lead_time": None, "ground_truth": True})
        data["judges"] = [*data["judges"], "adjudicated"]
    predictions = [
        {"model_version": row["account"], "result": _result(row["labels"], row["rating"], row["text"], target)}
        for row in answers
        if row["source"] == MODEL
    ]
    return {"data": data, "annotations": annotations, "predictions": predictions}


def _result(labels: Sequence[str], rating: float | None, text: str | None, target: str) -> list[dict[str, Any]]:
    values: list[tuple[str, str, dict[str, Any]]] = [(CHOICES, "choices", {"choices": list(labels)})]
    if rating is not None:
        values.append((RATING, "rating", {"rating": int(rating)}))
    if text:
        values.append((TEXT, "textarea", {"text": [text]}))
    return [{"from_name": name, "to_name": target, "type": kind, "value": value} for name, kind, value in values]


def label_studio_config(labels: Sequence[str], several: bool, highest: int | None, with_text: bool) -> str:
    """The labelling interface that shows such tasks in Label Studio."""
    from xml.sax.saxutils import quoteattr

    choices = "\n".join(f"    <Choice value={quoteattr(label)}/>" for label in labels)
    parts = [
        '  <Image name="image" value="$image"/>',
        '  <Text name="text_shown" value="$text"/>',
        f'  <Choices name="{CHOICES}" toName="image" choice="{"multiple" if several else "single"}">\n{choices}\n'
        "  </Choices>",
    ]
    if highest is not None:
        parts.append(f'  <Rating name="{RATING}" toName="image" maxRating="{highest}"/>')
    if with_text:
        parts.append(f'  <TextArea name="{TEXT}" toName="image"/>')
    return "<View>\n" + "\n".join(parts) + "\n</View>\n"
