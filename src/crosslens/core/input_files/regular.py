"""Regular files only: opening a named pipe waits for a writer, and reading a device may never end."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from crosslens.core.errors import InputError
from crosslens.core.input_files.limits import Limit

_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}
# What the system says of a path that cannot name a file.
_NO_FILE = (errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EACCES, errno.EPERM)


def special_kind(path: str | Path) -> str | None:
    """What a path leads to that is not a regular file, in words; None for a regular file and where nothing is.

    A path that the system does not look at (too long, a circle of links, a NUL) raises.
    """
    try:
        mode = os.stat(path).st_mode
    except ValueError as error:  # a NUL byte, or a lone surrogate
        raise InputError(f"{str(path)!r:.80} is not a path", expected="a path", fix="check the path") from error
    except OSError as error:
        if error.errno in _NO_FILE:
            problem = f"cannot be opened: {error.strerror}"
            raise InputError(problem, file=f"{path!s:.200}", expected="an existing file", fix="check it") from error
        return None
    return None if stat.S_ISREG(mode) else _KINDS.get(stat.S_IFMT(mode), "not a regular file")


def require_regular(path: str | Path) -> None:
    """Raise if there is something at ``path`` that is not a regular file."""
    kind = special_kind(path)
    if kind is not None:
        fix = "name the file inside it" if kind == "a folder" else "save the content to a file, and name that"
        raise InputError(f"this is {kind}", file=path, expected="a file", fix=fix)


def regular_bytes(path: str | Path, limit: Limit | None = None) -> bytes:
    """The content of a regular file of at most ``limit`` bytes; a missing or unreadable one raises ``OSError``."""
    require_regular(path)
    if limit is not None:
        limit.check(os.stat(path).st_size, "the file", file=path)
    return Path(path).read_bytes()
