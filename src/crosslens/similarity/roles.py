"""Does a caption put its words together as an image's captions do? The part of ``semantic`` that hears roles.

Four kinds of evidence against a caption, each from 0 (none) to 1. Words are compared by the vectors that a text encoder
gives each word *in its sentence*: the *dog* that chases is not the *dog* that is chased.

- ``least``: how little the references support the caption's least supported word
- ``pairs``: how little they support its neighbouring words, both together, in this order
- ``inverted``: the share of pairs of nearby words that the references have only the other way round; texts with the
  word *by*, which may be passives, say nothing about order
- ``negation``: a negation that the references lack, or the reverse

Vectors lie on a grid of whole numbers and weights are whole numbers, so every sum is exact: no order changes a result.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numba
import numpy as np

from crosslens.core import Progress, UsageError
from crosslens.rank import unit_rows
from crosslens.similarity.protocol import Array, References, Texts, group_starts
from crosslens.similarity.shared_words import EMPTY_WORDS, WORD, fold, word_weights

WordVectors = Callable[[Sequence[str], Progress | None], list[tuple[list[str], Array]]]
"""Texts → of each its words, in their order, and a vector for each of them."""

ROLES = ("least", "pairs", "inverted", "negation")
NEGATIONS = frozenset(("no", "not", "without", "nobody", "nothing", "none", "never", "n't", "empty"))
PASSIVE = "by"
"""A text with this word may be a passive, in which the one who acts comes last."""
GRID = 4_000
"""Steps per unit: products of two vectors stay below 2³¹."""
_NEAR = 3
"""Content words at most this far apart are a pair whose order counts."""
_FAR = -100

_compiled = numba.njit(nogil=True, cache=True)
_LETTER = re.compile(r"[^\W_]")


class _Lexicon(NamedTuple):
    """All words of all encoded texts in one row: of each a vector, a number, a weight, whether it has content.

    ``ordered`` says of each word whether the order of its text counts.
    """

    vectors: Array
    number: Array
    weight: Array
    content: Array
    ordered: Array


class Roles:
    """The evidence of one collection. Texts are encoded when a cell first needs them."""

    def __init__(self, references: References, captions: Texts, encode: WordVectors, encoder: str) -> None:
        own = [text for image in references for text in image]
        self._row_of = {text: row for row, text in enumerate(dict.fromkeys([*own, *captions]))}
        self._texts = list(self._row_of)
        self._reference = np.array([self._row_of[text] for text in own], np.int64)
        self._start = group_starts(references)
        self._caption = np.array([self._row_of[text] for text in captions], np.int64)
        self._encode, self._encoder = encode, encoder
        self._weight_of = _weights(references)
        self._number_of: dict[str, int] = {}
        self._words: list[list[str] | None] = [None] * len(self._texts)
        self._first, self._last = np.zeros((2, len(self._texts)), np.int64)
        self._negated = np.zeros(len(self._texts), np.bool_)
        self._lexicon: _Lexicon | None = None

    def require(self, images: Array, captions: Array, progress: Progress | None = None) -> None:
        """Encode the texts that cells of these images and captions need, but for those encoded before."""
        rows = {int(row) for image in np.unique(images).tolist() for row in self._references_of(image)}
        rows.update(self._caption[np.unique(captions)].tolist())
        missing = sorted(row for row in rows if self._words[row] is None)
        if not missing:
            return
        encoded = self._encode([self._texts[row] for row in missing], progress)
        parts = [] if self._lexicon is None else [self._lexicon.vectors]
        filled = 0 if self._lexicon is None else len(self._lexicon.vectors)
        for row, (words, vectors) in zip(missing, encoded, strict=True):
            kept = [at for at, word in enumerate(words) if _LETTER.search(word)]
            words, vectors = [words[at].lower() for at in kept], np.asarray(vectors)[kept]
            self._words[row] = words
            self._first[row], self._last[row] = filled, filled + len(words)
            self._negated[row] = not NEGATIONS.isdisjoint(words)
            if words:
                parts.append(_on_grid(vectors, self._encoder))
            filled += len(words)
        self._index(missing, parts)

    def __getstate__(self) -> dict[str, Any]:
        """For other processes: the words of all texts, and no encoder."""
        self.require(np.arange(len(self._start) - 1), np.arange(len(self._caption)))
        return {**vars(self), "_encode": None, "_weight_of": None}

    def _references_of(self, image: int) -> Array:
        return self._reference[self._start[image] : self._start[image + 1]]

    def _index(self, rows: Sequence[int], parts: list[Array]) -> None:
        texts = [self._words[row] or [] for row in rows]
        words = [word for own in texts for word in own]
        folded = [fold(word) for word in words]
        number = [self._number_of.setdefault(word, len(self._number_of)) for word in folded]
        new: tuple[Array, ...] = (
            np.array(number, np.int64),
            np.array([self._weight_of(word) for word in folded], np.int64),
            np.array([word not in EMPTY_WORDS for word in words], np.bool_),
            np.array([PASSIVE not in own for own in texts for _ in own], np.bool_),
        )
        if self._lexicon is not None:
            new = tuple(np.concatenate([old, more]) for old, more in zip(self._lexicon[1:], new, strict=True))
        vectors = np.concatenate(parts) if parts else np.zeros((0, 1), np.int16)
        self._lexicon = _Lexicon(vectors, *new)

    def cells(self, images: Array, captions: Array) -> Array:
        """The evidence of single cells whose texts are encoded: float64, one column per kind."""
        out = np.zeros((len(images), len(ROLES)))
        if self._lexicon is not None and len(images):
            caption = self._caption[captions]
            bounds = (self._first, self._last)
            _cells(*self._lexicon, *bounds, self._reference, self._start, np.asarray(images), caption, out)
            out[:, 3] = _negation(self._negated, self._reference, self._start, np.asarray(images), caption)
        return out


def _weights(references: References) -> Callable[[str], int]:
    """The weight of a folded word: rare words weigh more, as among the shared words."""
    counts: Counter[str] = Counter()
    for image in references:
        counts.update({fold(word) for text in image for word in WORD.findall(text.lower())})
    total = sum(1 for image in references if len(image))
    known = dict(zip(counts, word_weights(np.array(list(counts.values()), np.int64), total).tolist(), strict=True))
    unknown = int(word_weights(np.zeros(1, np.int64), total)[0])
    return lambda word: known.get(word, unknown)


def _on_grid(vectors: Array, encoder: str) -> Array:
    if vectors.ndim != 2:
        raise UsageError(f"{encoder} gives vectors of shape {vectors.shape}", fix="give one vector per word")
    return np.rint(unit_rows(vectors.astype(np.float32)) * np.float32(GRID)).astype(np.int16)


def _negation(negated: Array, reference: Array, start: Array, images: Array, captions: Array) -> Array:
    """How far the caption is from the references: their share with a negation against its own 0 or 1."""
    sums = np.concatenate([[0], np.cumsum(negated[reference])])
    count = np.maximum(start[images + 1] - start[images], 1)
    share = (sums[start[images + 1]] - sums[start[images]]) / count
    distance: Array = np.abs(share - negated[captions])
    return distance


@_compiled
def _cells(
    vectors: Any, number: Any, weight: Any, content: Any, ordered: Any, first: Any, last: Any, reference: Any,
    start: Any, images: Any, captions: Any, out: Any,
) -> None:  # fmt: skip
    for cell in range(images.size):
        begin, end = first[captions[cell]], last[captions[cell]]
        from_, to = start[images[cell]], start[images[cell] + 1]
        if begin == end or from_ == to:
            continue
        best = np.zeros(end - begin, np.int64)
        both = np.zeros(end - begin, np.int64)
        for row in range(from_, to):
            _support(vectors, begin, end, first[reference[row]], last[reference[row]], best, both)
        out[cell, 0] = 1.0 - best.min() / (GRID * GRID)
        out[cell, 1] = _unsupported(weight, begin, both if end - begin > 1 else best)
        out[cell, 2] = _inverted(number, weight, content, ordered, begin, end, first, last, reference, from_, to)


@_compiled
def _support(vectors: Any, begin: int, end: int, ref_begin: int, ref_end: int, best: Any, both: Any) -> None:
    """Raise each word's support, and that of each word with the next, to what one reference gives."""
    words, others = end - begin, ref_end - ref_begin
    products = np.zeros((words, others), np.int64)
    for i in range(words):
        for j in range(others):
            product: Any = np.int32(0)
            for at in range(vectors.shape[1]):
                product += np.int32(vectors[begin + i, at]) * np.int32(vectors[ref_begin + j, at])
            products[i, j] = min(max(product, 0), GRID * GRID)
            best[i] = max(best[i], products[i, j])
    for i in range(words - 1):
        for j in range(others):
            for later in range(j + 1, min(j + 3, others)):  # at most one word between them
                both[i] = max(both[i], min(products[i, j], products[i + 1, later]))


