"""Outputs: one writer at a time, complete or not there at all, and nothing removed that crosslens did not write.

An output is prepared beside its target, under a lock, and put in place in one step. ``.run.crosslens-partial/`` is
where ``run`` is prepared. It holds the lock, the new content (``new``), the key of the work (``key``) and whatever an
interrupted process needs to resume. A killed process leaves it behind; the same command continues in it, and it is gone
when the output is complete.

The operating system holds the lock for a process, and releases it however that ends. The lock file is removed by the
process that holds it, and whoever opened it before that notices that it is gone and starts over: so deleting it is no
race. A reader that has opened some files of a folder before it is replaced would have the rest from the new one, so it
starts over. Where it cannot get a whole output in time, because the writer replaces several files or is not done, the
error says who is writing.

The names of these folders are known before they are made, so somebody may have put links there. None is followed: not
for the folder, not for the lock, not for what interrupted work has left, not for a name inside an output. Only the
output that a person names may be a link.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import json
import os
import platform
import shutil
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, TypeVar

from crosslens.core import ConflictError, CrosslensError, InputError, UsageError, address_of, argument
from crosslens.storage.input_files import kind_of_file, require_path

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

    def refuse_other(self, folder: Path, *, overwrite: bool, why: str = "", more: Iterable[str] = ()) -> None:
        """Raise where such a folder, which has other content, must not be replaced; ``more`` files in it are ours."""
        if not overwrite:
            raise other_content(folder, self.kind.partition(" ")[2], why)
        self.refuse_foreign_files(folder, more)

    def refuse_foreign_files(self, folder: Path, more: Iterable[str] = ()) -> None:
        """Raise if the folder also has files that crosslens did not write; ``more`` adds to our own."""
        foreign = list(foreign_files(folder, (self.marker, *self.files, *more)))
        if foreign:
            names = ", ".join(foreign[:3]) + (" and more" if foreign[3:] else "")
            fix = "move those files elsewhere, or choose another output"
            raise ConflictError(f"{folder} also holds {names}, which would be lost", fix=fix)


def other_content(path: Path, kind: str, why: str = "") -> ConflictError:
    """The error for an output that would replace something else of its kind, which nobody asked for."""
    return ConflictError(
        f"{path}: already contains a different {kind}{why}",
        fix=f"choose another output, or pass {argument('overwrite', True)}",
    )


def is_empty(folder: Path) -> bool:
    """Whether nothing is there, or a folder without a file."""
    return not folder.exists() or not any(entry.name not in _LEFT_BY_SYSTEMS for entry in folder.iterdir())


def foreign_files(folder: Path, patterns: Iterable[str]) -> Iterator[str]:
    """The files and folders in ``folder`` that fit none of the ``patterns``, in order of their names."""
    wild: list[list[str]] = []
    exact, folders = set[str](), set[str]()
    for path in patterns:
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


if os.name == "nt":
    import msvcrt
else:
    import fcntl

LOCK_FILE = "writer.json"
"""Names the process that writes; without a lock on it, the process that was the last to."""

_READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)
_held: dict[tuple[Path, int], tuple[IO[str], Path]] = {}
"""The locks of this process, and what they lock, by folder and thread: a thread that holds a lock may ask for it again.
"""


@contextmanager
def hold_lock(folder: Path, target: Path, *, wait: bool = False, required: bool = True) -> Iterator[None]:
    """Hold the lock in ``folder`` on the output ``target``; raises if another process holds it, unless ``wait``.

    ``required=False``: where nothing may be written, go on without a lock. Afterwards the lock file is removed, and
    the folder too if nothing else is in it.
    """
    owner = folder, threading.get_ident()
    if owner in _held:
        yield
        return
    try:
        handle = _acquire(folder, target, wait)
    except OSError as error:
        if required or error.errno not in _READ_ONLY:
            raise
        yield
        return
    _held[owner] = handle, real_path(target)
    try:
        yield
    finally:
        if _held.pop(owner, None) is not None:  # not in a forked child, where it is the parent's
            if os.name == "nt":  # an open file cannot be removed there
                handle.close()
            with suppress(OSError):
                if os.listdir(folder) == [LOCK_FILE]:
                    (folder / LOCK_FILE).unlink()
                    folder.rmdir()
            handle.close()


def _acquire(folder: Path, target: Path, wait: bool) -> IO[str]:
    file = folder / LOCK_FILE
    while True:
        with suppress(FileExistsError):  # something else, which is refused below
            folder.mkdir(parents=True, exist_ok=True)
        try:
            _require_own_folder(folder, target)
            handle = open_own(file)
        except FileNotFoundError:  # its last owner has just removed the folder
            continue
        try:
            if not _lock(handle, wait):
                raise ConflictError(_being_written(file, target), code="locked", subject=str(target), fix=_WAIT)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle.fileno()), file.lstat()):  # it is still the one of that name
                    since = time.strftime("%Y-%m-%d %H:%M:%S")
                    handle.seek(0)
                    handle.truncate()
                    json.dump({"process": os.getpid(), "computer": platform.node(), "since": since}, handle)
                    handle.flush()
                    return handle
        except BaseException:
            handle.close()
            raise
        handle.close()


_WAIT = "wait until it is done, or choose another output"


def _require_own_folder(folder: Path, target: Path) -> None:
    """Raise unless crosslens made the folder in which ``target`` is prepared."""
    status, fix = os.lstat(folder), f"move {folder} elsewhere, or choose another output"
    if problem := _not_own(folder, status) or (None if stat.S_ISDIR(status.st_mode) else "a file"):
        raise ConflictError(f"{folder} is where {target.name} is prepared, but is {problem}", fix=fix)
    # Its owner could change it at any time; so could the owner of the folder around it, whatever we do.
    if os.name != "nt" and status.st_uid not in (os.geteuid(), os.lstat(folder.parent).st_uid):
        raise ConflictError(f"{folder} is where {target.name} is prepared, but belongs to another user", fix=fix)
    if not os.path.lexists(folder / LOCK_FILE) and any(entry.name != LOCK_FILE for entry in folder.iterdir()):
        raise ConflictError(f"{folder} is where {target.name} is prepared, but crosslens did not write it", fix=fix)


def _not_own(path: Path, status: os.stat_result) -> str | None:
    """What something is that crosslens never writes by itself; None for files and folders."""
    if stat.S_ISLNK(status.st_mode):
        return f"a link to {os.readlink(path)}"
    return None if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode) else kind_of_file(status.st_mode)


_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""Opens no link, and waits for no writer of a pipe. Windows has neither."""


