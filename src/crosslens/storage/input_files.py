"""Input files that nobody vouches for: limits, regular files only, text, JSON and Parquet tables.

Whatever is wrong with them raises an ``InputError`` that says where.
"""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import re
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosslens.core import InputError, UsageError, reading

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Limit:
    """The largest amount of something, in ``unit``, unless the environment variable ``variable`` says otherwise."""

    variable: str
    default: int
    unit: str
    help: str

    @property
    def value(self) -> int:
        text = os.environ.get(self.variable, "").strip()
        if not text:
            return self.default
        if not (text.isascii() and text.isdecimal() and len(text) <= 18 and int(text) > 0):
            raise UsageError(
                f"the environment variable {self.variable} is {text!r:.60}",
                fix=f"set it to a whole number of {self.unit} above 0, or unset it (default: {self.default})",
                option=self.variable,
            )
        return int(text)

    def check(self, amount: int, what: str, *, file: str | Path | None = None, row: int | str | None = None) -> None:
        if amount > self.value:
            raise self.error(f"{what} has {amount:,} {self.unit}", file=file, row=row)

    def error(self, problem: str, *, file: str | Path | None = None, row: int | str | None = None) -> InputError:
        fix = f"leave it out; if it is meant, set the environment variable {self.variable} higher"
        expected = f"at most {self.value:,} {self.unit}"
        return InputError(problem, file=file, row=row, expected=expected, fix=fix, code="limit", subject=self.variable)


IMAGE_PIXELS = Limit("CROSSLENS_MAX_IMAGE_PIXELS", 100_000_000, "pixels", "Width times height of one image.")
PIXELS_IN_FLIGHT = Limit(
    "CROSSLENS_MAX_PIXELS_IN_FLIGHT",
    250_000_000,
    "pixels",
    "Images decoded ahead of their use, all together, and those of a batch: 4 bytes of memory per pixel.",
)
ASPECT_RATIO = Limit(
    "CROSSLENS_MAX_ASPECT_RATIO",
    200,
    "times the shorter side",
    "The longer side of an image: models scale the shorter side to a fixed length, and the longer one with it.",
)
IMAGE_BYTES = Limit("CROSSLENS_MAX_IMAGE_BYTES", 256 << 20, "bytes", "The file of one image.")
MEMBER_BYTES = Limit("CROSSLENS_MAX_MEMBER_BYTES", 256 << 20, "bytes", "One member of a tar file, unpacked.")
UNPACKED_BYTES = Limit(
    "CROSSLENS_MAX_UNPACKED_BYTES", 4 << 30, "bytes", "What a compressed file, tar file or table unpacks to."
)
VECTOR_BYTES = Limit(
    "CROSSLENS_MAX_VECTOR_BYTES",
    6 << 30,
    "bytes",
    "Vectors held in memory, by ranking as float32; those of a side beyond it are read from their files in blocks.",
)
DEVICE_BYTES = Limit(
    "CROSSLENS_MAX_DEVICE_BYTES",
    1 << 40,
    "bytes",
    "Memory of each GPU that ranking uses, if so much is free; what does not fit is ranked in blocks.",
)
REMOTE_BYTES = Limit(
    "CROSSLENS_MAX_REMOTE_BYTES", 16 << 30, "bytes", "One file that is copied from an address, announced or not."
)
REMOTE_SECONDS = Limit(
    "CROSSLENS_MAX_REMOTE_SECONDS",
    120,
    "seconds",
    "How long a server or store may take to answer, and then for every megabyte that it sends.",
)
CAPTION_CHARACTERS = Limit("CROSSLENS_MAX_CAPTION_CHARACTERS", 100_000, "characters", "One caption.")

LIMITS = (
    IMAGE_PIXELS, PIXELS_IN_FLIGHT, ASPECT_RATIO, IMAGE_BYTES, MEMBER_BYTES, UNPACKED_BYTES, VECTOR_BYTES,
    DEVICE_BYTES, REMOTE_BYTES, REMOTE_SECONDS, CAPTION_CHARACTERS,
)  # fmt: skip


