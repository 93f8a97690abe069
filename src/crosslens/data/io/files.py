"""Files, gzipped or not: their bytes, text, lines, JSON and arrays, and writing them atomically.

Errors name the file and the line.
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

from crosslens.core import ConflictError, InputError, argument, atomic_file, reading

_GZIP_MAGIC = b"\x1f\x8b"
_NPY_MAGIC = b"\x93NUMPY"
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_INCOMPLETE = "fetch or write the file again: it may be cut off or damaged"


def existing_file(path: str | Path) -> Path:
    """``path``, if it is a file."""
    path = Path(path)
    if path.is_dir():
        raise InputError("this is a folder", file=path, expected="a file", fix="name the file inside it")
    if not path.exists():
        near = near_name(path)
        fix = f"did you mean {near}?" if near else "check the path"
        raise InputError("no such file", file=path, expected="an existing file", fix=fix)
    return path


def near_name(path: str | Path) -> str | None:
    """The name beside a missing path that is most like it, with the same ending or with a slip in the ending."""
    path = Path(path)
    beside = [Path(entry.name) for entry in islice(path.parent.iterdir(), 2000)] if path.parent.is_dir() else []
    alike = {name.stem: name.name for name in beside if name.suffix == path.suffix}
    if near := difflib.get_close_matches(path.stem, alike, n=1, cutoff=0.65):
        return alike[near[0]]
    slipped = {name.suffix: name.name for name in beside if name.stem == path.stem and name.suffix}
    ending = difflib.get_close_matches(path.suffix, slipped, n=1)
    return slipped[ending[0]] if ending else None


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
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be opened: {error.strerror}", file=path, fix="check its permissions") from error
    if content.startswith(_GZIP_MAGIC):
        try:
            return gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(
                f"damaged gzip: {error}", file=path, expected="a complete gzip file", fix=_INCOMPLETE
            ) from error
    if path.suffix == ".gz":
        raise InputError("not gzip", file=path, expected="a gzip file, by its name", fix="drop .gz from its name")
    return content


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
    numbered = [(line, number) for number, line in enumerate(read_lines(path), start=1) if line.strip()]
    return [line for line, _ in numbered], [number for _, number in numbered]


def read_json(path: str | Path) -> Any:
    """The value in a JSON file; see :func:`parse_json`."""
    text = read_text(path)
    with reading(path):
        try:
            return parse_json(text)
        except json.JSONDecodeError as error:
            raise InputError(
                f"not valid JSON: {error.msg}",
                row=f"line {error.lineno}, column {error.colno}",
                expected="one complete JSON value",
                fix=_INCOMPLETE,
            ) from error
        except RecursionError as error:
            raise InputError("nested too deeply", expected="one JSON value of the format", fix=_INCOMPLETE) from error


def parse_json(text: str) -> Any:
    """The value in a JSON text; a key that an object has twice raises instead of hiding the first."""
    return _STRICT.decode(text)


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


# The check makes parsing a COCO file 1.2 to 1.6 times as long, and reading the dataset hardly longer.
_STRICT = json.JSONDecoder(object_pairs_hook=_unique)


def read_array(path: str | Path) -> np.ndarray[Any, Any]:
    """The array in a ``.npy`` file, left on disk until it is used."""
    path = existing_file(path)
    try:
        with path.open("rb") as file:
            start = file.read(8)
            if not start.startswith(_NPY_MAGIC):
                raise ValueError(_guess(start, path.suffix.lower()))
            file.seek(0)
            if _array_type(file).hasobject:
                raise ValueError("the array holds Python objects")
        array: np.ndarray[Any, Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        expected = "a .npy file of plain numbers"
        fix = "write it with numpy.save(path, array.astype('float32'))"
        raise InputError(f"cannot be read: {error}", file=path, expected=expected, fix=fix) from error
    return array


def _array_type(file: IO[bytes]) -> np.dtype[Any]:
    """The type in the header of a ``.npy`` file."""
    is_first_version = np.lib.format.read_magic(file) == (1, 0)
    read_header = np.lib.format.read_array_header_1_0 if is_first_version else np.lib.format.read_array_header_2_0
    return read_header(file)[2]


def _guess(start: bytes, ending: str) -> str:
    """What a file that is not a ``.npy`` file seems to be, by its first bytes."""
    if start.startswith(b"PK"):
        archive = "a PyTorch file" if ending in (".pt", ".pth", ".bin") else "an .npz archive of several arrays"
        return f"this is {archive}"
    if not start:
        return "the file is empty"
    known = {b"\x80": "a pickle or PyTorch file", b"\x89HDF": "an HDF5 file", b"PAR1": "a Parquet file"}
    kind = next((what for magic, what in known.items() if start.startswith(magic)), None)
    is_text = start.isascii() and "".join(start.decode("ascii").split()).isprintable()
    return f"this is {kind or ('text' if is_text else 'no .npy file')}"


def refuse_existing(path: str | Path, overwrite: bool) -> Path:
    """``path``, unless it exists and must not be replaced."""
    path = Path(path)
    if path.exists() and not overwrite:
        raise ConflictError(f"{path} already exists", fix=f"choose another path, or pass {argument('overwrite', True)}")
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
