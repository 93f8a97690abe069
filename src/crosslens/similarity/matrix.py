"""The matrix of a dataset: φ of every image and caption, in memory or, block by block, on disk."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from crosslens.core.atomic import write_text
from crosslens.core.dataset import Dataset
from crosslens.core.errors import ConflictError, UsageError
from crosslens.core.fingerprint import fingerprint
from crosslens.core.ids import frozen
from crosslens.core.progress import Progress, Silent, stage
from crosslens.similarity.description import Description, description_file, read_description, write_description
from crosslens.similarity.similarity import Array, Phi, Prepared, Similarity, load_similarity, prepare_dataset

UNFINISHED = ".unfinished"
"""Ending of a matrix that is being written; its journal has ``.json`` after that."""

_BLOCK_BYTES = 16 << 20


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
    ``.npy`` file: blocks go to disk as they are done, a stopped call goes on where it was when it is made again, and
    what is returned stays on disk until it is read. The ids are written beside it (``.json``). A file there with other
    numbers is replaced only with ``overwrite``.
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
        raise UsageError(f"{images.shape} images and {captions.shape} captions", fix="give one position of each a pair")
    for what, places, count in (
        ("image", images, len(dataset.image_ids)),
        ("caption", captions, len(dataset.caption_ids)),
    ):
        if len(places) and (places.min() < 0 or places.max() >= count):
            raise UsageError(
                f"a position of {what}s outside 0 to {count - 1}", fix="count from 0, in the dataset's order"
            )
    return prepare_dataset(dataset, phi, progress=progress, threads=threads).pairs(images, captions)


def describe_matrix(dataset: Dataset, similarity: Similarity) -> Description:
    """What the matrix of this dataset and φ says of itself."""
    return Description(
        similarity.name,
        similarity.revision,
        dataset.name,
        dataset.fingerprint,
        dataset.image_ids,
        dataset.caption_ids,
    )


def _on_disk(
    dataset: Dataset,
    similarity: Similarity,
    output: Path,
    overwrite: bool,
    threads: int | None,
    progress: Progress | None,
) -> Array:
    description = describe_matrix(dataset, similarity)
    if output.exists() and not overwrite:
        if description.revision and read_description(output) == description:
            return _mapped(output)
        raise ConflictError(
            f"{output} already exists and holds other numbers",
            fix="choose another file, or pass overwrite=True (--overwrite)",
        )
    if description_file(output).exists() and read_description(output) is None:
        raise ConflictError(f"{description_file(output)} is something else", fix="choose another name for the matrix")
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
    # The description goes first and comes last: whatever stands beside a matrix describes that matrix.
    description_file(output).unlink(missing_ok=True)
    partial.replace(output)
    write_description(output, description)
    journal.unlink(missing_ok=True)
    return _mapped(output)


def _fill(
    matrix: Array,
    prepared: Prepared,
    done: int,
    progress: Progress | None,
    keep: Callable[[int], None] = lambda rows: None,
) -> None:
    rows, captions = prepared.shape
    height = max(1, _BLOCK_BYTES // max(4 * captions, 1))
    with stage(progress or Silent(), "similarity", rows) as watching:
        watching.advance(done)
        for start in range(done, rows, height):
            stop = min(start + height, rows)
            matrix[start:stop] = prepared.block(slice(start, stop))
            keep(stop)
            watching.advance(stop - start)


def _done(partial: Path, journal: Path, description: Description) -> int:
    """How many rows an earlier call has left behind; none unless it was for the very same numbers."""
    if not (partial.exists() and journal.exists() and description.revision):
        return 0
    try:
        found = json.loads(journal.read_text(encoding="utf-8"))
        return int(found["rows"]) if found["matrix"] == _key(description) else 0
    except (ValueError, KeyError, TypeError):
        return 0


def _key(description: Description) -> str:
    return fingerprint("similarity-matrix", description.as_dict())


def _empty(shape: tuple[int, int]) -> Array:
    try:
        return np.empty(shape, np.float32)
    except MemoryError as error:
        raise UsageError(
            f"{shape[0]:,} × {shape[1]:,} numbers do not fit into memory", fix="write the matrix to a file (output, -o)"
        ) from error


def _mapped(output: Path) -> Array:
    matrix: Array = np.load(output, mmap_mode="r", allow_pickle=False)
    return matrix


def _npy(output: str | Path) -> Path:
    path = Path(output).expanduser()
    if path.suffix != ".npy":
        raise UsageError(f"{path} does not end in .npy", fix=f"write to {path.with_suffix('.npy')}")
    return path
