"""Maps kept between runs, found by content: the same vectors and the same method are projected once.

A map is a folder in the cache, written completely or not at all: a killed process leaves nothing that could be taken
for one. A damaged one counts as absent, and is written again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import CrosslensError, InputError
from crosslens.encode import EncodeOptions
from crosslens.engine import Progress
from crosslens.pipeline import RunVectors, recipe_of_run, vectors_key, vectors_of_run, without_vectors
from crosslens.storage import (
    HEADER_FILE,
    Array,
    atomic_folder,
    cache_folder,
    fingerprint,
    folder_layout,
    read_folder,
    write_parts,
)
from crosslens.values import Ids, Run
from crosslens.web.background import DONE, JobProgress, Jobs
from crosslens.web.map.projection import (
    METHODS,
    MOST_FOR_UMAP,
    PCA,
    SEED,
    UMAP,
    Region,
    assign_clusters,
    describe_clusters,
    has_umap,
    project,
)

_KIND = "embedding-map"
_VERSION = 1
"""Another version, other points: part of the key."""
_LAYOUT = folder_layout(_KIND, ("points", "clusters"), ("items", "regions"))
_REGIONS: dict[str, Any] = {
    "number": pl.Int64, "name": pl.String, "images": pl.Int64, "captions": pl.Int64, "x": pl.Float64, "y": pl.Float64,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class EmbeddingMap:
    """A point per item: the images before the captions; ``clusters`` are the numbers of their ``regions``."""

    key: str
    method: str
    image_ids: Ids
    caption_ids: Ids
    points: Array
    clusters: Array
    regions: tuple[Region, ...]

    def __len__(self) -> int:
        return len(self.points)

    @cached_property
    def ids(self) -> Ids:
        return (*self.image_ids, *self.caption_ids)


def map_key(source: str, method: str) -> str:
    """Under which name the map of these vectors is kept."""
    return fingerprint("map", {"source": source, "method": method, "seed": str(SEED), "version": str(_VERSION)})[:32]


class MapStore:
    """All maps below one cache folder."""

    def __init__(self, cache: str | Path | None = None) -> None:
        self.folder = cache_folder(cache) / "maps"

    def load(self, key: str) -> EmbeddingMap | None:
        """The map of this key; None where there is none, or where it is damaged."""
        if not (self.folder / key / HEADER_FILE).is_file():
            return None
        try:
            header, arrays, tables = read_folder(self.folder / key, _KIND, mmap=True)
            ids, count = tuple(tables["items"]["id"].to_list()), int(header["images"])
            regions = tuple(Region(**row) for row in tables["regions"].iter_rows(named=True))
            points, clusters = np.asarray(arrays["points"]), np.asarray(arrays["clusters"])
            kinds = points.dtype.kind + clusters.dtype.kind
            if points.shape != (len(ids), 2) or clusters.shape != (len(ids),) or kinds not in ("fi", "fu"):
                return None
            if header["key"] != key or not 0 <= count <= len(ids):
                return None
            return EmbeddingMap(key, str(header["method"]), ids[:count], ids[count:], points, clusters, regions)
        except (CrosslensError, OSError, KeyError, TypeError, ValueError, pl.exceptions.PolarsError):
            return None

    def save(self, layout: EmbeddingMap) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        with atomic_folder(self.folder / layout.key, _LAYOUT) as folder:
            write_parts(
                folder,
                _KIND,
                header={"key": layout.key, "method": layout.method, "images": len(layout.image_ids)},
                arrays={"points": layout.points, "clusters": layout.clusters},
                tables={
                    "items": pl.DataFrame({"id": layout.ids}, schema={"id": pl.String}),
                    "regions": pl.DataFrame([asdict(region) for region in layout.regions], schema=_REGIONS),
                },
            )


ABSENT, READY, IMPOSSIBLE = "absent", "ready", "impossible"


@dataclass(frozen=True)
class MapState:
    """Where the map of a run stands: ``ready`` with its map, ``impossible`` with the reason, or a job's progress."""

    state: str
    method: str
    reason: str = ""
    progress: JobProgress | None = None
    drawn: EmbeddingMap | None = None


