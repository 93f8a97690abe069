"""Files of settings (TOML or JSON), checked by the options classes that make keywords and flags.

A mistake is raised with the file, the line, the key and the rule.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from crosslens.core import CrosslensError, InputError, UnknownNameError, ValueType, reading
from crosslens.storage.input_files import parse_json

O = TypeVar("O")  # noqa: E741
KeyPath = tuple[str | int, ...]
"""Tables and key, from the outermost; a table of an array has its number, from 0."""

BARE_KEY = r"[A-Za-z0-9_-]+"
_PART = rf"(?:{BARE_KEY}|\"[^\"]*\"|'[^']*')"
_DOTTED = rf"({_PART}(?:\s*\.\s*{_PART})*)"
_HEADER = re.compile(rf"\s*\[(\[?)\s*{_DOTTED}\s*\]")
_KEY = re.compile(rf"\s*{_DOTTED}\s*=")
_LONG_QUOTE = re.compile(r'"""|\'\'\'')
_POSITION = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text; a mistake is raised with its line."""
    import tomllib  # here: the help texts do without it

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
    except (ValueError, RecursionError) as error:  # a number of thousands of digits
        problem = "nested too deeply" if isinstance(error, RecursionError) else f"not valid TOML: {error}"
        raise InputError(problem, expected="tables of settings", fix="write the file again") from error


def key_lines(text: str) -> dict[KeyPath, int]:
    """The line of each key and each table header of a TOML text, counted from 1."""
    lines: dict[KeyPath, int] = {}
    counts: Counter[KeyPath] = Counter()
    table: KeyPath = ()
    in_long_text = False
    for number, line in enumerate(text.splitlines(), start=1):
        if not in_long_text:
            if header := _HEADER.match(line):
                table = _parts(header[2])
                lines.setdefault(table, number)
                if header[1]:
                    counts[table] += 1
                    table = (*table, counts[table] - 1)
                    lines[table] = number
            elif key := _KEY.match(line):
                lines.setdefault(table + _parts(key[1]), number)
        if len(_LONG_QUOTE.findall(line)) % 2:
            in_long_text = not in_long_text
    return lines


def _parts(dotted: str) -> KeyPath:
    return tuple(part.strip("\"'") for part in re.findall(_PART, dotted))


@dataclass(frozen=True)
class SettingsFile:
    """The content of a file, with the lines of its keys where it is TOML; messages name ``file`` if it is known."""

    content: Mapping[str, Any]
    lines: Mapping[KeyPath, int] = field(default_factory=dict)
    file: str | None = None

    @staticmethod
    def parse(text: str, file: str | Path | None = None) -> SettingsFile:
        """The settings in a text: JSON where the file's name says so, else TOML."""
        name = None if file is None else str(file)
        with reading(file):
            if name is None or not name.lower().endswith(".json"):
                return SettingsFile(parse_toml(text), key_lines(text), name)
            content = parse_json(text)
            if not isinstance(content, dict):
                raise InputError("the file holds no table", expected="a JSON object", fix="correct the file")
            return SettingsFile(content, file=name)

    def fail(self, path: KeyPath, problem: str, expected: str | None = None, fix: str | None = None) -> InputError:
        return InputError(problem, file=self.file, row=self.line(path), expected=expected, fix=fix)

    def line(self, path: KeyPath) -> str | None:
        """``line 7`` for a key; for a key inside an inline table, the line where that table begins.

        Without lines, as in JSON, ``labels 2`` for what is in the second of several tables.
        """
        prefixes = (path[:length] for length in range(len(path), 0, -1) if path[:length] in self.lines)
        tables = (f"{name} {number + 1}" for name, number in pairwise(path) if isinstance(number, int))
        return next((f"line {self.lines[key]}" for key in prefixes), next(tables, None))

    def table(self, name: str) -> dict[str, Any]:
        """A table of settings, empty where the file has none."""
        table = self.content.get(name, {})
        if not isinstance(table, dict):
            layout = f"[{name}] on a line of its own, its keys below" if self.lines else f'"{name}": {{…}}'
            raise self.fail((name,), f"{name} = {table!r:.60}", f"a table: {layout}")
        return table

    def refuse_unknown(self, table: KeyPath, keys: Iterable[str], allowed: Iterable[str]) -> None:
        """Raise for the first key that is not known, with the nearest ones that are."""
        allowed = list(allowed)
        for key in keys:
            if key not in allowed:
                where = f" in [{table[0]}]" if table else ""
                fix = UnknownNameError("key", key, allowed).fix
                raise self.fail((*table, key), f"unknown key {key!r}{where}", fix=fix)

    def value(self, path: KeyPath, value: Any, kind: Any) -> Any:
        """The value of a key, of a type that can be written."""
        expected = ValueType.of(kind)
        checked = expected.convert(value)
        if checked is None:
            raise self.fail(path, f"{path[-1]} = {value!r:.60}", expected.expected)
        return checked

    def options(self, kind: type[O], path: str | KeyPath, table: Mapping[str, Any] | None = None) -> O:
        """The options in a table, each of the type and in the range that its class declares.

        ``path`` is where the table is, if it is passed, or its name in the file.
        """
        if isinstance(path, str):
            table = self.table(path)
            path = (path,)
        table = table or {}
        types: dict[str, Any] = {entry.name: entry.type for entry in fields(kind)}  # type: ignore[arg-type]
        required = [entry.name for entry in fields(kind) if entry.default is entry.default_factory is MISSING]  # type: ignore[arg-type]
        self.refuse_unknown(path, table, types)
        for key in required:
            if key not in table:
                raise self.fail(path, f"[{path[0]}] has no {key}", fix=f"write its {key}")
        values = {}
        for key, value in table.items():
            if value is not None or not ValueType.of(types[key]).optional:  # JSON writes null for what is left out
                values[key] = self.value((*path, key), value, types[key])
        for key in values:
            try:
                kind(**{name: values[name] for name in (*required, key)})
            except CrosslensError as error:
                wrong = error.option if error.option in types else key  # it may be one of those without a default
                raise self.fail((*path, wrong), error.problem, fix=error.fix) from error
        return kind(**values)
