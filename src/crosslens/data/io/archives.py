"""Tar files that nobody vouches for: whatever a member claims, no more is read at once than the limits allow."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
import zlib
from typing import IO, cast

from crosslens.core import MEMBER_BYTES, UNPACKED_BYTES

TAR_ERRORS = (tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError, ValueError, OverflowError)
"""What reading a damaged tar file raises."""

_COMPRESSED = {b"\x1f\x8b": gzip.GzipFile, b"BZh": bz2.BZ2File, b"\xfd7zXZ\x00": lzma.LZMAFile}
_CHUNK = 1 << 20


def unpacking(file: IO[bytes]) -> IO[bytes] | None:
    """The content of an open compressed file; None if it is not compressed."""
    start = file.read(6)
    file.seek(0)
    kind = next((kind for magic, kind in _COMPRESSED.items() if start.startswith(magic)), None)
    if kind is None:
        return None
    return cast(IO[bytes], gzip.GzipFile(fileobj=file, mode="rb") if kind is gzip.GzipFile else kind(file))


def copy_unpacked(packed: IO[bytes], target: IO[bytes], path: str) -> None:
    """Copy what a compressed file unpacks to, up to the limit."""
    copied = 0
    while chunk := packed.read(_CHUNK):
        copied += len(chunk)
        if copied > UNPACKED_BYTES.value:
            raise UNPACKED_BYTES.error("the compressed tar file unpacks to more than allowed", file=path)
        target.write(chunk)
    target.seek(0)


def open_tar(file: IO[bytes]) -> tarfile.TarFile:
    """A tar file in an open file, compressed or not."""
    packed = unpacking(file)
    bounded = _Bounded(file, None) if packed is None else _Bounded(packed, UNPACKED_BYTES.value)
    return tarfile.open(fileobj=cast(IO[bytes], bounded), mode="r:")


def read_to_end(tar: tarfile.TarFile) -> None:
    """Read what follows the end mark: only at its very end does a compressed file show that it is complete."""
    source = cast(IO[bytes], tar.fileobj)
    while source.read(_CHUNK):
        pass


class _Bounded:
    """A file that refuses to read too much at once: tarfile reads names and headers of any length into memory."""

    def __init__(self, file: IO[bytes], most: int | None) -> None:
        self._file, self._most = file, most
        self.name = getattr(file, "name", "")

    def read(self, size: int = -1) -> bytes:
        """At most the limit for a member."""
        if size > MEMBER_BYTES.value:
            raise MEMBER_BYTES.error(f"a header or member of {size:,} bytes")
        content = self._file.read(size)
        self._check(self._file.tell())
        return content

    def seek(self, offset: int, whence: int = 0) -> int:
        """As the file does."""
        self._check(offset)
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """As the file does."""
        return self._file.tell()

    def _check(self, position: int) -> None:
        if self._most is not None and position > self._most:
            raise UNPACKED_BYTES.error("the compressed tar file unpacks to more than allowed")

    def close(self) -> None:
        """The file stays open: whoever opened it closes it."""
