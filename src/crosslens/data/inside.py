"""Pictures that lie inside other files, each under an address that stands where a file name would.

``0001.tar::cats/7.jpg``       the member ``cats/7.jpg`` of an archive, compressed or not
``part-0.arrow::image/41``     row 41 of the column ``image`` of an Arrow file, as Hugging Face datasets keep theirs
``rows.parquet::image/41``     the same of a Parquet file
``7.jpg::box/10,20,300,200``   a part of a picture (:mod:`crosslens.data.crops`)

Nothing is unpacked beside the file. What is opened stays open for the next picture, so that reading all pictures in
turn reads every file once.
"""

from __future__ import annotations

import io
import shutil
import tarfile
import tempfile
import threading
import zlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, Protocol, cast

import polars as pl

from crosslens.core.errors import MissingExtraError
from crosslens.data.crops import box_in, read_part

MARK = "::"
_OPEN = 8  # files kept open; shards are read one after the other
_BLOCK = 64  # rows of a Parquet file read at a time

_opening = threading.Lock()


def outer_file(address: str | Path) -> Path:
    """The file on disk that an address leads to: itself, or the one that the addressed file lies in."""
    return Path(str(address).partition(MARK)[0])


def read_address(address: str | Path) -> bytes:
    """The bytes of a file, or of what lies inside one; whatever is wrong raises an ``OSError``."""
    outer, mark, inner = str(address).partition(MARK)
    if not mark:
        return Path(address).read_bytes()
    if (box := box_in(inner)) is not None:
        return read_part(outer, box)
    facts = Path(outer).stat()
    with _opening:  # two threads must not unpack the same archive
        opened = _opened(outer, facts.st_mtime_ns, facts.st_size)
    return opened.read(inner)


class _Container(Protocol):
    def read(self, inner: str) -> bytes:
        """The bytes under the second half of an address."""


@lru_cache(maxsize=_OPEN)
def _opened(path: str, changed: int, size: int) -> _Container:
    kinds: dict[str, Callable[[str], _Container]] = {".arrow": _Arrow, ".parquet": _Parquet}
    try:
        return kinds.get(Path(path).suffix, _Tar)(path)
    except (tarfile.TarError, EOFError, zlib.error, ValueError) as error:
        raise OSError(f"{path}: {error}") from error


class _Tar:
    """An archive with an index of its members; a compressed one is unpacked into a nameless temporary file first."""

    def __init__(self, path: str) -> None:
        self._lock = threading.Lock()
        with tarfile.open(path) as tar:
            source = cast(IO[bytes], tar.fileobj)
            self._file: IO[bytes]
            if isinstance(source, io.BufferedReader):
                self._file = open(path, "rb")  # noqa: SIM115  (closed with the last reference)
            else:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115
                source.seek(0)
                shutil.copyfileobj(source, self._file, 1 << 20)
                self._file.seek(0)
        with tarfile.open(fileobj=self._file, mode="r:") as tar:
            self._place = {one.name: (one.offset_data, one.size) for one in tar if one.isfile()}

    def read(self, inner: str) -> bytes:
        if inner not in self._place:
            raise OSError(f"no file {inner!r} in it")
        start, size = self._place[inner]
        with self._lock:
            self._file.seek(start)
            return self._file.read(size)


class _Arrow:
    """An Arrow file, left on disk; a picture is copied when it is asked for."""

    def __init__(self, path: str) -> None:
        self._folder = Path(path).parent
        self._table = arrow_table(path)

    def read(self, inner: str) -> bytes:
        column, row = _cell(inner)
        try:
            return _bytes_of(self._table[column][row].as_py(), inner, self._folder)
        except (KeyError, IndexError) as error:
            raise OSError(f"no {inner!r} in it") from error


class _Parquet:
    """A Parquet file, of which the rows around the last pictures are kept."""

    def __init__(self, path: str) -> None:
        self._path, self._folder = path, Path(path).parent
        self._lock = threading.Lock()
        self._block = lru_cache(maxsize=2)(self._read)  # two: threads that read ahead stand on both sides of a border

    def read(self, inner: str) -> bytes:
        column, row = _cell(inner)
        with self._lock:
            values = self._block(column, row // _BLOCK)
        if row % _BLOCK >= len(values):
            raise OSError(f"no {inner!r} in it")
        return _bytes_of(values[row % _BLOCK], inner, self._folder)

    def _read(self, column: str, block: int) -> list[Any]:
        try:
            rows = pl.scan_parquet(self._path, glob=False).select(column).slice(block * _BLOCK, _BLOCK).collect()
        except pl.exceptions.PolarsError as error:
            raise OSError(f"{self._path}: {error}") from error
        return rows[column].to_list()


def arrow_table(path: str | Path) -> Any:
    """The table in an Arrow file (stream or file form), mapped into memory."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise MissingExtraError("reading Arrow files", "pyarrow", "hf") from error
    try:
        return pa.ipc.open_stream(pa.memory_map(str(path))).read_all()
    except pa.ArrowInvalid:
        return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


def _cell(inner: str) -> tuple[str, int]:
    column, _, row = inner.rpartition("/")
    if not column or not row.isdecimal():
        raise OSError(f"{inner!r} is no place in a table")
    return column, int(row)


def _bytes_of(value: Any, inner: str, folder: Path) -> bytes:
    """A cell's picture: bytes, or the path of a file, or Hugging Face's pair of both."""
    content, path = (value.get("bytes"), value.get("path")) if isinstance(value, dict) else (value, value)
    if isinstance(content, bytes):
        return content
    if isinstance(path, str) and path:
        return (folder / path).read_bytes()
    raise OSError(f"{inner!r} is empty")
