"""What travels to a task: arrays of large files as the files' names, everything else by content.

Buffers of arrays are kept apart from the rest, so that processes of one machine can share them without a copy.
"""

from __future__ import annotations

import io
import mmap
import pickle
import socket
import threading
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from crosslens.core.errors import CrosslensError

Array = np.ndarray[Any, Any]


class Packed(NamedTuple):
    """A value on its way: its structure, and the contents of its arrays."""

    structure: bytes
    buffers: list[Array]

    @property
    def size(self) -> int:
        """How many bytes travel."""
        return len(self.structure) + sum(buffer.nbytes for buffer in self.buffers)


def pack(value: Any, pickler: type[pickle.Pickler] = pickle.Pickler) -> Packed:
    """A value for :func:`unpack`; ``pickler`` may be one that takes functions of any kind, too."""

    class Packer(pickler):  # type: ignore[misc,valid-type]
        def reducer_override(self, value: Any) -> Any:
            if type(value) in (np.ndarray, np.memmap):
                stored = _stored_part(value)
                return NotImplemented if stored is None else (open_part, stored)
            if isinstance(value, threading.local):  # buffers of a thread: every process has its own
                return threading.local, ()
            inherited = getattr(super(), "reducer_override", None)
            return NotImplemented if inherited is None else inherited(value)

    structure, buffers = io.BytesIO(), list[Array]()
    Packer(structure, protocol=5, buffer_callback=lambda part: _take(buffers, part)).dump(value)
    return Packed(structure.getvalue(), buffers)


def _take(buffers: list[Array], part: pickle.PickleBuffer) -> None:
    buffers.append(np.frombuffer(part.raw(), np.uint8))


def unpack(packed: Packed) -> Any:
    """The value; its arrays are read-only where the buffers are."""
    return pickle.loads(packed.structure, buffers=packed.buffers)


def _stored_part(array: Array) -> tuple[str, int, int, str, tuple[int, ...]] | None:
    """The part of a file that an array is: the file and its size, where in it, type and shape; None for others."""
    owner: Any = array
    while isinstance(owner, np.ndarray) and not (isinstance(owner, np.memmap) and isinstance(owner.base, mmap.mmap)):
        owner = owner.base
    file = getattr(owner, "filename", None)
    if owner is None or file is None or not array.flags.c_contiguous or array.dtype.hasobject:
        return None
    start = int(owner.offset) + array.ctypes.data - owner.ctypes.data
    return str(Path(file).absolute()), Path(file).stat().st_size, start, array.dtype.str, array.shape


def open_part(file: str, size: int, start: int, dtype: str, shape: tuple[int, ...]) -> Array:
    """The array that a part of a file holds; a machine without that file raises."""
    path = Path(file)
    if not path.is_file() or path.stat().st_size != size:
        problem = "is another file" if path.is_file() else "does not exist"
        raise missing_on_node(f"{file} {problem}")
    if not np.prod(shape):
        return np.empty(shape, dtype)
    return np.memmap(file, dtype, "r", start, shape)


def missing_on_node(problem: str) -> CrosslensError:
    """The error of a node that lacks a file which the process that started the work has."""
    return CrosslensError(
        f"{problem} on the node {socket.gethostname()}",
        fix="put the dataset and its files on storage that all nodes mount under the same path",
        code="missing-on-node",
    )
