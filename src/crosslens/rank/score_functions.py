"""Score functions by name, with options in brackets: ``cosine``, ``smooth-chamfer[alpha=16]``, ``match[samples=7]``."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosslens.core import InputError, Options, Registry, UsageError, argument, available_cores, declarations, option
from crosslens.engine import wait_for_all
from crosslens.rank.scorers import InnerProduct, Scorer, check_dimensions, norms, rounding_bound, unit_rows
from crosslens.storage import (
    VECTOR_BYTES,
    Array,
    ArrayBlocks,
    VectorBlocks,
    as_blocks,
    block_parts,
    each_block,
    random_stream,
)
from crosslens.values import Embeddings

Convert = Callable[[Array], Array]
"""Stored rows → float32 rows of the same items."""


_SMALL = 1 << 28
_LONGER = 32
"""A side of more bytes than this is not held if it is so many times as long as the other."""

_CACHED = 1 << 21
"""Vectors in memory are converted in blocks of this many bytes, which stay in the cache until they are stored."""


class FloatBlocks:
    """Stored vectors, converted as they are read, in the thread that asks for them.

    Each thread keeps its last block: a pass asks for it many times.
    """

    dtype = np.dtype(np.float32)

    def __init__(self, source: VectorBlocks, convert: Convert) -> None:
        self.source, self._convert = source, convert
        self.shape: tuple[int, ...] = (source.shape[0], *convert(np.ones((1, *source.shape[1:]), np.float32)).shape[1:])
        self._last = threading.local()

    def block(self, start: int, stop: int) -> Array:
        """These rows, converted."""
        if getattr(self._last, "part", None) != (start, stop):
            block = self.source.block(start, stop)
            self._last.block = self._converted(block, lambda row: start + row)
            self._last.part = (start, stop)
        last: Array = self._last.block
        return last

    def rows(self, rows: Array) -> Array:
        """Single rows, converted."""
        return self._converted(self.source.rows(rows), lambda row: int(rows[row]))

    def location(self, row: int) -> tuple[str | None, int]:
        """Where the stored row is."""
        return self.source.location(row)

    @property
    def is_ready(self) -> bool:
        """Whether the stored numbers are what is asked for: nothing is copied, then."""
        if self._convert is not _plain_vector or not isinstance(self.source, ArrayBlocks):
            return False
        return self.source.dtype == np.float32 and bool(self.source.array.flags.c_contiguous)

    def in_memory(self) -> ArrayBlocks:
        """All of them at once, converted on all cores."""
        if self.is_ready:
            return ArrayBlocks(self._convert(self.source.block(0, self.shape[0])))
        out = np.empty(self.shape, np.float32)

        def fill(part: slice) -> None:
            block = self.source.block(part.start, part.stop)
            out[part] = self._converted(block, lambda row: part.start + row)

        in_files = not isinstance(self.source, ArrayBlocks)
        parts = block_parts(self.source) if in_files else block_parts(self.source, _CACHED)
        with ThreadPoolExecutor(available_cores()) as pool:
            wait_for_all([pool.submit(fill, part) for part in parts])
        return ArrayBlocks(out)

    def _converted(self, block: Array, row_of: Callable[[int], int]) -> Array:
        """The converted rows; an error about one of them names the row in its file."""
        try:
            return self._convert(block)
        except InputError as error:
            if isinstance(error.row, int):
                error.file, error.row = self.source.location(row_of(error.row))
            raise


def single_vectors(images: Embeddings, captions: Embeddings, *, unit: bool) -> tuple[VectorBlocks, VectorBlocks]:
    """One float32 vector per item, of length 1 if ``unit``."""
    return _both(images, captions, _unit_vector if unit else _plain_vector)


def unit_sets(images: Embeddings, captions: Embeddings) -> tuple[VectorBlocks, VectorBlocks]:
    """n×k×d float32 vectors of length 1: an item with one vector is a set of one."""
    return _both(images, captions, _unit_set)


def unit_blocks(source: VectorBlocks) -> VectorBlocks:
    """One float32 vector of length 1 per item, held in memory if there is room."""
    blocks = FloatBlocks(source, _unit_vector)
    return blocks.in_memory() if 4 * math.prod(blocks.shape) <= VECTOR_BYTES.value else blocks


def _both(images: Embeddings, captions: Embeddings, convert: Convert) -> tuple[VectorBlocks, VectorBlocks]:
    """Both sides; the smaller one is held in memory first, for a pass reads it again for every block of the other.

    The larger side is read once. To hold it is quicker where many of its vectors are compared exactly; with few queries
    of many items that gains little, and costs all the memory.
    """
    room, sides = VECTOR_BYTES.value, [FloatBlocks(side.source, convert) for side in (images, captions)]
    prepared: list[VectorBlocks] = [*sides]
    sizes = [4 * math.prod(side.shape) for side in sides]
    for number in sorted((0, 1), key=sizes.__getitem__):
        size = sizes[number]
        worthwhile = size <= max(_SMALL, _LONGER * min(sizes))
        if (size <= room and worthwhile) or sides[number].is_ready:
            prepared[number] = sides[number].in_memory()
            room -= size
    return prepared[0], prepared[1]


def _plain_vector(vectors: Array) -> Array:
    return np.ascontiguousarray(_one_each(vectors), np.float32)


def _unit_vector(vectors: Array) -> Array:
    return unit_rows(_one_each(vectors), threads=1)


def _unit_set(vectors: Array) -> Array:
    return unit_rows(vectors if vectors.ndim == 3 else vectors[:, None, :], threads=1)


def _one_each(vectors: Array) -> Array:
    return vectors[:, 0] if vectors.ndim == 3 and vectors.shape[1] == 1 else vectors


ScoreFunction = Callable[..., Scorer]
Pooling = Callable[[Array], Array]
"""Turns products of shape (rows, row vectors, columns, column vectors) into scores of shape (rows, columns)."""

SCORES: Registry[ScoreFunction] = Registry("score function", "scores")
_DEFAULTS = {"probabilistic": "csd", "multi": "max", "single": "cosine"}
"""By kind of embeddings, the most particular first."""


def score_function(name: str, kind: str, options: type[Options] = Options) -> Callable[[ScoreFunction], ScoreFunction]:
    """Register a score function: ``(images, captions, **options) -> Scorer``.

    ``kind`` is the kind of embeddings it takes (``single``, ``multi``, ``probabilistic``), ``options`` declares the
    numbers that may be written in its brackets.
    """
    return SCORES.register(name, kind=kind, options=options)


def default_score(*kinds: str) -> str:
    """The score function of embeddings of these kinds where none is named."""
    return next(score for kind, score in _DEFAULTS.items() if kind in kinds)


def scorer_of(images: Embeddings, captions: Embeddings, score: str = "cosine") -> Scorer:
    """The scorer that a name such as ``cosine`` or ``smooth-chamfer[alpha=8]`` stands for."""
    name, values = _parse(score)
    entry = SCORES[name]
    declared = entry.details["options"]
    for key in values:
        if key not in declarations(declared):
            defaults = ", ".join(f"{key}={value:g}" for key, value in vars(declared()).items()) or "none"
            raise UsageError(f"score function {name!r} has no option {key!r}", fix=f"its options: {defaults}")
    options, kind = declared(**values), entry.details["kind"]
    for side, embeddings in (("image", images), ("caption", captions)):
        actual, shape = embeddings.kind, embeddings.shape
        fits = actual == kind or (kind == "multi" and actual == "single") or shape[1:-1] == (1,)
        if kind == "single" and actual == "probabilistic":
            fits = True  # the means are vectors like any others
        if not fits:
            usable = [argument("score", function.name) for function in SCORES if function.details["kind"] == actual]
            problem = f"score function {name!r} cannot score {actual} {side} embeddings of shape {shape}"
            raise InputError(problem, expected=f"{kind} embeddings", fix=f"use {' or '.join(usable)}")
    return entry.value(images, captions, **vars(options))


@score_function("cosine", "single")
def cosine(images: Embeddings, captions: Embeddings) -> Scorer:
    """Inner product of the vectors at length 1."""
    return InnerProduct(*single_vectors(images, captions, unit=True), unit=True)


@score_function("dot", "single")
def dot(images: Embeddings, captions: Embeddings) -> Scorer:
    """Inner product of the vectors as they are."""
    return InnerProduct(*single_vectors(images, captions, unit=False))


@score_function("max", "multi")
def best_pair(images: Embeddings, captions: Embeddings) -> Scorer:
    """Largest cosine over all pairs of vectors of the two items (PVSE)."""
    return PooledProduct(*unit_sets(images, captions), lambda products: np.asarray(products.max(axis=(1, 3))))


@dataclass(frozen=True)
class ChamferOptions(Options):
    """How soft the best match is."""

    alpha: float = option(16.0, "Sharpness of the soft maximum: the larger, the nearer to the maximum.", above=0)


@score_function("smooth-chamfer", "multi", ChamferOptions)
def smooth_chamfer(images: Embeddings, captions: Embeddings, alpha: float) -> Scorer:
    """Soft best matches of all vectors of both items, averaged (DivE)."""

    def log_sum_exp(values: Array, axis: int) -> Array:
        largest = values.max(axis=axis, keepdims=True)
        return np.asarray(np.log(np.exp(values - largest).sum(axis=axis)) + largest.squeeze(axis))

    def pool(products: Array) -> Array:
        """Every vector's soft best match on the other side, averaged over both sides."""
        scaled = products * products.dtype.type(alpha)
        forward = log_sum_exp(scaled, 3).mean(axis=1)
        backward = log_sum_exp(scaled, 1).mean(axis=2)
        return np.asarray((forward + backward) / products.dtype.type(2 * alpha))

    return PooledProduct(*unit_sets(images, captions), pool)