def open_own(file: Path, newline: str | None = None) -> IO[str]:
    """Open a text file of a name that crosslens has chosen, for reading and writing; it is made if it is not there."""
    require_own(file)  # not even opened: a device may do something then, and Windows cannot refuse a link
    try:
        opened = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | _NO_LINK, 0o666)
    except FileExistsError:
        opened = os.open(file, os.O_RDWR | _NO_LINK)
    try:
        _require_single(file, os.fstat(opened))
    except ConflictError:
        os.close(opened)
        raise
    return os.fdopen(opened, "r+", encoding="utf-8", newline=newline)


def require_own(file: Path) -> None:
    """Raise for a link, and for a file that has a second name elsewhere: what is written there may be somebody's."""
    with suppress(FileNotFoundError):
        _require_single(file, os.lstat(file))


def _require_single(file: Path, status: os.stat_result) -> None:
    problem = _not_own(file, status) or ("a folder" if stat.S_ISDIR(status.st_mode) else None)
    if problem is None and status.st_nlink > 1:
        problem = f"a file with {status.st_nlink} names"
    if problem:
        fix = "remove it, or choose another output"
        raise ConflictError(f"{file} is {problem}: crosslens writes only to files of its own there", fix=fix)


_LONGEST_NOTE = 1 << 16


def _read_note(file: Path) -> str:
    """The short text in a file of our own; ``OSError`` or ``ValueError`` where it is something else."""
    if not stat.S_ISREG(os.lstat(file).st_mode):
        raise ValueError(f"{file} is not a file")
    with os.fdopen(os.open(file, os.O_RDONLY | _NO_LINK), "rb") as handle:
        return handle.read(_LONGEST_NOTE).decode()


def _take_over(folder: Path) -> None:
    """Make what interrupted work has left ours alone: a link raises, and a file with a second name is copied."""
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(parent, name)
            status = os.lstat(path)
            if problem := _not_own(path, status):
                fix = f"remove it or {folder}, which is then made again, or choose another output"
                raise ConflictError(f"{path} is {problem}: crosslens puts none there", fix=fix)
            if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:  # as those of link_tree
                copy = folder / _COPY
                remove(copy)
                with path.open("rb") as old, copy.open("xb") as new:
                    shutil.copyfileobj(old, new)
                copy.replace(path)


