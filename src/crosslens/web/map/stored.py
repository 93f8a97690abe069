"""Maps kept between runs, found by content: the same vectors and the same method are projected once.

A map is a folder in the cache, written completely or not at all: a killed process leaves nothing that could be taken
for one. A damaged one counts as absent, and is written again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import (
    HEADER_FILE,
    CrosslensError,
    Ids,
    atomic_folder,
    cache_folder,
    fingerprint,
    folder_layout,
    read_folder,
    write_parts,
)
from crosslens.web.map.clusters import Cluster

Array = np.ndarray[Any, Any]

_KIND = "embedding-map"
_VERSION = 1
"""Another version, other points: part of the key."""
_LAYOUT = folder_layout(_KIND, ("points", "clusters"), ("items", "regions"))


@dataclass(frozen=True, eq=False)
class EmbeddingMap:
    """A point per item: the images before the captions; ``clusters`` are the numbers of their ``regions``."""

    key: str
    method: str
    image_ids: Ids
    caption_ids: Ids
    points: Array
    clusters: Array
    regions: tuple[Cluster, ...]

    def __len__(self) -> int:
        return len(self.points)

    @cached_property
    def ids(self) -> Ids:
        """The ids of all points."""
        return (*self.image_ids, *self.caption_ids)


def map_key(source: str, method: str, seed: int = 0) -> str:
    """Under which name the map of these vectors is kept."""
    return fingerprint("map", {"source": source, "method": method, "seed": str(seed), "version": str(_VERSION)})[:32]


class MapStore:
    """All maps below one cache folder."""

    def __init__(self, cache: str | Path | None = None) -> None:
        self.folder = cache_folder(cache) / "maps"

    def has(self, key: str) -> bool:
        """Whether a map of this key is there; not whether it is whole."""
        return (self._path(key) / HEADER_FILE).is_file()

    def load(self, key: str) -> EmbeddingMap | None:
        """The map of this key; None where there is none, or where it is damaged."""
        if not self.has(key):
            return None
        try:
            header, arrays, tables = read_folder(self._path(key), _KIND, mmap=True)
            items, count = tables["items"], int(header["images"])
            ids = tuple(items["id"].to_list())
            regions = tuple(
                Cluster(row["number"], row["name"], row["images"], row["captions"], (row["x"], row["y"]))
                for row in tables["regions"].iter_rows(named=True)
            )
            points, clusters = np.asarray(arrays["points"]), np.asarray(arrays["clusters"])
            kinds = points.dtype.kind + clusters.dtype.kind
            if points.shape != (len(ids), 2) or clusters.shape != (len(ids),) or kinds not in ("fi", "fu"):
                return None
            if header["key"] != key or not 0 <= count <= len(ids):
                return None
            return EmbeddingMap(key, str(header["method"]), ids[:count], ids[count:], points, clusters, regions)
        except (CrosslensError, OSError, KeyError, TypeError, ValueError, pl.exceptions.PolarsError):
            return None

    def save(self, drawn: EmbeddingMap) -> None:
        """Keep a map, in one step."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with atomic_folder(self._path(drawn.key), _LAYOUT) as folder:
            write_parts(
                folder, _KIND,
                header={"key": drawn.key, "method": drawn.method, "images": len(drawn.image_ids)},
                arrays={"points": drawn.points, "clusters": drawn.clusters},
                tables={
                    "items": pl.DataFrame({"id": drawn.ids}, schema={"id": pl.String}),
                    "regions": _region_table(drawn.regions),
                },
            )  # fmt: skip

    def _path(self, key: str) -> Path:
        return self.folder / key


def _region_table(regions: Sequence[Cluster]) -> pl.DataFrame:
    rows = [
        {"number": region.number, "name": region.name, "images": region.images, "captions": region.captions,
         "x": region.centre[0], "y": region.centre[1]}
        for region in regions
    ]  # fmt: skip
    schema = {"number": pl.Int64, "name": pl.String, "images": pl.Int64, "captions": pl.Int64}
    return pl.DataFrame(rows, schema={**schema, "x": pl.Float64, "y": pl.Float64})
