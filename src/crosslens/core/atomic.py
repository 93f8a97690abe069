"""Writes that are either wholly there or not there at all, whenever the process dies."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path

from crosslens.core.errors import ConflictError

PARTIAL = ".partial-"
"""Prefix of every temporary name; whatever a killed process leaves behind starts with it."""


@contextmanager
def atomic_file(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; move it into place only if the block succeeds."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=PARTIAL, suffix=path.suffix, dir=path.parent)
    os.close(handle)
    partial = Path(name)
    try:
        yield partial
        _sync(partial)
        partial.chmod(0o666 & ~_umask())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Yield a temporary folder beside ``path``; it takes the place of ``path`` if the block succeeds."""
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
    """Move the folder ``new`` to ``path``, in the place of what stands there."""
    if not path.exists():
        new.replace(path)
        return
    # A folder cannot be swapped in one step everywhere; moved aside, the old one is at least never half there.
    aside = Path(tempfile.mkdtemp(prefix=PARTIAL, dir=path.parent))
    path.replace(aside)
    new.replace(path)
    shutil.rmtree(aside, ignore_errors=True)


def refuse_strangers(folder: Path, own: tuple[str, ...]) -> None:
    """Raise if a folder about to be replaced holds anything but what crosslens wrote there (name patterns)."""
    strangers = sorted(
        entry.name
        for entry in folder.iterdir()
        if not entry.name.startswith(PARTIAL) and not any(fnmatch(entry.name, pattern) for pattern in own)
    )
    if strangers:
        named = ", ".join(strangers[:3]) + (" and more" if strangers[3:] else "")
        raise ConflictError(
            f"{folder} also holds {named}, which would be lost",
            fix="move what is yours elsewhere, or choose another place",
        )


def write_text(path: str | Path, text: str) -> None:
    """Atomically replace the file at ``path`` by ``text``."""
    with atomic_file(path) as partial:
        partial.write_text(text, encoding="utf-8")


def sweep(folder: str | Path) -> None:
    """Remove what killed processes left in ``folder``."""
    for leftover in Path(folder).glob(PARTIAL + "*"):
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _umask() -> int:
    # The only portable way to read the mask is to set it; mkstemp's 0600 would surprise people who share runs.
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
