"""Judgements as tasks of Label Studio, and the labelling interface that shows them.

Label Studio takes a task only if its data has every variable of the interface, and a result only if it names a control
of the interface and what that control is about. So both are made from the same :class:`_Shown`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

import polars as pl

from crosslens.web.judging.exchange.answer_files import ExportedItem
from crosslens.web.judging.results.table import MODEL
from crosslens.web.judging.tasks.answers import Answer
from crosslens.web.judging.tasks.form import AnswerForm

CHOICES, RATING, CORRECTION = "labels", "rating", "correction"
"""Names of the controls."""


@dataclass(frozen=True)
class _Shown:
    """How many pictures and texts the tasks show."""

    pictures: int
    texts: int

    @staticmethod
    def of(items: Sequence[ExportedItem]) -> _Shown:
        contents = [item.content for item in items]
        return _Shown(
            max((len(content.pictures) for content in contents), default=0),
            max((len(content.texts) for content in contents), default=0),
        )

    @property
    def images(self) -> list[str]:
        """The variables that hold pictures: image, image1, …"""
        return [f"image{number or ''}" for number in range(self.pictures)]

    @property
    def passages(self) -> list[str]:
        """The variables that hold texts: text, text1, …"""
        return [f"text{number or ''}" for number in range(self.texts)]

    @property
    def judged(self) -> str:
        """What the controls are about."""
        return [*self.images, *self.passages, "text"][0]


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
    shown = _Shown.of(items)
    return [_task(item, answers.get(item.id, []), adjudicated.get(item.id), pictures, shown) for item in items]


def _task(
    item: ExportedItem, answers: Sequence[Mapping[str, Any]], final: Answer | None, pictures: str, shown: _Shown
) -> dict[str, Any]:
    people = [row for row in answers if row["source"] != MODEL]
    annotations = [
        {
            "result": _result(row["labels"], row["rating"], row["text"], shown.judged, f"{item.id}-{number}"),
            "lead_time": row["seconds"],
            "ground_truth": False,
        }
        for number, row in enumerate(people)
    ]
    judges = [row["account"] for row in people]
    if final is not None:
        result = _result(final.labels, final.rating, final.text, shown.judged, f"{item.id}-adjudicated")
        annotations.append({"result": result, "lead_time": None, "ground_truth": True})
        judges.append("adjudicated")
    models = [row for row in answers if row["source"] == MODEL]
    predictions = [
        {
            "model_version": row["account"],
            "result": _result(row["labels"], row["rating"], row["text"], shown.judged, f"{item.id}-model-{number}"),
        }
        for number, row in enumerate(models)
    ]
    data = _data(item, pictures, shown) | {"judges": judges}
    return {"data": data, "annotations": annotations, "predictions": predictions}


def _data(item: ExportedItem, pictures: str, shown: _Shown) -> dict[str, Any]:
    """The variables of the interface, all of them, and what else is known of the item."""
    content = item.content
    addresses = [f"{pictures}{quote(picture.dataset)}/{quote(picture.image)}" for picture in content.pictures]
    texts = [text.text for text in content.texts]
    data: dict[str, Any] = dict.fromkeys((*shown.images, *shown.passages), "")
    data |= dict(zip(shown.images, addresses, strict=False)) | dict(zip(shown.passages, texts, strict=False))
    known = {name: value for name, value in content.about.items() if name in ("run", "query", "caption")}
    return data | {"item": item.id, "kind": item.kind} | known


def _result(
    labels: Sequence[str], rating: float | None, text: str | None, judged: str, name: str
) -> list[dict[str, Any]]:
    values: list[tuple[str, str, dict[str, Any]]] = [(CHOICES, "choices", {"choices": list(labels)})]
    if rating is not None:
        values.append((RATING, "rating", {"rating": int(rating)}))
    if text:
        values.append((CORRECTION, "textarea", {"text": [text]}))
    return [
        {"id": f"{name}-{control}", "from_name": control, "to_name": judged, "type": kind, "value": value}
        for control, kind, value in values
    ]


def label_studio_config(form: AnswerForm, items: Sequence[ExportedItem]) -> str:
    """The labelling interface that shows the tasks of these items in Label Studio."""
    shown = _Shown.of(items)
    parts = [f'  <Image name="{name}" value="${name}"/>' for name in shown.images]
    parts += [f'  <Text name="{name}" value="${name}"/>' for name in shown.passages]
    parts.append(f"  <Header value={quoteattr(form.question)}/>")
    choices = "\n".join(f"    <Choice value={quoteattr(label.name)}/>" for label in form.labels)
    several = "multiple" if form.several else "single"
    parts.append(f'  <Choices name="{CHOICES}" toName="{shown.judged}" choice="{several}">\n{choices}\n  </Choices>')
    if form.rating is not None:
        parts.append(f'  <Rating name="{RATING}" toName="{shown.judged}" maxRating="{form.rating.high}"/>')
    if form.text is not None:
        parts.append(f'  <TextArea name="{CORRECTION}" toName="{shown.judged}"/>')
    return "<View>\n" + "\n".join(parts) + "\n</View>\n"
