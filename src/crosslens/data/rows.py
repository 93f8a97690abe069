"""Rows of input files: tables (CSV, TSV, Parquet) and arrays of JSON objects, and what every reader checks of them.

A :data:`RowName` names a row the way its format does: by its line, or by its number.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from crosslens.core import InputError, UnknownNameError, UsageError, argument, reading
from crosslens.data.files import existing_file, format_suffix, numbered_lines, read_text
from crosslens.storage import (
    CAPTION_CHARACTERS,
    DELIMITERS,
    csv_delimiter,
    from_spreadsheets,
    is_encodable,
    is_finite_number,
    parse_json,
    read_parquet_file,
)
from crosslens.values import OBJECT_COLUMNS

RowName = Callable[[int], int | str]
"""From the index of a row to its name in a message: ``line 17``, ``annotation 16``, row 16."""

_TYPE_NAMES = {
    bool: "true or false",
    int: "a number",
    float: "a number with a fraction",
    list: "a list",
    dict: "an object",
}


def on_lines(lines: Sequence[int]) -> RowName:
    """Rows on these lines of a text file: ``line 17``."""
    return lambda index: f"line {lines[index]}"


def by_row(index: int) -> int:
    """Rows of a table without lines: ``row 16``."""
    return index


def check_unique(ids: Sequence[str], what: str, row_name: RowName) -> None:
    """Every id once."""
    if len(set(ids)) < len(ids):
        first: dict[str, int] = {}
        index = next(index for index, name in enumerate(ids) if first.setdefault(name, index) != index)
        earlier = row_name(first[ids[index]])
        earlier = f"row {earlier}" if isinstance(earlier, int) else earlier
        problem, fix = f"duplicate {what} id {ids[index]!r} (first at {earlier})", "remove or rename one of the two"
        raise InputError(problem, row=row_name(index), expected=f"each {what} once", fix=fix)


def check_known(ids: Sequence[str], known_ids: Collection[str], what: str, row_name: RowName) -> None:
    """Every id among ``known_ids``."""
    known_ids = known_ids if isinstance(known_ids, (set, dict)) else set(known_ids)
    index = next((index for index, name in enumerate(ids) if name not in known_ids), None)
    if index is None:
        return
    near = UnknownNameError(what, ids[index], list(known_ids)[:20_000]).suggestions
    expected = f"one of the {len(known_ids)} {what} ids"
    fix = f"did you mean {near[0]!r}?" if near else f"add the {what} {ids[index]!r}, or remove this entry"
    raise InputError(f"unknown {what} id {ids[index]!r}", row=row_name(index), expected=expected, fix=fix)


def check_texts(texts: Sequence[Any], row_name: RowName) -> list[str]:
    """Captions: strings with something in them."""
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(
                f"the caption is {_type_name(text)}", row=row_name(index), expected="a string", fix="quote the caption"
            )
        if not text or text.isspace():
            expected = "a non-empty text"
            fix = "write the caption or remove it"
            raise InputError("empty caption", row=row_name(index), expected=expected, fix=fix, code="empty-caption")
        CAPTION_CHARACTERS.check(len(text), "the caption", row=row_name(index))
    _check_encodable(texts, "caption", row_name)
    return list(texts)


def _check_encodable(texts: Sequence[Any], what: str, row_name: RowName) -> None:
    """No half of a surrogate pair, as in a file name that is not UTF-8: no file could hold it."""
    for index, text in enumerate(texts):
        if isinstance(text, str) and not is_encodable(text):
            expected, fix = "text that UTF-8 can hold", "correct the text, or rename the file"
            raise InputError(f"the {what} is {text!r:.60}", row=row_name(index), expected=expected, fix=fix)


def check_ids(values: Sequence[Any], what: str, row_name: RowName) -> list[str]:
    """Ids: non-empty strings or whole numbers, returned as strings."""
    for index, value in enumerate(values):
        if type(value) is int or (type(value) is str and value):
            continue
        expected = "a non-empty string or a whole number"
        fix = f"give this entry its {what}"
        raise InputError(f"the {what} is {_type_name(value)}", row=row_name(index), expected=expected, fix=fix)
    _check_encodable(values, what, row_name)
    return [str(value) for value in values]


def box_columns(boxes: Sequence[Any], row_name: RowName) -> dict[str, list[float | None]]:
    """The columns x, y, w, h from boxes ``[x, y, width, height]``; None is an object without a box.

    A box of no width or no height is stored as no box: published annotations contain a few (rounding), and there is
    nothing inside them to look at.
    """
    rows: list[tuple[float | None, ...]] = []
    for index, box in enumerate(boxes):
        box = (0, 0, 0, 0) if box is None else box
        is_box = isinstance(box, list | tuple) and len(box) == 4 and all(map(is_finite_number, box))
        if not is_box or box[2] < 0 or box[3] < 0:
            expected = "[x, y, width, height] in pixels: four finite numbers, width and height not negative"
            fix = "correct the box, or leave it out for an object without one"
            raise InputError(f"bad box {box!r}", row=row_name(index), expected=expected, fix=fix)
        rows.append(tuple(map(float, box)) if box[2] and box[3] else (None,) * 4)
    return {name: [row[side] for row in rows] for side, name in enumerate("xywh")}


def number_within(images: Sequence[str], mark: str = "#") -> list[str]:
    """Ids for rows that have none: ``<image>#<n>``, counted from 0 within each image."""
    counts: Counter[str] = Counter()
    ids = []
    for image in images:
        ids.append(f"{image}{mark}{counts[image]}")
        counts[image] += 1
    return ids


