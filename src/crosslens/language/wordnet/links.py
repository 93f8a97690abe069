"""A relation between rows as two flat arrays: where each row's targets start, and the targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Links:
    """The targets of row ``i`` are ``targets[starts[i]:starts[i + 1]]``, in the order they were given."""

    starts: Array
    targets: Array

    @classmethod
    def of(cls, sources: Array, targets: Array, rows: int) -> Links:
        """Sort edges by their source."""
        order = np.argsort(sources, kind="stable")
        return cls(_starts(np.bincount(sources, minlength=rows)), _frozen(targets[order].astype(np.int32, copy=False)))

    @classmethod
    def counted(cls, counts: Array, targets: Array) -> Links:
        """Edges that already lie in the order of their sources, ``counts[i]`` of them for row ``i``."""
        return cls(_starts(counts), _frozen(targets))

    def __getitem__(self, row: int) -> Array:
        return self.targets[self.starts[row] : self.starts[row + 1]]

    def sources(self) -> Array:
        """For every edge, the row it starts from."""
        return np.repeat(np.arange(self.starts.size - 1, dtype=np.int32), np.diff(self.starts))

    def reversed(self) -> Links:
        """The same edges, walked the other way; only where sources and targets are the same kind of rows."""
        return Links.of(self.targets, self.sources(), self.starts.size - 1)


def _starts(counts: Array) -> Array:
    starts = np.zeros(counts.size + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    return _frozen(starts)


def _frozen(array: Array) -> Array:
    array.setflags(write=False)
    return array
