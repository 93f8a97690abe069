"""``semantic``: how well a caption describes an image, judged by the image's captions; 0 to 1.

Two kinds of evidence: *closeness*, the cosines of sentence vectors between the caption and the image's captions (the
mean of the largest and of their average, averaged over encoders), and *shared words*, the share of the caption's words
that the image's captions hold. A curve, fitted to people's judgements, makes one value of them. A third kind, *roles*,
only says which of several captions with the same content words comes first (``roles.py``): these captions exchange
their values, and no other value changes.

Unit vectors are rounded to a grid so coarse that every sum in a product is a whole number that float32 holds exactly
(the rounding moves a cosine by about 0.0001). So a cell has one value: alone or in a block, at any number of threads,
whatever order the linear algebra adds in.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

from crosslens.core import InputError, UnknownNameError, UsageError, reading
from crosslens.engine import Progress, one_blas_thread
from crosslens.rank import unit_rows
from crosslens.similarity.embedding import Vectors
from crosslens.similarity.protocol import (
    References,
    Texts,
    distinct_texts,
    group_members,
    group_starts,
    in_parallel,
    thread_count,
)
from crosslens.similarity.roles import ROLES, Roles, SameContent, SharedWords
from crosslens.storage import Array, fingerprint, read_json_file

_FIT_AGAIN = "fit again with training/semantic/fit.py"
ROLES_FROM = 0.3
"""The closeness from which roles are compared: below it, a caption does not describe the image in any order."""


@dataclass(frozen=True)
class SemanticFit:
    """A logistic curve over closeness and shared words, stretched so that no evidence is 0 and all of it is 1.

    The curve σ(closeness · x + words · y + constant) is fitted to people's judgements of pairs; no weight is below 0,
    so more evidence never lowers the result. The other weights are of evidence against a caption, in units of
    closeness: captions with the same content words are ordered by x minus the weighted sum of that evidence.
    """

    closeness: float
    words: float
    constant: float
    unigrams: float = 0.0
    bigrams: float = 0.0
    skipgrams: float = 0.0
    inverted: float = 0.0
    negation: float = 0.0

    def __post_init__(self) -> None:
        values = astuple(self)
        weights = [value for value, field in zip(values, fields(self), strict=True) if field.name != "constant"]
        if not all(map(math.isfinite, values)) or min(weights) < 0 or not sum(weights[:2]):
            expected = "finite numbers; no weight below 0, closeness and words not both 0"
            raise InputError(f"a fit of {', '.join(map(str, values))}", expected=expected, fix=_FIT_AGAIN)

    @property
    def roles(self) -> tuple[float, ...]:
        return tuple(getattr(self, name) for name in ROLES)

    @property
    def revision(self) -> str:
        return fingerprint("semantic", {"fit": json.dumps(astuple(self))})[:12]

    def __call__(self, closeness: Array, words: Array) -> Array:
        """Evidence → 0 to 1; cosines below 0 count as none."""
        low = _logistic(np.float64(self.constant))
        high = _logistic(np.float64(self.closeness + self.words + self.constant))
        curve = _logistic(self.closeness * closeness + self.words * words + self.constant)
        stretched: Array = np.clip((curve - low) / (high - low), 0.0, 1.0)
        return stretched

    def standing(self, closeness: Array, roles: Array) -> Array:
        """What captions with the same content words are ordered by."""
        against = (weight * roles[:, kind] for kind, weight in enumerate(self.roles))
        standing: Array = closeness - reduce(add, against)
        return standing


def load_semantic_fit(name: str | Path) -> SemanticFit:
    """A packaged fit, by the name of its encoders, or one in a JSON file of the same form."""
    if isinstance(name, str) and not name.endswith(".json"):
        fits = semantic_fits()
        if name not in fits:
            raise UnknownNameError("fit", name, fits)
        return fits[name]
    path = Path(name).expanduser()
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
        fix = "name a file with one fit"
        raise InputError("does not contain a fit", file=path, expected=expected, fix=fix) from error


def semantic_fits() -> dict[str, SemanticFit]:
    """The packaged fits."""
    return {name: _fit(entry) for name, entry in packaged_semantic_fits()["fits"].items()}


def packaged_semantic_fits() -> Mapping[str, Any]:
    """The file in the package: fits, how they were made, and how well they do on pairs they have not seen."""
    content: Mapping[str, Any] = json.loads(Path(__file__).with_name("semantic_fit.json").read_text("utf-8"))
    return content


def _fit(entry: Mapping[str, Any]) -> SemanticFit:
    if "assumed" in entry or "least" in entry or "pairs" in entry:
        raise InputError("a fit of an earlier version", expected=f"the weights {', '.join(ROLES)}", fix=_FIT_AGAIN)
    return SemanticFit(
        **{name: float(entry[name]) for name in ("closeness", "words", "constant")},
        **{name: float(entry.get(name, 0.0)) for name in ROLES},
    )


def _logistic(value: Array | np.float64) -> Any:
    return 1.0 / (1.0 + np.exp(-value))


GRID = 4_000
"""Steps per unit. Products of two rounded unit vectors stay below 2²⁴, where float32 begins to skip whole numbers."""
LONGEST_VECTOR = 32_768
"""Dimensions up to which that holds: rounding lengthens a vector by at most half a step per dimension."""

_ROWS_AT_ONCE, _PAIRS_AT_ONCE = 32, 4_096
_MOST_KEPT = 1 << 15
"""Texts whose vectors are kept in memory, from one question about a collection to the next."""


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
        self._kept: tuple[dict[str, int], list[Array]] = {}, []  # replaced as a whole: several threads may ask

    @property
    def revision(self) -> str:
        """Changes with the fit and with any encoder's weights; empty where an encoder's revision is unknown."""
        revisions = [encoder.revision[:12] for encoder in self.encoders]
        return "+".join(["3", self.fit.revision, *revisions]) if all(revisions) else ""

    def prepare(
        self, references: References, captions: Texts, *, progress: Progress | None = None, threads: int | None = None
    ) -> PreparedSemantic:
        """Encode every different text once, and count words."""
        unique, rows, columns = distinct_texts(references, captions)
        sides = [_Side(grid[rows], grid[columns]) for grid in self._grids(unique, progress)]
        same = SameContent(captions if any(self.fit.roles) else ())
        ordered = [captions[column] for column in same.columns.tolist()]
        count, words = thread_count(threads), SharedWords(references, captions)
        roles = Roles(references, ordered, self._grids, GRID, count) if ordered else None
        return PreparedSemantic(group_starts(references), sides, words, same, roles, self.fit, count)

    def _grids(self, texts: Sequence[str], progress: Progress | None = None) -> list[Array]:
        """Vectors of different texts, or of words, from each encoder, which is asked for those that are not kept."""
        row_of, grids = self._kept
        new = [text for text in texts if text not in row_of]
        if len(row_of) + len(new) > _MOST_KEPT:
            row_of, grids, new = {}, [], list(texts)
        if new or not grids:
            added = [_on_grid(np.asarray(encoder.vectors(new, progress)), encoder.name) for encoder in self.encoders]
            row_of = row_of | {text: row for row, text in enumerate(new, start=len(row_of))}
            grids = [np.concatenate(parts) for parts in zip(grids, added, strict=True)] if grids else added
            self._kept = (row_of, grids) if len(row_of) <= _MOST_KEPT else ({}, [])
        rows = [row_of[text] for text in texts]
        return [grid[rows] for grid in grids]


class _Side(NamedTuple):
    """One encoder's vectors on the grid: of all references, image after image, and of the captions."""

    references: Array
    captions: Array