def ids_or_numbers(
    values: Sequence[Any], images: Sequence[str], what: str, row_name: RowName, mark: str = "#"
) -> list[str]:
    """The ids in ``values``, numbers within the image where they are None."""
    numbers = number_within(images, mark)
    ids = [number if value is None else value for value, number in zip(values, numbers, strict=True)]
    return check_ids(ids, what, row_name)


def wrong_width(fields: Sequence[str], row_name: int | str, expected: str, fix: str) -> InputError:
    """The error for a line with too many or too few columns; ``expected``: how many, and which."""
    count = "1 column" if len(fields) == 1 else f"{len(fields)} columns"
    return InputError(count, row=row_name, expected=expected, fix=fix)


def _type_name(value: Any) -> str:
    if value is None:
        return "missing (null)"
    return "empty" if value == "" else _TYPE_NAMES.get(type(value), type(value).__name__)


# 007 and 1_000 are names, not numbers; a whole number has at most 18 digits, to fit.
_NUMBERS = {pl.Int64: r"^-?(0|[1-9]\d{0,17})$", pl.Float64: r"^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d{1,2})?$"}
TABLE_SUFFIXES = (".csv", ".tsv", ".parquet")
PLAIN_SUFFIXES = (*TABLE_SUFFIXES, ".jsonl")
_OTHER_DELIMITER = f"separate the columns by a {' or '.join(DELIMITERS.values())}"


class InputTable(NamedTuple):
    """Rows, and what each is called in a message."""

    frame: pl.DataFrame
    row_name: RowName


def read_table(path: str | Path, delimiter: str | None = None, *, optional: bool = False) -> InputTable:
    """A ``.csv`` (quoted as usual), ``.tsv`` (nothing is quoted) or ``.parquet`` file with a header.

    ``delimiter`` separates the columns of a ``.csv``; without one, what its header holds. Where that is a semicolon,
    numbers may have a decimal comma, as spreadsheet programs write both together. ``optional``: the user can name one.
    """
    path = existing_file(path)
    suffix = format_suffix(path)
    if suffix == ".parquet":
        with readable_parquet(path):
            return InputTable(read_parquet_file(path), by_row)
    if suffix not in TABLE_SUFFIXES:
        raise UsageError(f"{path} ends in {suffix!r}", fix="use a .csv, .tsv, .jsonl or .parquet file")
    with reading(path):
        delimiter = (delimiter or csv_delimiter(read_text(path))) if suffix == ".csv" else "\t"
        header, rows, lines = split_csv(path, delimiter) if suffix == ".csv" else split_lines(path, delimiter)
        for index, name in enumerate(header):
            if not name or name in header[:index]:
                problem = f"column {index + 1} has no name" if not name else f"two columns are named {name!r}"
                fix = "name every column in the first line"
                raise InputError(
                    problem, row="line 1", expected="a header with a different name for every column", fix=fix
                )
        mark = DELIMITERS.get(delimiter, delimiter)
        for row, line in zip(rows, lines, strict=True):
            if len(row) != len(header):
                tip = f"quote texts that contain {mark}s" if suffix == ".csv" else "check for lost or extra tabs"
                if suffix == ".csv" and len(header) == 1:
                    tip += f"; {_OTHER_DELIMITER}" + (f", or pass {argument('delimiter')}" if optional else "")
                columns = "1 column" if len(header) == 1 else f"{len(header)} columns separated by a {mark}"
                expected = f"{columns}: {', '.join(header)}"
                raise wrong_width(row, f"line {line}", expected, tip)
        frame = from_spreadsheets(pl.DataFrame(rows, schema=dict.fromkeys(header, pl.String), orient="row"))
        return InputTable(_with_points(frame) if delimiter == ";" else frame, on_lines(lines))


