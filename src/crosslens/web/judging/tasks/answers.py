"""An answer: labels, a rating, a text; checked against the form, and compared with a known answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crosslens.core import CrosslensError
from crosslens.web.judging.tasks.form import MOST_CHARACTERS, AnswerForm


class InvalidChoice(CrosslensError):
    """An answer that the form does not allow."""


@dataclass(frozen=True)
class Answer:
    """What somebody answered about one item."""

    labels: tuple[str, ...]
    rating: int | None = None
    text: str = ""


def check_answer(form: AnswerForm, answer: Answer) -> Answer:
    """The answer with its labels in the order of the form and its text stripped; refused where the form forbids it."""
    chosen = set(answer.labels)
    for name in answer.labels:
        if form.label(name) is None:
            raise InvalidChoice(f"{name!r} is not a label of this project", code="unknown-label", subject=name)
    if not chosen:
        raise InvalidChoice("no label was chosen", fix="choose a label", code="no-label")
    _check_combination(form, chosen)
    text = answer.text.strip()
    _check_text(form, chosen, text)
    _check_rating(form, answer.rating)
    return Answer(tuple(label.name for label in form.labels if label.name in chosen), answer.rating, text)


def is_expected(expected: Mapping[str, Any] | None, answer: Answer) -> bool | None:
    """Whether the answer has exactly the known labels; None where none are known."""
    if not expected or "labels" not in expected:
        return None
    return set(expected["labels"]) == set(answer.labels)


def _check_combination(form: AnswerForm, chosen: set[str]) -> None:
    if len(chosen) > 1 and not form.several:
        raise InvalidChoice("more than one label was chosen", fix="choose one label", code="several-labels")
    alone = [label for label in form.labels if label.alone and label.name in chosen]
    if alone and len(chosen) > 1:
        raise InvalidChoice(
            f"“{alone[0].title}” cannot be combined with another label", fix="remove one of them", code="not-alone"
        )


def _check_text(form: AnswerForm, chosen: set[str], text: str) -> None:
    if len(text) > MOST_CHARACTERS:
        raise InvalidChoice(f"the text has more than {MOST_CHARACTERS} characters", code="long-text")
    if "\0" in text:
        raise InvalidChoice("the text contains a null character", code="null-character")
    if text and form.text is None:
        raise InvalidChoice("this project takes no text", code="no-text")
    if form.text and not text and chosen & set(form.text.needed_for):
        raise InvalidChoice(f"“{form.text.title}” is empty", fix="write a text", code="missing-text")


def _check_rating(form: AnswerForm, rating: int | None) -> None:
    if form.rating is None:
        if rating is not None:
            raise InvalidChoice("this project takes no rating", code="no-rating")
    elif rating is None or not form.rating.low <= rating <= form.rating.high:
        raise InvalidChoice(
            f"“{form.rating.title}” is missing or out of range",
            fix=f"choose a number from {form.rating.low} to {form.rating.high}",
            code="rating",
        )
