"""What an annotator can answer: labels with one key each, a rating, a text. A project's owner may change all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from crosslens.core import InputError, UnknownNameError

RESERVED_KEYS = {"u": "undo", "g": "guidelines", "t": "the text"}
"""Keys of the annotating page that no label can have."""
MOST_LABELS = 30
MOST_CHARACTERS = 4_000
_ALTERNATIVE, _GOOD, _BAD = "successful_alternative", "good", "bad"


@dataclass(frozen=True)
class AnswerLabel:
    """A label that an annotator can choose."""

    name: str
    title: str
    key: str
    help: str = ""
    alone: bool = False
    """True where no other label may be chosen beside it."""
    grade: float | None = None
    """How relevant an item with this label is, where the label says so."""


@dataclass(frozen=True)
class RatingScale:
    """A whole number between ``low`` and ``high``."""

    low: int
    high: int
    title: str


@dataclass(frozen=True)
class TextField:
    """A text beside the labels, such as a corrected caption."""

    title: str
    needed_for: tuple[str, ...] = ()
    """Labels that require the text."""


@dataclass(frozen=True)
class AnswerForm:
    """The question of a project and everything that an answer may consist of."""

    question: str
    labels: tuple[AnswerLabel, ...]
    several: bool = False
    """True where more than one label may be chosen."""
    rating: RatingScale | None = None
    text: TextField | None = None

    def label(self, name: str) -> AnswerLabel | None:
        """The label of that name."""
        return next((label for label in self.labels if label.name == name), None)

    @property
    def one_key(self) -> bool:
        """Whether a label alone is a whole answer, so that its key can submit it."""
        return not self.several and self.rating is None

    def as_dict(self) -> dict[str, Any]:
        """The form as it is stored."""
        return asdict(self)


def label_grades(form: AnswerForm, given: Mapping[str, float] | None = None) -> dict[str, float]:
    """How relevant an item with each label is: as given, as the form says, or by what its labels usually mean.

    A successful alternative is relevant and any cause of a failure is not; good is relevant, bad is not. A label
    without a grade (unsure) is no judgement.
    """
    names = [label.name for label in form.labels]
    if given:
        for name in given:
            if name not in names:
                raise UnknownNameError("label", name, names)
        return dict(given)
    stated = {label.name: label.grade for label in form.labels if label.grade is not None}
    if stated:
        return stated
    if _ALTERNATIVE in names:
        return {name: float(name == _ALTERNATIVE) for name in names}
    return {name: grade for name, grade in ((_GOOD, 1.0), (_BAD, 0.0)) if name in names}


def read_form(stored: Mapping[str, Any], file: str | None = None) -> AnswerForm:
    """A form from JSON or TOML, checked."""
    known = {"question", "labels", "several", "rating", "text"}
    if unknown := sorted(set(stored) - known):
        raise InputError(f"unknown entry {unknown[0]!r}", file=file, expected="one of " + ", ".join(sorted(known)))
    labels = stored.get("labels")
    if not isinstance(labels, Sequence) or isinstance(labels, str) or not 2 <= len(labels) <= MOST_LABELS:
        raise InputError("'labels' is not a list of labels", file=file, expected=f"2 to {MOST_LABELS} labels")
    form = AnswerForm(
        question=_text(stored, "question", file),
        labels=tuple(_label(entry, number, file) for number, entry in enumerate(labels, start=1)),
        several=_flag(stored, "several", file),
        rating=_rating(stored.get("rating"), file),
        text=_text_field(stored.get("text"), file),
    )
    _check_distinct(form, file)
    return form


def _label(entry: Any, number: int, file: str | None) -> AnswerLabel:
    row = f"label {number}"
    if not isinstance(entry, Mapping):
        raise InputError("a label is not a table", file=file, row=row, expected="name, title and key")
    known = {"name", "title", "key", "help", "alone", "grade"}
    if unknown := sorted(set(entry) - known):
        raise InputError(f"unknown entry {unknown[0]!r}", file=file, row=row, expected=", ".join(sorted(known)))
    name = _text(entry, "name", file, row)
    grade = entry.get("grade")
    if grade is not None and (isinstance(grade, bool) or not isinstance(grade, int | float) or not 0 <= grade <= 1e6):
        raise InputError(f"grade {grade!r} is not a number from 0", file=file, row=row)
    key = str(entry.get("key", number if number < 10 else "")).lower()
    if len(key) != 1 or not key.isalnum():
        raise InputError(f"key {key!r} is not a letter or digit", file=file, row=row, fix="give the label a key")
    if key in RESERVED_KEYS:
        raise InputError(f"key {key!r} is already used for {RESERVED_KEYS[key]}", file=file, row=row)
    title = entry.get("title", name)
    return AnswerLabel(
        name,
        _text({"title": title}, "title", file, row),
        key,
        str(entry.get("help", "")),
        _flag(entry, "alone", file, row),
        None if grade is None else float(grade),
    )


def _rating(entry: Any, file: str | None) -> RatingScale | None:
    if entry is None:
        return None
    if not isinstance(entry, Mapping) or not {"low", "high"} <= set(entry) <= {"low", "high", "title"}:
        raise InputError("'rating' is not a table of low, high and title", file=file)
    low, high = entry["low"], entry["high"]
    if not all(isinstance(end, int) and not isinstance(end, bool) for end in (low, high)) or not 0 <= low < high <= 100:
        raise InputError(
            f"rating from {low!r} to {high!r}", file=file, expected="two whole numbers, 0 ≤ low < high ≤ 100"
        )
    return RatingScale(low, high, str(entry.get("title", "Rating")))


def _text_field(entry: Any, file: str | None) -> TextField | None:
    if entry is None:
        return None
    if not isinstance(entry, Mapping) or not set(entry) <= {"title", "needed_for"}:
        raise InputError("'text' is not a table of title and needed_for", file=file)
    needed = entry.get("needed_for", ())
    if isinstance(needed, str) or not isinstance(needed, Sequence):
        raise InputError("'needed_for' is not a list of labels", file=file)
    return TextField(_text(entry, "title", file), tuple(map(str, needed)))


def _check_distinct(form: AnswerForm, file: str | None) -> None:
    for what, values in (
        ("name", [label.name for label in form.labels]),
        ("key", [label.key for label in form.labels]),
    ):
        if repeated := sorted({value for value in values if values.count(value) > 1}):
            raise InputError(f"two labels have the {what} {repeated[0]!r}", file=file)
    for name in form.text.needed_for if form.text else ():
        if form.label(name) is None:
            raise InputError(f"'needed_for' names the label {name!r}, which does not exist", file=file)


def _text(entry: Mapping[str, Any], name: str, file: str | None, row: str | None = None) -> str:
    value = entry.get(name)
    if not isinstance(value, str) or not value.strip() or len(value) > MOST_CHARACTERS:
        raise InputError(f"'{name}' is missing or not a text", file=file, row=row)
    return value.strip()


def _flag(entry: Mapping[str, Any], name: str, file: str | None, row: str | None = None) -> bool:
    value = entry.get(name, False)
    if not isinstance(value, bool):
        raise InputError(f"'{name}' is not true or false", file=file, row=row)
    return value
