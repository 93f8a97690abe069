"""Vectors that exist already, used as if a model gave them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from crosslens.core import Embeddings, InputError, UsageError
from crosslens.encode.encoder import ENCODERS, IMAGES, TEXTS, Encoder
from crosslens.encode.options import EncodeOptions


@ENCODERS.register("file", example="embeddings/", extra=None)
def load_file(source: str, options: EncodeOptions) -> Encoder:
    """Vectors that exist already: a folder that ``crosslens encode`` wrote, with ``images`` and ``captions`` in it."""
    return StoredEmbeddings(source)


class StoredEmbeddings:
    """Vectors by id. Nothing can be encoded; :func:`crosslens.encode.encode_dataset` looks its items up."""

    preprocessing = ""
    logit_scale: float | None = None

    def __init__(self, folder: str | Path) -> None:
        folder = Path(folder).expanduser()
        parts = {IMAGES: folder / "images", TEXTS: folder / "captions"}
        self.stored = {modality: Embeddings.load(part, mmap=True) for modality, part in parts.items() if part.is_dir()}
        if not self.stored:
            raise InputError(
                "contains no embeddings",
                file=folder,
                expected="sub-folders images and captions",
                fix="write them with crosslens encode -o FOLDER",
            )
        self.abilities = frozenset(self.stored)
        first = next(iter(self.stored.values()))
        self.dimension: int | None = first.dimension
        self.name = first.model or f"file:{folder}"
        self.revision = "+".join(embeddings.fingerprint for embeddings in self.stored.values())

    def encode_images(self, images: Sequence[Any]) -> NoReturn:
        """Not possible: vectors are looked up by id."""
        raise UsageError(f"{self.name} holds vectors, not a model", fix="name the model that made them")

    encode_texts = encode_images
