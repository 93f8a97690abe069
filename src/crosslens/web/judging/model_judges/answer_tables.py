"""A model's answers about the pairs of a table, as JSON lines: written as far as they came, and gone on with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crosslens.core import ConflictError, argument, write_text
from crosslens.data import read_records
from crosslens.web.judging.database.tables import MODEL
from crosslens.web.judging.tasks.answers import Answer
from crosslens.web.judging.tasks.content import ItemContent
from crosslens.web.judging.tasks.form import AnswerForm

_PAIR = ("image", "caption", "text")


def pair_row(content: ItemContent) -> dict[str, Any]:
    """What is judged: the image, the caption's id where it has one, and its text."""
    about = content.about
    return {"image": about["image"], "caption": about["caption"], "text": content.texts[0].text}


def answer_row(content: ItemContent, judge: str, answer: Answer) -> dict[str, Any]:
    """The line of an answer."""
    said = {"labels": list(answer.labels), "rating": answer.rating, "correction": answer.text}
    return {**pair_row(content), "judge": judge, "source": MODEL, **said}


def earlier_answers(
    file: Path, contents: Sequence[ItemContent], judge: str, form: AnswerForm
) -> dict[int, Mapping[str, Any]]:
    """Number of the pair → its line in a file that an interrupted command left; another file raises."""
    if not file.exists():
        return {}
    numbers: dict[tuple[Any, ...], int] = {tuple(pair_row(content).values()): n for n, content in enumerate(contents)}
    known: dict[int, Mapping[str, Any]] = {}
    labels = {label.name for label in form.labels}
    for row in read_records(file).rows:
        number = numbers.get(tuple(row.get(name) for name in _PAIR))
        given = row.get("labels")
        if number is None or row.get("judge") != judge or not isinstance(given, list) or not set(given) <= labels:
            raise ConflictError(
                f"{file} holds other answers than those of {judge} about this table",
                fix=f"choose another output, or pass {argument('overwrite', True)}",
            )
        known[number] = row
    return known


def write_answers(file: Path, rows: Mapping[int, Mapping[str, Any]]) -> None:
    """Write the lines in the order of their pairs."""
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for _, row in sorted(rows.items(), key=lambda entry: entry[0]))
    write_text(file, "".join(lines))
