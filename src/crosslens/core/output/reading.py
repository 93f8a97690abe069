"""Readers beside a writer: what is read is the old output or the new one, never a part of each.

A writer puts a whole folder in place in one step (:mod:`crosslens.core.output.workspace`). A reader that has opened
some of its files by then would have the rest from the new one, so it starts over. Where it cannot get a whole output
in time, because the writer replaces several files or is not done, the error says who is writing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from crosslens.core.errors import CrosslensError, InputError
from crosslens.core.output.lock import writer_of
from crosslens.core.output.workspace import workspace_folder

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
            raise _unsettled(target, writer, error) from error
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
    """Who is writing an output, or a folder that it is in, in words; None for nobody."""
    absolute = Path(os.path.abspath(target))
    writers = (writer_of(workspace_folder(path), path) for path in (absolute, *absolute.parents) if path.name)
    return next((writer for writer in writers if writer is not None), None)


def _unsettled(target: Path, writer: str | None, error: Exception | None) -> CrosslensError:
    if isinstance(error, CrosslensError):
        error.add_context(writer or "it was replaced while it was read")
        error.fix, error.code = _AFTERWARDS, "locked"
        return error
    problem = writer or "it was replaced again and again while it was read"
    return InputError(problem + (f": {error}" if error else ""), file=target, fix=_AFTERWARDS, code="locked")
