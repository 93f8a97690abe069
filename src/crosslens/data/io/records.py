"""Arrays of JSON objects, read column by column into the tables of a dataset.

A missing or wrong entry is named with its record.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core import OBJECT_COLUMNS, InputError, is_finite_number, parse_json
from crosslens.data.io.checks import (
    RowName,
    box_columns,
    check_ids,
    check_known,
    check_texts,
    check_unique,
    counted,
    ids_or_numbers,
    on_lines,
)
from crosslens.data.io.files import numbered_lines

_LARGEST = 2**31
_SCALARS = (str, int, float, bool, type(None))
_PER_LINE = "one JSON object per line"
_OTHER_FORMAT = "check that the file is of this format"
_CORRECT = "correct it, or leave it out"


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
            fix = "check that the file is complete"
            raise InputError(f"no key {key!r} at the top (found: {_keys(content)})", expected=expected, fix=fix)
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
        kinds = (str, type(None)) if optional else (str,)
        return self._checked(key, values, lambda value: isinstance(value, kinds), "a string", "quote the value")

    def lists(self, key: str) -> list[list[Any]]:
        """The entry ``key`` of every record, a list of texts or whole numbers; empty where it is missing."""
        values = [[] if value is None else value for value in self.optional(key)]
        return self._checked(key, values, _is_list, "a list of words or ids", "correct the list, or leave it out")

    def numbers(self, key: str) -> list[int | None]:
        """The entry ``key`` of every record, a whole number above 0 such as a width; None where it is missing."""
        values = self._checked(key, self.optional(key), _is_size, "a whole number above 0")
        return [None if value is None else int(value) for value in values]

    def reals(self, key: str) -> list[float | None]:
        """The entry ``key`` of every record, a finite number such as a coordinate; None where it is missing."""
        values = self._checked(key, self.optional(key), _is_finite, "a finite number")
        return [None if value is None else float(value) for value in values]

    def nested(self, key: str, what: str) -> tuple[Records, list[int]]:
        """The records in the arrays under ``key``, and for each the index of the record it is in."""
        groups = self._checked(key, self.values(key), _is_array, f"{key!r} to be an array of objects", _OTHER_FORMAT)
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

    def _checked(
        self, key: str, values: list[Any], fits: Callable[[Any], bool], expected: str, fix: str = _CORRECT
    ) -> list[Any]:
        for index, value in enumerate(values):
            if not fits(value):
                raise InputError(f"{key!r} is {value!r:.60}", row=self.row_name(index), expected=expected, fix=fix)
        return values


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and all(type(entry) in (str, int) for entry in value)


def _is_array(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(row, dict) for row in value)


def _is_finite(value: Any) -> bool:
    return value is None or is_finite_number(value)


def _is_size(value: Any) -> bool:
    return value is None or (type(value) in (int, float) and 0 < value < _LARGEST and value == int(value))


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
    lines, numbers = numbered_lines(path)
    for number, line in zip(numbers, lines, strict=True):
        try:
            row = parse_json(line, _PER_LINE, "put each object on a line of its own, complete")
        except InputError as error:
            column = str(error.row or "").partition(", ")[2]
            error.row = f"line {number}" + (f", {column}" if column else "")
            raise
        if not isinstance(row, dict):
            raise InputError(
                f"{row!r:.60} is not an object", row=f"line {number}", expected=_PER_LINE, fix="write {…} on each line"
            )
        rows.append(row)
    return Records(rows, on_lines(numbers))


IMAGE_COLUMNS = ("image", "image_id", "image_name", "file_name")
TEXT_COLUMNS = ("text", "caption_text", "caption")
CAPTION_COLUMNS = ("caption_id", "caption")
REGION_SIDES = ("x", "y", "width", "height")
"""The columns of captions that say which part of its image a caption describes."""
OBJECT_TYPES = {name: OBJECT_COLUMNS[name] for name in ("synset", "x", "y", "w", "h", "attributes")}
"""Columns that may hold nothing but nulls, from which their type would not show."""


def text_columns(**columns: Sequence[str | None]) -> dict[str, pl.Series]:
    """Columns of text, also where there are no rows."""
    return {name: pl.Series(name, values, dtype=pl.String) for name, values in columns.items()}


def no_captions() -> pl.DataFrame:
    """A table of captions without rows."""
    return pl.DataFrame(text_columns(caption=[], image=[], text=[]))


@dataclass(frozen=True)
class DatasetTables:
    """The tables of a dataset while it is being read."""

    images: pl.DataFrame
    captions: pl.DataFrame = field(default_factory=no_captions)
    objects: pl.DataFrame | None = None
    relations: pl.DataFrame | None = None

    def with_images(self, other: DatasetTables) -> DatasetTables:
        """The same captions over the images of ``other``, with its objects and relations where it has any."""
        return replace(
            self,
            images=other.images,
            objects=self.objects if other.objects is None else other.objects,
            relations=self.relations if other.relations is None else other.relations,
        )


def objects_in(records: Records, images: list[str]) -> pl.DataFrame | None:
    """The lists ``objects`` of the rows that have one; ``images`` names the image of every row."""
    objects, owners = _nested(records, images, "objects")
    if not owners:
        return None
    ids = [row.get("object", row.get("id")) for row in objects.rows]
    ids = ids_or_numbers(ids, owners, "object id", objects.row_name, mark="/")
    check_unique(ids, "object", objects.row_name)
    boxes = [box_of(row) if row.get("box") is None else row["box"] for row in objects.rows]
    columns: dict[str, Any] = {
        "image": owners,
        "object": ids,
        "name": objects.strings("name"),
        "synset": objects.strings("synset", optional=True),
        **box_columns(boxes, objects.row_name),
        "attributes": [[str(word) for word in words] or None for words in objects.lists("attributes")],
    }
    return pl.DataFrame({**columns, **objects.free((*columns, "id", "box"))}, schema_overrides=OBJECT_TYPES)


def relations_in(records: Records, images: list[str], objects: pl.DataFrame | None) -> pl.DataFrame | None:
    """The lists ``relations`` of the rows that have one; both ends must be objects of the same image."""
    relations, owners = _nested(records, images, "relations")
    if not owners:
        return None
    ends = {end: relations.ids(end) for end in ("subject", "object")}
    known = dict.fromkeys(objects.select("object", "image").rows()) if objects is not None else {}
    for ids in ends.values():
        unknown = [index for index, pair in enumerate(zip(ids, owners, strict=True)) if pair not in known]
        if unknown:
            in_image = {object_id for object_id, image in known if image == owners[unknown[0]]}
            check_known([ids[unknown[0]]], in_image, "object", relations.only(unknown).row_name)
    return pl.DataFrame({"image": owners, **ends, "predicate": relations.strings("predicate")})


def box_of(row: Mapping[str, Any]) -> list[Any] | None:
    """The entries x, y, w, h of a row; None where it has none of them."""
    sides = [row.get(side) for side in "xywh"]
    return None if all(side is None for side in sides) else sides


def _nested(records: Records, images: list[str], key: str) -> tuple[Records, list[str]]:
    """The records in the lists ``key`` of the rows that have one, and the image of each."""
    having = [index for index, row in enumerate(records.rows) if row.get(key)]
    rows, owners = records.only(having).nested(key, key.removesuffix("s"))
    return rows, [images[having[owner]] for owner in owners]
