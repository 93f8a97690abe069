"""``semantic``: how well a caption describes an image, judged by the image's captions; 0 to 1.

Two kinds of evidence: *closeness*, the cosines of sentence vectors between the caption and the image's captions (the
mean of the largest and of their average, averaged over encoders), and *shared words*, the share of the caption's
words that the image's captions hold. A curve with three numbers, fitted to people's judgements, makes one value of
them.

Unit vectors are rounded to a grid so coarse that every sum in a product is a whole number that float32 holds exactly
(the rounding moves a cosine by about 0.0001). So a cell has one value: alone or in a block, at any number of threads,
whatever order the linear algebra adds in.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from importlib.resources import files
from operator import add
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from crosslens.core import InputError, Progress, UnknownNameError, UsageError, fingerprint, read_json_file, reading
from crosslens.rank import unit_rows
from crosslens.similarity.embedding import Vectors
from crosslens.similarity.protocol import Array, References, Texts, group_starts
from crosslens.similarity.shared_words import SharedWords
from crosslens.similarity.threads import in_parallel, thread_count

FILE = "semantic_fit.json"


@dataclass(frozen=True)
class SemanticFit:
    """A logistic curve over closeness and shared words, stretched so that no evidence is 0 and all of it is 1.

    The curve σ(closeness · x + words · y + constant) is fitted to people's judgements of pairs;
    both weights are at least 0, so more evidence never lowers the result.
    """

    closeness: float
    words: float
    constant: float

    def __post_init__(self) -> None:
        values = (self.closeness, self.words, self.constant)
        if not all(math.isfinite(value) for value in values) or min(values[:2]) < 0 or not sum(values[:2]):
            expected = "finite numbers; closeness and words not negative, not both 0"
            fix = "fit again with training/semantic/fit.py"
            raise InputError(f"a fit of {self.closeness}, {self.words}, {self.constant}", expected=expected, fix=fix)

    @property
    def revision(self) -> str:
        """Another revision, other numbers."""
        return fingerprint("semantic", {"fit": json.dumps([self.closeness, self.words, self.constant])})[:12]

    def __call__(self, closeness: Array, words: Array) -> Array:
        """Evidence → 0 to 1; cosines below 0 count as none."""
        low = _logistic(np.float64(self.constant))
        high = _logistic(np.float64(self.closeness + self.words + self.constant))
        curve = _logistic(self.closeness * closeness + self.words * words + self.constant)
        stretched: Array = np.clip((curve - low) / (high - low), 0.0, 1.0)
        return stretched


def load_semantic_fit(name: str | Path) -> SemanticFit:
    """A packaged fit, by the name of its encoders, or one in a JSON file of the same form."""
    if isinstance(name, Path) or name.endswith(".json"):
        return _only(Path(name).expanduser())
    known = semantic_fits()
    if name not in known:
        raise UnknownNameError("fit", name, known)
    return known[name]


def semantic_fits() -> dict[str, SemanticFit]:
    """The packaged fits."""
    return {name: _fit(entry) for name, entry in packaged_semantic_fits()["fits"].items()}


def packaged_semantic_fits() -> Mapping[str, Any]:
    """The file in the package: fits, how they were made, and how well they do on pairs they have not seen."""
    content: Mapping[str, Any] = json.loads(files("crosslens.similarity").joinpath(FILE).read_text("utf-8"))
    return content


def _only(path: Path) -> SemanticFit:
    expected = 'a JSON file with one entry in "fits", as training/semantic/fit.py writes it'
    try:
        content = read_json_file(path)
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
        raise InputError(problem, file=path, expected=expected, fix="check the path") from error
    try:
        (entry,) = content["fits"].values()
        with reading(path):
            return _fit(entry)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise InputError(
            "does not contain a fit", file=path, expected=expected, fix="name a file with one fit"
        ) from error


def _fit(entry: Mapping[str, Any]) -> SemanticFit:
    return SemanticFit(float(entry["closeness"]), float(entry["words"]), float(entry["constant"]))


def _logistic(value: Array | np.float64) -> Any:
    return 1.0 / (1.0 + np.exp(-value))


GRID = 4_000
"""Steps per unit. Products of two rounded unit vectors stay below 2²⁴, where float32 begins to skip whole numbers."""
LONGEST_VECTOR = 32_768
"""Dimensions up to which that holds: rounding lengthens a vector by at most half a step per dimension."""

_ROWS_AT_ONCE, _PAIRS_AT_ONCE = 32, 4_096


@dataclass(frozen=True)
class TextEncoder:
    """A text encoder: a name, a revision (empty: unknown), and a function from texts to vectors."""

    name: str
    revision: str
    vectors: Vectors


class Semantic:
    """φ from one or several text encoders and a fit made for them."""

    def __init__(self, encoders: Sequence[TextEncoder], fit: SemanticFit, *, name: str = "semantic") -> None:
        if not encoders:
            raise UsageError("semantic needs a text encoder", fix="pass at least one")
        self.encoders, self.fit, self.name = tuple(encoders), fit, name

    @property
    def revision(self) -> str:
        """Changes with the fit and with any encoder's weights; empty where an encoder's revision is unknown."""
        known = [encoder.revision[:12] for encoder in self.encoders]
        return "+".join(["1", self.fit.revision, *known]) if all(known) else ""

    def prepare(
        self, references: References, captions: Texts, *, progress: Progress | None = None, threads: int | None = None
    ) -> PreparedSemantic:
        """Encode every different text once, and count words."""
        texts = [text for image in references for text in image]
        unique = list(dict.fromkeys([*texts, *captions]))
        row_of = {text: number for number, text in enumerate(unique)}
        grids = [_on_grid(np.asarray(encoder.vectors(unique, progress)), encoder.name) for encoder in self.encoders]
        reference_rows, caption_rows = [row_of[text] for text in texts], [row_of[text] for text in captions]
        sides = [_Side(grid[reference_rows], grid[caption_rows]) for grid in grids]
        words = SharedWords(references, captions)
        return PreparedSemantic(group_starts(references), sides, words, self.fit, thread_count(threads))


class _Side(NamedTuple):
    """One encoder's vectors on the grid: of all references, image after image, and of the captions."""

    references: Array
    captions: Array


