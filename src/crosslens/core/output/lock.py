"""One writer per output: a lock that the operating system holds for a process, and releases however that ends.

The lock is on a file inside the folder in which the output is prepared. The file is removed by the process that holds
it, and whoever opened it before that notices that it is gone and starts over: so deleting it is no race.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from crosslens.core.errors import ConflictError

if os.name == "nt":
    import msvcrt
else:
    import fcntl

LOCK_FILE = "writer.json"
"""Names the process that writes; without a lock on it, the process that was the last to."""

_READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)
_held: dict[tuple[Path, int], IO[str]] = {}
"""The locks of this process, by folder and thread: a thread that holds a lock may ask for it again."""


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
    _held[owner] = handle
    try:
        yield
    finally:
        if _held.pop(owner, None) is not None:  # not in a forked child, where it is the parent's
            _release(handle, folder)


def _acquire(folder: Path, target: Path, wait: bool) -> IO[str]:
    file = folder / LOCK_FILE
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        if not file.exists() and any(entry.name != LOCK_FILE for entry in folder.iterdir()):
            fix = f"move the folder {folder} elsewhere, or choose another output"
            raise ConflictError(f"{folder} is where {target.name} is prepared, but crosslens did not write it", fix=fix)
        try:
            handle = os.fdopen(os.open(file, os.O_RDWR | os.O_CREAT, 0o666), "r+", encoding="utf-8")
        except FileNotFoundError:  # its last owner has just removed the folder
            continue
        try:
            if not _lock(handle, wait):
                raise ConflictError(_being_written(file, target), code="locked", subject=str(target), fix=_WAIT)
            if _is_current(handle, file):
                _sign(handle)
                return handle
        except BaseException:
            handle.close()
            raise
        handle.close()


_WAIT = "wait until it is done, or choose another output"


def _release(handle: IO[str], folder: Path) -> None:
    if os.name == "nt":  # an open file cannot be removed there
        handle.close()
    with suppress(OSError):
        if os.listdir(folder) == [LOCK_FILE]:
            (folder / LOCK_FILE).unlink()
            folder.rmdir()
    handle.close()


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


def _is_current(handle: IO[str], file: Path) -> bool:
    """Whether the open file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(handle.fileno()), file.stat())
    except FileNotFoundError:
        return False


def _sign(handle: IO[str]) -> None:
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    handle.seek(0)
    handle.truncate()
    json.dump({"process": os.getpid(), "computer": platform.node(), "since": since}, handle)
    handle.flush()


def writer_of(folder: Path, target: Path) -> str | None:
    """Which other process or thread writes ``target``, in words; None for nobody.

    The lock is not tried: for that moment, a writer would be refused.
    """
    if (folder, threading.get_ident()) in _held:
        return None
    try:
        writer = json.loads((folder / LOCK_FILE).read_text(encoding="utf-8"))
        if writer["computer"] == platform.node() and os.name != "nt":  # where the call would end the process
            os.kill(int(writer["process"]), 0)
    except PermissionError:
        pass  # a process of somebody else
    except (OSError, ValueError, KeyError, TypeError, OverflowError):  # no writer, or one that was killed
        return None
    return _being_written(folder / LOCK_FILE, target)


def _being_written(file: Path, target: Path) -> str:
    try:
        writer = json.loads(file.read_text(encoding="utf-8"))
        where = "" if writer["computer"] == platform.node() else f" on {writer['computer']}"
        return f"{target} is being written by process {writer['process']}{where}, since {writer['since']}"
    except (OSError, ValueError, KeyError, TypeError):  # it is just about to sign
        return f"{target} is being written by another process"


def _close_inherited() -> None:
    # A forked child shares the lock, and would hold on to it after its parent is gone.
    for handle in _held.values():
        handle.close()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_inherited)
