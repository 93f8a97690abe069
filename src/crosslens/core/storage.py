"""Values on disk: files and folders that are written completely or not at all, even if the process is killed.

A value becomes a folder with one JSON header, arrays as ``.npy`` and tables as ``.parquet``. The header names the kind
of value and the version of the layout, so that an older crosslens refuses a newer folder instead of misreading it.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import polars as pl

from crosslens.core.errors import ConflictError, FormatVersionError, InputError, argument
from crosslens.core.ids import Ids

T = TypeVar("T")

PARTIAL = ".partial-"
"""Prefix of every temporary name; whatever a killed process leaves behind starts with it."""
HEADER_FILE = "header.json"
FORMAT_VERSION = 1


def cache_folder(folder: str | Path | None = None) -> Path:
    """Where results are kept between runs: ``folder``, ``$CROSSLENS_CACHE``, or ``~/.cache/crosslens``."""
    return Path(folder or os.environ.get("CROSSLENS_CACHE") or "~/.cache/crosslens").expanduser()


@contextmanager
def atomic_file(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; it replaces ``path`` only if the block succeeds."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=PARTIAL, suffix=path.suffix, dir=path.parent)
    os.close(handle)
    partial = Path(name)
    try:
        yield partial
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.chmod(0o666 & ~_umask())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Atomically replace the file at ``path`` by ``text``."""
    with atomic_file(path) as partial:
        partial.write_text(text, encoding="utf-8")


@contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Yield a temporary folder beside ``path``; it replaces ``path`` only if the block succeeds."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=PARTIAL, dir=path.parent))
    try:
        yield partial
        partial.chmod(0o777 & ~_umask())
        replace_folder(partial, path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def replace_folder(new: Path, path: Path) -> None:
    """Move the folder ``new`` to ``path``, replacing what is there."""
    if not path.exists():
        new.replace(path)
        return
    # A folder cannot be swapped in one step everywhere; moved aside, the old one is at least never half there.
    aside = Path(tempfile.mkdtemp(prefix=PARTIAL, dir=path.parent))
    path.replace(aside)
    new.replace(path)
    shutil.rmtree(aside, ignore_errors=True)


def refuse_foreign_files(folder: Path, own: tuple[str, ...]) -> None:
    """Raise if a folder about to be replaced contains files that crosslens did not write (``own``: name patterns)."""
    foreign = sorted(
        entry.name
        for entry in folder.iterdir()
        if not entry.name.startswith(PARTIAL) and not any(fnmatch(entry.name, pattern) for pattern in own)
    )
    if foreign:
        named = ", ".join(foreign[:3]) + (" and more" if foreign[3:] else "")
        fix = "move those files elsewhere, or choose another path"
        raise ConflictError(f"{folder} also holds {named}, which would be lost", fix=fix)


def remove_partial_files(folder: str | Path) -> None:
    """Remove what killed processes left in ``folder``."""
    for leftover in Path(folder).glob(PARTIAL + "*"):
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


def _umask() -> int:
    # The only portable way to read the mask is to set it; mkstemp's 0600 would surprise people who share runs.
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


class StoredFolder(NamedTuple):
    """What :func:`read_folder` returns; a missing array, table or header entry raises an error that names it."""

    header: dict[str, Any]
    arrays: dict[str, np.ndarray[Any, Any]]
    tables: dict[str, pl.DataFrame]


class _Parts(dict[str, T]):
    def __init__(self, content: Mapping[str, T], path: Path, label: str) -> None:
        super().__init__(content)
        self._path, self._label = path, label

    def __missing__(self, name: str) -> T:
        raise InputError(f"{self._label.format(name)} is missing", file=self._path, fix="write the folder again")


def write_folder(
    path: str | Path,
    kind: str,
    *,
    header: Mapping[str, Any] | None = None,
    arrays: Mapping[str, np.ndarray[Any, Any] | None] | None = None,
    tables: Mapping[str, pl.DataFrame | None] | None = None,
    overwrite: bool = False,
) -> Path:
    """Write a value of ``kind`` as the folder ``path``; parts that are None are left out."""
    path = Path(path)
    if path.exists() and not overwrite:
        fix = f"choose another path, or pass {argument('overwrite', True)}"
        raise ConflictError(f"{path} already exists", fix=fix)
    if path.exists() and not (path / HEADER_FILE).exists():
        raise ConflictError(
            f"{path} exists and is not a crosslens folder", fix="choose another path: it is not replaced"
        )
    with atomic_folder(path) as folder:
        for name, array in (arrays or {}).items():
            if array is not None:
                np.save(folder / f"{name}.npy", array, allow_pickle=False)
        for name, table in (tables or {}).items():
            if table is not None:
                table.write_parquet(folder / f"{name}.parquet")
        content = {"format": f"crosslens/{kind}", "version": FORMAT_VERSION, **(header or {})}
        (folder / HEADER_FILE).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return path


def read_folder(path: str | Path, kind: str, *, mmap: bool = False) -> StoredFolder:
    """Read the folder ``path``, which must contain a value of ``kind``."""
    path = Path(path)
    header = read_header(path / HEADER_FILE, kind)
    try:
        arrays = {
            file.stem: np.load(file, mmap_mode="r" if mmap else None, allow_pickle=False)
            for file in sorted(path.glob("*.npy"))
        }
        tables = {file.stem: pl.read_parquet(file) for file in sorted(path.glob("*.parquet"))}
    except (ValueError, OSError, EOFError, pl.exceptions.PolarsError) as error:
        raise InputError(f"damaged {kind} folder: {error}", file=path, fix="write it again") from error
    return StoredFolder(
        _Parts(header, path, f"{{!r}} in {HEADER_FILE}"),
        _Parts(arrays, path, "{}.npy"),
        _Parts(tables, path, "{}.parquet"),
    )


def read_header(file: Path, kind: str) -> dict[str, Any]:
    """Read and check the JSON header of a value of ``kind``."""
    if not file.exists():
        raise InputError(f"no {file.name} here", file=file.parent, expected=f"a folder written by crosslens ({kind})")
    try:
        header = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"not valid JSON: {error}", file=file, fix="write it again") from error
    actual = header.get("format") if isinstance(header, dict) else None
    if actual != f"crosslens/{kind}":
        problem = f"contains {actual or 'something else'}"
        raise InputError(problem, file=file, expected=f"crosslens/{kind}", fix="check the path")
    version = header.get("version")
    if not isinstance(version, int) or version < 1:
        expected = f"a whole number from 1 to {FORMAT_VERSION}"
        raise InputError(f"format version {version!r}", file=file, expected=expected, fix="write it again")
    if version > FORMAT_VERSION:
        problem = f"{file} has format version {version}, this crosslens reads up to version {FORMAT_VERSION}"
        raise FormatVersionError(problem, fix="pip install --upgrade crosslens")
    return dict(header)


def id_table(ids: Ids) -> pl.DataFrame:
    """Ids as a table of one column, ``id``."""
    return pl.DataFrame({"id": ids}, schema={"id": pl.String})


def json_form(value: Any) -> Any:
    """The same content in mappings, lists and plain values, as JSON can hold it; NaN and infinity become None."""
    if isinstance(value, Mapping):
        return {str(key): json_form(part) for key, part in value.items()}
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [json_form(part) for part in value]
    return value
