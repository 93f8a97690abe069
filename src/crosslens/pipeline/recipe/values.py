"""What a recipe names: the files that are evaluated, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from crosslens.core.errors import UsageError


@dataclass(frozen=True)
class Inputs:
    """The files that hold what is evaluated; which of them are needed depends on what a person has."""

    image_embeddings: str | None = None
    caption_embeddings: str | None = None
    image_ids: str | None = None
    caption_ids: str | None = None
    scores: str | None = None
    runs: tuple[str, ...] = ()
    qrels: str | None = None
    phi: tuple[str, ...] = ()
    scores_from: tuple[str, ...] = ()


NAMED = ("phi", "scores_from")
"""Inputs of the form ``NAME=SOURCE``: what names in graded metrics stand for."""


def entry_of(text: str, what: str) -> tuple[str, str]:
    """The name and the source in ``NAME=SOURCE``."""
    name, mark, source = text.partition("=")
    if not (mark and name.strip() and source.strip()):
        flag = f"--{what.replace('_', '-')}"
        raise UsageError(f"{flag} {text}: no name with a source", fix=f"write {flag} mine=file.npy")
    return name.strip(), source.strip()


def entries_of(texts: Sequence[str], what: str) -> dict[str, str]:
    """Names and sources; a name may be given once only."""
    found: dict[str, str] = {}
    for name, source in (entry_of(text, what) for text in texts):
        if name in found:
            flag = f"--{what.replace('_', '-')}"
            raise UsageError(f"{flag} {name} is given twice", fix="give each source a name of its own")
        found[name] = source
    return found


@dataclass(frozen=True)
class Model:
    """The encoder that makes the vectors, instead of files that hold them.

    ``image_text`` asks for text-only retrieval: an image is represented by its captions, except the one that asks.
    ``image_folder`` and ``precision`` are those of re-ranking, too.
    """

    name: str | None = None
    image_folder: str | None = None
    image_text: str | None = None
    query_caption: int = 0
    precision: str = "fp32"
    skip_bad: bool = False


@dataclass(frozen=True)
class Rerank:
    """The pair scorer that re-orders the first ``depth`` places of every list."""

    model: str | None = None
    depth: int = 100


@dataclass(frozen=True)
class Options:
    """How it is evaluated: the options of :func:`crosslens.evaluate`, under the same names and defaults."""

    metrics: tuple[str, ...] = ()
    directions: tuple[str, ...] = ()
    score: str | None = None
    ties: str = "stable"
    folds: int = 1
    depth: int = 10
    seed: int = 0
    resamples: int = 1000
    level: float = 0.95
    backend: str = "numpy"
    device: str | None = None
    tile: int | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            problem = out_of_range(one.name, value)
            if problem:
                shown = ", ".join(value) if isinstance(value, tuple) else value
                raise UsageError(f"{one.name} = {shown}", fix=problem)


_LEAST = {"folds": 1, "depth": 1, "seed": 0, "resamples": 0, "tile": 1, "threads": 1}


def out_of_range(option: str, value: Any) -> str | None:
    """What the value of an option should be, if it is out of range."""
    if option in _LEAST and value is not None and value < _LEAST[option]:
        return f"at least {_LEAST[option]}"
    if option == "level" and not 0 < value < 1:
        return "between 0 and 1, for example 0.95"
    if option == "directions" and not set(value) <= {"i2t", "t2i"}:
        return "i2t (image to text), t2i (text to image), or both"
    return None
