"""TOML as recipes use it: reading that knows every key's line, and writing of flat tables.

The standard library reads TOML and does not write it; a recipe holds strings, numbers, booleans and lists of them only,
so writing is a dozen lines here rather than one more dependency.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from crosslens.core import InputError

_BARE = r"[A-Za-z0-9_-]+"
_PART = rf"(?:{_BARE}|\"[^\"]*\"|'[^']*')"
_HEADER = re.compile(rf"\s*\[\[?\s*({_PART}(?:\s*\.\s*{_PART})*)\s*\]")
_KEY = re.compile(rf"\s*({_PART}(?:\s*\.\s*{_PART})*)\s*=")
_LONG_QUOTE = re.compile(r'"""|\'\'\'')
_POSITION = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")

KeyPath = tuple[str, ...]


def parse(text: str) -> dict[str, Any]:
    """The tables of a TOML text; a mistake is raised with its line."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        position = _POSITION.search(message)
        line = position[1] if position and position[1] else str(len(text.splitlines()) or 1)
        raise InputError(
            f"not valid TOML: {_POSITION.sub('', message)}",
            row=f"line {line}",
            expected='lines such as: metrics = ["Hit@1", "Hit@5"]',
            fix="write texts in quotes and lists in brackets",
        ) from error


def key_lines(text: str) -> dict[KeyPath, int]:
    """The line of each key and each table header, counted from 1."""
    lines: dict[KeyPath, int] = {}
    table: KeyPath = ()
    in_long_text = False
    for number, line in enumerate(text.splitlines(), start=1):
        if not in_long_text:
            if header := _HEADER.match(line):
                table = _parts(header[1])
                lines.setdefault(table, number)
            elif key := _KEY.match(line):
                lines.setdefault(table + _parts(key[1]), number)
        if len(_LONG_QUOTE.findall(line)) % 2:
            in_long_text = not in_long_text
    return lines


def line_of(lines: Mapping[KeyPath, int], path: KeyPath) -> str | None:
    """``line 7`` for a key; for one inside an inline table, the line where that table begins."""
    while path:
        if path in lines:
            return f"line {lines[path]}"
        path = path[:-1]
    return None


def dump(tables: Mapping[str, Mapping[str, Any]]) -> str:
    """Flat tables as TOML, the table ``""`` first and without a header; what is None or empty is left out."""
    parts = []
    for name, table in tables.items():
        entries = [f"{_key(key)} = {_value(value)}\n" for key, value in table.items() if value not in (None, (), [])]
        if entries:
            parts.append((f"[{_key(name)}]\n" if name else "") + "".join(entries))
    return "\n".join(parts)


def _parts(dotted: str) -> KeyPath:
    return tuple(part.strip("\"'") for part in re.findall(_PART, dotted))


def _key(key: str) -> str:
    return key if re.fullmatch(_BARE, key) else _text(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Sequence):
        return "[" + ", ".join(_value(entry) for entry in value) + "]"
    raise TypeError(f"a recipe cannot hold {type(value).__name__}")


def _text(text: str) -> str:
    # JSON's escapes are TOML's too, except that TOML wants DEL escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