@_compiled
def _unsupported(weight: Any, begin: int, support: Any) -> float:
    total, supported = np.int64(0), np.int64(0)
    pairs = max(support.size - 1, 1)
    for i in range(pairs):
        own = weight[begin + i] + (weight[begin + i + 1] if support.size > 1 else 0)
        total += own
        supported += own * support[i]
    return 1.0 - supported / (total * GRID * GRID)


@_compiled
def _inverted(
    number: Any, weight: Any, content: Any, ordered: Any, begin: int, end: int, first: Any, last: Any, reference: Any,
    from_: int, to: int,
) -> float:  # fmt: skip
    """Of the caption's pairs of nearby content words, by weight, those that references have the other way round."""
    total, inverted = np.int64(0), np.int64(0)
    if not ordered[begin]:
        return 0.0
    for i in range(begin, end):
        if not content[i]:
            continue
        near = 0
        for j in range(i + 1, end):
            if not content[j]:
                continue
            near += 1
            if near > _NEAR:
                break
            if number[i] == number[j]:
                continue
            own = min(weight[i], weight[j])
            total += own
            same, other = False, False
            for row in range(from_, to):
                has = _orders(
                    number, content, ordered, first[reference[row]], last[reference[row]], number[i], number[j]
                )
                same, other = same or has[0], other or has[1]
            if other and not same:
                inverted += own
    return inverted / total if total else 0.0


@_compiled
def _orders(number: Any, content: Any, ordered: Any, begin: int, end: int, one: int, two: int) -> tuple[bool, bool]:
    """Whether a text has both words near each other: in this order, in the other."""
    at, last_one, last_two = 0, _FAR, _FAR
    same, other = False, False
    for word in range(begin, end):
        if not content[word] or not ordered[word]:
            continue
        if number[word] == one:
            last_one = at
            other = other or at - last_two <= _NEAR
        elif number[word] == two:
            last_two = at
            same = same or at - last_one <= _NEAR
        at += 1
    return same, other
