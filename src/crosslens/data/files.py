"""Files as people have them, gzipped or not: their bytes, text, lines, JSON; and writing them back whole.

Whatever is wrong with a file is said with its name and its place.
"""

from __future__ import annotations

import difflib
import gzip
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from crosslens.core.atomic import atomic_file
from crosslens.core.errors import ConflictError, InputError, reading

_GZIP_MAGIC = b"\x1f\x8b"
_AGAIN = "fetch or write the file again: it may be cut off or damaged"


def existing_file(path: str | Path) -> Path:
    """``path``, if a file stands there."""
    path = Path(path)
    if path.is_dir():
        raise InputError("this is a folder", file=path, expected="a file", fix="name the file inside it")
    if not path.exists():
        beside = [one.name for one in islice(path.parent.iterdir(), 2000)] if path.parent.is_dir() else []
        near = difflib.get_close_matches(path.name, beside, n=1)
        fix = f"did you mean {near[0]}?" if near else "check the path"
        raise InputError("no such file", file=path, expected="an existing file", fix=fix)
    return path


def format_suffix(path: str | Path) -> str:
    """The ending that tells the format, without ``.gz``: ``.csv`` for ``captions.csv.gz``."""
    return Path(str(path).removesuffix(".gz")).suffix.lower()


def format_stem(path: str | Path) -> str:
    """The file's name without the endings that tell its format: ``captions`` for ``captions.csv.gz``."""
    return Path(str(path).removesuffix(".gz")).stem


def read_bytes(path: str | Path) -> bytes:
    """The content of a file, decompressed if it is gzip."""
    path = existing_file(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be opened: {error.strerror}", file=path, fix="check its permissions") from error
    if content.startswith(_GZIP_MAGIC):
        try:
            return gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(
                f"damaged gzip: {error}", file=path, expected="a complete gzip file", fix=_AGAIN
            ) from error
    if path.suffix == ".gz":
        raise InputError("not gzip", file=path, expected="a gzip file, by its name", fix="drop .gz from its name")
    return content


def decode(content: bytes) -> str:
    """UTF-8 bytes as text; the first byte that is not UTF-8 is named with its line."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # utf-8-sig counts from behind the mark it skipped, if there was one.
        start = error.start + len(content) - len(error.object)
        line = content.count(b"\n", 0, start) + 1
        raise InputError(
            f"byte 0x{content[start]:02x} at position {start} is not UTF-8",
            row=f"line {line}",
            expected="UTF-8 text",
            fix="convert it, for example: iconv -f latin1 -t utf-8 old > new",
        ) from error


def read_text(path: str | Path) -> str:
    """The text of a file that must not be empty."""
    with reading(path):
        text = decode(read_bytes(path))
        if not text.strip():
            raise InputError("the file is empty", expected="some content", fix=_AGAIN)
        return text


def read_lines(path: str | Path) -> list[str]:
    """The lines of a text file; only line feeds (with or without a carriage return) end a line."""
    lines = read_text(path).replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def read_json(path: str | Path, *, unique_keys: bool = False) -> Any:
    """The value in a JSON file; with ``unique_keys`` a key given twice raises instead of hiding the first."""
    text = read_text(path)
    with reading(path):
        try:
            return json.loads(text, object_pairs_hook=_unique if unique_keys else None)
        except json.JSONDecodeError as error:
            raise InputError(
                f"not valid JSON: {error.msg}",
                row=f"line {error.lineno}, column {error.colno}",
                expected="one complete JSON value",
                fix=_AGAIN,
            ) from error
        except RecursionError as error:
            raise InputError("nested too deeply", expected="one JSON value of the format", fix=_AGAIN) from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        keys = [key for key, _ in pairs]
        again = next(key for key in content if keys.count(key) > 1)
        raise InputError(f"the key {again!r} occurs twice", expected="each key once", fix="merge the two entries")
    return content


def read_array(path: str | Path) -> np.ndarray[Any, Any]:
    """The array in a ``.npy`` file, left on disk until it is used."""
    path = existing_file(path)
    try:
        array: np.ndarray[Any, Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise InputError(
            f"cannot be read: {error}",
            file=path,
            expected="a .npy file of plain numbers",
            fix="write it with numpy.save(path, array.astype('float32'))",
        ) from error
    return array


def refuse_existing(path: str | Path, overwrite: bool) -> Path:
    """``path``, unless something stands there that must not be replaced."""
    path = Path(path)
    if path.exists() and not overwrite:
        raise ConflictError(f"{path} already exists", fix="choose another place, or pass overwrite=True")
    return path


@contextmanager
def writing_bytes(path: str | Path) -> Iterator[IO[bytes]]:
    """A file that appears only when complete; gzipped if its name ends in ``.gz``."""
    with atomic_file(path) as partial, partial.open("wb") as raw:
        if Path(path).suffix == ".gz":
            # No name and no time in the header: the same content gives the same bytes.
            with gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=0) as packed:
                yield packed  # type: ignore[misc]
        else:
            yield raw


@contextmanager
def writing_text(path: str | Path) -> Iterator[IO[str]]:
    """Like :func:`writing_bytes`, for UTF-8 text."""
    with writing_bytes(path) as raw, TextIOWrapper(raw, encoding="utf-8", newline="\n") as text:
        yield text
