"""Vectors with the ids they belong to: one per item, several per item, or a distribution per item."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from crosslens.core.errors import InputError, reading
from crosslens.core.hashing import fingerprint
from crosslens.core.ids import Ids, as_ids, frozen, positions
from crosslens.core.input_files.stored import (
    require_entries,
)
from crosslens.core.storage import (
    HEADER_FILE,
    folder_layout,
    id_table,
    read_folder,
    stored_ids,
    write_folder,
)

Kind = Literal["single", "multi", "probabilistic"]


EMBEDDINGS_LAYOUT = folder_layout("embeddings", ("vectors", "variance"), ("ids",))


@dataclass(frozen=True, eq=False)
class Embeddings:
    """``vectors`` is n×d (one vector per item) or n×k×d (k per item); ``variance`` (n×d) makes it probabilistic."""

    ids: Ids
    vectors: np.ndarray[Any, Any]
    variance: np.ndarray[Any, Any] | None = None
    model: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", as_ids(self.ids, "item"))
        vectors = check_vectors(self.vectors, "vectors")
        if len(vectors) != len(self.ids):
            expected = "one row per id, in the same order"
            fix = "check that both come from the same split"
            raise InputError(f"{len(vectors)} vectors for {len(self.ids)} ids", expected=expected, fix=fix)
        object.__setattr__(self, "vectors", frozen(vectors))
        if self.variance is not None:
            variance = check_vectors(self.variance, "variance")
            if vectors.ndim != 2 or variance.shape != vectors.shape:
                problem = f"variance of shape {variance.shape} beside vectors of shape {vectors.shape}"
                raise InputError(problem, expected="two n×d arrays of the same shape")
            if float(variance.min(initial=0.0)) < 0:
                raise InputError("negative variance", fix="if these are log-variances, pass numpy.exp of them")
            object.__setattr__(self, "variance", frozen(variance))

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
        return "multi" if self.vectors.ndim == 3 else "single"

    @property
    def dimension(self) -> int:
        return int(self.vectors.shape[-1])

    @cached_property
    def fingerprint(self) -> str:
        parts = {"ids": self.ids, "vectors": self.vectors, "variance": self.variance, "model": self.model}
        return fingerprint("embeddings", parts)

    def part(self, rows: np.ndarray[Any, Any] | slice, ids: Ids | None = None) -> Embeddings:
        """Some of the embeddings, under these ids or their own."""
        if isinstance(rows, slice) and rows == slice(None):
            return self
        if ids is None:
            ids = self.ids[rows] if isinstance(rows, slice) else tuple(self.ids[row] for row in rows)
        variance = None if self.variance is None else self.variance[rows]
        return Embeddings(ids, self.vectors[rows], variance, self.model)

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the vectors (``.npy``) and their ids (Parquet) as a folder."""
        return write_folder(
            path,
            "embeddings",
            header={"model": self.model, "kind": self.kind},
            arrays={"vectors": self.vectors, "variance": self.variance},
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
        return f"Embeddings({self.kind}, {'×'.join(map(str, self.vectors.shape))}, model={self.model!r})"


def check_vectors(values: Any, what: str) -> np.ndarray[Any, Any]:
    """``values`` as an array; unless it is finite numbers on two or three axes, an error names the first bad row."""
    array: np.ndarray[Any, Any] = np.asanyarray(values)  # a memory-mapped array stays on disk
    if array.dtype.kind not in "fiu":
        raise InputError(
            f"{what} of type {array.dtype}", expected="real numbers", fix="convert with .astype('float32')"
        )
    if array.ndim not in (2, 3) or 0 in array.shape[1:]:
        raise InputError(f"{what} of shape {array.shape}", expected="n×d, or n×k×d for several vectors per item")
    for start in range(0, len(array), 65_536):
        block = array[start : start + 65_536]
        if array.dtype.kind == "f" and not np.isfinite(block).all():
            row = start + int(np.argmax(~np.isfinite(block).reshape(len(block), -1).all(axis=1)))
            value = "NaN" if np.isnan(array[row]).any() else "infinity"
            raise InputError(
                f"{value} in {what}", row=row, expected="finite numbers", fix="encode that item again, or drop it"
            )
    return array


def align_embeddings(vectors: Any, ids: Ids, what: str) -> Embeddings:
    """Embeddings in the order of ``ids``: arrays must have that order already, Embeddings are matched by id."""
    if not isinstance(vectors, Embeddings):
        array = as_array(vectors, f"{what} embeddings")
        if array.ndim < 2 or len(array) != len(ids):
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


def as_array(values: Any, what: str) -> np.ndarray[Any, Any]:
    """A numpy array from lists, memory maps (left on disk) or torch tensors on any device."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = values.float() if str(values.dtype) == "torch.bfloat16" else values
    try:
        return np.asanyarray(values)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} cannot be read as an array: {error}", expected="a table of numbers") from error
