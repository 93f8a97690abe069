"""Arrays of JSON objects, read column by column: a missing or wrong entry is named with its record."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core import InputError
from crosslens.data.io.checks import RowName, check_ids, check_texts, counted, on_lines
from crosslens.data.io.files import parse_json, read_lines

_LARGEST = 2**31
_SCALARS = (str, int, float, bool, type(None))
_PER_LINE = "one JSON object per line"
_OTHER_FORMAT = "check that the file is of this format"


@dataclass(frozen=True)
class Records:
    """JSON objects that should look alike, and what each is called in a message."""

    rows: Sequence[Any]
    row_name: RowName

    @staticmethod
    def under(content: Any, key: str, what: str, expected: str) -> Records:
        """The array ``content[key]``, whose entries are called ``<what> <n>``."""
        if not isinstance(content, dict):
            top = "an array" if isinstance(content, list) else f"{type(content).__name__}"
            raise InputError(f"the file holds {top} at its top", expected=expected, fix=_OTHER_FORMAT)
        if key not in content:
            raise InputError(
                f"no key {key!r} at the top (found: {_keys(content)})",
                expected=expected,
                fix="check that the file is complete",
            )
        return Records.of(content[key], what, f"{key!r} to be an array of objects")

    @staticmethod
    def of(rows: Any, what: str, expected: str) -> Records:
        """The array ``rows``, whose entries are called ``<what> <n>``."""
        if not isinstance(rows, list):
            raise InputError(f"found {type(rows).__name__} instead of an array", expected=expected, fix=_OTHER_FORMAT)
        for index, row in enumerate(rows):
            if not isinstance(row, dict):
                raise InputError(
                    f"{row!r:.60} is not an object", row=f"{what} {index}", expected=expected, fix="remove this entry"
                )
        return Records(rows, counted(what))

    def only(self, indices: Sequence[int]) -> Records:
        """These records, each still called by its index among all."""
        return Records([self.rows[index] for index in indices], lambda index: self.row_name(indices[index]))

    def has(self, key: str) -> bool:
        """Whether any record has the entry ``key``."""
        return any(key in row for row in self.rows)

    def values(self, key: str) -> list[Any]:
        """The entry ``key`` of every record; each must have it."""
        try:
            return [row[key] for row in self.rows]
        except KeyError:
            index = next(index for index, row in enumerate(self.rows) if key not in row)
            raise InputError(
                f"no key {key!r} (found: {_keys(self.rows[index])})",
                row=self.row_name(index),
                expected=f"the key {key!r} in every entry",
                fix="add it, or remove this entry",
            ) from None

    def optional(self, key: str) -> list[Any]:
        """The entry ``key`` of every record, None where it is missing."""
        return [row.get(key) for row in self.rows]

    def ids(self, key: str) -> list[str]:
        """The entry ``key`` of every record, an id."""
        return check_ids(self.values(key), key, self.row_name)

    def texts(self, key: str) -> list[str]:
        """The entry ``key`` of every record, a caption."""
        return check_texts(self.values(key), self.row_name)

    def strings(self, key: str, optional: bool = False) -> list[Any]:
        """The entry ``key`` of every record, a string (or None, if it is optional)."""
        values = self.optional(key) if optional else self.values(key)
        self._check(
            key,
            values,
            lambda value: isinstance(value, str) or (optional and value is None),
            "a string",
            "quote the value",
        )
        return values

    def lists(self, key: str) -> list[list[Any]]:
        """The entry ``key`` of every record, a list of texts or whole numbers; empty where it is missing."""
        values = [[] if value is None else value for value in self.optional(key)]
        self._check(
            key,
            values,
            lambda value: isinstance(value, list) and all(type(entry) in (str, int) for entry in value),
            "a list of words or ids",
            "correct the list, or leave it out",
        )
        return values

    def numbers(self, key: str) -> list[int | None]:
        """The entry ``key`` of every record, a whole number above 0 such as a width; None where it is missing."""
        values = self.optional(key)
        self._check(
            key,
            values,
            lambda value: (
                value is None or (type(value) in (int, float) and 0 < value < _LARGEST and value == int(value))
            ),
            "a whole number above 0",
            "correct it, or leave it out",
        )
        return [None if value is None else int(value) for value in values]

    def reals(self, key: str) -> list[float | None]:
        """The entry ``key`` of every record, a finite number such as a coordinate; None where it is missing."""
        values = self.optional(key)
        self._check(
            key,
            values,
            lambda value: value is None or (type(value) in (int, float) and math.isfinite(value)),
            "a finite number",
            "correct it, or leave it out",
        )
        return [None if value is None else float(value) for value in values]

    def nested(self, key: str, what: str) -> tuple[Records, list[int]]:
        """The records in the arrays under ``key``, and for each the index of the record it is in."""
        groups = self.values(key)
        self._check(
            key,
            groups,
            lambda group: isinstance(group, list) and all(isinstance(row, dict) for row in group),
            f"{key!r} to be an array of objects",
            _OTHER_FORMAT,
        )
        rows = [row for group in groups for row in group]
        owners = [index for index, group in enumerate(groups) for _ in group]
        inner = [number for group in groups for number in range(len(group))]
        return Records(rows, lambda index: f"{self.row_name(owners[index])}, {what} {inner[index]}"), owners

    def free(self, known: Collection[str]) -> dict[str, pl.Series]:
        """The remaining entries as columns, where they are single values; lists and objects are left out."""
        names = dict.fromkeys(key for row in self.rows for key in row if key not in known)
        columns = {}
        for name in names:
            values = self.optional(name)
            if all(isinstance(value, _SCALARS) for value in values) and any(value is not None for value in values):
                columns[name] = as_series(name, values)
        return columns

    def _check(self, key: str, values: Sequence[Any], fits: Callable[[Any], bool], expected: str, fix: str) -> None:
        for index, value in enumerate(values):
            if not fits(value):
                raise InputError(f"{key!r} is {value!r:.60}", row=self.row_name(index), expected=expected, fix=fix)


def _keys(row: dict[str, Any]) -> str:
    return ", ".join(list(row)[:8]) or "none"


def as_series(name: str, values: Sequence[Any]) -> pl.Series:
    """A column of one type; values of mixed types become text."""
    try:
        return pl.Series(name, values)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        if all(value is None or type(value) in (int, float) for value in values):
            return pl.Series(name, values, dtype=pl.Float64, strict=False)
        return pl.Series(name, [None if value is None else str(value) for value in values])


def read_records(path: str | Path) -> Records:
    """JSON lines: one JSON object per line."""
    rows: list[Any] = []
    lines: list[int] = []
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        try:
            row = parse_json(line)
        except ValueError as error:
            raise InputError(
                f"not valid JSON: {error}",
                row=f"line {number}",
                expected=_PER_LINE,
                fix="put each object on a line of its own, complete",
            ) from error
        except InputError as error:
            error.row = f"line {number}"
            raise
        if not isinstance(row, dict):
            raise InputError(
                f"{row!r:.60} is not an object", row=f"line {number}", expected=_PER_LINE, fix="write {…} on each line"
            )
        rows.append(row)
        lines.append(number)
    return Records(rows, on_lines(lines))
