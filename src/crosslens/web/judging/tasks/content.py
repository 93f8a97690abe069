"""What an item shows: pictures of a dataset and texts, and the facts that lead back to where it came from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from crosslens.core import InputError

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
        """The content as it is stored."""
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
