"""How a value becomes a folder: one JSON header, arrays as ``.npy``, tables as ``.parquet``; nothing else.

The folder appears whole or not at all. The header names the kind and the version of the layout, so that an older
crosslens meeting a newer folder says so instead of guessing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from crosslens.core.atomic import atomic_folder
from crosslens.core.errors import ConflictError, FormatVersionError, InputError

HEADER = "header.json"
VERSION = 1


class Bundle(NamedTuple):
    """What :func:`read_bundle` finds in a folder."""

    header: dict[str, Any]
    arrays: dict[str, np.ndarray[Any, Any]]
    tables: dict[str, pl.DataFrame]


def write_bundle(
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
        raise ConflictError(f"{path} already exists", fix="choose another place, or pass overwrite=True")
    if path.exists() and not (path / HEADER).exists():
        raise ConflictError(
            f"{path} exists and is not a crosslens folder", fix="choose another place: it is not replaced"
        )
    with atomic_folder(path) as folder:
        for name, array in (arrays or {}).items():
            if array is not None:
                np.save(folder / f"{name}.npy", array, allow_pickle=False)
        for name, table in (tables or {}).items():
            if table is not None:
                table.write_parquet(folder / f"{name}.parquet")
        content = {"format": f"crosslens/{kind}", "version": VERSION, **(header or {})}
        (folder / HEADER).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return path


def read_bundle(path: str | Path, kind: str, *, mmap: bool = False) -> Bundle:
    """Read the folder ``path``, which must hold a value of ``kind``."""
    path = Path(path)
    header = read_header(path / HEADER, kind)
    try:
        arrays = {
            file.stem: np.load(file, mmap_mode="r" if mmap else None, allow_pickle=False)
            for file in sorted(path.glob("*.npy"))
        }
        tables = {file.stem: pl.read_parquet(file) for file in sorted(path.glob("*.parquet"))}
    except (ValueError, OSError, EOFError, pl.exceptions.PolarsError) as error:
        raise InputError(f"damaged {kind} folder: {error}", file=path, fix="write it again") from error
    return Bundle(header, arrays, tables)


def read_header(file: Path, kind: str) -> dict[str, Any]:
    """Read and check the JSON header of a value of ``kind``."""
    if not file.exists():
        raise InputError(f"no {file.name} here", file=file.parent, expected=f"a folder written by crosslens ({kind})")
    try:
        header = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"not valid JSON: {error}", file=file, fix="write it again") from error
    found = header.get("format") if isinstance(header, dict) else None
    if found != f"crosslens/{kind}":
        raise InputError(
            f"holds {found or 'something else'}", file=file, expected=f"crosslens/{kind}", fix="check the path"
        )
    version = header.get("version")
    if not isinstance(version, int) or version < 1:
        raise InputError(
            f"format version {version!r}",
            file=file,
            expected=f"a whole number from 1 to {VERSION}",
            fix="write it again",
        )
    if version > VERSION:
        raise FormatVersionError(
            f"{file} has format version {version}, this crosslens reads up to version {VERSION}",
            fix="pip install --upgrade crosslens",
        )
    return dict(header)
