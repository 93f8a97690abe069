"""What every description generator is: requests in, texts out, and a name that identifies what wrote them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from crosslens.build.generators.annotations import ObjectAnnotation
from crosslens.core import Registry, UnknownNameError, UsageError, file_fingerprint, fingerprint, to_stderr

Notify = Callable[[str], None]

SHARPER, VAGUER, DESCRIBE, CONFUSABLE = "sharper", "vaguer", "describe", "confusable"
PURPOSES = (SHARPER, VAGUER, DESCRIBE, CONFUSABLE)


@dataclass(frozen=True)
class Request:
    """One image that needs descriptions.

    ``texts``   the present descriptions: of this image, or of the original when a confusable is described
    ``purpose`` ``sharper``: they fit too many other images; ``vaguer``: they identify it too easily;
                ``describe``: there are none yet; ``confusable``: change ``texts`` as little as possible, so that they
                fit this image and no longer the original
    ``objects`` what is annotated in the image; ``original_objects`` the same of the original (confusables only)
    ``rivals``  descriptions of the most similar other images, which the new ones should not fit
    ``attempt`` the number of earlier attempts: each should give something else
    """

    image: str
    file: Path | None
    task: str
    texts: tuple[str, ...]
    purpose: str
    wanted: int
    objects: tuple[ObjectAnnotation, ...]
    rivals: tuple[str, ...]
    original_objects: tuple[ObjectAnnotation, ...] = ()
    attempt: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.purpose not in PURPOSES:
            raise UnknownNameError("purpose", self.purpose, PURPOSES)
        if self.wanted < 1:
            raise UsageError(f"wanted = {self.wanted} for image {self.image!r}", fix="wanted must be at least 1")

    def key(self, *, picture: bool = True) -> str:
        """A hash of all that a generator sees: of the image file its bytes, not its path."""
        shown = self.file if picture and self.file is not None and self.file.is_file() else None
        parts = {name: value for name, value in vars(self).items() if name != "file"}
        for name in ("objects", "original_objects"):
            parts[name] = [vars(annotation) for annotation in parts[name]]
        return fingerprint("description request", {**parts, "file": shown and file_fingerprint([shown])})


@runtime_checkable
class Generator(Protocol):
    """Something that writes descriptions.

    ``revision`` changes whenever the same request may get another answer than before. ``sees_pictures``: the answer
    depends on the image itself, not only on texts and annotations.
    """

    name: str
    revision: str
    sees_pictures: bool

    def generate(self, requests: Sequence[Request]) -> list[tuple[str, ...]]:
        """One tuple per request, in their order: at most ``wanted`` texts, possibly none."""


def folded(text: str) -> str:
    """A text without what makes no difference: case, spaces, and the mark at its end."""
    return " ".join(text.lower().split()).rstrip(".!? ")


def identity(generator: Generator) -> dict[str, object]:
    """What tells the answers of a generator from those of another."""
    return {"name": generator.name, "revision": generator.revision, "sees_pictures": generator.sees_pictures}


@dataclass(frozen=True)
class GeneratorSettings:
    """How a generator is loaded: the model of an endpoint, whether the network may be used, and options of its kind."""

    model: str | None = None
    offline: bool = False
    notify: Notify = to_stderr
    options: dict[str, Any] = field(default_factory=dict)


GENERATORS: Registry[Callable[[str, GeneratorSettings], Generator]] = Registry(
    "description generator", "generators", ("crosslens.build.generators",)
)
"""Kinds of generators. A generator is written ``kind`` or ``kind:source``."""


def load_generator(
    generator: str | Generator,
    *,
    model: str | None = None,
    offline: bool = False,
    notify: Notify = to_stderr,
    **options: Any,
) -> Generator:
    """The generator that ``rules`` or ``http:http://127.0.0.1:8000/v1?model=NAME`` stands for.

    ``model`` names the model of an endpoint, if its address does not; ``offline`` forbids the network (this machine's
    own addresses stay allowed); further ``options`` belong to the kind. A generator is used as it is.
    """
    if not isinstance(generator, str):
        return generator
    kind, _, source = generator.partition(":")
    entry = GENERATORS[kind]
    if entry.details.get("needs_source", False) != bool(source):
        example = entry.details.get("example", kind)
        problem = f"{kind} takes no source" if source else f"{kind} needs a source"
        raise UsageError(f"the generator {generator!r}: {problem}", fix=f"for example {example}")
    return entry.value(source, GeneratorSettings(model, offline, notify, options))