_KINDS = {
    stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder", stat.S_IFLNK: "a link",
}  # fmt: skip
# What the system says of a path that cannot name a file.
_NO_FILE = (errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EACCES, errno.EPERM)


def require_path(path: str | Path) -> None:
    """Raise for a text that no path can be: one with a NUL, or with half of a surrogate pair."""
    try:
        is_path = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        is_path = False
    if not is_path:
        expected = "a path without NUL and without halves of surrogate pairs"
        raise InputError(f"{str(path)!r:.80} is not a path", expected=expected, fix="check the path")


def kind_of_file(mode: int) -> str:
    """What something is that is not a regular file: a named pipe, a folder, …"""
    return _KINDS.get(stat.S_IFMT(mode), "not a regular file")


def require_regular(path: str | Path) -> None:
    """Raise if there is something at ``path`` that is not a regular file.

    So does a path that the system does not look at (too long, a circle of links, a NUL).
    """
    require_path(path)
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        if error.errno in _NO_FILE:
            problem = f"cannot be opened: {error.strerror}"
            raise InputError(problem, file=f"{path!s:.200}", expected="an existing file", fix="check it") from error
        return
    if not stat.S_ISREG(mode):
        kind = kind_of_file(mode)
        fix = "name the file inside it" if kind == "a folder" else "save the content to a file, and name that"
        raise InputError(f"this is {kind}", file=path, expected="a file", fix=fix)


def regular_bytes(path: str | Path, limit: Limit | None = None) -> bytes:
    """The content of a regular file of at most ``limit`` bytes; a missing or unreadable one raises ``OSError``."""
    require_regular(path)
    if limit is not None:
        limit.check(os.stat(path).st_size, "the file", file=path)
    return Path(path).read_bytes()


