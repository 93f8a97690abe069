"""φ of a dataset: of every image and caption, in memory or block by block on disk, or of the pairs in a table."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import polars as pl

from crosslens.core import (
    ConflictError,
    Dataset,
    InputError,
    Progress,
    SilentProgress,
    UsageError,
    argument,
    atomic_file,
    fingerprint,
    frozen,
    positions,
    reading,
    stage,
    write_text,
)
from crosslens.data import existing_file
from crosslens.similarity.loading import load_similarity, prepare_dataset
from crosslens.similarity.precomputed import MatrixDescription, description_file, read_description, write_description
from crosslens.similarity.protocol import Array, Phi, PreparedSimilarity, Similarity

UNFINISHED = ".unfinished"
"""Suffix of a matrix that is being written; its journal adds ``.json``."""

_BLOCK_BYTES = 16 << 20
_ROWS = 256


def relevance_matrix(
    dataset: Dataset,
    phi: Phi = "cider",
    *,
    output: str | Path | None = None,
    overwrite: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Array:
    """φ of every image (by its captions) and every caption: float32, aligned with ``image_ids`` × ``caption_ids``.

    A caption of the image itself is compared with all of the image's captions, itself included. ``output`` is a
    ``.npy`` file: blocks are written as they are computed, an interrupted call resumes when it is repeated, and the
    returned array is memory-mapped. The ids are written beside it (``.json``). An existing file with other numbers is
    replaced only with ``overwrite``.
    """
    similarity = load_similarity(phi)
    if output is None:
        prepared = prepare_dataset(dataset, similarity, progress=progress, threads=threads)
        matrix = _empty(prepared.shape)
        _fill(matrix, prepared, 0, progress)
        return frozen(matrix)
    return _on_disk(dataset, similarity, _npy(output), overwrite, threads, progress)


def relevance_pairs(
    dataset: Dataset,
    phi: Phi,
    images: Array,
    captions: Array,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Array:
    """φ of single pairs, given by the positions of their image and caption in the dataset: float32."""
    images, captions = np.asarray(images, np.int64), np.asarray(captions, np.int64)
    if images.shape != captions.shape or images.ndim != 1:
        fix = "pass one position of each per pair"
        raise UsageError(f"images of shape {images.shape} and captions of shape {captions.shape}", fix=fix)
    for what, rows, ids in (("image", images, dataset.image_ids), ("caption", captions, dataset.caption_ids)):
        if len(rows) and (rows.min() < 0 or rows.max() >= len(ids)):
            problem = f"a position of {what}s outside 0 to {len(ids) - 1}"
            raise UsageError(problem, fix="count from 0, in the dataset's order")
    return prepare_dataset(dataset, phi, progress=progress, threads=threads).pairs(images, captions)


def _on_disk(
    dataset: Dataset,
    similarity: Similarity,
    output: Path,
    overwrite: bool,
    threads: int | None,
    progress: Progress | None,
) -> Array:
    description = MatrixDescription(
        similarity.name, similarity.revision, dataset.name, dataset.fingerprint, dataset.image_ids, dataset.caption_ids
    )
    if output.exists() and not overwrite:
        if description.revision and read_description(output) == description:
            return _mapped(output)
        fix = f"choose another file, or pass {argument('overwrite', True)}"
        raise ConflictError(f"{output} already contains a different matrix", fix=fix)
    if description_file(output).exists() and read_description(output) is None:
        raise ConflictError(
            f"{description_file(output)} does not describe a matrix", fix="choose another name for the matrix"
        )
    output.parent.mkdir(parents=True, exist_ok=True)
    partial = output.with_name(output.name + UNFINISHED)
    journal = partial.with_name(partial.name + ".json")
    done = _done(partial, journal, description)
    prepared = prepare_dataset(dataset, similarity, progress=progress, threads=threads)
    matrix = np.lib.format.open_memmap(
        partial, "r+" if done else "w+", dtype=np.float32, shape=None if done else prepared.shape
    )

    def keep(rows: int) -> None:
        matrix.flush()
        write_text(journal, json.dumps({"matrix": _key(description), "rows": rows}))

    _fill(matrix, prepared, done, progress, keep)
    # The old description is removed first, the new one written last: a description always fits its matrix.
    description_file(output).unlink(missing_ok=True)
    partial.replace(output)
    write_description(output, description)
    journal.unlink(missing_ok=True)
    return _mapped(output)


def _fill(
    matrix: Array,
    prepared: PreparedSimilarity,
    done: int,
    progress: Progress | None,
    keep: Callable[[int], None] = lambda rows: None,
) -> None:
    rows, captions = prepared.shape
    height = max(1, _BLOCK_BYTES // max(4 * captions, 1))
    with stage(progress or SilentProgress(), "similarity", rows) as watching:
        watching.advance(done)
        for start in range(done, rows, height):
            stop = min(start + height, rows)
            matrix[start:stop] = prepared.block(slice(start, stop))
            keep(stop)
            watching.advance(stop - start)


def _done(partial: Path, journal: Path, description: MatrixDescription) -> int:
    """How many rows an interrupted call has written; 0 unless it computed the same numbers."""
    if not (partial.exists() and journal.exists() and description.revision):
        return 0
    try:
        entry = json.loads(journal.read_text(encoding="utf-8"))
        return int(entry["rows"]) if entry["matrix"] == _key(description) else 0
    except (ValueError, KeyError, TypeError):
        return 0


def _key(description: MatrixDescription) -> str:
    return fingerprint("similarity-matrix", description.as_dict())


def _empty(shape: tuple[int, int]) -> Array:
    try:
        return np.empty(shape, np.float32)
    except MemoryError as error:
        fix = f"write the matrix to a file: {argument('output')}"
        raise UsageError(f"{shape[0]:,} × {shape[1]:,} numbers do not fit into memory", fix=fix) from error


def _mapped(output: Path) -> Array:
    matrix: Array = np.load(output, mmap_mode="r", allow_pickle=False)
    return matrix


def _npy(output: str | Path) -> Path:
    path = Path(output).expanduser()
    if path.suffix != ".npy":
        raise UsageError(f"{path} does not end in .npy", fix=f"write to {path.with_suffix('.npy')}")
    return path


def read_pairs(path: str | Path, dataset: Dataset) -> tuple[Array, Array]:
    """The positions of the images and captions that a CSV or TSV names in its columns ``image`` and ``caption``."""
    file = existing_file(path)
    with reading(file):
        try:
            table = pl.read_csv(file, infer_schema=False, separator="\t" if file.suffix == ".tsv" else ",")
        except pl.exceptions.PolarsError as error:
            raise InputError(
                f"cannot be read: {error}", expected="a CSV with a header", fix="save it as UTF-8"
            ) from error
        for column in ("image", "caption"):
            if column not in table.columns:
                problem = f"no column {column!r} (found: {', '.join(table.columns)})"
                fix = "rename the column that holds the ids"
                raise InputError(problem, expected="the columns image and caption", fix=fix)
        images = positions(table["image"].fill_null("").to_list(), dataset.image_ids, "image")
        captions = positions(table["caption"].fill_null("").to_list(), dataset.caption_ids, "caption")
    return images, captions


def pairs_table(dataset: Dataset, images: Array, captions: Array, scores: Array) -> pl.DataFrame:
    """The columns image, caption, score."""
    return pl.DataFrame(
        {
            "image": [dataset.image_ids[image] for image in images.tolist()],
            "caption": [dataset.caption_ids[caption] for caption in captions.tolist()],
            "score": scores,
        }
    )


def write_pairs(table: pl.DataFrame, path: str | Path) -> None:
    """Write the table as CSV, whole or not at all."""
    with atomic_file(path) as partial:
        table.write_csv(partial)


@dataclass(frozen=True)
class MatrixSummary:
    """The range of φ, and its mean for captions of the image itself and for all others (None where there are none)."""

    images: int
    captions: int
    min: float
    mean: float
    max: float
    mean_own: float | None
    mean_others: float | None

    def as_dict(self) -> dict[str, float | int | None]:
        """For JSON."""
        return asdict(self)


def summarise_matrix(matrix: Array, dataset: Dataset) -> MatrixSummary:
    """Read every number once, a few rows at a time."""
    images, captions = matrix.shape
    if not captions:
        return MatrixSummary(images, 0, 0.0, 0.0, 0.0, None, None)
    own = matrix[dataset.caption_image, np.arange(captions)].astype(np.float64)
    lowest, highest, total = np.inf, -np.inf, 0.0
    for start in range(0, images, _ROWS):
        rows = matrix[start : start + _ROWS]
        lowest, highest = min(lowest, float(rows.min())), max(highest, float(rows.max()))
        total += float(rows.sum(dtype=np.float64))
    others = images * captions - captions
    return MatrixSummary(
        images,
        captions,
        lowest,
        total / (images * captions),
        highest,
        float(own.mean()),
        (total - float(own.sum())) / others if others else None,
    )
