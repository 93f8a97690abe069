"""What a benchmark is made from: images with their tasks, sources, descriptions, and how alike they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from crosslens.analyze import (
    Discriminability,
    NearDuplicates,
    default_temperature,
    hash_files,
    measure_discriminability,
)
from crosslens.build.benchmark import RecosSettings
from crosslens.build.encoding import EncodedCandidates
from crosslens.build.quotas import Quotas, even_quotas
from crosslens.core import Embeddings, InputError, Progress, UsageError, argument, positions
from crosslens.encode import Array, caption_rows

ALL = "all"
"""The task of every image where the candidates name none, and the source where they name none."""


@dataclass(frozen=True, eq=False)
class CheckGallery:
    """The images that descriptions are checked against: vectors, and the image of each."""

    vectors: Embeddings
    images: tuple[int, ...]
    k: int

    def __post_init__(self) -> None:
        if self.k > len(self.images) - 1:
            raise UsageError(
                f"k = {self.k} and {len(self.images)} images in the gallery of the check",
                fix=f"choose a smaller {argument('k')}, or more candidates or originals",
            )

    def measure(self, descriptions: Embeddings, images: Sequence[int], temperature: float) -> Discriminability:
        """dis(t) of descriptions of these images; an image is never compared with its own descriptions."""
        position = {image: at for at, image in enumerate(self.images)}
        own = [position.get(image, -1) for image in images]
        return measure_discriminability(descriptions, self.vectors, own, k=self.k, temperature=temperature)


@dataclass(frozen=True, eq=False)
class CandidatePool:
    """The candidates of a build; images and captions go by their rows in the dataset."""

    encoded: EncodedCandidates
    settings: RecosSettings
    tasks: tuple[str, ...]
    sources: tuple[str, ...]
    duplicates: NearDuplicates
    quotas: Mapping[str, int]
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
        total = settings.originals or max(1, len(tasks) // 3)
        quotas = even_quotas(tasks, total) if settings.quota is None else Quotas.of(settings.quota).among(tasks)
        pool = CandidatePool(encoded, settings, tasks, sources, duplicates, quotas, tuple(notes))
        assert pool.whole.images  # a k that is too large is refused here, before anything is written
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
        encoded = self.encoded
        owners = encoded.dataset.caption_image.tolist()
        at = partial(self.whole.measure, encoded.captions, owners) if owners else None
        return default_temperature(encoded.logit_scale, encoded.captions.model or "the encoder", at)

    @property
    def checks_selected(self) -> bool:
        """Whether descriptions are checked against the selected images only."""
        return self.settings.check_gallery == "selected"

    def check(self, gallery: CheckGallery, images: Sequence[int] | None = None) -> Discriminability:
        """dis(t) of the candidates' descriptions, or of those of ``images``."""
        encoded = self.encoded
        if images is None:
            return gallery.measure(encoded.captions, encoded.dataset.caption_image.tolist(), self.temperature)
        rows = [row for image in images for row in self.captions[image]]
        ids, vectors = [encoded.captions.ids[row] for row in rows], np.asarray(encoded.captions.vectors)[rows]
        owners = encoded.dataset.caption_image[rows].tolist()
        return gallery.measure(Embeddings(tuple(ids), vectors), owners, self.temperature)

    @cached_property
    def whole(self) -> CheckGallery:
        """All candidates."""
        return CheckGallery(self.encoded.gallery, tuple(self._gallery_position), self.settings.k)

    def gallery_of(self, images: Sequence[int]) -> CheckGallery:
        """These images; one that nothing represents (no caption, where images are their captions) is not in it."""
        members = [image for image in images if image in self._gallery_position]
        rows = [self._gallery_position[image] for image in members]
        whole = self.encoded.gallery
        vectors = Embeddings(tuple(whole.ids[row] for row in rows), np.asarray(whole.vectors)[rows], model=whole.model)
        return CheckGallery(vectors, tuple(members), self.settings.k)

    def nearest(self, image: int) -> Iterator[tuple[int, float]]:
        """The other images of the same source with their cosines, nearest first."""
        members = self._sources[self.sources[image]]
        # Not a matrix product: einsum sums in one order, on any number of threads.
        cosines = np.einsum("ij,j->i", self.encoded.image_vectors[members], self.encoded.image_vectors[image])
        for at in np.lexsort((members, -cosines)):
            if members[at] != image:
                yield int(members[at]), float(cosines[at])

    @cached_property
    def _sources(self) -> dict[str, Array]:
        rows_of: dict[str, list[int]] = {}
        for row, source in enumerate(self.sources):
            rows_of.setdefault(source, []).append(row)
        return {source: np.array(rows) for source, rows in rows_of.items()}

    @cached_property
    def _gallery_position(self) -> dict[int, int]:
        """Image → its row in the vectors of the gallery."""
        rows = positions(self.encoded.gallery.ids, self.ids, "image").tolist()
        return {row: position for position, row in enumerate(rows)}


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