class PreparedSemantic:
    """``semantic`` of one collection. An image without references has 0 everywhere."""

    def __init__(
        self, start: Array, sides: list[_Side], words: SharedWords, same: SameContent, roles: Roles | None,
        fit: SemanticFit, threads: int,
    ) -> None:  # fmt: skip
        self._start, self._sides, self._words, self._fit, self._threads = start, sides, words, fit, threads
        self._same, self._roles = same, roles
        self._count = np.diff(start)
        self.shape = (len(self._count), len(sides[0].captions))

    def block(self, rows: slice) -> Array:
        first, last, _ = rows.indices(self.shape[0])
        out = np.zeros((max(last - first, 0), self.shape[1]), np.float32)
        contests: list[tuple[Array, Array, Array]] = []

        def work(start: int, stop: int) -> None:
            for at in range(start, stop, _ROWS_AT_ONCE):
                end = min(at + _ROWS_AT_ONCE, stop)
                contests.extend(self._rows(out[at:end], first + at, first + end))

        with one_blas_thread():
            in_parallel(work, len(out), self._threads)
        if contests:
            # Numbered anew: an image and a group are one contest.
            image, member, closeness = (np.concatenate(parts) for parts in zip(*contests, strict=True))
            row, column = image - first, self._same.columns[member]
            contest = row * len(self._same.start) + self._same.group[column]
            out[row, column] = self._settled(contest, image, member, closeness, out[row, column])
            copies = np.flatnonzero((self._same.group >= 0) & (self._same.first != np.arange(self.shape[1])))
            out[:, copies] = out[:, self._same.first[copies]]
        return out

    def pairs(self, images: Array, captions: Array) -> Array:
        images, captions = np.asarray(images, np.int64), np.asarray(captions, np.int64)
        out = self._alone(images, captions)[1]
        if self._roles is None:
            return out
        rivals = np.flatnonzero((self._same.group[captions] >= 0) & (self._count[images] > 0))
        group = self._same.group[captions[rivals]]
        contested, inverse = np.unique(images[rivals] * len(self._same.start) + group, return_inverse=True)
        image, group = contested // len(self._same.start), contested % len(self._same.start)
        member, contest = self._same.members(group)
        closeness, values = self._alone(image[contest], self._same.columns[member])
        near = np.zeros(len(contested), np.bool_)
        near[contest[closeness > ROLES_FROM]] = True
        compared = near[contest]
        cells = contest[compared], image[contest[compared]], member[compared], closeness[compared]
        values[compared] = self._settled(*cells, values[compared])
        cell = contest * self.shape[1] + self._same.columns[member]
        order = np.argsort(cell)
        targets = inverse * self.shape[1] + self._same.first[captions[rivals]]
        out[rivals] = values[order[np.searchsorted(cell[order], targets)]]
        return out

    def _alone(self, images: Array, captions: Array) -> tuple[Array, Array]:
        """Closeness, and the value without roles."""
        closeness, words = self.evidence(images, captions)
        values = np.where(self._count[images] > 0, self._fit(closeness, words), 0.0)
        return closeness, values.astype(np.float32)

    def evidence(self, images: Array, captions: Array) -> tuple[Array, Array]:
        """Closeness and shared words of single cells, float64: what a fit is made from, and what explains a value."""
        images, captions = np.asarray(images, np.int64), np.asarray(captions, np.int64)
        closeness, words = np.zeros(len(images)), np.zeros(len(images))
        for at in range(0, len(images), _PAIRS_AT_ONCE):
            rows = at + np.flatnonzero(self._count[images[at : at + _PAIRS_AT_ONCE]])
            if len(rows):
                count = self._count[images[rows]]
                starts, caption = np.cumsum(count) - count, captions[rows].repeat(count)
                reference = group_members(images[rows], self._start)
                for side in self._sides:
                    products = np.einsum("pd,pd->p", side.references[reference], side.captions[caption])
                    closeness[rows] += _pooled(products[:, None], starts, count)[:, 0]
                closeness[rows] /= len(self._sides)
                words[rows] = self._words.pairs(images[rows], captions[rows])
        return closeness, words

    def roles(self, images: Array, captions: Array) -> Array:
        """The evidence of roles against single cells, float64; 0 for a caption whose content words no other one has."""
        out = np.zeros((len(images), len(ROLES)))
        if self._roles is not None:
            images, captions = np.asarray(images, np.int64), self._same.first[np.asarray(captions, np.int64)]
            compared = np.flatnonzero(self._same.group[captions] >= 0)
            order = np.argsort(self._same.columns)
            member = order[np.searchsorted(self._same.columns[order], captions[compared])]
            out[compared] = self._roles.cells(images[compared], member)
        return out

    def _settled(self, contest: Array, image: Array, member: Array, closeness: Array, values: Array) -> Array:
        """The values exchanged within each contest, so that the caption that stands best has the largest."""
        assert self._roles is not None
        standing = self._fit.standing(closeness, self._roles.cells(image, member))
        best = np.lexsort((-closeness, -standing, contest))
        largest = np.lexsort((-values, contest))
        settled = np.empty_like(values)
        settled[best] = values[largest]
        return settled

    def _rows(self, out: Array, first: int, last: int) -> list[tuple[Array, Array, Array]]:
        """Fill rows with values without roles; returns the cells whose order roles decide: image, member, closeness."""
        rows = np.flatnonzero(self._count[first:last])
        if not len(rows):
            return []
        begin, end = self._start[first], self._start[last]
        starts, count = self._start[first:last][rows] - begin, self._count[first:last][rows]
        products = (side.references[begin:end] @ side.captions.T for side in self._sides)
        closeness = reduce(add, (_pooled(product, starts, count) for product in products)) / len(self._sides)
        out[rows] = self._fit(closeness, self._words.block(first, last)[rows])
        if self._roles is None:
            return []
        nearest = np.maximum.reduceat(closeness[:, self._same.columns], self._same.start[:-1], axis=1)
        row, group = np.nonzero(nearest > ROLES_FROM)
        member, contest = self._same.members(group)
        near = closeness[row[contest], self._same.columns[member]]
        return [(first + rows[row[contest]], member, near)]


