"""What an annotator can answer: labels with one key each, a rating, a text. A project's owner may change all of it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from crosslens.core import CrosslensError, InputError, UnknownNameError

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
        return next((label for label in self.labels if label.name == name), None)

    @property
    def one_key(self) -> bool:
        """Whether a label alone is a whole answer, so that its key can submit it."""
        return not self.several and self.rating is None

    def as_dict(self) -> dict[str, Any]:
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


@dataclass(frozen=True)
class TaskKind:
    """A task with the answers and guidelines that a project starts with."""

    name: str
    title: str
    form: AnswerForm
    guidelines: str


FAILURES = TaskKind(
    "failures",
    "Causes of retrieval failures",
    AnswerForm(
        question="What does the retrieved picture get wrong about the query?",
        labels=(
            AnswerLabel("object_class", "Object class", "1", "Another kind of object than the one in the query."),
            AnswerLabel("colour", "Colour", "2", "An object has another colour."),
            AnswerLabel("count", "Count", "3", "More or fewer objects than the query says."),
            AnswerLabel("action", "Action", "4", "Somebody or something does something else."),
            AnswerLabel("size", "Size", "5", "An object is larger or smaller than the query says."),
            AnswerLabel("details", "Details", "6", "Place, clothing, material, background or other details differ."),
            AnswerLabel(
                "successful_alternative",
                "Successful alternative",
                "7",
                "Nothing is wrong: the retrieved picture fits the query as well.",
                alone=True,
            ),
        ),
        several=True,
        rating=RatingScale(1, 10, "How well does the retrieved picture fit the query?"),
    ),
    """Read the query first, then look at the retrieved picture.

Choose every cause that applies: a picture can show the wrong object in the wrong colour. Judge only what the query \
says; what it does not mention cannot be wrong. Where the retrieved picture fits the query, choose “Successful \
alternative”, even if another picture was expected. If a true image is shown, it is the picture that the query \
belongs to: compare with it, and judge the retrieved one.

Then rate how well the retrieved picture fits the query, from 1 (not at all) to 10 (perfectly). Where several causes \
apply, the rating is usually lower.""",
)

VALIDITY = TaskKind(
    "validity",
    "Caption validity",
    AnswerForm(
        question="Is this a valid caption of the picture?",
        labels=(
            AnswerLabel("good", "Good", "1", "The caption can be said of the picture, also in a figurative sense."),
            AnswerLabel("bad", "Bad", "2", "The caption does not belong to the picture, or contains a mistake."),
            AnswerLabel("unsure", "Unsure", "3", "You cannot tell, for example because you do not know a name."),
        ),
        text=TextField("Corrected caption"),
    ),
    """A good caption need not describe what is visible word by word. It may tell what the picture is about, what it \
means or how it feels, as long as somebody could reasonably write it below this picture.

Choose “Bad” where the caption belongs to another picture, names something wrong, or cannot be read. If a small change \
makes it right, write the corrected caption; otherwise leave the field empty.

Choose “Unsure” rather than guess.""",
)

PAIRS = TaskKind(
    "pairs",
    "Pair survey",
    AnswerForm(
        question="Do picture and text go together?",
        labels=(
            AnswerLabel("good", "Good pair", "1", "The text can be said of the picture."),
            AnswerLabel("bad", "Bad pair", "2", "The text has nothing to do with the picture."),
        ),
    ),
    """Each page shows a picture and a text. Some pairs are good, some are bad, in no particular order.

A pair is good if somebody could reasonably use the text for this picture, literally or figuratively. It is bad if the \
text has nothing to do with the picture. Answer by your first impression; there is no need to look anything up.""",
)

RELEVANCE = TaskKind(
    "relevance",
    "Graded relevance",
    AnswerForm(
        question="How relevant is the result for the query?",
        labels=(
            AnswerLabel("0", "Not relevant", "0", "Shows nothing of what the query asks for.", grade=0.0),
            AnswerLabel("1", "Somewhat relevant", "1", "Shares the topic, but not what matters.", grade=1.0),
            AnswerLabel("2", "Mostly relevant", "2", "Right in what matters, wrong or missing in details.", grade=2.0),
            AnswerLabel("3", "Fully relevant", "3", "Everything in the query holds.", grade=3.0),
        ),
    ),
    """Imagine that you searched for the query and got this result.

