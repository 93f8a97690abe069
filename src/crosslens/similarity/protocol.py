"""What every φ is: sets of reference captions against single captions, whole rows or single cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from crosslens.core import Registry, UsageError, available_cores, core_limit
from crosslens.engine import Progress, wait_for_all
from crosslens.storage import Array
from crosslens.values import Dataset

Texts = Sequence[str]
References = Sequence[Texts]
"""The reference captions of each image."""


@runtime_checkable
class PreparedSimilarity(Protocol):
    """A φ prepared for one collection: images (by their reference captions) × captions.

    ``block`` and ``pairs`` give the same number for the same cell at any number of threads (embeddings: to 1e-6).
    """

    @property
    def shape(self) -> tuple[int, int]:
        """Number of images, number of captions."""

    def block(self, rows: slice) -> Array:
        """Whole rows: float32, (rows, captions)."""

    def pairs(self, images: Array, captions: Array) -> Array:
        """Single cells: float32, one per pair of positions."""


@runtime_checkable
class Similarity(Protocol):
    """φ(G, c): how much a caption c says what the reference captions G say; larger is more similar.

    ``name`` is what it is loaded by. ``revision`` changes whenever its numbers may: together they identify the numbers
    in caches and reports.
    """

    @property
    def name(self) -> str:
        """What it is loaded by."""

    @property
    def revision(self) -> str:
        """Another revision, other numbers."""

    def prepare(
        self, references: References, captions: Texts, *, progress: Progress | None = None, threads: int | None = None
    ) -> PreparedSimilarity:
        """Prepare φ for these reference sets (one per image) and captions."""


@runtime_checkable
class IdSimilarity(Protocol):
    """A φ whose numbers belong to ids and not to texts: a precomputed matrix."""

    def prepare_ids(self, dataset: Dataset) -> PreparedSimilarity:
        """The numbers of this dataset's images and captions."""


CaptionFunction = Callable[[Texts, str], float]
"""φ(references, caption)."""

Phi = str | Path | Array | Similarity | CaptionFunction
"""How a φ may be passed: a name, a file, a matrix, a Similarity, or a function φ(references, caption)."""

SIMILARITIES: Registry[Callable[..., Similarity]] = Registry(
    "similarity", "similarities", ("crosslens.similarity.measures",)
)
"""Kinds of φ. One is named ``kind`` or ``kind:source``; its factory is called with the source ('' without one) and with
the caller's options by keyword."""


def references_of(dataset: Dataset) -> list[list[str]]:
    """For each image, in the order of the dataset, the texts that say what is in it: its captions, or its corpus."""
    references: list[list[str]] = [[] for _ in range(dataset.images.height)]
    for text, image in zip(dataset.described.texts, dataset.described.caption_image.tolist(), strict=True):
        references[image].append(text)
    return references


def group_starts(groups: Iterable[Sized]) -> Array:
    """Where each group starts when all are put in a row, and one past the last: int64."""
    return np.concatenate([[0], np.cumsum([len(group) for group in groups])]).astype(np.int64)


def distinct_texts(references: References, captions: Texts) -> tuple[list[str], Array, Array]:
    """Every different text, and which of them the references, image after image, and the captions are."""
    reference_texts = [text for image in references for text in image]
    number = {text: at for at, text in enumerate(dict.fromkeys([*reference_texts, *captions]))}
    rows, columns = (np.array([number[text] for text in side], np.int64) for side in (reference_texts, captions))
    return list(number), rows, columns


def group_members(groups: Array, start: Array) -> Array:
    """Where the members of these groups are in that row, group after group."""
    count = np.diff(start)[groups]
    members: Array = np.repeat(start[groups] - (np.cumsum(count) - count), count) + np.arange(count.sum())
    return members


_PIECES_PER_THREAD = 8


def thread_count(threads: int | None) -> int:
    """The number that is passed, or that of the cores."""
    if threads is not None and threads < 1:
        raise UsageError(f"threads = {threads}", fix="use 1 or more, or leave it out", option="threads")
    return threads or available_cores()


def in_parallel(work: Callable[[int, int], object], count: int, threads: int) -> None:
    """Call ``work(start, stop)`` for ranges that together cover ``range(count)``."""
    threads = min(threads, core_limit() or threads)  # prepared by a process that has more cores than this one
    if threads == 1 or count < 2:
        work(0, count)
        return
    step = max(1, -(-count // (threads * _PIECES_PER_THREAD)))
    with ThreadPoolExecutor(threads) as pool:
        try:
            wait_for_all([pool.submit(work, at, min(at + step, count)) for at in range(0, count, step)])
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def in_cells(
    kernel: Callable[..., None], images: Array, captions: Array, arguments: tuple[Any, ...], threads: int
) -> Array:
    """Single cells, float32, from a kernel that is called with the output, images, captions and ``arguments``."""
    images, captions = np.asarray(images, np.int64), np.asarray(captions, np.int64)
    out = np.empty(len(images), np.float32)

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        if start < stop:
            kernel(out[part], images[part], captions[part], *arguments)

    in_parallel(work, len(out), threads)
    return out


_FILLED = 4
"""A grid is worth its cells where at least one in so many is asked for."""


class PairGrid(NamedTuple):
    """Distinct images and captions, and the row and column of each pair."""

    images: Array
    captions: Array
    row: Array
    column: Array


def as_grid(images: Array, captions: Array, shape: tuple[int, int]) -> PairGrid | None:
    """The grid that pairs fill; None where they are too few for it."""
    if not len(images):
        return None
    distinct_images, row = _distinct_positions(images, shape[0])
    distinct_captions, column = _distinct_positions(captions, shape[1])
    if len(distinct_images) * len(distinct_captions) > _FILLED * len(images):
        return None
    return PairGrid(distinct_images, distinct_captions, row, column)


def _distinct_positions(positions: Array, count: int) -> tuple[Array, Array]:
    """The distinct positions, and where among them each one is: without sorting, which would cost more than φ."""
    number = np.zeros(count, np.int64)
    number[positions] = 1
    distinct = np.flatnonzero(number)
    number[distinct] = np.arange(len(distinct))
    return distinct, number[positions]
