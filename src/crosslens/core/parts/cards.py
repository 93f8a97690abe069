"""Cards of pictures and of queries, and texts whose words are marked or changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from crosslens.core.parts.tables import Figure


@dataclass(frozen=True)
class PictureBox:
    """A frame around something in a picture: left, top, width and height in the picture's pixels.

    A ``number`` is shared with the box that it is matched with in another picture. Boxes of one ``colour``, counted
    from 0, belong together; None is grey. ``about`` is said under the pointer.
    """

    place: tuple[float, float, float, float]
    name: str
    about: str = ""
    number: int | None = None
    colour: int | None = None


@dataclass(frozen=True)
class PictureCard:
    """A picture or none, with its heading and lines of text, ``details`` on pages alone; ``mark`` may say nothing.

    ``boxes`` are in pixels of a picture of this ``size`` (default: that of the file).
    """

    title: str
    lines: tuple[str, ...] = ()
    image: str | None = None
    mark: Literal["", "right", "wrong"] = ""
    details: tuple[str, ...] = ()
    boxes: tuple[PictureBox, ...] = ()
    size: tuple[float, float] | None = None

    @property
    def marked_title(self) -> str:
        return {"right": "✓ ", "wrong": "✗ ", "": ""}[self.mark] + self.title


@dataclass(frozen=True)
class Cards:
    """Cards under one heading; a terminal shows the first ``most`` of them. ``key`` says what is drawn on pages."""

    title: str
    cards: tuple[PictureCard, ...]
    pictures: Mapping[str, str] = field(default_factory=dict)
    """Files of the images that cards name."""
    most: int | None = None
    large: bool = False
    key: str = ""


@dataclass(frozen=True)
class MarkedText:
    """A quoted text, some of whose words have something: stretches of text, a mark, and why it has it.

    ``after`` follows the quote; ``key`` says on pages what the marks mean.
    """

    title: str
    spans: tuple[tuple[str, Literal["", "yes", "no", "unknown"], str], ...]
    after: str = ""
    key: str = ""

    @property
    def text(self) -> str:
        """As people read it without marks."""
        quoted = f"“{''.join(text for text, _, _ in self.spans)}”"
        return f"{self.title}: {quoted} {self.after}".rstrip()


@dataclass(frozen=True)
class TextDiff:
    """A text before and after an edit: stretches from left to right, the same twice where it was left alone.

    ``name`` is whose text it is, ``about`` what happened to it, ``facts`` are details.
    """

    name: str
    spans: tuple[tuple[str, str], ...]
    about: str = ""
    facts: tuple[str, ...] = ()

    @property
    def edited(self) -> bool:
        return any(before != after for before, after in self.spans)


@dataclass(frozen=True)
class Diffs:
    """Edited texts; a terminal shows the first ``most`` of them and ``rest``, pages fold what are more than a few."""

    diffs: tuple[TextDiff, ...]
    title: str = ""
    about: str = ""
    most: int | None = None
    rest: str = ""


@dataclass(frozen=True)
class QueryCard:
    """A query with the pictures that were asked for and shown instead; ``query`` is its id.

    ``asked`` is its text, or empty where pictures ask. ``lines`` say what is wrong, ``facts`` are soft, such as group
    and id. ``values`` has its value of every facet. ``address`` leads to all about it.
    """

    query: str
    asked: str
    pictures: tuple[PictureCard, ...]
    lines: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    address: str = ""


@dataclass(frozen=True)
class FacetValue:
    """A value of a facet, how many queries have it, and their figure; ``address`` is the page that shows those alone.

    One that is ``chosen`` is what the page shows now.
    """

    name: str
    count: int
    figure: Figure | None = None
    address: str = ""
    chosen: bool = False


@dataclass(frozen=True)
class Facet:
    """What queries are told apart by, and its values."""

    name: str
    choices: tuple[FacetValue, ...]