@score_function("csd", "probabilistic")
def csd(images: Embeddings, captions: Embeddings) -> Scorer:
    """Minus the expected squared distance of the two distributions: closed form, ranks like the match probability."""

    def moments(embeddings: Embeddings) -> tuple[Array, Array]:
        mean, variance = embeddings.vectors.astype(np.float64), np.asarray(embeddings.variance, np.float64)
        return mean, (mean**2 + variance).sum(axis=1)

    def extend(mean: Array, *columns: Array) -> Array:
        return np.ascontiguousarray(np.column_stack([np.sqrt(2) * mean, *columns]), np.float32)

    (left, left_square), (right, right_square) = moments(images), moments(captions)
    return InnerProduct(
        extend(left, -left_square, np.ones(len(left))), extend(right, np.ones(len(right)), -right_square)
    )


@dataclass(frozen=True)
class MatchOptions(Options):
    """The sigmoid, and how the distributions are sampled."""

    samples: float = option(7, "Samples drawn of each distribution.", minimum=1, maximum=10_000)
    a: float = option(1.0, "Scale of the distance.")
    b: float = option(0.0, "Shift of the distance.")
    seed: float = option(0, "Seed of the samples.")


@score_function("match", "probabilistic", MatchOptions)
def match(images: Embeddings, captions: Embeddings, samples: float, a: float, b: float, seed: float) -> Scorer:
    """Match probability of PCME: mean of sigmoid(b - a · distance) over pairs of samples of the two distributions."""

    def draw(embeddings: Embeddings, side: str) -> Array:
        deviation = np.sqrt(np.asarray(embeddings.variance, np.float64))[:, None, :]
        shape = (int(samples), embeddings.dimension)
        streams = (random_stream(int(seed), "match", side, item) for item in embeddings.ids)
        noise = np.stack([stream.standard_normal(shape) for stream in streams])
        return np.asarray(embeddings.vectors[:, None, :] + noise * deviation, np.float64)

    def extend(points: Array, *, first: bool) -> Array:
        half = -0.5 * (points**2).sum(axis=2, keepdims=True)
        ones = np.ones_like(half)
        return np.concatenate([points, half, ones] if first else [points, ones, half], axis=2)

    def pool(products: Array) -> Array:
        distance = np.sqrt(np.maximum(-2 * products, 0))  # products are minus half the squared distances
        return np.asarray((1 / (1 + np.exp(np.clip(a * distance - b, -700, 700)))).mean(axis=(1, 3)))

    return PooledProduct(
        extend(draw(images, "image"), first=True),
        extend(draw(captions, "caption"), first=False),
        pool,
        precision=np.float64,
    )


