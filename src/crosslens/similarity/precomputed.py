"""Precomputed φ: a matrix of images × captions, in memory, as ``.npy`` (with a ``.json`` of its ids) or as ``.csv``."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import InputError, argument, reading
from crosslens.data import ARRAY_SUFFIXES, PackedBlocks, existing_file, read_array_and_ids, read_text
from crosslens.engine import Progress
from crosslens.similarity.protocol import References, Texts
from crosslens.storage import (
    Array,
    csv_delimiter,
    file_fingerprint,
    fingerprint,
    from_spreadsheets,
    is_verifying,
    read_json_file,
    read_whole,
    require_entries,
    verification,
    with_hashes,
    without_hashes,
    write_text,
)
from crosslens.values import Dataset, Ids, as_ids, match_ids, positions

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
        shape = [len(self.image_ids), len(self.caption_ids)]
        return {"kind": KIND, "version": 1, "shape": shape, **vars(self)}

    def refuse_other_captions(self, dataset: Dataset, columns: Array) -> None:
        """Raise where a caption of the dataset is not the one that the matrix has in its column."""
        if not is_verifying() or self.fingerprint == _fingerprint(dataset):
            return
        if self.captions:
            hashes = _caption_hashes(dataset)
            different = [row for row, column in enumerate(columns.tolist()) if hashes[row] != self.captions[column]]
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
    texts = zip(dataset.captions["image"], dataset.texts, strict=True)
    return tuple(blake2b(f"{image}\x1f{text}".encode(), digest_size=6).hexdigest() for image, text in texts)


def description_file(matrix: str | Path) -> Path:
    """``N.npy`` → ``N.npy.json``."""
    matrix = Path(matrix)
    return matrix.with_name(matrix.name + ".json")


def write_description(matrix: Path, description: MatrixDescription) -> None:
    """Write the file beside the matrix, which is complete."""
    content = with_hashes(description.as_dict(), {_MATRIX: matrix})
    write_text(description_file(matrix), json.dumps(content, ensure_ascii=False, indent=1) + "\n")


def read_description(matrix: Path, verified: bool = False) -> MatrixDescription | None:
    """The description beside a matrix; None where there is none, or where the file is something else.

    With ``verified`` such a file raises, as whose numbers these are is not guessed, and so does a matrix that is not
    the one that was described.
    """
    file = description_file(matrix)
    try:
        entry = read_json_file(file)
    except FileNotFoundError:
        return None
    manifest = None
    if isinstance(entry, dict):
        entry, manifest = without_hashes(entry, file)
    if manifest is None or entry.get("kind") != KIND:
        if verified:
            raise InputError(
                "does not say which images and captions the matrix beside it has",
                file=file,
                expected=f'"kind": "{KIND}" with image_ids and caption_ids, as crosslens similarity writes it',
                fix="compute the matrix with crosslens similarity, or rename or remove this file",
            )
        return None
    require_entries(entry, {"image_ids": list, "caption_ids": list}, file)
    try:
        phi, revision, dataset, hashed = (str(entry[key]) for key in ("phi", "revision", "dataset", "fingerprint"))
    except KeyError as error:
        raise InputError(f"has no {error.args[0]!r}", file=file, fix="compute the matrix again") from error
    ids = as_ids(entry["image_ids"], "image"), as_ids(entry["caption_ids"], "caption")
    if verified:
        manifest.check(_MATRIX, matrix)
    return MatrixDescription(phi, revision, dataset, hashed, *ids, tuple(entry.get("captions", ())))


MATRIX_SUFFIXES = (*ARRAY_SUFFIXES, ".csv")

_PAIRS = ["image", "caption", "score"]


class PrecomputedSimilarity:
    """A matrix as φ. Where it comes with ids, cells are found by them; otherwise its shape must fit.

    ``.npy``  with the ``.json`` that crosslens writes beside it, the ids are known; so with other array files
    ``.csv``  either the header ``image,<caption id>,…`` and one row per image, or the header ``image,caption,score``
              and one row per pair

    With ``verify``, a matrix that has changed since crosslens wrote it is refused, and so is one of other captions.
    """

    def __init__(self, source: str | Path | Array, *, verify: bool = True) -> None:
        self.verify = verify
        self.description: MatrixDescription | None = None
        self.image_ids: Ids | None = None
        self.caption_ids: Ids | None = None
        self.file = None if isinstance(source, np.ndarray) else Path(source).expanduser()
        self.name = "matrix" if self.file is None else f"matrix:{self.file.name}"
        if isinstance(source, np.ndarray):
            self._stored: Array | PackedBlocks = source
        else:
            self._read(existing_file(Path(source).expanduser()))
        if len(self._stored.shape) != 2 or self._stored.dtype.kind not in "fiu":
            problem = f"an array of {self._stored.dtype} with the shape {self._stored.shape}"
            fix = "save it as float32 with one row per image and one column per caption"
            raise InputError(problem, file=self.file, expected="numbers, images × captions", fix=fix)

    @property
    def values(self) -> Array:
        """The numbers: a compressed matrix is unpacked once its shape has proved to fit."""
        return self._stored.array if isinstance(self._stored, PackedBlocks) else self._stored

    @property
    def revision(self) -> str:
        if self.file is None:
            return fingerprint("phi", {"values": self.values})[:12]
        return file_fingerprint([self.file])[:12]

    def prepare(
        self, references: References, captions: Texts, *, progress: Progress | None = None, threads: int | None = None
    ) -> PreparedMatrix:
        """Without ids the shape must fit, and the order is assumed to be the same."""
        self._fit(len(references), len(captions))
        return PreparedMatrix(self, None, None)

    def prepare_ids(self, dataset: Dataset) -> PreparedMatrix:
        """The rows and columns of the dataset's ids."""
        if self.image_ids is None or self.caption_ids is None:
            self._fit(len(dataset.image_ids), len(dataset.caption_ids))
            return PreparedMatrix(self, None, None)
        with reading(self.file or self.name), verification(self.verify):
            rows = _rows_of_ids(dataset.image_ids, self.image_ids, "image")
            columns = _rows_of_ids(dataset.caption_ids, self.caption_ids, "caption")
            if self.description is not None:
                self.description.refuse_other_captions(dataset, columns)
        return PreparedMatrix(self, rows, columns)

    def _fit(self, images: int, captions: int) -> None:
        if self._stored.shape != (images, captions):
            turned = self._stored.shape == (captions, images)
            problem = f"the matrix is {' × '.join(f'{side:,}' for side in self._stored.shape)}"
            fix = "transpose it" if turned else "compute it for this dataset, or give it ids"
            raise InputError(problem, file=self.file, expected=f"{images:,} images × {captions:,} captions", fix=fix)

    def _read(self, file: Path) -> None:
        if file.suffix.lower() in ARRAY_SUFFIXES:

            def read() -> tuple[MatrixDescription | None, Array | PackedBlocks]:
                with verification(self.verify):
                    return read_description(file, verified=True), read_array_and_ids(file)[0]

            # A writer replaces the matrix, then its description; meanwhile it has none.
            described, self._stored = read_whole(file, description_file(file), read=read)
            if described is not None:
                self.description = described
                self.image_ids, self.caption_ids = described.image_ids, described.caption_ids
                self._fit(len(self.image_ids), len(self.caption_ids))
            return
        with reading(file):
            self.image_ids, self.caption_ids, self._stored = _read_table(file)


