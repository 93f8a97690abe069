"""Files, gzipped or not: their bytes, text, lines and JSON, and writing them atomically; and tar files.

Errors name the file and the line. Nobody vouches for what is read: whatever a file or a member of an archive claims, no
more is read at once than the limits allow.
"""

from __future__ import annotations

import bz2
import difflib
import gzip
import lzma
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO, TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

from crosslens.core import InputError, reading
from crosslens.storage import MEMBER_BYTES, UNPACKED_BYTES, atomic_file, decode, parse_json, require_regular

_GZIP_MAGIC = b"\x1f\x8b"
_INCOMPLETE = "fetch or write the file again: it may be cut off or damaged"


def existing_file(path: str | Path) -> Path:
    """``path``, if it is a file."""
    path = Path(path)
    require_regular(path)
    if not path.exists():
        # The name beside it that is most like it, with the same ending or with a slip in the ending.
        beside = [Path(entry.name) for entry in islice(path.parent.iterdir(), 2000)] if path.parent.is_dir() else []
        alike = {name.stem: name.name for name in beside if name.suffix == path.suffix}
        slipped = {name.suffix: name.name for name in beside if name.stem == path.stem and name.suffix}
        near = [alike[stem] for stem in difflib.get_close_matches(path.stem, alike, n=1, cutoff=0.65)]
        near += [slipped[ending] for ending in difflib.get_close_matches(path.suffix, slipped, n=1)]
        fix = f"did you mean {near[0]}?" if near else "check the path"
        raise InputError("no such file", file=path, expected="an existing file", fix=fix)
    return path


def json_file(folder: Path, name: str) -> Path:
    """The JSON file ``name`` of a folder, gzipped where only that exists."""
    plain, packed = folder / f"{name}.json", folder / f"{name}.json.gz"
    return packed if packed.exists() and not plain.exists() else plain


def format_suffix(path: str | Path) -> str:
    """The ending that names the format, without ``.gz``: ``.csv`` for ``captions.csv.gz``."""
    return Path(str(path).removesuffix(".gz")).suffix.lower()


def format_stem(path: str | Path) -> str:
    """The file's name without the endings that name its format: ``captions`` for ``captions.csv.gz``."""
    return Path(str(path).removesuffix(".gz")).stem


def read_bytes(path: str | Path) -> bytes:
    """The content of a file, decompressed if it is gzip."""
    path = existing_file(path)
    try:
        with path.open("rb") as file:
            if file.peek(2).startswith(_GZIP_MAGIC):
                content = BytesIO()
                try:
                    copy_unpacked(cast(IO[bytes], gzip.GzipFile(fileobj=file)), content, path, "gzip")
                except (OSError, EOFError, zlib.error) as error:
                    problem, expected = f"damaged gzip: {error}", "a complete gzip file"
                    raise InputError(problem, file=path, expected=expected, fix=_INCOMPLETE) from error
                return content.getvalue()
            if path.suffix == ".gz":
                fix = "drop .gz from its name"
                raise InputError("not gzip", file=path, expected="a gzip file, by its name", fix=fix)
            return file.read()
    except OSError as error:
        raise InputError(f"cannot be opened: {error.strerror}", file=path, fix="check its permissions") from error


def read_text(path: str | Path) -> str:
    """The text of a file that must not be empty."""
    with reading(path):
        text = decode(read_bytes(path))
        if not text.strip():
            raise InputError("the file is empty", expected="some content", fix=_INCOMPLETE)
        return text


def read_lines(path: str | Path) -> list[str]:
    """The lines of a text file; only line feeds (with or without a carriage return) end a line."""
    lines = read_text(path).replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def numbered_lines(path: str | Path) -> tuple[list[str], list[int]]:
    """The lines that are not blank, and the number of each, from 1."""
    lines = read_lines(path)
    numbers = [number for number, line in enumerate(lines, start=1) if line.strip()]
    return [lines[number - 1] for number in numbers], numbers


def read_json(path: str | Path) -> Any:
    """The value in a JSON file; see :func:`parse_json`."""
    text = read_text(path)
    with reading(path):
        return parse_json(text)


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


TAR_ERRORS = (tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError, ValueError, OverflowError)
"""What reading a damaged tar file raises."""


def unpacking(file: IO[bytes]) -> IO[bytes] | None:
    """The content of an open compressed file; None if it is not compressed."""
    start = file.read(6)
    file.seek(0)
    if start.startswith(_GZIP_MAGIC):
        return cast(IO[bytes], gzip.GzipFile(fileobj=file))
    kinds = {b"BZh": bz2.BZ2File, b"\xfd7zXZ\x00": lzma.LZMAFile}
    return next((cast(IO[bytes], kind(file)) for magic, kind in kinds.items() if start.startswith(magic)), None)


def copy_unpacked(packed: IO[bytes], target: IO[bytes], path: str | Path, what: str = "a compressed tar file") -> None:
    """Copy what a compressed file unpacks to, up to the limit; memory is taken as it comes, not for all at once."""
    while chunk := packed.read(1 << 20):
        target.write(chunk)
        if target.tell() > UNPACKED_BYTES.value:
            size = Path(path).stat().st_size
            raise UNPACKED_BYTES.error(f"{size:,} bytes of {what} unpack to more than allowed", file=path)
    target.seek(0)


def open_tar(file: IO[bytes]) -> tarfile.TarFile:
    """A tar file in an open file, compressed or not."""
    packed = unpacking(file)
    bounded = _Bounded(file, None) if packed is None else _Bounded(packed, UNPACKED_BYTES.value)
    return tarfile.open(fileobj=cast(IO[bytes], bounded), mode="r:")


class _Bounded:
    """A file that refuses to read too much at once: tarfile reads names and headers of any length into memory."""

    def __init__(self, file: IO[bytes], most: int | None) -> None:
        self._file, self._most = file, most
        self.name = getattr(file, "name", "")

    def read(self, size: int = -1) -> bytes:
        """At most the limit for a member."""
        if size > MEMBER_BYTES.value:
            raise MEMBER_BYTES.error(f"a header or member of {size:,} bytes")
        content = self._file.read(size)
        self._check(self._file.tell())
        return content

    def seek(self, offset: int, whence: int = 0) -> int:
        self._check(offset)
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def _check(self, position: int) -> None:
        if self._most is not None and position > self._most:
            raise UNPACKED_BYTES.error("the compressed tar file unpacks to more than allowed")

    def close(self) -> None:
        """The file stays open: whoever opened it closes it."""
