"""What a benchmark is made from: images with their tasks, sources, descriptions, and how alike they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from crosslens.analyze import (
    Discriminability,
    NearDuplicates,
    default_temperature,
    hash_files,
    measure_discriminability,
    unit_vectors,
)
from crosslens.build.settings import Quotas, RecosSettings, even_quotas
from crosslens.core import InputError, UsageError, argument
from crosslens.data import image_files
from crosslens.encode import (
    IMAGES,
    MEAN,
    TEXTS,
    EncodeOptions,
    Encoder,
    StoredEmbeddings,
    caption_rows,
    encode_captions,
    encode_dataset,
    encode_texts,
    images_from_captions,
)
from crosslens.engine import Progress
from crosslens.language import FACT_READERS, Words
from crosslens.storage import Array
from crosslens.values import Dataset, Embeddings, align_embeddings, positions

_IMAGE_SOURCES = (
    f"name an encoder of both, add {argument('text_encoder')} to one that holds the images in the same space, or let "
    f"an image be the mean of its captions: {argument('image_text', MEAN)}"
)


@dataclass(frozen=True)
class Encoders:
    """Which encoder represents what.

    ``encoder``        descriptions and images, in one space
    ``text_encoder``   the descriptions instead, where ``encoder`` holds images only (the same space)
    ``image_encoder``  images among themselves; None: ``encoder``
    ``image_text``     instead of encoding images: their captions, as their mean or as a summariser's text
    """

    encoder: Encoder
    text_encoder: Encoder | None = None
    image_encoder: Encoder | None = None
    image_text: str | None = None

    @property
    def texts(self) -> Encoder:
        return self.text_encoder or self.encoder

    def check(self) -> None:
        """Raise where an encoder lacks what it is needed for."""
        if TEXTS not in self.texts.abilities:
            raise UsageError(
                f"{self.texts.name} does not encode texts",
                fix=f"add one of its space that does: {argument('text_encoder')}",
            )
        if self.image_text is None and IMAGES not in self.encoder.abilities:
            raise UsageError(f"{self.encoder.name} encodes no images", fix=_IMAGE_SOURCES)
        if self.image_encoder is not None and IMAGES not in self.image_encoder.abilities:
            raise UsageError(
                f"{self.image_encoder.name} encodes no images", fix=f"name another {argument('image_encoder')}"
            )

    def describe(self) -> dict[str, Any]:
        parts = {"encoder": self.encoder, "text_encoder": self.text_encoder, "image_encoder": self.image_encoder}
        identities: dict[str, Any] = {
            part: {"name": encoder.name, "revision": encoder.revision, "preprocessing": encoder.preprocessing}
            for part, encoder in parts.items()
            if encoder is not None
        }
        return identities | ({"image_text": self.image_text} if self.image_text else {})


@dataclass(frozen=True, eq=False)
class EncodedCandidates:
    """Vectors of a set of candidates.

    ``gallery``        images in the space of the descriptions; text-only, an image without captions is missing
    ``captions``       the candidates' descriptions
    ``image_vectors``  all images among themselves: n×d, length 1
    ``files``          the image files, None where there are none
    ``encode_texts``   new descriptions → vectors; None where nothing encodes them
    ``provenance``     which models, and a hash of what they encoded
    """

    dataset: Dataset
    gallery: Embeddings
    captions: Embeddings
    image_vectors: Array
    files: list[str] | None
    encode_texts: Callable[[Sequence[str]], Array] | None
    logit_scale: float | None
    provenance: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)


def encode_candidates(
    dataset: Dataset, encoders: Encoders, options: EncodeOptions, progress: Progress | None = None
) -> EncodedCandidates:
    """Encode the candidates with whichever encoders there are for each purpose."""
    encoders.check()
    how = options.stream(progress, unasked_cache=False)
    gallery = None if encoders.image_text else encoders.encoder
    seeing = encoders.encoder if IMAGES in encoders.encoder.abilities else None
    of_images = {"gallery": gallery, "pictures": encoders.image_encoder or seeing}
    content: dict[str, str] = {}
    skipped: dict[str, str] = {}
    vectors: dict[str, Embeddings] = {}
    for part, encoder in of_images.items():
        if encoder is None or (part == "pictures" and encoder is gallery):
            continue
        bare = replace(dataset, captions=dataset.captions.clear())
        encoded = encode_dataset(bare, encoder, image_folder=options.image_folder, skip_bad=options.skip_bad, **how)
        assert encoded.images is not None
        vectors[part], content[part] = encoded.images, encoded.content
        skipped |= encoded.skipped
        dataset = dataset.select(encoded.dataset.image_ids) if encoded.skipped else dataset
    vectors = {part: align_embeddings(embeddings, dataset.image_ids, "image") for part, embeddings in vectors.items()}
    captions = encode_captions(dataset, encoders.texts, **how)
    notes: list[str] = []
    if encoders.image_text is not None:
        # None is left out: a description is never compared with its own image.
        vectors["gallery"] = images_from_captions(
            dataset, encoders.texts, encoders.image_text, captions=captions, **how
        )
        if "pictures" not in vectors:
            notes.append("no encoder looks at images: their likeness to each other is that of their captions")
            if missing := len(dataset.image_ids) - len(vectors["gallery"].ids):
                notes.append(f"{missing:,} images without captions are left out: nothing tells what is in them")
                dataset = dataset.select(vectors["gallery"].ids)
    files = None
    try:
        files = image_files(dataset, options.image_folder)
    except InputError:
        is_stored = all(encoder is None or isinstance(encoder, StoredEmbeddings) for encoder in of_images.values())
        if not is_stored or options.image_folder is not None:
            raise
        notes.append("no picture files here (pass --image-folder): duplicates are found by vectors only")
    among_images = np.asarray(vectors.get("pictures", vectors["gallery"]).vectors, np.float64)
    can_encode = not isinstance(encoders.texts, StoredEmbeddings)
    return EncodedCandidates(
        dataset=dataset,
        gallery=vectors["gallery"],
        captions=captions,
        image_vectors=unit_vectors(among_images if among_images.ndim == 2 else among_images.mean(axis=1)),
        files=files,
        encode_texts=(lambda texts: encode_texts(encoders.texts, texts, **how).rows) if can_encode else None,
        logit_scale=encoders.encoder.logit_scale or encoders.texts.logit_scale,
        provenance={"encoders": encoders.describe(), "content": content, "precision": options.precision},
        notes=tuple(notes),
        skipped=skipped,
    )


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
        excluded = [position.get(image, -1) for image in images]
        return measure_discriminability(descriptions, self.vectors, excluded, k=self.k, temperature=temperature)


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
        quota = None if settings.quota is None else Quotas.of(settings.quota)
        derived = no_task and quota is not None and (quota.paper or bool(quota.by_task))
        if derived:
            tasks = derived_tasks(encoded.dataset)
        sources, no_source = _column(encoded, settings.source_column, RecosSettings.source_column)
        notes = [*encoded.notes]
        if derived:
            counts = ", ".join(f"{task} {count:,}" for task, count in Counter(tasks).most_common())
            base = (
                "captions and objects" if encoded.dataset.objects is not None else "captions (no objects are annotated)"
            )
            notes.append(f"no column {settings.task_column!r}: tasks are derived from {base}: {counts} (--task-column)")
        elif no_task:
            notes.append(f"no column {settings.task_column!r}: all images are one task, {ALL!r} (--task-column)")
        if no_source:
            why = f"no column {settings.source_column!r}"
            notes.append(f"{why}: confusable and similar images come from the whole set (--source-column)")
        hashes = None
        if encoded.files is not None and settings.duplicate_bits >= 0:
            hashes = hash_files(encoded.files, progress)
        duplicates = NearDuplicates(encoded.image_vectors, hashes, settings.duplicate_cosine, settings.duplicate_bits)
        total = settings.originals or max(1, len(tasks) // 3)
        quotas = even_quotas(tasks, total) if quota is None else quota.among(tasks)
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
        captions, owners = self.encoded.captions, self.encoded.dataset.caption_image
        if images is not None:
            rows = np.array([row for image in images for row in self.captions[image]], np.int64)
            captions, owners = captions.part(rows), owners[rows]
        return gallery.measure(captions, owners.tolist(), self.temperature)

    @cached_property
    def whole(self) -> CheckGallery:
        return CheckGallery(self.encoded.gallery, tuple(self._gallery_position), self.settings.k)

    def gallery_of(self, images: Sequence[int]) -> CheckGallery:
        """These images; one that nothing represents (no caption, where images are their captions) is not in it."""
        members = [image for image in images if image in self._gallery_position]
        rows = np.array([self._gallery_position[image] for image in members], np.int64)
        return CheckGallery(self.encoded.gallery.part(rows), tuple(members), self.settings.k)

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


TASKS_OF_FACTS = {"text": "ocr", "count": "count", "colour": "colour", "position": "location", "action": "action"}
"""The task of an image, by the kind of fact that at least half of its captions state; of several, the first."""


def derived_tasks(dataset: Dataset) -> tuple[str, ...]:
    """A task for each image: of what its captions state; else ``scene`` where no object is annotated, or ``object``."""
    stated: list[Counter[str]] = [Counter() for _ in dataset.image_ids]
    for image, text in zip(dataset.caption_image.tolist(), dataset.texts, strict=True):
        words = Words(text)
        stated[image].update(["captions", *(kind for kind in TASKS_OF_FACTS if any(FACT_READERS[kind](words)))])
    objects = dataset.objects
    with_objects = set(dataset.image_ids if objects is None else objects["image"])
    return tuple(
        next(
            (task for kind, task in TASKS_OF_FACTS.items() if 2 * counts[kind] >= max(1, counts["captions"])),
            "object" if image in with_objects else "scene",
        )
        for image, counts in zip(dataset.image_ids, stated, strict=True)
    )


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
