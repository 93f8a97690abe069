"""Vectors from wherever they lie: a file of arrays, a folder of shards or of embeddings, an address of a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import HEADER_FILE, Embeddings, VectorBlocks, is_remote, local_copy
from crosslens.data.io.arrays import Side, StoredVectors, read_array_and_ids
from crosslens.data.io.files import existing_file
from crosslens.data.io.shards import METADATA, SIDE_FOLDERS, read_shards, shard_files

Array = np.ndarray[Any, Any]


def read_vectors_and_ids(source: str | Path, side: Side) -> StoredVectors | Embeddings:
    """Vectors, left on disk as far as their format allows, and their ids where they are beside them.

    A folder that :meth:`Embeddings.save` wrote gives :class:`Embeddings`. What an address names is copied to the cache.
    """
    path = _local(source, side)
    if (path / HEADER_FILE).is_file():
        return Embeddings.load(path, mmap=True)
    if path.is_dir():
        return read_shards(path, side, str(source) if is_remote(source) else None)
    return StoredVectors(*read_array_and_ids(path, side))


def read_vectors(source: str | Path, side: Side) -> Embeddings | Array | VectorBlocks:
    """The same as :class:`Embeddings` where the ids are known, and otherwise as the bare vectors."""
    stored = read_vectors_and_ids(source, side)
    if isinstance(stored, Embeddings):
        return stored
    return stored.vectors if stored.ids is None else Embeddings(stored.ids, stored.vectors)


def vector_files(source: str | Path, side: Side) -> list[Path]:
    """All files that :func:`read_vectors_and_ids` reads, in order; of an address, its local copies."""
    path = _local(source, side)
    if not path.is_dir():
        return [existing_file(path)]
    if (path / HEADER_FILE).is_file():
        return sorted(file for file in path.iterdir() if file.is_file())
    return shard_files(path, side)


def _local(source: str | Path, side: Side) -> Path:
    return local_copy(str(source), (SIDE_FOLDERS[side], METADATA)) if is_remote(source) else Path(source)