class Maps:
    """The maps of the runs, kept below a cache folder."""

    def __init__(self, cache: Path | None = None) -> None:
        self.store = MapStore(cache)
        self.jobs = Jobs()
        self.options = EncodeOptions(cache=cache, skip_bad=True)
        self._keys: dict[str, str] = {}
        self._loaded: dict[str, EmbeddingMap] = {}

    def state(self, run_id: str, run: Run, method: str | None = None) -> MapState:
        """Where the map of a run stands, without computing anything."""
        picked = PCA
        if has_umap():
            queries = sorted({len(values.query_ids) for values in run.values.values()})
            usual = UMAP if sum(queries[-2:]) <= MOST_FOR_UMAP else PCA
            picked = usual if method not in METHODS else str(method)
        try:
            reason = without_vectors(recipe_of_run(run))
        except CrosslensError as error:
            reason = error.problem
        if reason is not None:
            return MapState(IMPOSSIBLE, picked, reason)
        job = _job(run_id, run, picked)
        key = self._keys.get(job) or self._stated_key(run, picked)
        if key is not None and key not in self._loaded and (loaded := self.store.load(key)) is not None:
            self._loaded = {**dict(list(self._loaded.items())[-3:]), key: loaded}
        if key is not None and (drawn := self._loaded.get(key)) is not None:
            return MapState(READY, picked, drawn=drawn)
        progress = self.jobs.progress(job)
        if progress is None or progress.state == DONE:
            return MapState(ABSENT, picked)
        return MapState(progress.state, picked, progress.problem, progress)

    def drawn(self, run_id: str, run: Run, method: str | None = None) -> EmbeddingMap:
        """The map of a run; one that is not there raises."""
        state = self.state(run_id, run, method)
        if state.drawn is None:
            reason = state.reason or "it has not been computed yet"
            raise InputError(f"no map of this run: {reason}", fix="open the page of the map", code="unknown-name")
        return state.drawn

    def start(self, run_id: str, run: Run, method: str | None = None) -> MapState:
        """Compute the map of a run in the background, unless it is there or under way."""
        state = self.state(run_id, run, method)
        if state.state in (ABSENT, "failed"):
            job, projection = _job(run_id, run, state.method), state.method

            def work(progress: JobProgress) -> None:
                vectors = vectors_of_run(run, self.options, progress)
                key = self._stated_key(run, projection)
                if key is None:
                    content = {"images": vectors.images.fingerprint, "captions": vectors.captions.fingerprint}
                    key = map_key(fingerprint("vectors", content), projection)
                if self.store.load(key) is None:
                    self.store.save(draw(key, vectors, projection, progress, progress.is_stopped))
                self._keys[job] = key

            self.jobs.start(job, work)
            return self.state(run_id, run, projection)
        return state

    def _stated_key(self, run: Run, method: str) -> str | None:
        recipe = recipe_of_run(run)
        source = None if recipe is None else vectors_key(recipe)
        return None if source is None else map_key(source, method)


def draw(
    key: str, vectors: RunVectors, method: str, progress: Progress | None = None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> EmbeddingMap:  # fmt: skip
    """The map of these vectors."""
    images, captions = vectors.images, vectors.captions
    points = project((images, captions), method, progress=progress, is_stopped=is_stopped)
    numbers, centres = assign_clusters(points)
    data = vectors.dataset
    by_caption = {} if data is None else dict(zip(data.caption_ids, data.texts, strict=True))
    texts = (
        [by_caption[caption] for caption in captions.ids]
        if by_caption and by_caption.keys() >= set(captions.ids)
        else None
    )
    regions = describe_clusters(numbers, centres, len(images.ids), texts)
    return EmbeddingMap(key, method, images.ids, captions.ids, points, numbers, tuple(regions))


def _job(run_id: str, run: Run, method: str) -> str:
    """What a map is known by: a run that was replaced under the same id is another one."""
    return f"{run_id}:{fingerprint('recipe', {'text': run.recipe})}:{method}"
