"""Arrays of JSON objects, read column by column: a missing or wrong entry is named with its record."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from crosslens.core.errors import InputError
from crosslens.data.checks import Place, check_ids, check_texts, counted

_LARGEST = 2**31
_SCALARS = (str, int, float, bool, type(None))


@dataclass(frozen=True)
class Records:
    """JSON objects that should look alike, and what each is called in a message."""

    rows: Sequence[Any]
    place: Place

    @staticmethod
    def under(content: Any, key: str, what: str, expected: str) -> Records:
        """The array ``content[key]``, whose entries are called ``<what> <n>``."""
        if not isinstance(content, dict):
            found = "an array" if isinstance(content, list) else f"{type(content).__name__}"
            raise InputError(
                f"the file holds {found} at its top", expected=expected, fix="check that the file is of this format"
            )
        if key not in content:
            found = ", ".join(list(content)[:8]) or "none"
            raise InputError(
                f"no key {key!r} at the top (found: {found})", expected=expected, fix="check that the file is complete"
            )
        return Records.of(content[key], what, f"{key!r} to be an array of objects")

    @staticmethod
    def of(rows: Any, what: str, expected: str) -> Records:
        """The array ``rows``, whose entries are called ``<what> <n>``."""
        if not isinstance(rows, list):
            raise InputError(
                f"found {type(rows).__name__} instead of an array",
                expected=expected,
                fix="check that the file is of this format",
            )
        for index, row in enumerate(rows):
            if not isinstance(row, dict):
                raise InputError(
                    f"{row!r:.60} is not an object", row=f"{what} {index}", expected=expected, fix="remove this entry"
                )
        return Records(rows, counted(what))

    def only(self, indices: Sequence[int]) -> Records:
        """These records, each still called by its place among all."""
        return Records([self.rows[index] for index in indices], lambda at: self.place(indices[at]))

    def has(self, key: str) -> bool:
        """Whether any record has the entry ``key``."""
        return any(key in row for row in self.rows)

    def values(self, key: str) -> list[Any]:
        """The entry ``key`` of every record; each must have it."""
        try:
            return [row[key] for row in self.rows]
        except KeyError:
            index = next(index for index, row in enumerate(self.rows) if key not in row)
            found = ", ".join(list(self.rows[index])[:8]) or "none"
            raise InputError(
                f"no key {key!r} (found: {found})",
                row=self.place(index),
                expected=f"the key {key!r} in every entry",
                fix="add it, or remove this entry",
            ) from None

    def optional(self, key: str) -> list[Any]:
        """The entry ``key`` of every record, None where it is missing."""
        return [row.get(key) for row in self.rows]

    def ids(self, key: str) -> list[str]:
        """The entry ``key`` of every record, an id."""
        return check_ids(self.values(key), key, self.place)

    def texts(self, key: str) -> list[str]:
        """The entry ``key`` of every record, a caption."""
        return check_texts(self.values(key), self.place)

    def strings(self, key: str, optional: bool = False) -> list[Any]:
        """The entry ``key`` of every record, a string (or None, if it is optional)."""
        values = self.optional(key) if optional else self.values(key)
        for index, value in enumerate(values):
            if not isinstance(value, str) and not (optional and value is None):
                raise InputError(
                    f"{key!r} is {value!r:.60}", row=self.place(index), expected="a string", fix="quote the value"
                )
        return values

    def lists(self, key: str) -> list[list[Any]]:
        """The entry ``key`` where it is there: a list of texts or whole numbers."""
        values = [[] if value is None else value for value in self.optional(key)]
        for index, value in enumerate(values):
            if not isinstance(value, list) or not all(type(one) in (str, int) for one in value):
                raise InputError(
                    f"{key!r} is {value!r:.60}",
                    row=self.place(index),
                    expected="a list of words or ids",
                    fix="correct the list, or leave it out",
                )
        return values

    def numbers(self, key: str) -> list[int | None]:
        """The entry ``key`` where it is there: a whole number above 0, such as a width."""
        values = self.optional(key)
        for index, value in enumerate(values):
            if value is not None and not (type(value) in (int, float) and 0 < value < _LARGEST and value == int(value)):
                raise InputError(
                    f"{key!r} is {value!r:.60}",
                    row=self.place(index),
                    expected="a whole number above 0",
                    fix="correct it, or leave it out",
                )
        return [None if value is None else int(value) for value in values]

    def reals(self, key: str) -> list[float | None]:
        """The entry ``key`` where it is there: a finite number, such as a coordinate."""
        values = self.optional(key)
        for index, value in enumerate(values):
            if value is not None and not (type(value) in (int, float) and math.isfinite(value)):
                raise InputError(
                    f"{key!r} is {value!r:.60}",
                    row=self.place(index),
                    expected="a finite number",
                    fix="correct it, or leave it out",
                )
        return [None if value is None else float(value) for value in values]

    def nested(self, key: str, what: str) -> tuple[Records, list[int]]:
        """The records in the arrays under ``key``, and for each the number of the record it stands in."""
        rows: list[Any] = []
        owners: list[int] = []
        inner: list[int] = []
        for index, group in enumerate(self.values(key)):
            if not isinstance(group, list) or not all(isinstance(row, dict) for row in group):
                raise InputError(
                    f"{key!r} is {group!r:.60}",
                    row=self.place(index),
                    expected=f"{key!r} to be an array of objects",
                    fix="check that the file is of this format",
                )
            rows += group
            owners += [index] * len(group)
            inner += range(len(group))
        return Records(rows, lambda at: f"{self.place(owners[at])}, {what} {inner[at]}"), owners

    def free(self, known: Collection[str]) -> dict[str, pl.Series]:
        """The remaining entries as columns, where they are single values; lists and objects are left out."""
        names = dict.fromkeys(key for row in self.rows for key in row if key not in known)
        columns = {}
        for name in names:
            values = self.optional(name)
            if all(isinstance(value, _SCALARS) for value in values) and any(value is not None for value in values):
                columns[name] = as_series(name, values)
        return columns


def as_series(name: str, values: Sequence[Any]) -> pl.Series:
    """A column of one type; values of mixed types become text."""
    try:
        return pl.Series(name, values)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        if all(value is None or type(value) in (int, float) for value in values):
            return pl.Series(name, values, dtype=pl.Float64, strict=False)
        return pl.Series(name, [None if value is None else str(value) for value in values])