def _with_points(frame: pl.DataFrame) -> pl.DataFrame:
    """Columns of nothing but numbers, some with a decimal comma, with decimal points."""
    numbers = pl.all().replace("", None).str.contains(r"^-?\d+(,\d+)?$").fill_null(True).all()
    with_commas = frame.select(numbers & pl.all().str.contains(",").any())
    names = [column.name for column in with_commas if column.any()]
    return frame.with_columns(pl.col(names).str.replace(",", ".", literal=True))


def split_csv(path: str | Path, delimiter: str | None = None) -> tuple[list[str], list[list[str]], list[int]]:
    """Header, rows, and the line each row begins on; blank lines are skipped. Without a delimiter, the header's.

    So is a first line ``sep=;``, by which Excel is told the delimiter.
    """
    text = read_text(path)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter or csv_delimiter(text))
    rows: list[list[str]] = []
    lines: list[int] = []
    start = 1
    try:
        for row in reader:
            if any(field.strip() for field in row):
                rows.append(row)
                lines.append(start)
            start = reader.line_num + 1
    except csv.Error as error:
        expected = 'fields that hold a delimiter, a quote or a line break inside "…", quotes in them doubled'
        fix = "quote the whole field and double its quotes"
        raise InputError(f"badly quoted: {error}", row=f"line {start}", expected=expected, fix=fix) from error
    first = 1 if len(rows) > 1 and rows[0] == ["sep=", ""] else 0
    return [name.strip() for name in rows[first]], rows[first + 1 :], lines[first + 1 :]


def as_numbers(column: pl.Series) -> pl.Series:
    """A column of text as whole numbers or numbers, where every value is written as one; empty values are null."""
    if column.dtype != pl.String:
        return column
    column = column.replace({"": None})
    for kind, pattern in _NUMBERS.items():
        if column.null_count() < len(column) and column.str.contains(pattern).fill_null(True).all():
            return column.cast(kind)
    return column


def find_column(frame: pl.DataFrame, name: str | None, usual: Sequence[str], option: str) -> str | None:
    """The column ``name``, given as ``option``; without one the first of the usual names that the table has.

    Case alone is no difference: spreadsheets often begin with *Image; Caption*.
    """
    if name is None:
        folded = {column.casefold(): column for column in reversed(frame.columns)}
        return next((column for word in usual for column in (word, folded.get(word)) if column in frame.columns), None)
    if name not in frame.columns:
        fix = f"pass {argument(option)}, one of: {', '.join(frame.columns)}"
        expected = f"the column that {argument(option)} names"
        raise InputError(f"no column {name!r}", row="line 1", expected=expected, fix=fix)
    return name


def require_column(
    frame: pl.DataFrame, what: str, usual: Sequence[str], name: str | None = None, option: str | None = None
) -> str:
    """Like :func:`find_column`, for a column that the table must have."""
    column = find_column(frame, name, usual, option or "")
    if column is None:
        problem = f"no column for the {what} (found: {', '.join(frame.columns)})"
        fix = "rename the column" + (f", or pass {argument(option)}" if option else "")
        if len(frame.columns) == 1:
            fix = _OTHER_DELIMITER + (f", or pass {argument('delimiter')}" if option else "")
        raise InputError(problem, row="line 1", expected=f"a header with {' or '.join(usual)}", fix=fix)
    return column


def split_lines(path: str | Path, separator: str) -> tuple[list[str], list[list[str]], list[int]]:
    """Like :func:`split_csv`, without quotes."""
    lines, numbers = numbered_lines(path)
    rows = [line.split(separator) for line in lines]
    return [name.strip() for name in rows[0]], rows[1:], numbers[1:]


