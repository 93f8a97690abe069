"""The description of a stored matrix: which φ of which captions it holds, and the hash of its file."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from crosslens.core import (
    Dataset,
    Ids,
    InputError,
    Manifest,
    argument,
    as_ids,
    fingerprint,
    is_verifying,
    read_json_file,
    require_entries,
    sealed,
    unsealed,
    write_text,
)
from crosslens.similarity.protocol import Array

KIND = "crosslens-similarity"
_MATRIX = "matrix"
"""What the description calls the matrix among its files: both may be renamed together."""


@dataclass(frozen=True)
class MatrixDescription:
    """Which φ of which collection; equal descriptions, equal numbers (unless ``revision`` is unknown).

    ``captions`` are hashes, one per caption, of its image and text; none in files of earlier versions. ``fingerprint``
    is that of the dataset and, of text-only retrieval, of its corpus.
    """

    phi: str
    revision: str
    dataset: str
    fingerprint: str
    image_ids: Ids
    caption_ids: Ids
    captions: tuple[str, ...] = field(default=(), compare=False)

    @staticmethod
    def of(dataset: Dataset, phi: str, revision: str) -> MatrixDescription:
        """The description of a φ of all images and captions of a dataset."""
        ids = (dataset.image_ids, dataset.caption_ids)
        return MatrixDescription(phi, revision, dataset.name, _fingerprint(dataset), *ids, _caption_hashes(dataset))

    def as_dict(self) -> dict[str, Any]:
        """As it is written."""
        shape = [len(self.image_ids), len(self.caption_ids)]
        return {"kind": KIND, "version": 1, "shape": shape, **vars(self)}

    def refuse_other_captions(self, dataset: Dataset, columns: Array) -> None:
        """Raise where a caption of the dataset is not the one that the matrix has in its column."""
        if not is_verifying() or self.fingerprint == _fingerprint(dataset):
            return
        if self.captions:
            own = _caption_hashes(dataset)
            different = [row for row, column in enumerate(columns.tolist()) if own[row] != self.captions[column]]
            subject = f"caption {dataset.caption_ids[different[0]]!r}" if different else ""
        else:  # an earlier version: only the whole collection can be compared
            whole = (self.image_ids, self.caption_ids) == (dataset.image_ids, dataset.caption_ids)
            subject = "the collection" if whole else ""
        if subject:
            raise InputError(
                f"{subject} is not the same in the dataset that the matrix was computed for ({self.dataset!r}) and in "
                f"this one ({dataset.name!r}), though their ids are",
                expected="the similarities of this dataset's captions",
                fix=f"compute them for this dataset, or pass {argument('verify', False)} to use them all the same",
                code="other-dataset",
            )


def _fingerprint(dataset: Dataset) -> str:
    if dataset.corpus is None:
        return dataset.fingerprint
    return fingerprint("two text sets", {"asked": dataset.fingerprint, "corpus": dataset.corpus})


def _caption_hashes(dataset: Dataset) -> tuple[str, ...]:
    """A short hash of the image and the text of every caption."""
    texts = zip(dataset.captions["image"], dataset.texts, strict=True)
    return tuple(blake2b(f"{image}\x1f{text}".encode(), digest_size=6).hexdigest() for image, text in texts)


def description_file(matrix: str | Path) -> Path:
    """``N.npy`` → ``N.npy.json``."""
    matrix = Path(matrix)
    return matrix.with_name(matrix.name + ".json")


def write_description(matrix: Path, description: MatrixDescription) -> None:
    """Write the file beside the matrix, which is complete."""
    content = sealed(description.as_dict(), {_MATRIX: matrix})
    write_text(description_file(matrix), json.dumps(content, ensure_ascii=False, indent=1) + "\n")


def read_description(matrix: Path) -> MatrixDescription | None:
    """The description beside a matrix; None where there is none, or where the file is something else."""
    described = _read_description(matrix)
    return None if described is None else described[0]


def verified_description(matrix: Path) -> MatrixDescription | None:
    """The description beside a matrix, if there is one; raises for a matrix that is not the one that was described.

    So does a file of that name that describes nothing: whose numbers these are is not guessed.
    """
    described = _read_description(matrix)
    if described is None:
        if description_file(matrix).exists():
            raise InputError(
                "does not say which images and captions the matrix beside it has",
                file=description_file(matrix),
                expected=f'"kind": "{KIND}" with image_ids and caption_ids, as crosslens similarity writes it',
                fix="compute the matrix with crosslens similarity, or rename or remove this file",
            )
        return None
    description, manifest = described
    manifest.check(_MATRIX, matrix)
    return description


def _read_description(matrix: Path) -> tuple[MatrixDescription, Manifest] | None:
    file = description_file(matrix)
    try:
        entry = read_json_file(file)
    except FileNotFoundError:
        return None
    if not isinstance(entry, dict):
        return None
    entry, manifest = unsealed(entry, file)
    if entry.get("kind") != KIND:
        return None
    require_entries(entry, {"image_ids": list, "caption_ids": list}, file)
    try:
        phi, revision, dataset, fingerprint = (str(entry[key]) for key in ("phi", "revision", "dataset", "fingerprint"))
        ids = as_ids(entry["image_ids"], "image"), as_ids(entry["caption_ids"], "caption")
        captions = tuple(entry.get("captions", ()))
        return MatrixDescription(phi, revision, dataset, fingerprint, *ids, captions), manifest
    except KeyError as error:
        raise InputError(f"has no {error.args[0]!r}", file=file, fix="compute the matrix again") from error
