"""A φ by its name, from a matrix or a function; and φ of every image and caption of a dataset, in memory or on disk."""

from __future__ import annotations

import inspect
import math
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import ConflictError, InputError, UsageError, argument, call_function, reading, wrong_code
from crosslens.data import read_array, read_table, require_column
from crosslens.engine import Progress, current_engine, shown_progress, stage
from crosslens.similarity.precomputed import (
    MATRIX_SUFFIXES,
    MatrixDescription,
    PrecomputedSimilarity,
    description_file,
    read_description,
    write_description,
)
from crosslens.similarity.protocol import (
    SIMILARITIES,
    CaptionFunction,
    IdSimilarity,
    Phi,
    PreparedSimilarity,
    References,
    Similarity,
    Texts,
    references_of,
)
from crosslens.storage import (
    Array,
    Workspace,
    cache_folder,
    fingerprint,
    frozen,
    other_content,
    read_cached_array,
    refuse_existing,
    tidy_output,
    verification,
    workspace,
    write_cached_array,
    write_text,
)
from crosslens.values import Dataset, positions


def load_similarity(phi: Phi, *, cache: CacheChoice = None, **options: Any) -> Similarity:
    """Load the φ of a name such as ``cider``, ``spice-object`` or ``embed:sentence:all-MiniLM-L6-v2``.

    A path or a name that ends in .npy, .npz, .safetensors, .pt or .csv is a matrix on disk; an array is a matrix in
    memory (images × captions); a function is called with an image's reference captions and one caption. A similarity
    is returned as it is. ``options`` go to the named φ; see the reference page for what each takes. ``cache`` goes to
    those that keep vectors between runs: a folder, or False for none.
    """
    if isinstance(phi, str):
        kind, _, source = phi.partition(":")
        if kind not in SIMILARITIES and Path(phi).suffix.lower() in MATRIX_SUFFIXES:
            phi = Path(phi)
        else:
            factory = SIMILARITIES[kind].value
            parameters = list(inspect.signature(factory).parameters)[1:]
            if cache is not None and "cache" in parameters:
                options["cache"] = cache
            for option in options:
                if option not in parameters:
                    accepted = f"it takes {', '.join(parameters)}" if parameters else "it takes none"
                    raise UsageError(f"{phi} has no option {option!r}", fix=accepted, option=option)
            similarity = call_function(factory, source, **options)
            if isinstance(similarity, Similarity):
                return similarity
            if callable(similarity):  # a factory may return a plain function φ(references, caption)
                return CallableSimilarity(similarity)
            problem = f"the similarity {phi!r} gave {similarity!r:.60}"
            raise wrong_code(factory, problem, "return a function φ(references, caption), or a Similarity")
    if options:
        fix = "set them on the object itself, or pass the name of a φ"
        raise UsageError(f"{', '.join(sorted(options))}: only a φ loaded by name takes options", fix=fix)
    if isinstance(phi, Path | np.ndarray):
        return PrecomputedSimilarity(phi)
    if isinstance(phi, Similarity):
        return phi
    if callable(phi):
        return CallableSimilarity(phi)
    raise UsageError(
        f"{phi!r:.60} is no φ", fix="pass a name, a .npy or .csv file, an array, or a function φ(references, caption)"
    )


def prepare_dataset(
    dataset: Dataset, phi: Phi = "cider", *, progress: Progress | None = None, threads: int | None = None
) -> PreparedSimilarity:
    """φ for the images × captions of a dataset; rows and columns are in the order of its ids.

    The references of an image are its captions; of text-only retrieval, the texts of the corpus, as captions only ask.
    A caption that is itself among them is compared with all of them, itself included. An image without captions has no
    references: its row is 0.
    """
    similarity = load_similarity(phi)
    if isinstance(similarity, IdSimilarity):
        return similarity.prepare_ids(dataset)
    return similarity.prepare(references_of(dataset), dataset.texts, progress=progress, threads=threads)