def _rows_of_ids(ids: Ids, stored: Ids, noun: str) -> Array:
    """Where the dataset's ids are in the matrix; an id that it does not have raises."""
    rows = match_ids(ids, stored)
    missing = np.flatnonzero(rows < 0)
    if len(missing):
        first = ids[missing[0]]
        raise InputError(
            f"{len(missing):,} of the dataset's {len(ids):,} {noun} ids are not in the matrix, the first is "
            f"{first!r}; the matrix begins with {stored[0]!r}" if stored else f"the matrix has no {noun}s",
            expected="similarities of this dataset",
            fix="compute them for this dataset, or name the dataset that they belong to",
            code="unknown-id",
            subject=first,
        )  # fmt: skip
    return rows


class PreparedMatrix:
    """A matrix seen in the order of a dataset; every number is checked when it is read."""

    def __init__(self, source: PrecomputedSimilarity, rows: Array | None, columns: Array | None) -> None:
        self._source, self._columns = source, columns
        self._rows = np.arange(source.values.shape[0]) if rows is None else rows
        self.shape = (len(self._rows), source.values.shape[1] if columns is None else len(columns))

    def block(self, rows: slice) -> Array:
        matrix_rows = self._rows[rows]
        values = np.asarray(self._source.values[matrix_rows])
        if self._columns is not None:
            values = values[:, self._columns]
        bad = np.argwhere(~np.isfinite(values))
        if len(bad):
            self._refuse(int(matrix_rows[bad[0, 0]]), int(bad[0, 1]))
        return values.astype(np.float32)

    def pairs(self, images: Array, captions: Array) -> Array:
        rows = self._rows[np.asarray(images)]
        columns = np.asarray(captions) if self._columns is None else self._columns[np.asarray(captions)]
        values = np.asarray(self._source.values[rows, columns])
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            self._refuse(int(rows[bad[0]]), int(np.asarray(captions)[bad[0]]))
        return values.astype(np.float32)

    def _refuse(self, row: int, column: int) -> None:
        stored_column = column if self._columns is None else int(self._columns[column])
        value = self._source.values[row, stored_column]
        images, captions = self._source.image_ids, self._source.caption_ids
        where = f" (image {images[row]!r}, caption {captions[stored_column]!r})" if images and captions else ""
        problem = f"φ is {value} in column {stored_column}{where}"
        fix = "compute the cell again, or write 0 where there is no similarity"
        raise InputError(problem, file=self._source.file, row=row, expected="finite numbers", fix=fix)


