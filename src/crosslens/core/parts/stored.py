"""Sections as JSON, so that a stage keeps how its result is shown, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from crosslens.core.parts import cards, charts, sections, tables
from crosslens.core.parts.tables import Link

_NUMBERS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def stored_part(value: Any) -> Any:
    """A section or part, and all that is in it, as JSON can hold it; :func:`restored_part` reads it."""
    if isinstance(value, Link):
        return {"part": "Link", "text": str(value), "address": value.address}
    if is_dataclass(value) and not isinstance(value, type):
        content = {
            entry.name: stored_part(getattr(value, entry.name))
            for entry in fields(value)
            if getattr(value, entry.name) is not entry.default
        }
        return {"part": type(value).__name__, **content}
    if isinstance(value, frozenset):
        return {"part": "frozenset", "of": [stored_part(entry) for entry in sorted(value)]}
    if isinstance(value, Mapping):
        return {"part": "mapping", "of": [[key, stored_part(entry)] for key, entry in value.items()]}
    if isinstance(value, (tuple, list)):
        return [stored_part(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"part": "number", "of": str(value)}
    return value if value is None or isinstance(value, (str, bool, int, float)) else value.item()


def restored_part(stored: Any) -> Any:
    """What :func:`stored_part` was given; content that is no part raises KeyError or TypeError."""
    if isinstance(stored, list):
        return tuple(map(restored_part, stored))
    if not isinstance(stored, Mapping):
        return stored
    name, content = stored["part"], {key: value for key, value in stored.items() if key != "part"}
    if name == "Link":
        return Link(**content)
    if name == "number":
        return _NUMBERS[content["of"]]
    if name == "frozenset":
        return frozenset(restored_part(content["of"]))
    if name == "mapping":
        return dict(restored_part(content["of"]))
    return _STORED[name](**{key: restored_part(value) for key, value in content.items()})


_STORED: Mapping[str, type] = {
    name: kind
    for module in (tables, charts, cards, sections)
    for name, kind in vars(module).items()
    if isinstance(kind, type) and is_dataclass(kind)
}