Give 3 if everything in the query holds, 2 if what matters is right and only details are wrong or missing, 1 if the \
result only shares the topic, 0 if it has nothing to do with the query. Judge each result by itself, not against the \
one before.""",
)

TASKS = {kind.name: kind for kind in (FAILURES, VALIDITY, PAIRS, RELEVANCE)}


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
    chosen = set(answer.labels)
    for name in answer.labels:
        if form.label(name) is None:
            raise InvalidChoice(f"{name!r} is not a label of this project", code="unknown-label", subject=name)
    if not chosen:
        raise InvalidChoice("no label was chosen", fix="choose a label", code="no-label")
    if len(chosen) > 1 and not form.several:
        raise InvalidChoice("more than one label was chosen", fix="choose one label", code="several-labels")
    alone = [label for label in form.labels if label.alone and label.name in chosen]
    if alone and len(chosen) > 1:
        problem = f"“{alone[0].title}” cannot be combined with another label"
        raise InvalidChoice(problem, fix="remove one of them", code="not-alone")
    text = answer.text.strip()
    if len(text) > MOST_CHARACTERS:
        raise InvalidChoice(f"the text has more than {MOST_CHARACTERS} characters", code="long-text")
    if "\0" in text:
        raise InvalidChoice("the text contains a null character", code="null-character")
    if text and form.text is None:
        raise InvalidChoice("this project takes no text", code="no-text")
    if form.text and not text and chosen & set(form.text.needed_for):
        raise InvalidChoice(f"“{form.text.title}” is empty", fix="write a text", code="missing-text")
    if form.rating is None:
        if answer.rating is not None:
            raise InvalidChoice("this project takes no rating", code="no-rating")
    elif answer.rating is None or not form.rating.low <= answer.rating <= form.rating.high:
        fix = f"choose a number from {form.rating.low} to {form.rating.high}"
        raise InvalidChoice(f"“{form.rating.title}” is missing or out of range", fix=fix, code="rating")
    return Answer(tuple(label.name for label in form.labels if label.name in chosen), answer.rating, text)


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

    def as_dict(self) -> dict[str, Any]:
        return {
            "pictures": [asdict(picture) for picture in self.pictures],
            "texts": [asdict(text) for text in self.texts],
            "about": dict(self.about),
        }


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
    shown = [(picture["dataset"], picture["image"]) for picture in stored.get("pictures", ())]
    return [picture_key(*picture) for picture in dict.fromkeys(shown)]


def read_content(stored: Mapping[str, Any]) -> ItemContent:
    """Stored content."""
    return ItemContent(
        tuple(ShownPicture(**picture) for picture in stored.get("pictures", ())),
        tuple(ShownText(**text) for text in stored.get("texts", ())),
        dict(stored.get("about", {})),
    )


def check_items(items: Sequence[NewItem], labels: Sequence[str]) -> None:
    """Refuse items that could not be shown or compared."""
    for row, item in enumerate(items, start=1):
        if item.kind not in KINDS:
            raise InputError(f"unknown kind of item {item.kind!r}", row=row, expected="one of " + ", ".join(KINDS))
        if not item.content.pictures and not item.content.texts:
            raise InputError("an item has neither picture nor text", row=row)
        known = (item.expected or {}).get("labels")
        if item.kind in ("practice", "check") and not known:
            raise InputError(f"a {item.kind} item has no known answer", row=row, fix="give its expected labels")
        if unknown := sorted(set(known or ()) - set(labels)):
            raise InputError(f"expected label {unknown[0]!r} is not a label of the project", row=row)


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