class CallableSimilarity:
    """A Python function as φ. It is called once per cell, so it suits some pairs or a small collection.

    There is no way to know when a function changes: ``revision`` is empty, and its numbers are never reused.
    """

    revision = ""

    def __init__(self, function: CaptionFunction) -> None:
        self.function = function
        self.name = "own:" + (getattr(function, "__qualname__", None) or type(function).__qualname__)

    def prepare(
        self, references: References, captions: Texts, *, progress: Progress | None = None, threads: int | None = None
    ) -> PreparedCallable:
        """Keep the texts: the function is called when numbers are read."""
        return PreparedCallable(self.function, self.name, references, captions, (len(references), len(captions)))


@dataclass(frozen=True)
class PreparedCallable:
    """A function with the texts that it is called with."""

    function: CaptionFunction
    name: str
    references: References
    captions: Texts
    shape: tuple[int, int]

    def block(self, rows: slice) -> Array:
        images = np.arange(self.shape[0])[rows]
        cells = self.pairs(np.repeat(images, self.shape[1]), np.tile(np.arange(self.shape[1]), len(images)))
        return cells.reshape(len(images), self.shape[1])

    def pairs(self, images: Array, captions: Array) -> Array:
        values = []
        for image, caption in zip(np.asarray(images).tolist(), np.asarray(captions).tolist(), strict=True):
            references, text = self.references[image], self.captions[caption]
            value = call_function(self.function, references, text) if len(references) else 0.0
            try:
                number = float(value)
            except (TypeError, ValueError):
                number = math.nan
            if not math.isfinite(number):
                problem = f"{self.name} returned {value!r:.40} for the caption {text!r:.60}"
                fix = "return a finite number for every pair"
                raise InputError(problem, row=f"image {image}", expected="a finite number", fix=fix)
            values.append(number)
        return np.array(values, np.float32)


WORTH_KEEPING = 1.0
"""Seconds that a matrix must have taken: what is computed faster than it is read needs no file."""

CacheChoice = str | Path | bool | None
"""A folder; None and True are the default one, False is none."""


_PLACED = "placed"
_BLOCK_BYTES = 16 << 20
_PARTS_PER_SLOT = 4
"""Blocks for each core of a cluster, at least."""
_ROWS = 256


def relevance_matrix(
    dataset: Dataset,
    phi: Phi = "cider",
    *,
    output: str | Path | None = None,
    overwrite: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
    cache: CacheChoice = None,
) -> Array:
    """φ of every image (by its captions) and every caption: float32, aligned with ``image_ids`` × ``caption_ids``.

    A caption of the image itself is compared with all of the image's captions, itself included.

    Args:
        dataset: Images and their captions.
        phi: The name of a similarity, a function φ(references, caption), a matrix or its file.
        output: A ``.npy`` file: blocks are written as they are computed, the same call again resumes, and the returned
            array is memory-mapped. The ids are written beside it (``.json``).
        overwrite: Replace an existing file with other numbers.
        threads: Threads to use.
        progress: Told how much is done.
        cache: Where, without ``output``, a matrix that took long to compute is kept, and found by the measure and the
            captions: a folder, or False for nowhere.
    """
    similarity = load_similarity(phi)
    if output is not None:
        path = Path(output).expanduser()
        if path.suffix != ".npy":
            raise UsageError(f"{path} does not end in .npy", fix=f"write to {path.with_suffix('.npy')}")
        return _on_disk(dataset, similarity, path, overwrite, threads, progress)

    def compute() -> Array:
        prepared = prepare_dataset(dataset, similarity, progress=progress, threads=threads)
        images, captions = prepared.shape
        try:
            matrix = np.empty((images, captions), np.float32)
        except MemoryError as error:
            fix = f"write the matrix to a file: {argument('output')}"
            raise UsageError(f"{images:,} × {captions:,} numbers do not fit into memory", fix=fix) from error
        for start, block in _blocks(prepared, 0, progress):
            matrix[start : start + len(block)] = block
        return frozen(matrix)

    # A matrix that is given has its own file; a function without a revision may have changed unnoticed.
    if cache is False or not similarity.revision or isinstance(similarity, IdSimilarity):
        return compute()
    facts = {"phi": similarity.name, "revision": similarity.revision, "crosslens": version("crosslens")}
    key = fingerprint("cached-phi", {**facts, "references": references_of(dataset), "captions": tuple(dataset.texts)})
    file = cache_folder(None if cache is True else cache) / "similarities" / f"{key}.npy"
    stored = read_cached_array(file, (len(dataset.image_ids), len(dataset.caption_ids)), np.float32)
    if stored is not None:
        return frozen(np.array(stored))
    start = time.monotonic()
    matrix = compute()
    if time.monotonic() - start >= WORTH_KEEPING:
        try:
            write_cached_array(file, lambda partial: np.save(partial, matrix, allow_pickle=False), facts)
        except OSError:
            file.unlink(missing_ok=True)  # a full disk costs the time of computing it again, not the result
    return matrix


