"""``semantic``: how well a caption describes an image, judged by the image's captions; 0 to 1.

Three kinds of evidence: *closeness*, the cosines of sentence vectors between the caption and the image's captions (the
mean of the largest and of their average, averaged over encoders); *shared words*, the share of the caption's words that
the image's captions hold; and, where the two are close enough to matter, *roles*: whether the words are put together
as the image's captions do (``roles.py``). A curve, fitted to people's judgements, makes one value of them.

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
from crosslens.similarity.roles import ROLES, Roles, WordVectors
from crosslens.similarity.shared_words import SharedWords
from crosslens.similarity.threads import in_parallel, thread_count

FILE = "semantic_fit.json"
ROLES_FROM, ROLES_FULLY = 0.3, 0.5
"""The closeness from which roles begin to count, and from which they count fully: of COCO's cells, one in twenty."""


@dataclass(frozen=True)
class SemanticFit:
    """A logistic curve over closeness, shared words and roles, stretched so that no evidence is 0 and all of it is 1.

    The curve σ(closeness · x + words · y + constant − x · against) is fitted to people's judgements of pairs; no weight
    is below 0, so more evidence for a caption never lowers the result, and more against it never raises it. ``against``
    is ``assumed`` up to a closeness of 0.3 and, from 0.5 on, the weighted sum of ``least`` and ``pairs``; in between it
    passes from one to the other. ``inverted`` and ``negation`` are the shares of the result that a caption loses which
    is inverted or negated throughout: a curve near its end would hardly notice them.
    """

    closeness: float
    words: float
    constant: float
    assumed: float = 0.0
    least: float = 0.0
    pairs: float = 0.0
    inverted: float = 0.0
    negation: float = 0.0

    def __post_init__(self) -> None:
        values = astuple(self)
        weights = [value for value, field in zip(values, fields(self), strict=True) if field.name != "constant"]
        usable = all(map(math.isfinite, values)) and min(weights) >= 0 and max(self.inverted, self.negation) <= 1
        if not usable or not sum(weights[:2]):
            expected = (
                "finite numbers; no weight below 0, inverted and negation at most 1, closeness and words not both 0"
            )
            fix = "fit again with training/semantic/fit.py"
            raise InputError(f"a fit of {', '.join(map(str, values))}", expected=expected, fix=fix)

    @property
    def hears_roles(self) -> bool:
        """Whether the curve needs the evidence of roles."""
        return any(getattr(self, name) for name in ROLES)

    @property
    def revision(self) -> str:
        """Another revision, other numbers."""
        return fingerprint("semantic", {"fit": json.dumps(astuple(self))})[:12]

    def __call__(self, closeness: Array, words: Array, roles: Array | None = None) -> Array:
        """Evidence → 0 to 1; cosines below 0 count as none. ``roles`` has a column per kind of evidence, last."""
        low = _logistic(np.float64(self.constant))
        high = _logistic(np.float64(self.closeness + self.words + self.constant))
        curve = _logistic(self.logit(closeness, words, roles))
        stretched: Array = np.clip((curve - low) / (high - low), 0.0, 1.0)
        return stretched if roles is None else stretched * self.kept(closeness, roles)

    def logit(self, closeness: Array, words: Array, roles: Array | None = None) -> Array:
        """The evidence as one number, before the curve."""
        evidence: Array = self.closeness * closeness + self.words * words + self.constant
        if not (self.hears_roles or self.assumed):
            return evidence
        share = role_share(closeness)
        against: Array = (1 - share) * self.assumed
        if roles is not None:
            against = against + share * (self.least * roles[..., 0] + self.pairs * roles[..., 1])
        heard: Array = evidence - np.maximum(closeness, 0.0) * against
        return heard

    def kept(self, closeness: Array, roles: Array) -> Array:
        """The share of the result that inverted words and negations leave."""
        share = role_share(closeness)
        kept: Array = (1 - self.inverted * share * roles[..., 2]) * (1 - self.negation * share * roles[..., 3])
        return kept


def role_share(closeness: Array) -> Array:
    """How much roles count: not at all up to ``ROLES_FROM``, so that they need not be compared there."""
    share: Array = np.clip((closeness - ROLES_FROM) / (ROLES_FULLY - ROLES_FROM), 0.0, 1.0)
    return share


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
    roles = {name: float(entry.get(name, 0.0)) for name in ("assumed", *ROLES)}
    return SemanticFit(float(entry["closeness"]), float(entry["words"]), float(entry["constant"]), **roles)


def _logistic(value: Array | np.float64) -> Any:
    return 1.0 / (1.0 + np.exp(-value))


GRID = 4_000
"""Steps per unit. Products of two rounded unit vectors stay below 2²⁴, where float32 begins to skip whole numbers."""
LONGEST_VECTOR = 32_768
"""Dimensions up to which that holds: rounding lengthens a vector by at most half a step per dimension."""

