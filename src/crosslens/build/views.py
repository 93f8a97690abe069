"""The candidates as models see them: descriptions and images in one space, and images among themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.analyze.neighbours import unit
from crosslens.core.dataset import Dataset
from crosslens.core.embeddings import Embeddings
from crosslens.core.errors import InputError, UsageError
from crosslens.core.progress import Progress
from crosslens.encode import Cache, Encoder, encode_dataset, encode_texts, load_summariser
from crosslens.encode.encoder import IMAGES, TEXTS, Array, label
from crosslens.encode.own import StoredEncoder
from crosslens.encode.pictures import image_files
from crosslens.encode.text_only import MEAN

_TWO_WAYS = (
    "name an encoder of both (--encoder), add one that holds the images in the same space (--encoder file:… with "
    "--text-encoder), or let an image be the mean of its captions (--image-text mean)"
)


@dataclass(frozen=True)
class Encoders:
    """Who sees what.

    ``encoder``        descriptions and images, in one space
    ``text_encoder``   the descriptions instead, where ``encoder`` holds images only (the same space)
    ``image_encoder``  images among themselves; None: ``encoder``
    ``image_text``     instead of looking at images: what their captions say, as their mean or a summariser's text
    """

    encoder: Encoder
    text_encoder: Encoder | None = None
    image_encoder: Encoder | None = None
    image_text: str | None = None

    @property
    def texts(self) -> Encoder:
        return self.text_encoder or self.encoder

    @property
    def logit_scale(self) -> float | None:
        return self.encoder.logit_scale or self.texts.logit_scale


@dataclass(frozen=True)
class Reading:
    """How items are read and encoded."""

    image_folder: str | Path | None = None
    cache: Cache | None = None
    batch_size: int | None = None
    precision: str = "fp32"
    skip_bad: bool = False
    progress: Progress | None = None

    @property
    def how(self) -> dict[str, Any]:
        """The arguments of the functions that encode."""
        names = ("cache", "batch_size", "precision", "progress")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, eq=False)
class Views:
    """Vectors of a set of candidates.

    ``gallery``  images in the space of the descriptions; an image without captions is missing in text-only views
    ``captions`` the candidates' descriptions
    ``pictures`` all images among themselves: n×d, length 1
    ``files``    the pictures themselves, None where there are none
    ``read``     new descriptions → vectors; None where nothing encodes them
    ``about``    which models, and a hash of what they were given
    """

    dataset: Dataset
    gallery: Embeddings
    captions: Embeddings
    pictures: Array
    files: list[str] | None
    read: Callable[[Sequence[str]], Array] | None
    logit_scale: float | None
    about: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)


def see(dataset: Dataset, who: Encoders, reading: Reading) -> Views:
    """Encode the candidates with whichever encoders there are for each purpose."""
    if TEXTS not in who.texts.abilities:
        raise UsageError(
            f"{who.texts.name} does not encode texts", fix="add one of its space that does: --text-encoder"
        )
    if who.image_text is None and IMAGES not in who.encoder.abilities:
        raise UsageError(f"{who.encoder.name} encodes no images", fix=_TWO_WAYS)
    content: dict[str, str] = {}
    skipped: dict[str, str] = {}
    seen: dict[str, Embeddings] = {}
    lookers = {"gallery": None if who.image_text else who.encoder, "pictures": who.image_encoder}
    if who.image_encoder is None and IMAGES in who.encoder.abilities:
        lookers["pictures"] = who.encoder
    for part, encoder in lookers.items():
        if encoder is None or (part == "pictures" and encoder is lookers["gallery"]):
            continue
        dataset, seen[part], content[part], bad = _images(dataset, encoder, reading)
        skipped |= bad
    seen = {part: _only(one, dataset) for part, one in seen.items()}
    captions = _captions(dataset, who.texts, reading)
    notes: list[str] = []
    if who.image_text is not None:
        seen["gallery"] = _from_captions(dataset, captions, who, reading)
        if "pictures" not in seen:
            notes.append("no encoder looks at images: their likeness to each other is that of their captions")
            if len(seen["gallery"].ids) < len(dataset.image_ids):
                left = len(dataset.image_ids) - len(seen["gallery"].ids)
                notes.append(f"{left:,} images without captions are left out: nothing tells what is in them")
                dataset = dataset.select(seen["gallery"].ids)
    pictures = seen.get("pictures", seen["gallery"])
    files = _files(dataset, lookers, reading, notes)
    encodes = not isinstance(who.texts, StoredEncoder)
    read = (lambda texts: encode_texts(who.texts, texts, **reading.how).rows) if encodes else None
    about = {"encoders": _names(who), "content": content, "precision": reading.precision}
    return Views(
        dataset, seen["gallery"], captions, unit(_flat(pictures)), files, read, who.logit_scale, about, tuple(notes),
        skipped,
    )  # fmt: skip


def _images(dataset: Dataset, encoder: Encoder, reading: Reading) -> tuple[Dataset, Embeddings, str, dict[str, str]]:
    """The images' vectors, and the dataset without the images that could not be read."""
    if IMAGES not in encoder.abilities:
        raise UsageError(f"{encoder.name} encodes no images", fix="name another --image-encoder")
    bare = replace(dataset, captions=dataset.captions.clear())
    found = encode_dataset(bare, encoder, image_folder=reading.image_folder, skip_bad=reading.skip_bad, **reading.how)
    assert found.images is not None
    if found.skipped:
        dataset = dataset.select(found.dataset.image_ids)
    return dataset, found.images, found.content, found.skipped