@contextmanager
def readable_parquet(path: str | Path) -> Iterator[None]:
    """Whatever is wrong with a Parquet file, in words, with its name."""
    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(
            f"cannot be read: {error}", file=path, expected="a Parquet file", fix="write it again, or check its ending"
        ) from error


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
        return Records(rows, lambda index: f"{what} {index}")

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

    def ids(self, key: str, unique: str | None = None) -> list[str]:
        """The entry ``key`` of every record, an id; each once, where what is ``unique`` is named."""
        ids = check_ids(self.values(key), key, self.row_name)
        if unique is not None:
            check_unique(ids, unique, self.row_name)
        return ids

    def texts(self, key: str) -> list[str]:
        return check_texts(self.values(key), self.row_name)

    def strings(self, key: str, optional: bool = False) -> list[Any]:
        """The entry ``key`` of every record, a string (or None, if it is optional)."""
        values = self.optional(key) if optional else self.values(key)
        kinds = (str, type(None)) if optional else (str,)
        return self._checked(key, values, lambda value: isinstance(value, kinds), "a string", "quote the value")

    def lists(self, key: str) -> list[list[Any]]:
        """The entry ``key`` of every record, a list of texts or whole numbers; empty where it is missing."""

        def fits(value: Any) -> bool:
            return isinstance(value, list) and all(type(entry) in (str, int) for entry in value)

        values = [[] if value is None else value for value in self.optional(key)]
        return self._checked(key, values, fits, "a list of words or ids", "correct the list, or leave it out")

    def sizes(self, key: str) -> pl.Series:
        """The entry ``key`` of every record, a whole number above 0 such as a width; null where it is missing."""

        def fits(value: Any) -> bool:
            return value is None or (type(value) in (int, float) and 0 < value < 2**31 and value == int(value))

        values = self._checked(key, self.optional(key), fits, "a whole number above 0")
        return pl.Series(key, values, pl.Float64).cast(pl.Int64)

    def reals(self, key: str) -> pl.Series:
        """The entry ``key`` of every record, a finite number such as a coordinate; null where it is missing."""
        values = self.optional(key)
        self._checked(key, values, lambda value: value is None or is_finite_number(value), "a finite number")
        return pl.Series(key, values, pl.Float64, strict=False)

    def nested(self, key: str, what: str) -> tuple[Records, list[int]]:
        """The records in the arrays under ``key``, and for each the index of the record it is in."""

        def fits(value: Any) -> bool:
            return isinstance(value, list) and all(isinstance(row, dict) for row in value)

        groups = self._checked(key, self.values(key), fits, f"{key!r} to be an array of objects", _OTHER_FORMAT)
        rows = [row for group in groups for row in group]
        owners = [index for index, group in enumerate(groups) for _ in group]
        inner = [number for group in groups for number in range(len(group))]
        return Records(rows, lambda index: f"{self.row_name(owners[index])}, {what} {inner[index]}"), owners

    def free(self, read_keys: Collection[str]) -> dict[str, pl.Series]:
        """The remaining entries as columns, where they are single values; lists and objects are left out."""
        names = dict.fromkeys(key for row in self.rows for key in row if key not in read_keys)
        columns = {}
        for name in names:
            values = self.optional(name)
            if not all(isinstance(value, _SCALARS) for value in values) or all(value is None for value in values):
                continue
            try:
                columns[name] = pl.Series(name, values)
            except (TypeError, OverflowError, pl.exceptions.PolarsError):  # values of mixed types
                if all(value is None or type(value) in (int, float) for value in values):
                    columns[name] = pl.Series(name, values, dtype=pl.Float64, strict=False)
                else:
                    columns[name] = pl.Series(name, [None if value is None else str(value) for value in values])
        return columns

    def _checked(
        self,
        key: str,
        values: list[Any],
        fits: Callable[[Any], bool],
        expected: str,
        fix: str = "correct it, or leave it out",
    ) -> list[Any]:
        for index, value in enumerate(values):
            if not fits(value):
                raise InputError(f"{key!r} is {value!r:.60}", row=self.row_name(index), expected=expected, fix=fix)
        return values


def _keys(row: dict[str, Any]) -> str:
    return ", ".join(list(row)[:8]) or "none"


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


def text_table(free: Mapping[str, pl.Series] | None = None, /, **columns: Iterable[str | None]) -> pl.DataFrame:
    """A table of columns of text, also where there are no rows, and of ``free`` columns behind them."""
    texts = {name: pl.Series(name, list(values), pl.String) for name, values in columns.items()}
    return pl.DataFrame({**texts, **(free or {})})


def no_captions() -> pl.DataFrame:
    """A table of captions without rows."""
    return text_table(caption=(), image=(), text=())


def caption_table(
    frame: pl.DataFrame, row_name: RowName, image_at: str, text_at: str, caption_at: str | None
) -> pl.DataFrame:
    """A row per caption, from a table with these columns; without ids, captions are called ``<image>#<n>``."""
    owners = check_ids(frame[image_at].to_list(), "image id", row_name)
    texts = check_texts(frame[text_at].to_list(), row_name)
    ids = number_within(owners)
    if caption_at is not None:
        ids = check_ids(frame[caption_at].to_list(), "caption id", row_name)
    check_unique(ids, "caption", row_name)
    free = {
        f"{name}_" if name in ("caption", "image", "text") else name: as_numbers(frame[name])
        for name in frame.columns
        if name not in (image_at, text_at, caption_at)
    }
    return text_table(free, caption=ids, image=owners, text=texts)


def box_of(row: Mapping[str, Any]) -> list[Any] | None:
    """The entries x, y, w, h of a row; None where it has none of them."""
    sides = [row.get(side) for side in "xywh"]
    return None if sides == [None] * 4 else sides
