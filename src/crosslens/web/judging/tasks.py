"""What is judged, what an annotator can answer (labels with one key each, a rating, a text), and in which order.

A project's owner may change the labels, the rating and the text; ``tasks.toml`` holds those that a project starts with.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from crosslens.core import CrosslensError, UnknownNameError, UsageError
from crosslens.storage import SettingsFile

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

    def __post_init__(self) -> None:
        _require_text("name", self.name)
        _require_text("title", self.title)
        if self.grade is not None and not 0 <= self.grade <= 1e6:
            raise UsageError(f"grade {self.grade:g} is not a number from 0 to 1,000,000", option="grade")
        if len(self.key) != 1 or not self.key.isalnum():
            raise UsageError(f"key {self.key!r} is not a letter or digit", fix="give the label a key", option="key")
        if self.key in RESERVED_KEYS:
            problem = f"key {self.key!r} is already used for {RESERVED_KEYS[self.key]}"
            raise UsageError(problem, fix="use another key", option="key")


@dataclass(frozen=True)
class RatingScale:
    """A whole number between ``low`` and ``high``."""

    low: int
    high: int
    title: str = "Rating"

    def __post_init__(self) -> None:
        if not 0 <= self.low < self.high <= 100:
            fix = "use two whole numbers, 0 ≤ low < high ≤ 100"
            raise UsageError(f"rating from {self.low} to {self.high}", fix=fix, option="high")


@dataclass(frozen=True)
class TextField:
    """A text beside the labels, such as a corrected caption."""

    title: str
    needed_for: tuple[str, ...] = ()
    """Labels that require the text."""

    def __post_init__(self) -> None:
        _require_text("title", self.title)


@dataclass(frozen=True)
class AnswerForm:
    """The question of a project and everything that an answer may consist of."""

    question: str
    labels: tuple[AnswerLabel, ...]
    several: bool = False
    """True where more than one label may be chosen."""
    rating: RatingScale | None = None
    text: TextField | None = None

    def __post_init__(self) -> None:
        _require_text("question", self.question)
        _require_count(self.labels)
        names = [label.name for label in self.labels]
        for what, values in (("name", names), ("key", [label.key for label in self.labels])):
            if repeated := sorted(value for value, count in Counter(values).items() if count > 1):
                raise UsageError(f"two labels have the {what} {repeated[0]!r}", fix="change one", option="labels")
        for name in self.text.needed_for if self.text else ():
            if name not in names:
                problem = f"needed_for names the label {name!r}, which does not exist"
                raise UsageError(problem, fix=f"use one of: {', '.join(names)}", option="text")

    def label(self, name: str) -> AnswerLabel | None:
        return next((label for label in self.labels if label.name == name), None)

    @property
    def one_key(self) -> bool:
        """Whether a label alone is a whole answer, so that its key can submit it."""
        return not self.several and self.rating is None


def label_grades(form: AnswerForm, grades: Mapping[str, float] | None = None) -> dict[str, float]:
    """How relevant an item with each label is: as given, as the form says, or by what its labels usually mean.

    A successful alternative is relevant and any cause of a failure is not; good is relevant, bad is not. A label
    without a grade (unsure) is no judgement.
    """
    names = [label.name for label in form.labels]
    if grades:
        for name in grades:
            if name not in names:
                raise UnknownNameError("label", name, names)
        return dict(grades)
    stated = {label.name: label.grade for label in form.labels if label.grade is not None}
    if stated:
        return stated
    if _ALTERNATIVE in names:
        return {name: float(name == _ALTERNATIVE) for name in names}
    return {name: grade for name, grade in ((_GOOD, 1.0), (_BAD, 0.0)) if name in names}


def _require_text(key: str, value: str) -> None:
    if not value.strip() or len(value) > MOST_CHARACTERS:
        raise UsageError(f"{key} has {len(value):,} characters", fix=f"write 1 to {MOST_CHARACTERS:,}", option=key)


def _require_count(labels: Sequence[object]) -> None:
    if not 2 <= len(labels) <= MOST_LABELS:
        raise UsageError(f"labels has {len(labels):,} entries", fix=f"write 2 to {MOST_LABELS}", option="labels")


def read_form(stored: Mapping[str, Any] | SettingsFile) -> AnswerForm:
    """A form from JSON or TOML, checked."""
    page = stored if isinstance(stored, SettingsFile) else SettingsFile(stored)
    # JSON writes null for what is left out.
    content = {key: value for key, value in page.content.items() if value is not None}
    page.refuse_unknown((), content, [entry.name for entry in fields(AnswerForm)])
    entries = content.get("labels")
    if not isinstance(entries, list | tuple) or not all(isinstance(entry, Mapping) for entry in entries):
        raise page.fail(("labels",), "labels is not a list of labels", f"2 to {MOST_LABELS} tables, each with a name")
    labels = []
    try:
        _require_count(entries)  # before each of them is looked at
        for number, entry in enumerate(entries):
            label = {key: value.strip() if isinstance(value, str) else value for key, value in entry.items()}
            label = {"title": label.get("name"), **label}
            label["key"] = str(label.get("key", number + 1 if number < 9 else "")).lower()
            labels.append(page.options(AnswerLabel, ("labels", number), label))
        question = page.value(("question",), content.get("question", ""), str).strip()
        several = page.value(("several",), content.get("several", False), bool)
        rating = page.options(RatingScale, "rating") if "rating" in content else None
        text = page.options(TextField, "text") if "text" in content else None
        return AnswerForm(question, tuple(labels), several, rating, text)
    except UsageError as error:
        raise page.fail((str(error.option),), error.problem, fix=error.fix) from error


@dataclass(frozen=True)
class TaskKind:
    """A task with the answers and guidelines that a project starts with."""

    name: str
    form: AnswerForm
    guidelines: str


TASKS = {
    name: TaskKind(name, read_form(task["form"]), task["guidelines"])
    for name, task in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")).items()
}
PAIRS = "pairs"
"""The task whose results say of how many pairs people think that they fit."""


def task_kind(name: str) -> TaskKind:
    """The kind of task with that name."""
    if name not in TASKS:
        raise UnknownNameError("task", name, TASKS)
    return TASKS[name]


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
    names = set(answer.labels)
    for name in answer.labels:
        if form.label(name) is None:
            raise InvalidChoice(f"{name!r} is not a label of this project", code="unknown-label", subject=name)
    if not names:
        raise InvalidChoice("no label was chosen", fix="choose a label", code="no-label")
    if len(names) > 1 and not form.several:
        raise InvalidChoice("more than one label was chosen", fix="choose one label", code="several-labels")
    alone = [label for label in form.labels if label.alone and label.name in names]
    if alone and len(names) > 1:
        problem = f"“{alone[0].title}” cannot be combined with another label"
        raise InvalidChoice(problem, fix="remove one of them", code="not-alone")
    text = answer.text.strip()
    if len(text) > MOST_CHARACTERS:
        raise InvalidChoice(f"the text has more than {MOST_CHARACTERS} characters", code="long-text")
    if "\0" in text:
        raise InvalidChoice("the text contains a null character", code="null-character")
    if text and form.text is None:
        raise InvalidChoice("this project takes no text", code="no-text")
    if form.text and not text and names & set(form.text.needed_for):
        raise InvalidChoice(f"“{form.text.title}” is empty", fix="write a text", code="missing-text")
    if form.rating is None:
        if answer.rating is not None:
            raise InvalidChoice("this project takes no rating", code="no-rating")
    elif answer.rating is None or not form.rating.low <= answer.rating <= form.rating.high:
        fix = f"choose a number from {form.rating.low} to {form.rating.high}"
        raise InvalidChoice(f"“{form.rating.title}” is missing or out of range", fix=fix, code="rating")
    return Answer(tuple(label.name for label in form.labels if label.name in names), answer.rating, text)


def is_expected(expected: Mapping[str, Any] | None, answer: Answer) -> bool | None:
    """Whether the answer has exactly the known labels; None where none are known."""
    if not expected or "labels" not in expected:
        return None
    return set(expected["labels"]) == set(answer.labels)


KINDS = ("real", "practice", "check", "distractor")
SHARED_KINDS = ("real", "distractor")
"""Kinds that are given to a fixed number of people; everybody gets the practice items and attention checks."""
EXPORTED_AS = "exported_as"
"""What an item was called in the export that it came from: a name among the facts that annotators do not see."""


@dataclass(frozen=True)
class ShownPicture:
    """A picture of a dataset that the server offers."""

    dataset: str
    image: str
    title: str = ""


@dataclass(frozen=True)
class ShownText:
    """A text, with what it is."""

    text: str
    title: str = ""


@dataclass(frozen=True)
class ItemContent:
    """Pictures and texts of an item; ``about`` holds ids (run, query, item …) that annotators do not see."""

    pictures: tuple[ShownPicture, ...] = ()
    texts: tuple[ShownText, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class NewItem:
    """An item to add to a project; ``expected`` holds the known answer (``labels``, ``why``) where there is one."""

    content: ItemContent
    kind: str = "real"
    expected: Mapping[str, Any] | None = None


def picture_key(dataset: str, image: str) -> str:
    """By what the database finds the items that show a picture."""
    return hashlib.sha256(f"{dataset}\0{image}".encode(errors="surrogatepass")).hexdigest()


def picture_keys(stored: Mapping[str, Any]) -> list[str]:
    """The keys of the pictures in stored content."""
    pictures = [(picture["dataset"], picture["image"]) for picture in stored.get("pictures", ())]
    return [picture_key(*picture) for picture in dict.fromkeys(pictures)]


WINDOW = 16
"""Among how many vacant items a person's next one is drawn. Small, so that items are completed one after another."""


def sort_key(seed: int, *parts: object) -> bytes:
    """Where something stands in an order drawn from the seed."""
    return hashlib.sha256("/".join(map(str, (seed, *parts))).encode()).digest()


def shuffled_positions(seed: int, first: int, count: int) -> list[int]:
    """Positions ``first``, ``first + 1``, … for ``count`` items in an order drawn from the seed."""
    order = sorted(range(count), key=lambda index: sort_key(seed, "item", first + index))
    positions = [0] * count
    for position, index in enumerate(order):
        positions[index] = first + position
    return positions


def in_order(seed: int, account: int, positions: Sequence[int]) -> list[int]:
    """The positions in the order in which an account sees them."""
    return sorted(positions, key=lambda position: sort_key(seed, "account", account, position))


def checks_due(seed: int, account: int, shared: int, every: int) -> int:
    """How many attention checks an account should have had after ``shared`` items.

    One within each ``every`` items, at a point drawn for this account, so that nobody can count on its position.
    """
    if every <= 0:
        return 0
    complete, rest = divmod(shared, every)
    point = int.from_bytes(sort_key(seed, "check", account, complete)[:4], "big") % every
    return complete + (rest > point)