class PooledProduct:
    """Products of all pairs of vectors of two items, pooled into one score.

    ``pooling`` must not stretch differences: if every product changes by at most e, so does the score. ``precision``
    is the type the products are computed in.
    """

    precision = np.float32

    def __init__(
        self, rows: Array | VectorBlocks, columns: Array | VectorBlocks, pooling: Pooling, *,
        precision: type[np.floating[Any]] = np.float32,
    ) -> None:  # fmt: skip
        check_dimensions(rows, columns)
        self.rows, self.columns, self.pooling, self.products_in = (
            as_blocks(rows),
            as_blocks(columns),
            pooling,
            precision,
        )
        self.shape = (rows.shape[0], columns.shape[0])
        self.work = rows.shape[1] * columns.shape[1] * rows.shape[2]
        longest = math.prod(map(_longest, (self.rows, self.columns)))
        bound = rounding_bound(rows.shape[2]) * longest + 4e-6 * max(1.0, longest)  # products, then pooling
        slack = np.float32(bound if precision is np.float32 else 1e-6 * max(1.0, longest))
        self.row_slack = np.full(self.shape[0], slack, np.float32)
        self.column_slack = np.full(self.shape[1], slack, np.float32)

    def tile(self, rows: slice, columns: slice) -> Array:
        """One matrix product of all vectors of the block, then pooled."""
        left = self.rows.block(rows.start, rows.stop).astype(self.products_in, copy=False)
        right = self.columns.block(columns.start, columns.stop).astype(self.products_in, copy=False)
        width = left.shape[2]
        products = left.reshape(-1, width) @ right.reshape(-1, width).T
        products = products.reshape(len(left), left.shape[1], len(right), right.shape[1])
        return np.ascontiguousarray(self.pooling(products), np.float32)

    def exact(self, rows: Array, columns: Array) -> Array:
        """The same in float64, rounded once."""
        out = np.empty(len(rows), np.float32)
        for start in range(0, len(rows), 1024):
            part = slice(start, start + 1024)
            left = self.rows.rows(rows[part]).astype(np.float64)
            right = self.columns.rows(columns[part]).astype(np.float64)
            products = np.einsum("pkd,pld->pkl", left, right, optimize=False)
            out[part] = self.pooling(products[:, :, None, :])[:, 0]
        return out


def _parse(score: str) -> tuple[str, dict[str, float]]:
    shape = re.fullmatch(r"\s*([\w-]+)\s*(?:\[(.*)\])?\s*", score)
    try:
        if shape is None:
            raise ValueError
        parts = [part.partition("=") for part in (shape[2] or "").split(",") if part.strip()]
        return shape[1], {key.strip(): float(value) for key, _, value in parts}
    except ValueError:
        fix = "write it as name or name[option=number]"
        raise UsageError(f"cannot read the score function {score!r}", fix=fix, option="score") from None


def _longest(vectors: VectorBlocks) -> float:
    """The length of the longest vector of all sets."""
    lengths = (norms(block.reshape(-1, block.shape[-1])) for _, block in each_block(vectors))
    return max((float(length.max(initial=0.0)) for length in lengths), default=0.0)
