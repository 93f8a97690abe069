"""Where the vectors or scores that are ranked come from: of several kinds of input exactly one is given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from crosslens.core import UsageError, argument

SOURCES = {
    "texts": "text-only retrieval",
    "embeddings": "embeddings",
    "scores": "scores",
    "runs": "runs",
    "model": "a model",
}
"""The kinds of input, in the words of messages."""
ONE_SOURCE = "pass one of them"


def given_sources(**inputs: Any) -> list[str]:
    """The kinds of input that are given; a tuple counts where any of its values does."""

    def is_given(value: Any) -> bool:
        if isinstance(value, tuple):
            return any(map(is_given, value))
        return value is not None and not (isinstance(value, str | list | dict) and not value)

    return [kind for kind in SOURCES if is_given(inputs.get(kind))]


def excluding_sources(kinds: Iterable[str]) -> str:
    """The problem of inputs that exclude each other."""
    return f"both {' and '.join(SOURCES[kind] for kind in kinds)}"


def require_one_source(fix: str = "", **inputs: Any) -> str:
    """The kind of input that is given; none or several raise. ``fix`` says what to pass where there is none."""
    kinds = given_sources(**inputs)
    if len(kinds) > 1:
        raise UsageError(excluding_sources(kinds), fix=ONE_SOURCE)
    if not kinds:
        raise UsageError("nothing to evaluate", fix=fix)
    if kinds == ["embeddings"] and isinstance(inputs["embeddings"], tuple):
        missing = [
            side for side, value in zip(("image", "caption"), inputs["embeddings"], strict=True) if value is None
        ]
        if missing:
            raise UsageError(f"no {missing[0]} embeddings", fix=f"pass {argument(f'{missing[0]}s')}")
    return kinds[0]