def _read_table(file: Path) -> tuple[Ids, Ids, Array]:
    text = read_text(file)
    delimiter = csv_delimiter(text)
    try:
        table = from_spreadsheets(pl.read_csv(text.encode(), infer_schema=False, separator=delimiter))
    except pl.exceptions.PolarsError as error:
        raise InputError(
            f"cannot be read: {error}", expected="a table with a header", fix="save it as UTF-8 CSV"
        ) from error
    if sorted(table.columns) == sorted(_PAIRS):
        images = as_ids(table["image"].unique(maintain_order=True), "image")
        captions = as_ids(table["caption"].unique(maintain_order=True), "caption")
        rows = positions(table["image"].to_list(), images, "image")
        columns = positions(table["caption"].to_list(), captions, "caption")
        repeated = table.select(~pl.struct("image", "caption").is_first_distinct()).to_series().arg_true()
        if len(repeated):
            again = int(repeated[0])
            problem = f"the pair {table['image'][again]!r}, {table['caption'][again]!r} occurs twice"
            raise InputError(problem, row=again, fix="remove one of the two")
        values = np.full((len(images), len(captions)), np.nan, np.float32)
        values[rows, columns] = _numbers(table["score"], delimiter)
        return images, captions, values
    if not table.height:
        raise InputError("no rows below the header", expected="a row per image or per pair", fix="check the file")
    if len(table.columns) < 2:
        raise InputError(
            "only one column",
            expected="image ids and a column per caption, separated by a comma, semicolon or tab",
            fix="save it as CSV",
        )
    try:
        header = next(
            csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        )  # polars gives a second column of one name another name
    except csv.Error as error:
        raise InputError(f"the header cannot be read: {error}", row="line 1", fix="check the file") from error
    images = as_ids(table[table.columns[0]], "image")
    captions = as_ids(header[1:], "caption")
    return images, captions, np.column_stack([_numbers(table[name], delimiter) for name in table.columns[1:]])


def _numbers(column: pl.Series, delimiter: str) -> Array:
    texts = column.str.strip_chars()
    texts = texts.str.replace(",", ".", literal=True) if delimiter == ";" else texts  # as spreadsheet programs write
    values = texts.cast(pl.Float32, strict=False)
    bad = (values.is_null() & column.is_not_null()).arg_true()
    if len(bad):
        row = int(bad[0])
        raise InputError(
            f"{column[row]!r} in column {column.name!r}", row=row, expected="a number", fix="correct the cell"
        )
    return values.fill_null(float("nan")).to_numpy()
