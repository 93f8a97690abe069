"""JSON files as other tools expect them: ids as numbers, where they are written like one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from crosslens.data.io.files import writing_text


def with_json_ids(row: dict[str, Any], *keys: str) -> dict[str, Any]:
    """The row without empty values, the ids under ``keys`` as numbers where they look like one."""
    kept = {key: value for key, value in row.items() if value is not None}
    return kept | {key: int(kept[key]) for key in keys if is_number(kept[key])}


def is_number(text: str) -> bool:
    """Whether a whole number is written exactly like this: ``7``, but not ``07``."""
    return text.isascii() and text.isdigit() and str(int(text)) == text


def to_json(value: Any) -> str:
    """The value as one line of JSON; dates from Parquet files become texts."""
    return json.dumps(value, ensure_ascii=False, default=str)


def write_json(value: Any, path: Path) -> None:
    """A JSON file with this value."""
    with writing_text(path) as out:
        out.write(to_json(value) + "\n")
