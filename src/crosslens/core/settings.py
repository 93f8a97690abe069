"""Files of settings (TOML or JSON), checked by the options classes that make keywords and flags.

A mistake is raised with the file, the line, the key and the rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from crosslens.core.errors import CrosslensError, InputError, UnknownNameError, reading
from crosslens.core.input_files import is_finite_number, parse_json

O = TypeVar("O")  # noqa: E741
KeyPath = tuple[str | int, ...]
"""Tables and key, from the outermost; a table of an array has its number, from 0."""

EXPECTED: dict[Any, str] = {
    str: 'a text in quotes, for example "value"',
    int: "a whole number, for example 10",
    float: "a number, for example 0.95",
    bool: "true or false",
    tuple[str, ...]: 'a list of texts, for example ["first", "second"]',
    int | str: 'a whole number, or a text in quotes, for example "mean"',
}
"""Type of a setting → what may be written."""

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
    table: KeyPath = ()
    in_long_text = False
    for number, line in enumerate(text.splitlines(), start=1):
        if not in_long_text:
            if header := _HEADER.match(line):
                table = _parts(header[2])
                lines.setdefault(table, number)
                if header[1]:
                    index = next(index for index in range(number) if (*table, index) not in lines)
                    table = (*table, index)
                    lines[table] = number
            elif key := _KEY.match(line):
                lines.setdefault(table + _parts(key[1]), number)
        if len(_LONG_QUOTE.findall(line)) % 2:
            in_long_text = not in_long_text
    return lines


def _parts(dotted: str) -> KeyPath:
    return tuple(part.strip("\"'") for part in re.findall(_PART, dotted))


def typed(value: Any, kind: Any) -> Any:
    """The value as one of the types of :data:`EXPECTED`, or None where it is something else.

    A single text is a list with one entry.
    """
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value) if is_finite_number(value) else None
    if kind == tuple[str, ...]:
        value = [value] if isinstance(value, str) else value
        good = isinstance(value, list) and all(isinstance(text, str) for text in value)
        return tuple(value) if good else None
    return value if isinstance(value, kind) and isinstance(value, bool) == (kind is bool) else None


_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def parse_value(text: str, kind: type) -> Any:
    """A word of a command line as a whole number, a number or a truth; ``ValueError`` where it is none."""
    if kind is not bool:
        return kind(text)
    if text.lower() not in _TRUTH:
        raise ValueError(text)
    return _TRUTH[text.lower()]


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
        """``line 7`` for a key; for a key inside an inline table, the line where that table begins."""
        known = (path[:length] for length in range(len(path), 0, -1) if path[:length] in self.lines)
        return next((f"line {self.lines[key]}" for key in known), None)

    def table(self, name: str) -> dict[str, Any]:
        """A table of settings, empty where the file has none."""
        table = self.content.get(name, {})
        if not isinstance(table, dict):
            raise self.fail(
                (name,), f"{name} = {table!r:.60}", f"a table: [{name}] on a line of its own, its keys below"
            )
        return table

    def refuse_unknown(self, table: KeyPath, keys: Iterable[str], known: Iterable[str]) -> None:
        """Raise for the first key that is not known, with the nearest ones that are."""
        known = list(known)
        for key in keys:
            if key not in known:
                where = f" in [{table[0]}]" if table else ""
                fix = UnknownNameError("key", key, known).fix
                raise self.fail((*table, key), f"unknown key {key!r}{where}", fix=fix)

    def value(self, path: KeyPath, value: Any, kind: Any) -> Any:
        """The value of a key, of one of the types of :data:`EXPECTED`."""
        checked = typed(value, kind)
        if checked is None:
            raise self.fail(path, f"{path[-1]} = {value!r:.60}", EXPECTED[kind])
        return checked

    def options(self, kind: type[O], table: str) -> O:
        """The options in a table, each of the type and in the range that its class declares."""
        hints, values = get_type_hints(kind), {}
        self.refuse_unknown((table,), self.table(table), hints)
        for key, value in self.table(table).items():
            hint = next(known for known in EXPECTED if hints[key] in (known, known | None))
            values[key] = self.value((table, key), value, hint)
            try:
                kind(**{key: values[key]})
            except CrosslensError as error:
                raise self.fail((table, key), error.problem, fix=error.fix) from error
        return kind(**values)