def _lock(handle: IO[str], wait: bool) -> bool:
    """Lock an open file; False if another process has it."""
    try:
        if os.name == "nt":
            # Locked bytes cannot be read there, so the lock is on one behind the text.
            handle.seek(1 << 20)
            while True:
                try:
                    msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
                    return True
                except OSError:
                    if not wait:
                        return False
                    time.sleep(0.05)
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def _being_written(file: Path, target: Path) -> str:
    try:
        writer = json.loads(_read_note(file))
        where = "" if writer["computer"] == platform.node() else f" on {writer['computer']}"
        return f"{target} is being written by process {writer['process']}{where}, since {writer['since']}"
    except (OSError, ValueError, KeyError, TypeError):  # it is just about to sign
        return f"{target} is being written by another process"


def _close_inherited() -> None:
    # A forked child shares the lock, and would hold on to it after its parent is gone.
    for handle, _ in _held.values():
        handle.close()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_inherited)


PARTIAL = ".crosslens-partial"
"""Ends the name of every folder in which an output is prepared."""

_LONGEST_NAME = 255
_LONGEST_SUFFIX = 32
_KEY = "key"
_READY = "ready"
"""The new content while it is exchanged for the old: afterwards the old content."""
_OLD = "old"
_COPY = "copy"
_EXCHANGE = 2
_HERE = -100


class Workspace:
    """Where an output is prepared: ``new`` becomes ``target``. Made by :func:`workspace`."""

    def __init__(self, target: Path) -> None:
        self.target = real_path(target)  # a link stays, and what it points to is replaced
        _refuse_links_inside(target, self.target)
        self.folder = workspace_folder(target)
        if self.target.is_dir():
            mounted = os.path.ismount(self.target)
            if mounted or Path(os.path.realpath(os.curdir)).is_relative_to(self.target):
                what = "a mount point" if mounted else "the current folder, or contains it"
                fix = f"write to a folder inside it, such as {self.target / 'new'}"
                raise ConflictError(f"{self.target} is {what}: it cannot be replaced as a whole", fix=fix)
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


def cache_folder(folder: str | Path | None = None) -> Path:
    """Where results are kept between runs: ``folder``, ``$CROSSLENS_CACHE``, or ``crosslens`` in ``$XDG_CACHE_HOME``.

    Without any of them it is ``~/.cache/crosslens``. The standard says to ignore a relative ``$XDG_CACHE_HOME``.
    """
    folder = folder or os.environ.get("CROSSLENS_CACHE")
    if folder:
        return Path(folder).expanduser()
    shared = Path(os.environ.get("XDG_CACHE_HOME") or "")
    return (shared if shared.is_absolute() else Path("~/.cache").expanduser()) / "crosslens"


def _refuse_links_inside(path: Path, real: Path) -> None:
    """Raise where ``path``, which is ``real``, leads out of an output of this process or the cache by a link inside."""
    path = Path(os.path.abspath(path))
    if path == real:
        return
    cache = Path(os.path.abspath(cache_folder()))
    if path.is_relative_to(cache) and not real.is_relative_to(os.path.realpath(cache)):
        fix = "remove the link; a cache elsewhere is named by CROSSLENS_CACHE"
        raise ConflictError(f"{path} leads to {real}: links inside a cache are not followed", fix=fix)
    outputs = {output for _, output in list(_held.values())}
    for folder in path.parents:
        output = Path(os.path.realpath(folder))
        if output in outputs and output / path.relative_to(folder) != real:
            fix = "remove the link, or choose another output"
            raise ConflictError(f"{path} leads to {real}: links inside an output are not followed", fix=fix)


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
        old = work.folder / _OLD
        if (
            old.is_dir() and not old.is_symlink() and not work.target.exists()
        ):  # interrupted between two steps, where one is not possible
            old.replace(work.target)
        if not (key and work.is_of(key)):
            work.discard(keep)
            with (work.folder / _KEY).open("x", encoding="utf-8") as file:
                file.write(key or "")
        for name in (_OLD, _READY):
            remove(work.folder / name)
        remove_abandoned(work.folder)
        _take_over(work.folder)
        try:
            yield work
        finally:
            if key is None or all(  # nothing is there that resuming could use
                entry.name in (LOCK_FILE, _KEY) or (entry.is_dir() and not any(entry.iterdir()))
                for entry in work.folder.iterdir()
            ):
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
    """Yield a temporary path; it replaces ``path`` only if the block succeeds.

    Files of a cache ``wait`` for another process that writes them; a link of such a name is removed, not followed.
    """
    if wait and Path(path).is_symlink():
        Path(path).unlink(missing_ok=True)
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
    """Link the files of a folder under a second one, all or none; copied where the file system has no links."""

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