class PreparedSemantic:
    """``semantic`` of one collection. An image without references has 0 everywhere."""

    def __init__(self, start: Array, sides: list[_Side], words: SharedWords, fit: SemanticFit, threads: int) -> None:
        self._start, self._sides, self._words, self._fit, self._threads = start, sides, words, fit, threads
        self._count = np.diff(start)
        self.shape = (len(self._count), len(sides[0].captions))

    def block(self, rows: slice) -> Array:
        first, last, _ = rows.indices(self.shape[0])
        out = np.zeros((max(last - first, 0), self.shape[1]), np.float32)

        def work(start: int, stop: int) -> None:
            for at in range(start, stop, _ROWS_AT_ONCE):
                end = min(at + _ROWS_AT_ONCE, stop)
                self._rows(out[at:end], first + at, first + end)

        with threadpool_limits(1):  # the rows are divided among threads already
            in_parallel(work, len(out), self._threads)
        return out

    def pairs(self, images: Array, captions: Array) -> Array:
        images = np.asarray(images, np.int64)
        values = self._fit(*self.evidence(images, captions))
        return np.where(self._count[images] > 0, values, 0.0).astype(np.float32)

    def evidence(self, images: Array, captions: Array) -> tuple[Array, Array]:
        """Closeness and shared words of single cells, float64: what a fit is made from, and what explains a value."""
        images, captions = np.asarray(images, np.int64), np.asarray(captions, np.int64)
        closeness, words = np.zeros(len(images)), np.zeros(len(images))
        for at in range(0, len(images), _PAIRS_AT_ONCE):
            here = at + np.flatnonzero(self._count[images[at : at + _PAIRS_AT_ONCE]])
            if len(here):
                closeness[here] = self._close_pairs(images[here], captions[here])
                words[here] = self._words.pairs(images[here], captions[here])
        return closeness, words

    def _rows(self, out: Array, first: int, last: int) -> None:
        here = np.flatnonzero(self._count[first:last])
        if not len(here):
            return
        begin, end = self._start[first], self._start[last]
        starts, count = self._start[first:last][here] - begin, self._count[first:last][here, None]
        products = (side.references[begin:end] @ side.captions.T for side in self._sides)
        closeness = reduce(add, (_pooled(product, starts, count) for product in products)) / len(self._sides)
        out[here] = self._fit(closeness, self._words.block(first, last)[here])

    def _close_pairs(self, images: Array, captions: Array) -> Array:
        count = self._count[images]
        starts = np.cumsum(count) - count
        within = np.arange(count.sum()) - np.repeat(starts, count)
        reference, caption = np.repeat(self._start[images], count) + within, np.repeat(captions, count)
        products = (np.einsum("pd,pd->p", side.references[reference], side.captions[caption]) for side in self._sides)
        closeness: Array = reduce(add, (_pooled(product, starts, count) for product in products)) / len(self._sides)
        return closeness


def _pooled(products: Array, starts: Array, count: Array) -> Array:
    """Over each image's references, halfway between the largest cosine and their average."""
    largest = np.maximum.reduceat(products, starts, axis=0)
    # In float64 the sum of whole numbers is exact too, so the order of the references does not matter.
    average = np.add.reduceat(products, starts, axis=0, dtype=np.float64) / count
    pooled: Array = np.minimum((largest + average) / (2 * GRID**2), 1.0)
    return pooled


def _on_grid(vectors: Array, encoder: str) -> Array:
    if vectors.ndim != 2 or vectors.shape[1] > LONGEST_VECTOR:
        raise UsageError(f"{encoder} gives vectors of shape {vectors.shape}", fix="use one vector per text")
    return np.rint(unit_rows(vectors) * np.float32(GRID))
