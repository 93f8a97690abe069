"""Thumbnails kept in a folder of limited size: those that nobody has asked for longest go first."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from threading import Lock

from crosslens.core import CrosslensError, atomic_file

_SHRUNK_TO = 0.8
"""What is left of the limit once it was reached, so that not every new picture looks through the folder."""
_TOUCH_SECONDS = 3600.0
"""How old the note of the last use may become: a thumbnail is read far more often than that."""


class ThumbnailCache:
    """Files by key, together at most ``most_bytes``. Several processes may share the folder."""

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self._folder, self._most = folder, most_bytes
        self._bytes: int | None = None
        self._lock = Lock()

    def get(self, key: str) -> bytes | None:
        """The content that is kept, or None."""
        file = self._file(key)
        try:
            content = file.read_bytes()
            if time.time() - file.stat().st_mtime > _TOUCH_SECONDS:
                os.utime(file)
        except OSError:
            return None
        return content

    def put(self, key: str, content: bytes) -> None:
        """Keep a content, whole or not at all; a full disk costs only the cache."""
        file = self._file(key)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with atomic_file(file) as new:
                new.write_bytes(content)
        except (OSError, CrosslensError):  # or another request that writes the same
            return
        with self._lock:
            self._bytes = None if self._bytes is None else self._bytes + len(content)
            if self._bytes is None or self._bytes > self._most:
                self._bytes = self._shrink()

    def _file(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.jpg"

    def _shrink(self) -> int:
        """Remove what was not used for longest, where there is too much; returns what is left, in bytes."""
        files: list[tuple[float, int, Path]] = []
        for path in self._folder.glob("??/*.jpg"):
            with suppress(OSError):  # another process removed it
                status = path.stat()
                files.append((status.st_mtime, status.st_size, path))
        total = sum(size for _, size, _ in files)
        if total <= self._most:
            return total
        for _, size, path in sorted(files):
            if total <= self._most * _SHRUNK_TO:
                break
            with suppress(OSError):
                path.unlink()
                total -= size
        return total