def real_path(path: Path) -> Path:
    """The path without links; what can be no path raises: every output passes here, and every folder that is read."""
    require_path(path)
    return Path(os.path.realpath(path))


def workspace_folder(target: Path) -> Path:
    """``.run.crosslens-partial`` beside ``run``."""
    if address := address_of(target):
        raise UsageError(f"{address}: only runs are written to a store", fix="write to a folder, and upload that")
    target = real_path(target)
    if not target.name:
        fix = f"write to a folder inside it, such as {target / 'new'}"
        raise ConflictError(f"{target} is the root of the file system, and cannot be replaced", fix=fix)
    name = f".{target.name}{PARTIAL}"
    if len(os.fsencode(name)) > _LONGEST_NAME:
        name = f".{hashlib.blake2b(os.fsencode(target.name), digest_size=16).hexdigest()}{PARTIAL}"
    return target.with_name(name)


def _read_key(folder: Path) -> str | None:
    try:
        return _read_note(folder / _KEY)
    except (OSError, ValueError):
        return None


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


T = TypeVar("T")

_PATIENCE = 5.0
"""Seconds that a reader waits for a writer that is not done."""
_TIMES = 6
"""How much longer it tries while what it reads is replaced again and again."""
_LEAST_TRIES = 3
"""Of what takes longer to read than that."""
_PAUSE = 0.01
_AFTERWARDS = "read it again when that is done"


def read_whole(
    target: Path, *parts: Path, read: Callable[[], T], is_complete: Callable[[T], bool] = lambda value: True
) -> T:
    """What ``read`` returns, all of it from one state of the output ``target``.

    ``parts`` are files of it that every writer replaces, such as its header. ``is_complete`` tells a whole value from
    one of which a writer has yet to write the rest; without a writer, it is returned as it is.
    """
    start, tries = time.monotonic(), 0
    while True:
        before = state_of(target, *parts)
        error: Exception | None = None
        try:
            value = read()
        except (CrosslensError, OSError, ValueError) as problem:
            error = problem
        is_stable = before == state_of(target, *parts)
        if is_stable and error is None and None not in before and is_complete(value):
            return value
        writer, tries = being_written(target), tries + 1
        if is_stable and writer is None:
            if error is not None:
                raise error
            return value
        patience = _PATIENCE if is_stable else _PATIENCE * _TIMES
        if time.monotonic() - start > patience and tries >= _LEAST_TRIES:
            if error is None and writer is None:  # somebody else adds files to the folder
                return value
            if isinstance(error, CrosslensError):
                error.add_context(writer or "it was replaced while it was read")
                error.fix, error.code = _AFTERWARDS, "locked"
                raise error
            reason = (writer or "it was replaced again and again while it was read") + (f": {error}" if error else "")
            raise InputError(reason, file=target, fix=_AFTERWARDS, code="locked") from error
        time.sleep(_PAUSE)


def state_of(*paths: Path) -> tuple[tuple[int, ...] | None, ...]:
    """Changes when an output is replaced: which folders and files there are, and what tells a file from the last."""
    return tuple(map(_state, paths))


def _state(path: Path) -> tuple[int, ...] | None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    # The number alone may be that of a file that was removed, and copies keep their time of writing.
    return (status.st_dev, status.st_ino, status.st_ctime_ns, status.st_mtime_ns, status.st_size)


def being_written(target: Path) -> str | None:
    """Which other process or thread writes an output, or a folder that it is in, in words; None for nobody.

    The locks are not tried: for that moment, a writer would be refused.
    """
    absolute = Path(os.path.abspath(target))
    for path in (absolute, *absolute.parents):
        folder = workspace_folder(path) if path.name else None
        if folder is None or (folder, threading.get_ident()) in _held:
            continue
        try:
            writer = json.loads(_read_note(folder / LOCK_FILE))
            if writer["computer"] == platform.node() and os.name != "nt":  # where the call would end the process
                os.kill(int(writer["process"]), 0)
        except PermissionError:
            pass  # a process of somebody else
        except (OSError, ValueError, KeyError, TypeError, OverflowError):  # no writer, or one that was killed
            continue
        return _being_written(folder / LOCK_FILE, path)
    return None