def relevance_pairs(
    dataset: Dataset,
    phi: Phi,
    images: Array,
    captions: Array,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Array:
    """φ of single pairs: float32.

    Args:
        dataset: Images and their captions.
        phi: As in :func:`relevance_matrix`.
        images: The position of each pair's image in the dataset.
        captions: The position of each pair's caption.
        threads: Threads to use.
        progress: Told how much is done.
    """
    images, captions = np.asarray(images, np.int64), np.asarray(captions, np.int64)
    if images.shape != captions.shape or images.ndim != 1:
        fix = "pass one position of each per pair"
        raise UsageError(f"images of shape {images.shape} and captions of shape {captions.shape}", fix=fix)
    for noun, rows, ids in (("image", images, dataset.image_ids), ("caption", captions, dataset.caption_ids)):
        if len(rows) and (rows.min() < 0 or rows.max() >= len(ids)):
            problem = f"a position of {noun}s outside 0 to {len(ids) - 1}"
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
    description = MatrixDescription.of(dataset, similarity.name, similarity.revision)
    if _is_finished(output, description, overwrite):
        return read_array(output)
    with workspace(output, _key(description) if description.revision else None) as work:
        if _is_finished(output, description, overwrite):  # by another process, just now
            return read_array(output)
        if not _is_placed(work):
            prepared = prepare_dataset(dataset, similarity, progress=progress, threads=threads)
            _write_matrix(work, prepared, progress)
            # The old description is removed first, the new one written last: a description always fits its matrix.
            work.beside(_PLACED).touch()
            description_file(output).unlink(missing_ok=True)
            work.put_in_place()
        write_description(output, description)
        work.discard()
    return read_array(output)


def _is_finished(output: Path, description: MatrixDescription, overwrite: bool) -> bool:
    """Whether this very matrix is there; raises if something else is that must not be replaced."""
    work, key = Workspace(output), _key(description)
    with verification(not overwrite):  # a damaged one is about to be replaced
        if description_file(output).exists() and read_description(output) is None:
            raise ConflictError(
                f"{description_file(output)} does not describe a matrix", fix="choose another name for the matrix"
            )
    if overwrite or (description.revision and work.is_of(key) and _is_placed(work)):
        return False
    if output.exists() and description.revision and read_description(output) == description:
        read_description(output, verified=True)
        tidy_output(output, key)
        return True
    if output.exists():
        raise other_content(output, "matrix")
    refuse_existing(output, overwrite)
    return False


def _is_placed(work: Workspace) -> bool:
    """Whether the matrix is in place, and only its description may be missing."""
    return work.beside(_PLACED).exists() and not work.new.exists()


def _write_matrix(work: Workspace, prepared: PreparedSimilarity, progress: Progress | None) -> None:
    """Write the matrix, or the rest of one that was interrupted.

    Block by block as bytes: into a memory-mapped file, a full disk would end the process without an error.
    """
    rows, row_bytes = work.beside("rows"), 4 * prepared.shape[1]
    layout = {"descr": "<f4", "fortran_order": False, "shape": prepared.shape}
    with work.new.open("ab+") as file:
        file.seek(0)
        try:
            done = int(rows.read_text(encoding="utf-8")) if work.new.stat().st_size else 0
        except (OSError, ValueError):
            done = 0
        if done:
            np.lib.format.read_magic(file)
            np.lib.format.read_array_header_1_0(file)
            file.truncate(file.tell() + done * row_bytes)
        else:
            file.truncate(0)
            np.lib.format.write_array_header_1_0(file, layout)
        for start, block in _blocks(prepared, done, progress):
            file.write(np.ascontiguousarray(block, "<f4").tobytes())
            file.flush()
            write_text(rows, str(start + len(block)))
        os.fsync(file.fileno())


def _blocks(prepared: PreparedSimilarity, done: int, progress: Progress | None) -> Iterator[tuple[int, Array]]:
    """Each block of rows after those that are done, with the row that it begins with."""
    rows, captions = prepared.shape
    height, engine = max(1, _BLOCK_BYTES // max(4 * captions, 1)), current_engine()
    if engine.distributed:
        height = max(1, min(height, -(-(rows - done) // (_PARTS_PER_SLOT * engine.slots()))))
    parts = [slice(start, min(start + height, rows)) for start in range(done, rows, height)]
    with stage(shown_progress(progress), "similarity", rows, done=done, unit="image") as watching:
        blocks = engine.run(
            _block, prepared, parts, done=lambda part: watching.advance(part.stop - part.start), size=_BLOCK_BYTES
        )
        for part, block in zip(parts, blocks, strict=True):
            yield part.start, block


def _block(prepared: PreparedSimilarity, rows: slice) -> Array:
    return prepared.block(rows)


def _key(description: MatrixDescription) -> str:
    return fingerprint("similarity-matrix", description.as_dict())


def read_pairs(path: str | Path, dataset: Dataset) -> tuple[Array, Array]:
    """The positions of the images and captions that a CSV or TSV names in its columns ``image`` and ``caption``."""
    table = read_table(path).frame
    with reading(path):
        rows = []
        for column, ids in (("image", dataset.image_ids), ("caption", dataset.caption_ids)):
            names = table[require_column(table, column, (column,))].fill_null("").to_list()
            rows.append(positions(names, ids, column, any_ending=column == "image"))
    return rows[0], rows[1]


def pairs_table(dataset: Dataset, images: Array, captions: Array, scores: Array) -> pl.DataFrame:
    """The columns image, caption, score."""
    sides = {"image": (dataset.image_ids, images), "caption": (dataset.caption_ids, captions)}
    names = {side: [ids[row] for row in rows.tolist()] for side, (ids, rows) in sides.items()}
    return pl.DataFrame({**names, "score": scores})


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


def summarise_matrix(matrix: Array, dataset: Dataset) -> MatrixSummary:
    """Read every number once, a few rows at a time."""
    images, captions = matrix.shape
    if not captions:
        return MatrixSummary(images, 0, 0.0, 0.0, 0.0, None, None)
    of_own_image = matrix[dataset.caption_image, np.arange(captions)].astype(np.float64)
    lowest, highest, total = np.inf, -np.inf, 0.0
    for start in range(0, images, _ROWS):
        rows = matrix[start : start + _ROWS]
        lowest, highest = min(lowest, float(rows.min())), max(highest, float(rows.max()))
        total += float(rows.sum(dtype=np.float64))
    others = images * captions - captions
    mean, mean_own = total / (images * captions), float(of_own_image.mean())
    mean_others = (total - float(of_own_image.sum())) / others if others else None
    return MatrixSummary(images, captions, lowest, mean, highest, mean_own, mean_others)
