"""What a folder of ours consists of: how it is told from a person's folder, and which files in it are a person's."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from crosslens.core.errors import ConflictError

_LEFT_BY_SYSTEMS = (".DS_Store", "Thumbs.db", "desktop.ini")
"""Files that file browsers put into folders on their own."""
_WILD = frozenset("*?[")


@dataclass(frozen=True)
class Layout:
    """A kind of folder: ``kind`` says what it is (``a run``), ``marker`` is a file that every such folder has.

    ``files`` are all files that crosslens writes into one: paths within the folder, ``*`` standing for a part of a
    name. Whatever else is in such a folder is somebody's own, and the folder is not replaced.
    """

    kind: str
    marker: str
    files: tuple[str, ...]

    def within(self, folder: str) -> tuple[str, ...]:
        """The files of such a folder, seen from one in which it is called ``folder``."""
        return tuple(f"{folder}/{file}" for file in (self.marker, *self.files))

    def holds(self, folder: Path) -> bool:
        """Whether such a folder is there; raises if something else is, and for a link that leads nowhere."""
        if folder.is_symlink() and not folder.exists():
            fix = "remove the link, or choose another output"
            raise ConflictError(f"{folder} is a link to {os.readlink(folder)}, which does not exist", fix=fix)
        if folder.exists() and not folder.is_dir():
            raise ConflictError(f"{folder} is a file", fix="choose another output")
        if is_empty(folder):
            return False
        if not any(path.is_file() for path in folder.glob(self.marker)):
            problem = f"{folder} is not empty and is not {self.kind}"
            raise ConflictError(problem, fix="choose another output: it is not replaced")
        return True

    def refuse_foreign_files(self, folder: Path, more: Iterable[str] = ()) -> None:
        """Raise if the folder also has files that crosslens did not write; ``more`` adds to our own."""
        foreign = list(foreign_files(folder, (self.marker, *self.files, *more)))
        if foreign:
            named = ", ".join(foreign[:3]) + (" and more" if foreign[3:] else "")
            fix = "move those files elsewhere, or choose another output"
            raise ConflictError(f"{folder} also holds {named}, which would be lost", fix=fix)


def is_empty(folder: Path) -> bool:
    """Whether nothing is there, or a folder without a file."""
    return not folder.exists() or not any(entry.name not in _LEFT_BY_SYSTEMS for entry in folder.iterdir())


def foreign_files(folder: Path, own: Iterable[str]) -> Iterator[str]:
    """The files and folders in ``folder`` that fit none of the paths ``own``, in order of their names."""
    wild: list[list[str]] = []
    exact, folders = set[str](), set[str]()
    for path in own:
        if _WILD.isdisjoint(path):
            exact.add(path)
            parts = path.split("/")
            folders.update("/".join(parts[:depth]) for depth in range(1, len(parts)))
        else:
            wild.append(path.split("/"))

    def is_own(names: list[str], is_folder: bool) -> bool:
        if "/".join(names) in (folders if is_folder else exact):
            return True
        fits = (parts[: len(names)] for parts in wild if (len(parts) > len(names)) == is_folder)
        return any(len(parts) == len(names) and all(map(fnmatchcase, names, parts)) for parts in fits)

    def walk(inside: Path, names: list[str]) -> Iterator[str]:
        for entry in sorted(os.scandir(inside), key=lambda entry: entry.name):
            path = [*names, entry.name]
            is_folder = entry.is_dir(follow_symlinks=False)
            if is_own(path, is_folder):
                yield from walk(Path(entry.path), path) if is_folder else ()
            elif entry.name not in _LEFT_BY_SYSTEMS:
                yield "/".join(path)

    yield from walk(folder, [])