_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_INCOMPLETE = "fetch or write the file again: it may be cut off or damaged"
_SPARE_CALLS = 100
# Pairs and escaped backslashes match without a group, so that only half a pair is left for it.
_HALF_PAIR = re.compile(
    r"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


def decode(content: bytes) -> str:
    """UTF-8 bytes as text; the first byte that is not UTF-8 is named with its line."""
    if content.startswith(_UTF_16_MARKS):
        fix = "convert it, for example: iconv -f utf-16 -t utf-8 old > new"
        raise InputError("the text is UTF-16", expected="UTF-8 text", fix=fix)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # utf-8-sig counts from behind the mark it skipped, if there was one.
        start = error.start + len(content) - len(error.object)
        line = content.count(b"\n", 0, start) + 1
        problem = f"byte 0x{content[start]:02x} at position {start} is not UTF-8"
        fix = "convert it, for example: iconv -f latin1 -t utf-8 old > new"
        raise InputError(problem, row=f"line {line}", expected="UTF-8 text", fix=fix) from error


DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
"""What may separate the columns of a CSV file, by name: spreadsheet programs of many countries write semicolons."""


def csv_delimiter(text: str) -> str:
    """What separates the columns of a CSV text: one of ``DELIMITERS`` that its header holds outside of quotes.

    Where the header holds several, it is the one by which the first rows have as many columns as the header, and of
    those the one with the most columns; a comma where the header holds none. Rows alone decide nothing: captions
    contain commas and semicolons.
    """
    widths: dict[str, list[int]] = {}
    for delimiter in DELIMITERS:
        reader = csv.reader(io.StringIO(text[: 1 << 16], newline=""), delimiter=delimiter)
        try:
            widths[delimiter] = [len(row) for row in islice(filter("".join, reader), 20)]
        except csv.Error:
            continue
    if len(text) > 1 << 16:  # the last row may be cut off
        widths = {delimiter: rows[:-1] or rows for delimiter, rows in widths.items()}
    candidates = [delimiter for delimiter, rows in widths.items() if rows and rows[0] > 1]
    return max(candidates, key=lambda mark: (len(set(widths[mark])) == 1, widths[mark][0]), default=",")


def parse_json(text: str, expected: str = "one complete JSON value", fix: str = _INCOMPLETE) -> Any:
    """The value in a JSON text; ``expected`` and ``fix`` are for the message about one that is not JSON.

    Not only a syntax error raises: so do a key that an object has twice (it would hide the first), half of a surrogate
    pair (no file could hold the text), nesting and numbers beyond what can be read.
    """
    try:
        value = _decode_below(text, _SPARE_CALLS)
    except json.JSONDecodeError as error:
        row = f"line {error.lineno}, column {error.colno}"
        raise InputError(f"not valid JSON: {error.msg}", row=row, expected=expected, fix=fix) from error
    except RecursionError as error:
        raise InputError("JSON nested too deeply", expected=f"{expected} of the format", fix=fix) from error
    except ValueError as error:  # Python converts no longer ones
        problem = f"a number of more than {sys.get_int_max_str_digits():,} digits"
        raise InputError(problem, expected="numbers of usual size", fix="correct the number") from error
    if "\\ud" in text or "\\uD" in text:
        half = next((match for match in _HALF_PAIR.finditer(text) if match[1]), None)
        if half is not None:
            row = f"line {text.count(chr(10), 0, half.start()) + 1}"
            expected = "escapes in pairs: one of \\ud800 to \\udbff, then one of \\udc00 to \\udfff"
            fix = "correct the text, or write it without escapes"
            raise InputError(f"{half[1]} is half of a character", row=row, expected=expected, fix=fix)
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        keys = [key for key, _ in pairs]
        again = next(key for key in content if keys.count(key) > 1)
        simple = [f"{key!r}: {value!r:.40}" for key, value in pairs if isinstance(value, (str, int, float))]
        inside = f" in {{{', '.join(simple[:3])}, …}}" if simple else ""
        raise InputError(
            f"the key {again!r} occurs twice{inside}", expected="each key once", fix="merge the two entries"
        )
    return content


def _decode_below(text: str, calls: int) -> Any:
    """Decode with ``calls`` calls to spare: what is just not nested too deeply to parse must not be so to print."""
    return _decode_below(text, calls - 1) if calls else _STRICT.decode(text)


# The check makes parsing a COCO file 1.2 to 1.6 times as long, and reading the dataset hardly longer.
_STRICT = json.JSONDecoder(object_pairs_hook=_unique)


def read_text_file(path: str | Path) -> str:
    """The text of a regular file; a missing or unreadable one raises ``OSError``."""
    with reading(path):
        return decode(regular_bytes(path))


def read_json_file(path: str | Path) -> Any:
    """The value in a regular file; a missing or unreadable one raises ``OSError``."""
    with reading(path):
        return parse_json(decode(regular_bytes(path)))


def is_finite_number(value: Any) -> bool:
    """Whether a value is a number that a float can hold: a whole number may be too large, even to be asked."""
    return type(value) in (int, float) and -sys.float_info.max <= value <= sys.float_info.max


def is_encodable(text: str) -> bool:
    """Whether a text can be written to a file: half of a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


_CELL_BYTES = 16
"""What a cell takes in memory: a text that many rows share is held once, and each row has 16 bytes that point to it."""


def read_parquet_file(file: str | Path, columns: list[str] | None = None) -> pl.DataFrame:
    """A Parquet file, or some of its columns; a damaged one raises ``PolarsError``, a missing one ``OSError``."""
    import polars as pl

    require_regular(file)
    try:
        rows = pl.scan_parquet(file, glob=False)
        width = len(rows.collect_schema()) if columns is None else len(columns)
        cells = rows.select(pl.len()).collect().item() * width
        UNPACKED_BYTES.check(_CELL_BYTES * cells, "the table, unpacked,", file=file)
        return pl.read_parquet(file, columns=columns, glob=False)
    except pl.exceptions.PanicException as error:  # polars trusts some fields of the file
        raise pl.exceptions.ComputeError(str(error).splitlines()[0]) from error


def require_columns(table: pl.DataFrame, columns: Mapping[str, Any], file: str | Path) -> None:
    """Raise unless the table has these columns, each of one of its types (a polars type, or a tuple of them)."""
    for name, types in columns.items():
        kind = table.schema.get(name)
        if kind is None or kind not in (types if isinstance(types, tuple) else (types,)):
            problem = f"no column {name!r}" if kind is None else f"the column {name!r} is of type {kind}"
            raise InputError(problem, file=file, expected="the table that crosslens wrote", fix="write it again")