_ROWS_AT_ONCE, _PAIRS_AT_ONCE = 32, 4_096


@dataclass(frozen=True)
class TextEncoder:
    """A text encoder: a name, a revision (empty: unknown), and a function from texts to vectors.

    ``words`` gives a vector for each word of a text; None where the encoder cannot.
    """

    name: str
    revision: str
    vectors: Vectors
    words: WordVectors | None = None


class Semantic:
    """φ from one or several text encoders and a fit made for them; the last one's word vectors tell roles."""

    def __init__(self, encoders: Sequence[TextEncoder], fit: SemanticFit, *, name: str = "semantic") -> None:
        if not encoders:
            raise UsageError("semantic needs a text encoder", fix="pass at least one")
        if fit.hears_roles and encoders[-1].words is None:
            raise UsageError(
                f"{encoders[-1].name} has no vectors of single words, which this fit of semantic needs",
                fix="use a sentence encoder, or a fit without roles, which training/semantic/fit.py makes for it",
            )
        self.encoders, self.fit, self.name = tuple(encoders), fit, name

    @property
    def revision(self) -> str:
        """Changes with the fit and with any encoder's weights; empty where an encoder's revision is unknown."""
        known = [encoder.revision[:12] for encoder in self.encoders]
        return "+".join(["2", self.fit.revision, *known]) if all(known) else ""

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
        last = self.encoders[-1]
        hears = self.fit.hears_roles and last.words is not None
        roles = Roles(references, captions, last.words, last.name) if hears and last.words else None
        return PreparedSemantic(group_starts(references), sides, words, roles, self.fit, thread_count(threads))


class _Side(NamedTuple):
    """One encoder's vectors on the grid: of all references, image after image, and of the captions."""

    references: Array
    captions: Array


class PreparedSemantic:
    """``semantic`` of one collection. An image without references has 0 everywhere."""

    def __init__(
        self, start: Array, sides: list[_Side], words: SharedWords, roles: Roles | None, fit: SemanticFit, threads: int
    ) -> None:
        self._start, self._sides, self._words, self._fit, self._threads = start, sides, words, fit, threads
        self._roles = roles
        self._count = np.diff(start)
        self.shape = (len(self._count), len(sides[0].captions))

    def block(self, rows: slice) -> Array:
        first, last, _ = rows.indices(self.shape[0])
        out = np.zeros((max(last - first, 0), self.shape[1]), np.float32)
        if self._roles is not None and out.size:
            self._roles.require(np.arange(first, last), np.arange(self.shape[1]))

        def work(start: int, stop: int) -> None:
            for at in range(start, stop, _ROWS_AT_ONCE):
                end = min(at + _ROWS_AT_ONCE, stop)
                self._rows(out[at:end], first + at, first + end)

        with threadpool_limits(1):  # the rows are divided among threads already
            in_parallel(work, len(out), self._threads)
        return out

    def pairs(self, images: Array, captions: Array) -> Array:
        images, captions = np.asarray(images, np.int64), np.asarray(captions, np.int64)
        closeness, words = self.evidence(images, captions)
        values = self._fit(closeness, words, self._heard(closeness, images, captions))
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

    def roles(self, images: Array, captions: Array) -> Array:
        """The evidence of roles against single cells, float64; 0 where the caption is too far for them to count."""
        images, captions = np.asarray(images, np.int64), np.asarray(captions, np.int64)
        heard = self._heard(self.evidence(images, captions)[0], images, captions)
        return np.zeros((len(images), len(ROLES))) if heard is None else heard

    def _heard(self, closeness: Array, images: Array, captions: Array) -> Array | None:
        if self._roles is None:
            return None
        heard = np.zeros((len(images), len(ROLES)))
        near = np.flatnonzero(closeness > ROLES_FROM)
        self._roles.require(images[near], captions[near])
        for at in range(0, len(near), _PAIRS_AT_ONCE):
            here = near[at : at + _PAIRS_AT_ONCE]
            heard[here] = self._roles.cells(images[here], captions[here])
        return heard

    def _rows(self, out: Array, first: int, last: int) -> None:
        here = np.flatnonzero(self._count[first:last])
        if not len(here):
            return
        begin, end = self._start[first], self._start[last]
        starts, count = self._start[first:last][here] - begin, self._count[first:last][here, None]
        products = (side.references[begin:end] @ side.captions.T for side in self._sides)
        closeness = reduce(add, (_pooled(product, starts, count) for product in products)) / len(self._sides)
        words = self._words.block(first, last)[here]
        out[here] = self._fit(closeness, words)
        if self._roles is not None:
            row, caption = np.nonzero(closeness > ROLES_FROM)
            roles = self._roles.cells(first + here[row], caption)
            out[here[row], caption] = self._fit(closeness[row, caption], words[row, caption], roles)

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
