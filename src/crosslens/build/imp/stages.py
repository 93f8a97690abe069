"""The stages before people are asked: sampling, clusters, candidates. Each is kept as soon as it is computed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.build.copied_images import absolute_file
from crosslens.build.imp.candidates import Candidates, collect_candidates
from crosslens.build.imp.cleaning.settings import CleaningSettings
from crosslens.build.imp.clusters import Clusters, check_clusters, find_clusters
from crosslens.build.imp.sampling import SampleSpread, sample_images
from crosslens.build.imp.settings import SamplingSettings
from crosslens.build.imp.sources import Array, ImpSources
from crosslens.core import (
    Dataset,
    InputError,
    Progress,
    atomic_file,
    fingerprint,
    parquet_bytes,
    printable,
    read_parquet_file,
)

Tables = dict[str, pl.DataFrame]
_SAMPLING = ("count", "sampling", "compare_sampling", "seed")
_CLUSTERS = ("band", "cluster_sizes")


class StageTables:
    """The tables of finished stages in a folder, so that an interrupted build resumes; nowhere without a folder."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def get(self, stage: str, key: str, names: Sequence[str], compute: Callable[[], Tables]) -> Tables:
        """The tables of a stage: from the folder if they were computed with this key, or computed and kept there."""
        if self._folder is None:
            return compute()
        folder = self._folder / f"{stage}-{key[:16]}"
        files = {name: folder / f"{name}.parquet" for name in names}
        if all(file.is_file() for file in files.values()):
            try:
                return {name: read_parquet_file(file) for name, file in files.items()}
            except (InputError, pl.exceptions.PolarsError) as error:
                note = f"note: a damaged table was removed, its stage is computed again: {folder} ({error})"
                print(printable(note), file=sys.stderr)
        tables = compute()
        folder.mkdir(parents=True, exist_ok=True)
        for name, file in files.items():
            with atomic_file(file) as partial:
                partial.write_bytes(parquet_bytes(tables[name]))
        return tables


@dataclass(frozen=True)
class CandidateStages:
    """Sampling, clusters and candidates of given images and a pool."""

    sources: ImpSources
    settings: SamplingSettings
    cleaning: CleaningSettings
    progress: Progress | None = None

    @cached_property
    def key(self) -> str:
        """A hash of all that decides the candidates."""
        return fingerprint("imp candidates", self.inputs)

    @cached_property
    def inputs(self) -> dict[str, Any]:
        """All that decides the candidates, for the log."""
        return {
            "settings": asdict(self.settings),
            "cleaning": asdict(self.cleaning),
            "skip_bad": self.sources.options.skip_bad,
            **self.sources.key_parts,
        }

    def run(self, kept: StageTables) -> tuple[Candidates, Tables]:
        """The candidates; and the tables of sampling: ``sampled``, ``spreads``, ``left_out``, ``notes``."""
        sampling_key, clusters_key = self._keys()
        parts = ("sampled", "spreads", "left_out", "notes")
        sampling = kept.get("sampling", sampling_key, parts, self._sample)
        clusters = kept.get("clusters", clusters_key, ("members", "sizes"), lambda: self._find(sampling["sampled"]))
        names = ("images", "captions")
        tables = kept.get("candidates", self.key, names, lambda: self._collect(sampling["sampled"], clusters))
        return Candidates(tables["images"], tables["captions"]), sampling

    def _keys(self) -> tuple[str, str]:
        inputs = self.inputs
        parts = ("images", "encoder", "image_vectors", "skip_bad")
        sampling = {name: inputs[name] for name in parts} | {name: inputs["settings"][name] for name in _SAMPLING}
        clusters = sampling | {name: inputs[name] for name in ("pool", "pool_vectors")}
        clusters |= {name: inputs["settings"][name] for name in _CLUSTERS}
        return fingerprint("imp sampling", sampling), fingerprint("imp clusters", clusters)

    @cached_property
    def _images(self) -> tuple[Dataset, Array, dict[str, str]]:
        return self.sources.encode_images()

    @cached_property
    def _pool(self) -> tuple[Dataset, Array, dict[str, str]]:
        return self.sources.encode_pool()

    def _sample(self) -> Tables:
        images, vectors, skipped = self._images
        sample = sample_images(_flat(vectors), self.settings, self.progress)
        files = self.sources.files(images)
        ids = [images.image_ids[row] for row in sample.rows]
        paths = [absolute_file(files[image]) if image in files else None for image in ids]
        text = pl.String
        return {
            "sampled": pl.DataFrame({"image": ids, "file": paths}, schema={"image": text, "file": text}),
            "spreads": pl.DataFrame([asdict(spread) for spread in sample.spreads]),
            "left_out": pl.DataFrame(list(skipped.items()), schema={"image": text, "why": text}, orient="row"),
            "notes": pl.DataFrame({"note": list(sample.notes)}, schema={"note": text}),
        }

    def _find(self, sampled: pl.DataFrame) -> Tables:
        pool, pool_vectors, _ = self._pool
        images, vectors, _ = self._images
        row_of = {image: row for row, image in enumerate(images.image_ids)}
        rows = [row_of[image] for image in sampled["image"]]
        settings = self.settings
        clusters = find_clusters(
            _flat(vectors)[rows], _flat(pool_vectors), settings.band, settings.cluster_sizes[1], self.progress
        )
        check_clusters(clusters, settings.band, settings.cluster_sizes)
        numbers = np.repeat(np.arange(len(rows)), [len(members) for members in clusters.members])
        members = [pool.image_ids[member] for own in clusters.members for member in own]
        return {
            "members": pl.DataFrame(
                {"number": numbers, "member": members, "cosine": np.concatenate(clusters.cosines)},
                schema={"number": pl.Int64, "member": pl.String, "cosine": pl.Float64},
            ),
            "sizes": pl.DataFrame({"size": clusters.sizes, "nearest": clusters.nearest}),
        }

    def _collect(self, sampled: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Tables:
        pool, sizes, members = self.sources.pool, tables["sizes"], tables["members"]
        row_of = {image: row for row, image in enumerate(pool.image_ids)}
        rows = np.array([row_of[member] for member in members["member"]], np.int64)
        ends = np.searchsorted(members["number"].to_numpy(), np.arange(1, sampled.height))
        clusters = Clusters(
            tuple(np.split(rows, ends)), tuple(np.split(members["cosine"].to_numpy(), ends)),
            sizes["size"].to_numpy(), sizes["nearest"].to_numpy(),
        )  # fmt: skip
        images = list(sampled.select("image", "file").iter_rows())
        titles = self.sources.own_titles
        candidates = collect_candidates(images, pool, clusters, self.settings, self.cleaning, self.progress, titles)
        return {"images": candidates.images, "captions": candidates.captions}


def spreads_of(table: pl.DataFrame) -> tuple[SampleSpread, ...]:
    """The spreads in the table of the sampling stage."""
    return tuple(SampleSpread(**row) for row in table.iter_rows(named=True))


def _flat(vectors: Array) -> Array:
    """One vector per image: the mean, where an image has several."""
    return vectors if vectors.ndim == 2 else np.asarray(vectors).mean(axis=1)
