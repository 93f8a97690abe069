"""Approximate nearest neighbours by faiss: an inverted file, of which a search looks at some lists only.

K-means divides the items into lists; a query is compared with the items of the lists whose centres are nearest to it.
The index holds a float32 copy of the items. It is the same again with the same seed, number of threads, machine and
version of faiss; another number of threads may sum in another order and so move an item into a neighbouring list.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosslens.core import MissingExtraError, Progress, UsageError, argument, random_stream, stage
from crosslens.rank import ScaledRows

Array = np.ndarray[Any, Any]

_BLOCK = 16_384
_PER_LIST = 64  # vectors that each centre is fitted to: faiss asks for 39 at least


@dataclass(frozen=True)
class ApproximateSearch:
    """How much of the items an approximate search looks at, and on how many queries its recall is measured."""

    lists: int | None = None
    """Lists that the items are divided into; by default 2 √n."""
    probes: int = 32
    """Lists that are looked at for each query: more are slower and find more."""
    sample: int = 1_000
    """Queries, drawn with the seed, that are searched exactly as well, to measure the recall."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("lists", "probes", "sample"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UsageError(f"{name} is {value}", fix=f"use {argument(name, 1)} or more", option=name)

    def sample_of(self, queries: int) -> Array:
        """The queries on which the recall is measured, in ascending order."""
        random = random_stream(self.seed, "recall sample")
        return np.sort(random.choice(queries, min(self.sample, queries), replace=False))


def build_index(items: ScaledRows, settings: ApproximateSearch, progress: Progress) -> Any:
    """An index of the items, scaled to length 1."""
    try:
        import faiss
    except ImportError as error:
        raise MissingExtraError("approximate search", "faiss-cpu", "approximate") from error
    n, d = items.shape
    lists = min(settings.lists or max(1, round(2 * math.sqrt(n))), n)
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(d), d, lists, faiss.METRIC_INNER_PRODUCT)
    index.nprobe = min(settings.probes, lists)
    index.cp.seed = settings.seed % 2**31
    index.cp.min_points_per_centroid = 1  # few items: nothing worth a warning
    rows = random_stream(settings.seed, "k-means sample").choice(n, min(n, _PER_LIST * lists), replace=False)
    with stage(progress, "indexing", 1 + -(-n // _BLOCK)):
        index.train(items.unit(np.sort(rows)))
        progress.advance()
        for start in range(0, n, _BLOCK):
            index.add(items.unit(slice(start, start + _BLOCK)))
            progress.advance()
    return index


def propose(index: Any, queries: ScaledRows, rows: Array, depth: int) -> Array:
    """Positions of about the nearest ``depth`` items of each query, in no order; -1 where the index knows no more."""
    return np.asarray(index.search(queries.unit(rows), depth)[1], np.int64)
