"""What a benchmark is made from: images with their tasks, sources, descriptions, and how alike they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from crosslens.analyze import Discriminability, NearDuplicates, hash_files, measure_discriminability
from crosslens.build.benchmark import RecosSettings
from crosslens.build.encoding import EncodedCandidates
from crosslens.core import Embeddings, InputError, Progress, UsageError, argument, positions
from crosslens.encode import Array, caption_rows

ALL = "all"
"""The task of every image where the candidates name none, and the source where they name none."""


@dataclass(frozen=True, eq=False)
class CandidatePool:
    """The candidates of a build; images and captions go by their rows in the dataset."""

    encoded: EncodedCandidates
    settings: RecosSettings
    tasks: tuple[str, ...]
    sources: tuple[str, ...]
    duplicates: NearDuplicates
    notes: tuple[str, ...]

    @staticmethod
    def of(encoded: EncodedCandidates, settings: RecosSettings, progress: Progress | None = None) -> CandidatePool:
        """The pool of encoded candidates, its settings with the temperature filled in."""
        tasks, no_task = _column(encoded, settings.task_column, RecosSettings.task_column)
        sources, no_source = _column(encoded, settings.source_column, RecosSettings.source_column)
        notes = [*encoded.notes]
        if no_task:
            notes.append(f"no column {settings.task_column!r}: all images are one task, {ALL!r} (--task-column)")
        if no_source:
            why = f"no column {settings.source_column!r}"
            notes.append(f"{why}: confusable and similar images come from the whole set (--source-column)")
        hashes = None
        if encoded.files is not None and settings.duplicate_bits >= 0:
            hashes = hash_files(encoded.files, progress)
        duplicates = NearDuplicates(encoded.image_vectors, hashes, settings.duplicate_cosine, settings.duplicate_bits)
        if settings.k > len(encoded.gallery.ids) - 1:
            raise UsageError(
                f"k = {settings.k} and {len(encoded.gallery.ids)} images",
                fix=f"choose a smaller {argument('k')}, or add candidates",
            )
        pool = CandidatePool(encoded, settings, tasks, sources, duplicates, tuple(notes))
        return replace(pool, settings=replace(settings, temperature=pool.temperature))

    @property
    def ids(self) -> tuple[str, ...]:
        return self.encoded.dataset.image_ids

    @cached_property
    def captions(self) -> list[list[int]]:
        """For each image the rows of its descriptions."""
        return caption_rows(self.encoded.dataset)

    @cached_property
    def temperature(self) -> float:
        """The settings', or the inverse of the encoder's logit scale; without either it raises with a proposal."""
        if self.settings.temperature is not None:
            return self.settings.temperature
        if self.encoded.logit_scale:
            return 1 / self.encoded.logit_scale
        centre = self._check(1.0).centring_temperature() if len(self.encoded.captions.ids) else 0.0
        middle = f"; {centre:.2g} puts the median of these descriptions in the middle of the band" if centre else ""
        raise UsageError(
            f"{self.encoded.captions.model or 'the encoder'} has no logit scale to take the temperature from",
            fix=f"pass {argument('temperature')}: 1 is the paper's, 0.01 CLIP's{middle}",
        )

    @cached_property
    def check(self) -> Discriminability:
        """dis(t) of every candidate description."""
        return self._check(self.temperature)

    def dis(self, vectors: Array, images: list[int]) -> Discriminability:
        """dis(t) of new descriptions, given their vectors and their images."""
        descriptions = Embeddings.of(vectors, model=self.encoded.captions.model)
        return self._measure(descriptions, images, self.temperature)

    def image_at(self, position: int) -> int:
        """The image at a position of the gallery."""
        return self._gallery_rows[int(position)]

    def nearest(self, image: int) -> Iterator[tuple[int, float]]:
        """The other images of the same source with their cosines, nearest first."""
        members = self._sources[self.sources[image]]
        # Not a matrix product: einsum sums in one order, on any number of threads.
        cosines = np.einsum("ij,j->i", self.encoded.image_vectors[members], self.encoded.image_vectors[image])
        for at in np.lexsort((members, -cosines)):
            if members[at] != image:
                yield int(members[at]), float(cosines[at])

    def _check(self, temperature: float) -> Discriminability:
        return self._measure(self.encoded.captions, self.encoded.dataset.caption_image.tolist(), temperature)

    def _measure(self, descriptions: Embeddings, images: list[int], temperature: float) -> Discriminability:
        own = [self._gallery_position.get(image, -1) for image in images]
        return measure_discriminability(
            descriptions, self.encoded.gallery, own, k=self.settings.k, temperature=temperature
        )

    @cached_property
    def _sources(self) -> dict[str, Array]:
        rows_of: dict[str, list[int]] = {}
        for row, source in enumerate(self.sources):
            rows_of.setdefault(source, []).append(row)
        return {source: np.array(rows) for source, rows in rows_of.items()}

    @cached_property
    def _gallery_rows(self) -> list[int]:
        rows: list[int] = positions(self.encoded.gallery.ids, self.ids, "image").tolist()
        return rows

    @cached_property
    def _gallery_position(self) -> dict[int, int]:
        return {row: position for position, row in enumerate(self._gallery_rows)}


def _column(encoded: EncodedCandidates, name: str, default: str) -> tuple[tuple[str, ...], bool]:
    """The images' values in a column, and whether it is missing; only the default column may be."""
    images = encoded.dataset.images
    if name not in images.columns:
        if name != default:
            raise UsageError(f"the images have no column {name!r}", fix=f"it has: {', '.join(images.columns)}")
        return (ALL,) * images.height, True
    empty = images[name].null_count()
    if empty:
        row = int(images[name].is_null().arg_true()[0])
        raise InputError(
            f"{empty} images have no {name}, such as {images['image'][row]!r}",
            row=row,
            expected=f"a {name} for every image",
            fix="fill in the column, or select the images that have a value",
        )
    return tuple(str(value) for value in images[name]), False