def _pooled(products: Array, starts: Array, count: Array) -> Array:
    """Over each image's references, halfway between the largest cosine and their average."""
    pooled = np.empty((len(starts), products.shape[1]))
    _pool(products, starts, count, pooled)
    return np.minimum(pooled / (2 * GRID**2), 1.0)


@numba.njit(nogil=True, cache=True)
def _pool(products: Any, starts: Any, count: Any, out: Any) -> None:
    width = products.shape[1]
    largest, total = np.empty(width, np.float32), np.empty(width, np.float64)
    for image in range(starts.size):
        for at in range(width):
            largest[at] = total[at] = products[starts[image], at]
        for row in range(starts[image] + 1, starts[image] + count[image]):
            for at in range(width):
                largest[at] = max(largest[at], products[row, at])
                total[at] += products[row, at]  # in float64 a sum of whole numbers is exact, whatever their order
        for at in range(width):
            out[image, at] = largest[at] + total[at] / count[image]


def _on_grid(vectors: Array, encoder: str) -> Array:
    if vectors.ndim != 2 or vectors.shape[1] > LONGEST_VECTOR:
        raise UsageError(f"{encoder} gives vectors of shape {vectors.shape}", fix="use one vector per text")
    return np.rint(unit_rows(vectors) * np.float32(GRID))