def _captions(dataset: Dataset, encoder: Encoder, reading: Reading) -> Embeddings:
    if not dataset.caption_ids:
        # Nothing to check yet: every description is to be written.
        return Embeddings((), np.zeros((0, encoder.dimension or 1), np.float32), model=label(encoder))
    if isinstance(encoder, StoredEncoder):
        found = encode_dataset(dataset, encoder).captions
        assert found is not None
        return found
    return Embeddings(
        dataset.caption_ids, encode_texts(encoder, dataset.texts, **reading.how).rows, model=label(encoder)
    )


def _from_captions(dataset: Dataset, captions: Embeddings, who: Encoders, reading: Reading) -> Embeddings:
    """An image is what its captions say. They need not leave one out: a description never meets its own image."""
    rows: list[list[int]] = [[] for _ in dataset.image_ids]
    for row, image in enumerate(dataset.caption_image):
        rows[image].append(row)
    told = [image for image, own in enumerate(rows) if own]
    if not told:
        raise InputError("no image has a caption", expected="captions that stand for the images", fix=_TWO_WAYS)
    ids = tuple(dataset.image_ids[image] for image in told)
    if who.image_text == MEAN:
        vectors = np.stack([np.asarray(captions.vectors)[rows[image]].mean(axis=0) for image in told])
        return Embeddings(ids, vectors, model=captions.model)
    assert who.image_text is not None
    texts = load_summariser(who.image_text)([[dataset.texts[row] for row in rows[image]] for image in told])
    return Embeddings(ids, encode_texts(who.texts, texts, **reading.how).rows, model=captions.model)


def _only(embeddings: Embeddings, dataset: Dataset) -> Embeddings:
    """Those of images that every encoder could read."""
    if embeddings.ids == dataset.image_ids:
        return embeddings
    place = {one: row for row, one in enumerate(embeddings.ids)}
    rows = [place[one] for one in dataset.image_ids]
    return Embeddings(dataset.image_ids, np.asarray(embeddings.vectors)[rows], model=embeddings.model)


def _flat(embeddings: Embeddings) -> Array:
    vectors = np.asarray(embeddings.vectors, np.float64)
    return vectors if vectors.ndim == 2 else vectors.mean(axis=1)


def _files(
    dataset: Dataset, lookers: Mapping[str, Encoder | None], reading: Reading, notes: list[str]
) -> list[str] | None:
    if any(one is not None and not isinstance(one, StoredEncoder) for one in lookers.values()):
        return image_files(dataset, reading.image_folder)
    try:
        return image_files(dataset, reading.image_folder)
    except InputError:
        if reading.image_folder is not None:
            raise
        notes.append("no picture files here (pass --image-folder): duplicates are found by vectors only")
        return None


def _names(who: Encoders) -> dict[str, Any]:
    parts = {"encoder": who.encoder, "text_encoder": who.text_encoder, "image_encoder": who.image_encoder}
    named: dict[str, Any] = {
        part: {"name": one.name, "revision": one.revision, "preprocessing": one.preprocessing}
        for part, one in parts.items()
        if one is not None
    }
    return named | ({"image_text": who.image_text} if who.image_text else {})
