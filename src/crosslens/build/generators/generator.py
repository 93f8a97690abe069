"""What every description generator is: requests in, texts out, and a name that says exactly what wrote them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from crosslens.core.errors import UnknownNameError, UsageError
from crosslens.core.fingerprint import file_fingerprint, fingerprint
from crosslens.core.registry import Registry

Tell = Callable[[str], None]

SHARPER, VAGUER, DESCRIBE, CONFUSABLE = "sharper", "vaguer", "describe", "confusable"
PURPOSES = (SHARPER, VAGUER, DESCRIBE, CONFUSABLE)


@dataclass(frozen=True)
class Annotation:
    """Something that is known to be in a picture.

    ``count``      how many; None for a crowd that nobody counted
    ``colour``     its colour, where there is one
    ``attributes`` what else can be said of it in a word each (its colour is not among them)
    ``box``        left, top, width, height as parts of the picture's sides, from 0 to 1; None where it is not known
    ``category``   the kind of thing it is (``vehicle``), where the data says so; ``place`` for what is all around
    ``text``       what is written on it
    ``action``     what it is doing (``running``)
    """

    name: str
    count: int | None = 1
    colour: str | None = None
    attributes: tuple[str, ...] = ()
    box: tuple[float, float, float, float] | None = None
    category: str | None = None
    text: str | None = None
    action: str | None = None


@dataclass(frozen=True)
class Request:
    """One picture that wants descriptions.

    ``texts``   the descriptions there are now: of this picture, or of the original when a confusable is described
    ``purpose`` ``sharper``: they fit too many other pictures; ``vaguer``: they pick it out too easily;
                ``describe``: there are none yet; ``confusable``: change ``texts`` as little as possible, so that they
                fit this picture and no longer the original
    ``objects`` what is annotated in the picture; ``original_objects`` the same of the original (confusables only)
    ``rivals``  descriptions of the most similar other pictures, which the new ones should not fit
    ``attempt`` how often this was asked before: another attempt should give something else
    """

    image: str
    file: Path | None
    task: str
    texts: tuple[str, ...]
    purpose: str
    wanted: int
    objects: tuple[Annotation, ...]
    rivals: tuple[str, ...]
    original_objects: tuple[Annotation, ...] = ()
    attempt: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.purpose not in PURPOSES:
            raise UnknownNameError("purpose", self.purpose, PURPOSES)
        if self.wanted < 1:
            raise UsageError(f"{self.wanted} descriptions wanted of image {self.image!r}", fix="ask for at least one")

    def key(self, *, picture: bool = True) -> str:
        """A hash of all that a generator sees: of the picture its bytes, not where it lies."""
        shown = self.file if picture and self.file is not None and self.file.is_file() else None
        parts = {name: value for name, value in vars(self).items() if name != "file"}
        for name in ("objects", "original_objects"):
            parts[name] = [vars(one) for one in parts[name]]
        return fingerprint("description request", {**parts, "file": shown and file_fingerprint([shown])})


@runtime_checkable
class Generator(Protocol):
    """Something that writes descriptions.

    ``revision`` changes whenever the same request may be answered otherwise than before. ``sees_pictures`` says whether
    the picture itself is looked at, or only what is said about it.
    """

    name: str
    revision: str
    sees_pictures: bool

    def generate(self, requests: Sequence[Request]) -> list[tuple[str, ...]]:
        """One tuple per request, in their order: as many texts as wanted, or fewer, or none."""


def to_stderr(text: str) -> None:
    """Tell the person at the terminal."""
    print(text, file=sys.stderr)


@dataclass(frozen=True)
class Settings:
    """How a generator is loaded: the model it asks, whether the network may be used, and options of its own kind."""

    model: str | None = None
    offline: bool = False
    tell: Tell = to_stderr
    options: dict[str, Any] = field(default_factory=dict)


GENERATORS: Registry[Callable[[str, Settings], Generator]] = Registry("description generator", "generators")
"""Kinds of generators. A generator is asked for as ``kind`` or ``kind:source``."""


def load_generator(
    generator: str | Generator,
    *,
    model: str | None = None,
    offline: bool = False,
    tell: Tell = to_stderr,
    **options: Any,
) -> Generator:
    """The generator that ``rules`` or ``http:http://127.0.0.1:8000/v1?model=NAME`` stands for.

    ``model`` names the model of an endpoint, if its address does not; ``offline`` forbids the network (this machine's
    own addresses stay allowed); further ``options`` belong to the kind. A generator is taken as it is.
    """
    if not isinstance(generator, str):
        return generator
    kind, _, source = generator.partition(":")
    entry = GENERATORS[kind]
    if entry.details.get("needs_source", False) != bool(source):
        example = entry.details.get("example", kind)
        problem = (
            f"the generator {generator!r} has {'a source, and ' + kind + ' takes none' if source else 'no source'}"
        )
        raise UsageError(problem, fix=f"for example {example}")
    return entry.value(source, Settings(model, offline, tell, options))
