"""Which rows of papers a recipe repeats, and what the papers report there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crosslens.core import InputError
from crosslens.train.settings import check_type

_TEXTS = ("table", "row", "flags")


@dataclass(frozen=True)
class PublishedRow:
    """A row of a paper's table."""

    table: str
    row: str
    figures: Mapping[str, float]
    """By metric, as printed."""
    flags: str = ""
    """What to add to the command: the share of the data."""


def published_rows(entries: Any, source: str) -> tuple[PublishedRow, ...]:
    """The ``[[published]]`` entries of a recipe: table, row, maybe flags; every other key is a metric."""
    if not (isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)):
        raise InputError(f"published is {entries!r:.60}", file=source, expected="tables [[published]]")
    return tuple(_row(entry, source) for entry in entries)


def _row(entry: Mapping[str, Any], source: str) -> PublishedRow:
    for key in ("table", "row"):
        if key not in entry:
            raise InputError(f"[[published]] has no {key}", file=source, fix=f'write {key} = "…"')
    for key, value in entry.items():
        check_type(f"{key} of [[published]]", value, "str" if key in _TEXTS else "float", source)
    figures = {key: float(value) for key, value in entry.items() if key not in _TEXTS}
    return PublishedRow(entry["table"], entry["row"], figures, entry.get("flags", ""))
