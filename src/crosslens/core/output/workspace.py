"""Outputs are prepared beside their target, under a lock, and put in place in one step.

``.run.crosslens-partial/`` is where ``run`` is prepared. It holds the lock (:mod:`crosslens.core.output.lock`), the new
content (``new``), the key of the work (``key``) and whatever an interrupted process needs to resume. A killed process
leaves it behind; the same command continues in it, and it is gone when the output is complete.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from crosslens.core.errors import ConflictError, argument
from crosslens.core.output.layout import Layout
from crosslens.core.output.lock import LOCK_FILE, hold_lock

PARTIAL = ".crosslens-partial"
"""Ends the name of every folder in which an output is prepared."""

_LONGEST_NAME = 255
_LONGEST_SUFFIX = 32
_KEY = "key"
_READY = "ready"
"""The new content while it is exchanged for the old: afterwards the old content."""
_OLD = "old"
_EXCHANGE = 2
_HERE = -100


class Workspace:
    """Where an output is prepared: ``new`` becomes ``target``. Made by :func:`workspace`."""

    def __init__(self, target: Path) -> None:
        self.target = _real(target)
        self.folder = workspace_folder(target)
        _refuse_immovable(self.target)
        suffix = self.target.suffix
        self.new = self.folder / f"new{suffix if len(suffix) <= _LONGEST_SUFFIX else ''}"

    def beside(self, name: str) -> Path:
        """A file or folder that is kept for resuming, and removed when the output is complete."""
        return self.folder / f"kept-{name}"

    def publish(self, layout: Layout | None = None, more: Iterable[str] = ()) -> None:
        """Put ``new`` in place. A folder of ``layout`` is replaced, with ``more`` files; files are not looked into."""
        if layout is not None and layout.holds(self.target):
            layout.refuse_foreign_files(self.target, more)
        remove_abandoned(self.new, resumable=True)
        self.put_in_place()
        self.discard()

    def put_in_place(self) -> None:
        """Let ``new`` take the place of what is there."""
        if not (self.target.is_dir() and self.new.is_dir()):
            self.new.replace(self.target)
            return
        ready = self.folder / _READY
        self.new.replace(ready)
        if not _exchange(ready, self.target):
            self.target.replace(self.folder / _OLD)
            ready.replace(self.target)

    def discard(self, keep: Iterable[str] = ()) -> None:
        """Remove everything that was prepared, except what is kept ``beside`` under these names."""
        spared = {LOCK_FILE, *(self.beside(name).name for name in keep)}
        # The key goes last, so that an interrupted removal is continued by the same command.
        for entry in sorted(self.folder.iterdir(), key=lambda entry: entry.name == _KEY):
            if entry.name not in spared:
                remove(entry)

    def is_of(self, key: str) -> bool:
        """Whether a process of this key works here, or did."""
        return _read_key(self.folder) == key

    def resume(self, key: str, keep: Iterable[str] = ()) -> None:
        """Keep what an interrupted process of the same key has left; of another key only what ``keep`` names."""
        old = self.folder / _OLD
        if old.exists() and not self.target.exists():  # interrupted between two steps, where one is not possible
            old.replace(self.target)
        if not (key and self.is_of(key)):
            self.discard(keep)
            (self.folder / _KEY).write_text(key, encoding="utf-8")
        for name in (_OLD, _READY):
            remove(self.folder / name)
        remove_abandoned(self.folder)

    def is_vain(self) -> bool:
        """Whether nothing is here that resuming could use."""
        return all(entry.name in (LOCK_FILE, _KEY) or _is_empty_folder(entry) for entry in self.folder.iterdir())


@contextmanager
def workspace(
    target: str | Path, key: str | None = None, *, keep: Iterable[str] = (), wait: bool = False
) -> Iterator[Workspace]:
    """Lock an output and prepare it. With ``key``, an interrupted block leaves its work for the next of the same key;
    what is ``beside`` under a name of ``keep`` is left for a next of any key.

    Another process that writes the same output raises an error at once; with ``wait`` it is waited for.
    """
    work = Workspace(Path(target))
    with hold_lock(work.folder, Path(target), wait=wait):
        work.resume(key or "", keep)
        try:
            yield work
        finally:
            if key is None or work.is_vain():
                work.discard()


@contextmanager
def hold_output(target: str | Path | None) -> Iterator[None]:
    """Keep other processes from writing an output from now on, before what it will hold is known."""
    if target is None:
        yield
        return
    with hold_lock(workspace_folder(Path(target)), Path(target), required=False):
        yield


def tidy_output(target: str | Path, key: str = "") -> None:
    """Remove what a process killed at its very end has left beside a complete output."""
    folder = workspace_folder(Path(target))
    if folder.is_dir():
        with suppress(ConflictError, OSError), hold_lock(folder, Path(target)):
            work = Workspace(Path(target))
            if work.is_of(key):
                work.discard()


def remove_abandoned(folder: Path, *, resumable: bool = False) -> None:
    """Remove what killed processes were preparing anywhere below ``folder``, except what can be resumed."""
    # os.walk passes over a folder that another process removes meanwhile, where Path.rglob raises.
    inside = [Path(parent, name) for parent, names, _ in os.walk(folder) for name in names]
    for leftover in inside:
        if not (leftover.name.startswith(".") and leftover.name.endswith(PARTIAL) and leftover.is_dir()):
            continue
        with suppress(ConflictError, OSError), hold_lock(leftover, leftover):
            if resumable or not _read_key(leftover):
                for entry in leftover.iterdir():
                    if entry.name != LOCK_FILE:
                        remove(entry)


def refuse_existing(path: str | Path, overwrite: bool) -> Path:
    """``path``, unless something is there and must not be replaced."""
    path = Path(path)
    if overwrite:
        return path
    if path.exists():
        tidy_output(path)
        raise ConflictError(f"{path} already exists", fix=f"choose another path, or pass {argument('overwrite', True)}")
    if path.is_symlink():
        fix = f"remove the link, or pass {argument('overwrite', True)} to write there"
        raise ConflictError(f"{path} is a link to {os.readlink(path)}, which does not exist", fix=fix)
    return path


@contextmanager
def atomic_file(path: str | Path, *, wait: bool = False) -> Iterator[Path]:
    """Yield a temporary path; it replaces ``path`` only if the block succeeds."""
    with workspace(path, wait=wait) as work:
        yield work.new
        with work.new.open("rb") as file:
            os.fsync(file.fileno())
        work.publish()


@contextmanager
def atomic_folder(path: str | Path, layout: Layout) -> Iterator[Path]:
    """Yield a temporary folder; it replaces ``path``, which must be of ``layout``, only if the block succeeds."""
    if layout.holds(Path(path)):
        layout.refuse_foreign_files(Path(path))
    with workspace(path) as work:
        work.new.mkdir()
        yield work.new
        work.publish(layout)


def write_text(path: str | Path, text: str, *, wait: bool = False) -> None:
    """Atomically replace the file at ``path`` by ``text``."""
    with atomic_file(path, wait=wait) as partial:
        partial.write_text(text, encoding="utf-8")


def link_tree(source: Path, target: Path) -> None:
    """The same files under a second folder, all of them or none; shared, not copied, where the file system can."""

    def link(file: str, copy: str) -> None:
        try:
            os.link(file, copy)
        except OSError:
            shutil.copy2(file, copy)

    begun = target.with_name(f"{target.name}.linked")
    remove(begun)
    shutil.copytree(source, begun, copy_function=link)
    remove(target)
    begun.replace(target)


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def workspace_folder(target: Path) -> Path:
    """``.run.crosslens-partial`` beside ``run``."""
    target = _real(target)
    if not target.name:
        fix = f"write to a folder inside it, such as {target / 'new'}"
        raise ConflictError(f"{target} is the root of the file system, and cannot be replaced", fix=fix)
    name = f".{target.name}{PARTIAL}"
    if len(os.fsencode(name)) > _LONGEST_NAME:
        name = f".{hashlib.blake2b(os.fsencode(target.name), digest_size=16).hexdigest()}{PARTIAL}"
    return target.with_name(name)


def _real(path: Path) -> Path:
    # A link is followed: what it points to is replaced, where that is, and the link stays.
    return Path(os.path.realpath(path))


def _is_empty_folder(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())


def _read_key(folder: Path) -> str | None:
    try:
        return (folder / _KEY).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None


def _refuse_immovable(target: Path) -> None:
    """Raise for a folder that cannot be put in place as a whole."""
    if not target.is_dir():
        return
    mounted = os.path.ismount(target)
    if mounted or Path(os.path.realpath(os.curdir)).is_relative_to(target):
        what = "a mount point" if mounted else "the current folder, or contains it"
        fix = f"write to a folder inside it, such as {target / 'new'}"
        raise ConflictError(f"{target} is {what}: it cannot be replaced as a whole", fix=fix)


def _exchange(first: Path, second: Path) -> bool:
    """Exchange two folders in one step; False where the system or the file system cannot."""
    try:
        library = ctypes.CDLL(None, use_errno=True)
        paths = os.fsencode(first), os.fsencode(second)
        if sys.platform == "linux":
            return int(library.renameat2(_HERE, paths[0], _HERE, paths[1], _EXCHANGE)) == 0
        if sys.platform == "darwin":
            return int(library.renamex_np(*paths, _EXCHANGE)) == 0
    except (AttributeError, OSError, TypeError):
        pass
    return False
