"""What a benchmark is made from: images with their tasks, sources, descriptions, and how alike they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crosslens.analyze import Discriminability, discriminability
from crosslens.analyze.near_duplicates import NearDuplicates
from crosslens.analyze.picture_hash import hash_files
from crosslens.build.settings import RecosSettings
from crosslens.build.views import Views
from crosslens.core.embeddings import Embeddings
from crosslens.core.errors import InputError, UsageError
from crosslens.core.progress import Progress
from crosslens.encode.encoder import Array

ALL = "all"
"""The task of every image where the candidates name none, and the source where they name none."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """The candidates of a build; images and captions go by their rows in the dataset."""

    views: Views
    settings: RecosSettings
    tasks: tuple[str, ...]
    sources: tuple[str, ...]
    duplicates: NearDuplicates
    notes: tuple[str, ...]

    @staticmethod
    def of(views: Views, settings: RecosSettings, progress: Progress | None = None) -> Candidates:
        """Look the columns up and find the pictures that are there twice."""
        tasks, no_task = _column(views, settings.task_column, RecosSettings.task_column)
        sources, no_source = _column(views, settings.source_column, RecosSettings.source_column)
        notes = [*views.notes]
        if no_task:
            notes.append(f"no column {settings.task_column!r}: all images are one task, {ALL!r} (--task-column)")
        if no_source:
            where = f"no column {settings.source_column!r}"
            notes.append(f"{where}: confusable and similar images come from the whole set (--source-column)")
        hashes = None
        if views.files is not None and settings.duplicate_bits >= 0:
            hashes = hash_files(views.files, progress)
        alike = NearDuplicates(views.pictures, hashes, settings.duplicate_cosine, settings.duplicate_bits)
        if settings.k > len(views.gallery.ids) - 1:
            raise UsageError(
                f"k = {settings.k} and {len(views.gallery.ids)} images", fix="choose a smaller --k, or more candidates"
            )
        return Candidates(views, settings, tasks, sources, alike, tuple(notes))

    @property
    def ids(self) -> tuple[str, ...]:
        return self.views.dataset.image_ids

    @cached_property
    def captions(self) -> list[list[int]]:
        """For each image the rows of its descriptions."""
        rows: list[list[int]] = [[] for _ in self.ids]
        for row, image in enumerate(self.views.dataset.caption_image):
            rows[image].append(row)
        return rows

    @cached_property
    def temperature(self) -> float:
        """The settings', or the inverse of the encoder's logit scale; without either an error with a proposal."""
        if self.settings.temperature is not None:
            return self.settings.temperature
        if self.views.logit_scale:
            return 1 / self.views.logit_scale
        centre = self._check(1.0).centring_temperature() if len(self.views.captions.ids) else 0.0
        middle = f"; {centre:.2g} puts the median of these descriptions in the middle of the band" if centre else ""
        raise UsageError(
            f"{self.views.captions.model or 'the encoder'} has no logit scale to take the temperature from",
            fix=f"pass --temperature: 1 is the paper's, 0.01 CLIP's{middle}",
        )

    @cached_property
    def check(self) -> Discriminability:
        """dis(t) of every description there is."""
        return self._check(self.temperature)

    def dis(self, vectors: Array, images: list[int]) -> Discriminability:
        """dis(t) of new descriptions, given their vectors and their images."""
        own = [self._place.get(image, -1) for image in images]
        return discriminability(
            _numbered(vectors, self), self.views.gallery, own, k=self.settings.k, temperature=self.temperature
        )

    def gallery_image(self, place: int) -> int:
        """The image at a place of the gallery."""
        return self._gallery_rows[int(place)]

    def alike(self, image: int) -> Iterator[tuple[int, float]]:
        """The other images of the same source with their cosines, nearest first."""
        members = self._sources[self.sources[image]]
        # Not a matrix product: einsum sums in one order, on any number of threads.
        cosines = np.einsum("ij,j->i", self.views.pictures[members], self.views.pictures[image])
        for place in np.lexsort((members, -cosines)):
            if members[place] != image:
                yield int(members[place]), float(cosines[place])

    def _check(self, temperature: float) -> Discriminability:
        own = [self._place.get(int(image), -1) for image in self.views.dataset.caption_image]
        return discriminability(
            self.views.captions, self.views.gallery, own, k=self.settings.k, temperature=temperature
        )

    @cached_property
    def _sources(self) -> dict[str, Array]:
        found: dict[str, list[int]] = {}
        for row, source in enumerate(self.sources):
            found.setdefault(source, []).append(row)
        return {source: np.array(rows) for source, rows in found.items()}

    @cached_property
    def _gallery_rows(self) -> list[int]:
        row_of = {one: row for row, one in enumerate(self.ids)}
        return [row_of[one] for one in self.views.gallery.ids]

    @cached_property
    def _place(self) -> dict[int, int]:
        return {row: place for place, row in enumerate(self._gallery_rows)}


def _numbered(vectors: Array, candidates: Candidates) -> Embeddings:
    return Embeddings.of(vectors, model=candidates.views.captions.model)


def _column(views: Views, name: str, usual: str) -> tuple[tuple[str, ...], bool]:
    """The images' values in a column, and whether there is none; a column asked for by name must be there."""
    images = views.dataset.images
    if name not in images.columns:
        if name != usual:
            fix = f"it has: {', '.join(images.columns)}"
            raise UsageError(f"the images have no column {name!r}", fix=fix)
        return (ALL,) * images.height, True
    empty = images[name].null_count()
    if empty:
        row = int(images[name].is_null().arg_true()[0])
        raise InputError(
            f"{empty} images have no {name}, such as {images['image'][row]!r}",
            row=row,
            expected=f"a {name} for every image",
            fix="fill the column in, or select the images that have one",
        )
    return tuple(str(one) for one in images[name]), False
