"""Values on disk: folders that are written completely or not at all (:mod:`crosslens.storage.output`).

A value becomes a folder with one JSON header, arrays as ``.npy`` and tables as ``.parquet``. The header names the kind
of value and the version of the layout, so that an older crosslens refuses a newer folder instead of misreading it, and
holds the hashes of all files, so that a changed one is noticed.
"""

from __future__ import annotations

import errno
import io
import json
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeVar, overload

import numpy as np

from crosslens.core import ConflictError, FormatVersionError, InputError, argument
from crosslens.storage.arrays import Array, open_array
from crosslens.storage.blocks import VectorBlocks, each_block
from crosslens.storage.hashing import HEADER_FILE, Manifest, sealed, unsealed, verification
from crosslens.storage.input_files import read_json_file, read_parquet_file
from crosslens.storage.output import Layout, atomic_folder, read_whole, write_text

if TYPE_CHECKING:  # rankings are made without it where it is not installed
    import polars as pl

T = TypeVar("T")

FORMAT_VERSION = 1
_ZEROS = 1 << 20
_CANNOT_RESERVE = (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


class StoredFolder(NamedTuple):
    """What :func:`read_folder` returns; a missing array, table or header entry raises an error that names it."""

    header: dict[str, Any]
    arrays: dict[str, Array]
    tables: dict[str, pl.DataFrame]


class _Parts(dict[str, T]):
    def __init__(self, content: Mapping[str, T], path: Path, label: str) -> None:
        super().__init__(content)
        self._path, self._label = path, label

    def __missing__(self, name: str) -> T:
        raise InputError(f"{self._label.format(name)} is missing", file=self._path, fix="write the folder again")


Arrays = Mapping[str, Array | VectorBlocks | None]
Tables = Mapping[str, "pl.DataFrame | None"]


def folder_layout(kind: str, arrays: Iterable[str] = (), tables: Iterable[str] = ()) -> Layout:
    """What a folder of :func:`write_folder` consists of."""
    files = (*(f"{name}.npy" for name in arrays), *(f"{name}.parquet" for name in tables))
    return Layout(f"a crosslens folder ({kind})", HEADER_FILE, files)


def write_folder(
    path: str | Path, kind: str, *, header: Mapping[str, Any] | None = None, arrays: Arrays | None = None,
    tables: Tables | None = None, overwrite: bool = False,
) -> Path:  # fmt: skip
    """Write a value of ``kind`` as the folder ``path``; parts that are None are left out."""
    path, layout = Path(path), folder_layout(kind, arrays or (), tables or ())
    if layout.holds(path) and not overwrite:
        fix = f"choose another path, or pass {argument('overwrite', True)}"
        raise ConflictError(f"{path} already exists", fix=fix)
    with atomic_folder(path, layout) as folder:
        write_parts(folder, kind, header=header, arrays=arrays, tables=tables)
    return path


def write_parts(
    folder: Path, kind: str, *, header: Mapping[str, Any] | None = None, arrays: Arrays | None = None,
    tables: Tables | None = None,
) -> None:  # fmt: skip
    """Write the parts of a value into a folder that is being prepared, the header last."""
    kept_arrays = {f"{name}.npy": array for name, array in (arrays or {}).items() if array is not None}
    kept_tables = {f"{name}.parquet": table for name, table in (tables or {}).items() if table is not None}
    for name, array in kept_arrays.items():
        if isinstance(array, np.ndarray):
            np.save(folder / name, array, allow_pickle=False)
            continue
        target = mapped_array(folder / name, array.dtype, array.shape)
        for start, block in each_block(array):
            target[start : start + len(block)] = block
        target.flush()
    for name, table in kept_tables.items():
        (folder / name).write_bytes(parquet_bytes(table))
    content = {"format": f"crosslens/{kind}", "version": FORMAT_VERSION, **(header or {})}
    write_header(folder / HEADER_FILE, content, (*kept_arrays, *kept_tables))


def mapped_array(file: str | Path, dtype: Any, shape: tuple[int, ...]) -> np.memmap[Any, Any]:
    """A new ``.npy`` file of zeros, mapped for writing; a disk without room for all of it raises now."""
    layout = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": tuple(shape)}
    with open(file, "wb") as new:
        np.lib.format.write_array_header_1_0(new, layout)
        reserve(new, new.tell() + math.prod(shape) * np.dtype(dtype).itemsize)
    return np.lib.format.open_memmap(file, "r+")


def reserve(file: IO[bytes], size: int) -> None:
    """Have the disk set aside all of a file; ``OSError`` where it has no room.

    Otherwise a disk that is full when a mapped page is written ends the process without a message.
    """
    file.flush()
    try:
        os.posix_fallocate(file.fileno(), 0, size)
    except (AttributeError, OSError) as error:  # neither every system nor every file system can
        if isinstance(error, OSError) and error.errno not in _CANNOT_RESERVE:
            raise OSError(error.errno, f"{error.strerror}, {size:,} bytes are needed", str(file.name)) from error
        for start in range(file.seek(0, os.SEEK_END), size, _ZEROS):
            file.write(bytes(min(_ZEROS, size - start)))
        file.flush()


def write_header(file: Path, content: Mapping[str, Any], files: Iterable[str] = ()) -> None:
    """Write a JSON header with the hashes of ``files``, which are in the same folder and complete."""
    stored = sealed(content, {name: file.parent / name for name in files})
    write_text(file, json.dumps(stored, indent=2, ensure_ascii=False) + "\n")


def read_folder(path: str | Path, kind: str, *, mmap: bool = False, verify: bool = True) -> StoredFolder:
    """Read the folder ``path``, which must contain a value of ``kind``; with ``verify`` its files are checked."""
    path = Path(path)
    return read_whole(path, path / HEADER_FILE, read=lambda: _read_parts(path, kind, mmap, verify))


def _read_parts(path: Path, kind: str, mmap: bool, verify: bool) -> StoredFolder:
    with verification(verify):
        header, manifest = read_manifest(path / HEADER_FILE, kind)
        manifest.check_folder()
    listed = manifest.hashes
    names = sorted(file.name for file in path.iterdir()) if listed is None else sorted(listed)
    try:
        arrays = {Path(name).stem: open_array(path / name, mmap=mmap) for name in names if name.endswith(".npy")}
        tables = {}
        if stored := [name for name in names if name.endswith(".parquet")]:
            import polars as pl  # a folder of arrays is read where it is not installed

            try:
                tables = {Path(name).stem: read_parquet_file(path / name) for name in stored}
            except pl.exceptions.PolarsError as error:
                raise ValueError(str(error)) from error
    except (ValueError, OSError, EOFError) as error:
        raise InputError(f"damaged {kind} folder: {error}", file=path, fix="write it again") from error
    return StoredFolder(
        _Parts(header, path, f"{{!r}} in {HEADER_FILE}"),
        _Parts(arrays, path, "{}.npy"),
        _Parts(tables, path, "{}.parquet"),
    )


def read_header(file: Path, kind: str) -> dict[str, Any]:
    """Read and check the JSON header of a value of ``kind``."""
    return read_manifest(file, kind)[0]


def read_manifest(file: Path, kind: str) -> tuple[dict[str, Any], Manifest]:
    """The JSON header of a value of ``kind``, checked, and the hashes that it holds of other files."""
    if not file.exists():
        raise InputError(f"no {file.name} here", file=file.parent, expected=f"a folder written by crosslens ({kind})")
    header = read_json_file(file)
    actual = header.get("format") if isinstance(header, dict) else None
    if actual != f"crosslens/{kind}":
        problem = f"contains {actual or 'something else'}"
        raise InputError(problem, file=file, expected=f"crosslens/{kind}", fix="check the path")
    version = header.get("version")
    if type(version) is not int or version < 1:
        expected = f"a whole number from 1 to {FORMAT_VERSION}"
        raise InputError(f"format version {version!r}", file=file, expected=expected, fix="write it again")
    if version > FORMAT_VERSION:
        problem = f"{file} has format version {version}, this crosslens reads up to version {FORMAT_VERSION}"
        raise FormatVersionError(problem, fix="pip install --upgrade crosslens")
    return unsealed(header, file)


def parquet_bytes(table: pl.DataFrame, **options: Any) -> memoryview:
    """The content of a Parquet file.

    Written by Python, a full disk is an error that says so; written by polars, it is a complaint about the format.
    """
    content = io.BytesIO()
    table.write_parquet(content, **options)
    return content.getbuffer()


_FORMULA = r"'*[\s\ufeff\u200b\u2060]*[=+\-@\t\r\n＝＋－＠﹦﹢﹣﹫]"
"""How a text begins that a spreadsheet program may run as a formula, or that has such an apostrophe already.

Some trim what cannot be seen; a mark of byte order at the beginning of a file is none of its first cell.
"""
_NUMBER = r"[+-]?[0-9.,]*[0-9](?:[eE][+-]?[0-9]+)?"


def for_spreadsheets(table: pl.DataFrame) -> pl.DataFrame:
    """The table as .csv and .tsv files hold it: a text that a spreadsheet program would run has an apostrophe in front.

    :func:`from_spreadsheets` gives every text back. Numbers stay numbers, also those that are written as texts.
    """
    import polars as pl

    cell = pl.col(pl.String)
    is_formula = cell.str.contains(f"^{_FORMULA}") & ~cell.str.contains(f"^{_NUMBER}$")
    names = {name: f"'{name}" for name in table.columns if re.match(_FORMULA, name) and not re.fullmatch(_NUMBER, name)}
    return table.with_columns(pl.when(is_formula).then("'" + cell).otherwise(cell).name.keep()).rename(names)


def from_spreadsheets(table: pl.DataFrame) -> pl.DataFrame:
    """A table as it was read from a .csv or .tsv file, without the apostrophes of :func:`for_spreadsheets`."""
    import polars as pl

    names = [re.sub(f"^'({_FORMULA})", r"\1", name) for name in table.columns]
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        fix = "name every column in the first line"
        raise InputError(f"two columns are named {repeated!r}", row="line 1", expected="different names", fix=fix)
    texts = table.with_columns(pl.col(pl.String).str.replace(f"^'({_FORMULA})", "${1}"))
    return texts.rename(dict(zip(table.columns, names, strict=True)))


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


@overload
def json_form(value: Mapping[Any, Any] | _Dataclass) -> dict[str, Any]: ...
@overload
def json_form(value: Sequence[Any] | float | None) -> Any: ...
def json_form(value: Any) -> Any:
    """The content in mappings, lists and plain values, as JSON can hold it; NaN and infinity become None.

    A dataclass becomes a mapping of its fields, but for those whose metadata say ``json=False``; a table a list of its
    rows. A value inside that has a method ``as_dict`` becomes what it returns.
    """

    def inner(part: Any) -> Any:
        return json_form(part.as_dict() if hasattr(part, "as_dict") else part)

    if is_dataclass(value) and not isinstance(value, Mapping):
        value = {part.name: getattr(value, part.name) for part in fields(value) if part.metadata.get("json", True)}
    if hasattr(value, "to_dicts"):
        value = value.to_dicts()
    if isinstance(value, Mapping):
        return {str(key): inner(part) for key, part in value.items()}
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [inner(part) for part in value]
    return str(value) if isinstance(value, Path) else value
