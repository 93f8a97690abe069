"""Vectors with the ids they belong to: one per item, several per item, or a distribution per item."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from crosslens.core import InputError, UsageError, reading
from crosslens.storage import (
    HEADER_FILE,
    VECTOR_BYTES,
    Array,
    ArrayBlocks,
    PatchedBlocks,
    VectorBlocks,
    as_blocks,
    cache_folder,
    check_blocks,
    each_block,
    fingerprint,
    folder_layout,
    frozen,
    read_folder,
    require_entries,
    reserve,
    select_rows,
    write_folder,
)
from crosslens.values.ids import Ids, as_ids, id_table, positions, stored_ids

Kind = Literal["single", "multi", "probabilistic"]


EMBEDDINGS_LAYOUT = folder_layout("embeddings", ("vectors", "variance"), ("ids",))


@dataclass(frozen=True, eq=False, init=False)
class Embeddings:
    """Vectors with their ids: ``shape`` is n×d (one vector per item) or n×k×d (k per item).

    They are given as an array, or as :class:`VectorBlocks` (a folder of shards), and read a block at a time:
    ``embeddings.block(0, 1000)``. ``variance`` (n×d) makes them probabilistic.
    """

    ids: Ids
    source: VectorBlocks
    variance: Array | None
    model: str

    def __init__(
        self, ids: Iterable[Any], vectors: Array | VectorBlocks, variance: Any = None, model: str = ""
    ) -> None:
        source = as_blocks(
            vectors if isinstance(vectors, np.ndarray) or hasattr(vectors, "block") else np.asarray(vectors)
        )
        self._set(as_ids(ids, "item"), source, None, model)
        if source.shape[:1] != (len(self.ids),):  # first: the check below reads, and perhaps unpacks, all of them
            expected = "one row per id, in the same order"
            fix = "check that both come from the same split"
            count = source.shape[0] if source.shape else 0
            raise InputError(f"{count} vectors for {len(self.ids)} ids", expected=expected, fix=fix)
        check_blocks(source, "vectors")
        if variance is not None:
            variance = check_vectors(variance, "variance")
            if len(source.shape) != 2 or variance.shape != source.shape:
                problem = f"variance of shape {variance.shape} beside vectors of shape {source.shape}"
                raise InputError(problem, expected="two n×d arrays of the same shape")
            if float(variance.min(initial=0.0)) < 0:
                raise InputError("negative variance", fix="if these are log-variances, pass numpy.exp of them")
            object.__setattr__(self, "variance", frozen(variance))

    def _set(self, ids: Ids, source: VectorBlocks, variance: Array | None, model: str) -> None:
        for name, value in (("ids", ids), ("source", source), ("variance", variance), ("model", model)):
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return self.source.shape[0]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.source.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.source.dtype

    def block(self, start: int, stop: int) -> Array:
        """The vectors from ``start`` to ``stop``, as they are stored."""
        return self.source.block(start, stop)

    def rows(self, rows: Array) -> Array:
        """Single vectors, by their rows."""
        return self.source.rows(rows)

    def location(self, row: int) -> tuple[str | None, int]:
        """The file that holds a vector, where it is one of several, and the row in it."""
        return self.source.location(row)

    @cached_property
    def vectors(self) -> Array:
        """All vectors as one array. A memory-mapped file stays on disk; shards are read into memory, all of them, or
        beyond the limit of vectors in memory into a file that goes with this object."""
        return joined_vectors(self.source)

    @cached_property
    def has_names(self) -> bool:
        """Whether the ids are more than the numbers of the rows, which are no image's name: 7 is not ``7.jpg``."""
        return self.ids != tuple(map(str, range(len(self.ids))))

    @staticmethod
    def of(vectors: Any, ids: Iterable[Any] | None = None, model: str = "") -> Embeddings:
        """Wrap an array; without ids its rows are called ``0``, ``1``, …"""
        array = np.asarray(vectors)
        return Embeddings(tuple(map(str, range(len(array)) if ids is None else ids)), array, model=model)

    @property
    def kind(self) -> Kind:
        if self.variance is not None:
            return "probabilistic"
        return "multi" if len(self.shape) == 3 else "single"

    @property
    def dimension(self) -> int:
        return self.shape[-1]

    @cached_property
    def fingerprint(self) -> str:
        parts = {"ids": self.ids, "vectors": self.source, "variance": self.variance, "model": self.model}
        return fingerprint("embeddings", parts)

    def part(self, rows: Array | slice, ids: Ids | None = None) -> Embeddings:
        """Some of the embeddings, under these ids or their own."""
        if isinstance(rows, slice) and rows == slice(None):
            return self
        if ids is None:
            ids = self.ids[rows] if isinstance(rows, slice) else tuple(self.ids[row] for row in rows)
        variance = None if self.variance is None else frozen(self.variance[rows])
        part = Embeddings.__new__(Embeddings)  # what was checked once is not read again
        part._set(ids, select_rows(self.source, rows), variance, self.model)
        return part

    def with_rows(self, rows: Sequence[int] | Array, values: Array) -> Embeddings:
        """The embeddings with other vectors in some rows; the others stay where they are."""
        if self.variance is not None:
            raise UsageError("distributions have no single vectors to replace", fix="pass their means")
        values = check_vectors(np.asarray(values, self.dtype), "vectors")
        changed = Embeddings.__new__(Embeddings)
        changed._set(self.ids, PatchedBlocks(self.source, rows, values), None, self.model)
        return changed

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the vectors (``.npy``) and their ids (Parquet) as a folder."""
        return write_folder(
            path,
            "embeddings",
            header={"model": self.model, "kind": self.kind},
            arrays={"vectors": self.source, "variance": self.variance},
            tables={"ids": id_table(self.ids)},
            overwrite=overwrite,
        )

    @staticmethod
    def load(path: str | Path, *, mmap: bool = False, verify: bool = True) -> Embeddings:
        """Read a folder that :meth:`save` wrote; ``mmap`` leaves the vectors on disk.

        ``verify`` refuses files that have changed since, for which it reads each of them once.
        """
        header, arrays, tables = read_folder(path, "embeddings", mmap=mmap, verify=verify)
        require_entries(header, {"model": str}, Path(path) / HEADER_FILE)
        ids = stored_ids(tables["ids"], path, "ids")
        with reading(path):
            return Embeddings(ids, arrays["vectors"], arrays.get("variance"), header["model"])

    def __repr__(self) -> str:
        return f"Embeddings({self.kind}, {'×'.join(map(str, self.shape))}, model={self.model!r})"


def check_vectors(values: Any, what: str) -> Array:
    """``values`` as an array; unless it is finite numbers on two or three axes, an error names the first bad row."""
    array: Array = np.asanyarray(values)  # a memory-mapped array stays on disk
    check_blocks(as_blocks(array), what)
    return array


def align_embeddings(vectors: Any, ids: Ids, what: str) -> Embeddings:
    """Embeddings in the order of ``ids``: arrays must have that order already, Embeddings are matched by id."""
    if not isinstance(vectors, Embeddings):
        array = vectors if hasattr(vectors, "block") else as_array(vectors, f"{what} embeddings")
        if len(array.shape) < 2 or array.shape[0] != len(ids):
            raise InputError(
                f"{what} embeddings of shape {array.shape} for {len(ids)} {what}s",
                expected=f"one row per {what}, in the order of the dataset's {what} ids",
                fix="encode the same split, or pass Embeddings with ids",
            )
        return Embeddings(ids, array)
    if vectors.ids == ids:
        return vectors
    try:
        order = positions(ids, vectors.ids, what, any_ending=vectors.has_names)
    except InputError as error:
        raise InputError(
            f"no embedding for {what} {ids[error.row] if isinstance(error.row, int) else ''!r}",
            expected=f"a vector for each of the {len(ids)} {what}s of the dataset",
            fix="encode the missing items, or select the images that have one",
        ) from error
    # In the dataset's own spelling: an id may lack the ending of an image file.
    return vectors.part(order, ids)


def as_array(values: Any, what: str) -> Array:
    """A numpy array from lists, memory maps (left on disk) or torch tensors on any device."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = values.float() if str(values.dtype) == "torch.bfloat16" else values
    try:
        return np.asanyarray(values)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} cannot be read as an array: {error}", expected="a table of numbers") from error


def zero_vectors(shape: tuple[int, ...], kind: Any = np.float32) -> Array:
    """Zeros. Those beyond the limit of vectors in memory lie in a file that goes with its last user."""
    size = np.dtype(kind).itemsize * math.prod(shape)
    if size <= VECTOR_BYTES.value:
        return np.zeros(shape, kind)
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        try:
            reserve(file, size)
        except OSError as error:
            fix = f"free {size / 1e9:.1f} GB there, choose another folder with CROSSLENS_CACHE, or set "
            fix += f"{VECTOR_BYTES.variable} higher to hold them in memory"
            raise InputError(f"no room for {size / 1e9:.1f} GB of vectors", file=folder, fix=fix) from error
        return np.memmap(file, kind, "r+", shape=shape)


def joined_vectors(source: VectorBlocks, kind: Any = None) -> Array:
    """All vectors as one array of numbers of this kind: the stored array itself, where it is one, or a copy."""
    kind = source.dtype if kind is None else np.dtype(kind)
    if isinstance(source, ArrayBlocks) and source.dtype == kind:
        return source.array
    joined = zero_vectors(source.shape, kind)
    for start, block in each_block(source):
        joined[start : start + len(block)] = block
    return frozen(joined)
