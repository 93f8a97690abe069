"""Ids as other tools write them in JSON: as numbers, where they are written like one."""

from __future__ import annotations

from typing import Any


def numbered(row: dict[str, Any], *keys: str) -> dict[str, Any]:
    """The row without empty values, the ids under ``keys`` as numbers where they look like one."""
    kept = {key: value for key, value in row.items() if value is not None}
    return kept | {key: int(kept[key]) for key in keys if is_number(kept[key])}


def is_number(text: str) -> bool:
    """Whether a whole number is written exactly like this: ``7``, but not ``07``."""
    return text.isascii() and text.isdigit() and str(int(text)) == text
