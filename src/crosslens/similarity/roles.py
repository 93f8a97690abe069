"""The words of captions in ``semantic``: which of them an image's captions say too, and in which roles.

Shared words are folded roughly (``dogs``, ``dog``), those that say nothing about a picture are left out, and rare ones
weigh more.

Roles order captions that hold the same content words, and no others: *a dog chases a man*, *a man chases a dog*. Five
kinds of evidence against a caption, each from 0 (none) to 1. A word supports another by the cosine of their vectors,
which a text encoder gives for each word by itself.

- ``unigrams``: how little the references support the caption's words
- ``bigrams``: how little they support its neighbouring words, both together, in this order
- ``skipgrams``: the same for words with one word between them
- ``inverted``: the share of pairs of nearby words that the references have only the other way round; texts with the
  word *by*, which may be passives, say nothing about order
- ``negation``: a negation that the references lack, or the reverse

Vectors lie on a grid of whole numbers and weights are whole numbers, so every sum is exact: no order changes a result.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import numba
import numpy as np
from scipy.sparse import csr_array

from crosslens.similarity.protocol import References, Texts, distinct_texts, group_members, group_starts, in_parallel
from crosslens.storage import Array

WORD = re.compile(r"[^\W_]+")
_VOWEL = re.compile("[aeiouy]")
_HISSING = ("sses", "shes", "ches", "xes", "zes")
WEIGHT_UNIT = 1 << 16
"""Weights are whole numbers of this part of 1."""

_EMPTY = """
a an the of in on at to with and or is are be being been was were am by for from as it its his her hers
their theirs there here this that these those while into onto up down out over off near next he she they
them him who whom whose which what where when has have had having do does did doing not no nor so than then
too very can could will would some something someone other another each every all both such own same just
also i you we my your our me us itself himself herself themselves through during after before above below
between about against along across behind beside around under toward towards upon within without
"""
EMPTY_WORDS = frozenset(_EMPTY.split())
"""Stop words: they occur in captions of anything."""

IRREGULAR = {
    "men": "man", "women": "woman", "people": "person", "children": "child", "feet": "foot", "mice": "mouse",
    "ran": "run", "sat": "sit", "stood": "stand", "held": "hold",
}  # fmt: skip


def content_words(text: str) -> frozenset[str]:
    """The folded words of a text that say something; all its words where none does."""
    words = WORD.findall(text.lower())
    content = [word for word in words if word not in EMPTY_WORDS]
    return frozenset(fold(word) for word in content or words)


@lru_cache(1 << 16)
def fold(word: str) -> str:
    """One form for the inflections of a word. It need not be a word; it need only be the same one."""
    word = IRREGULAR.get(word, word)
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(_HISSING):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and word[-2] not in "su":
        word = word[:-1]
    for ending in ("ing", "ed"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) >= 3 and _VOWEL.search(stem):
            doubled = stem[-1] == stem[-2] and stem[-1] not in "lsz"
            word = stem[:-1] if doubled else stem
            break
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


def word_weights(image_count: Array, images: int) -> Array:
    """ln(1 + (N + 1) / (n + 1)) for words that n of N images have, in whole units."""
    weights: Array = np.rint(np.log(1 + (images + 1) / (image_count + 1)) * WEIGHT_UNIT).astype(np.int64)
    return weights


class SharedWords:
    """The share, by weight, of each caption's words that each image's captions hold: 0 to 1.

    A word weighs ln(1 + (N + 1) / (n + 1)) where n of the N images have it in their captions. A share is a ratio of
    such weights, so it depends on which words are rarer than others, hardly on how large the collection is.
    """

    def __init__(self, references: References, captions: Texts) -> None:
        words_of: dict[str, frozenset[str]] = {}
        for text in chain(captions, *references):
            if text not in words_of:
                words_of[text] = content_words(text)
        images = [frozenset(chain.from_iterable(words_of[text] for text in image)) for image in references]
        caption_words = [words_of[text] for text in captions]
        number_of = {word: number for number, word in enumerate(sorted(set().union(*images, *caption_words)))}
        self._images = _incidence(images, number_of)
        image_count = np.bincount(self._images.indices, minlength=len(number_of))
        count = sum(1 for image in references if len(image))
        weight = word_weights(image_count, count)
        self._captions = _incidence(caption_words, number_of)
        self._captions.data = weight[self._captions.indices]
        # A text without a single word shares nothing: 0 / 1.
        self._total = np.maximum(self._captions.sum(axis=1), 1)
        self._by_word = self._captions.T.tocsr()

    def block(self, first: int, last: int) -> Array:
        """Rows ``first`` to ``last``: float64, (rows, captions)."""
        shares: Array = (self._images[first:last] @ self._by_word).toarray() / self._total
        return shares

    def pairs(self, images: Array, captions: Array) -> Array:
        """Single cells: float64."""
        shares: Array = self._images[images].multiply(self._captions[captions]).sum(axis=1) / self._total[captions]
        return shares


def _incidence(texts: Sequence[Iterable[str]], number_of: dict[str, int]) -> csr_array:
    rows = [sorted(number_of[word] for word in words) for words in texts]
    start = group_starts(rows)
    column = np.fromiter(chain.from_iterable(rows), np.int64, int(start[-1]))
    return csr_array((np.ones(len(column), np.int64), column, start), shape=(len(rows), max(len(number_of), 1)))


ROLES = ("unigrams", "bigrams", "skipgrams", "inverted", "negation")
NEGATIONS = frozenset(("no", "not", "without", "nobody", "nothing", "none", "never", "empty"))
PASSIVE = "by"
"""A text with this word may be a passive, in which the one who acts comes last."""
_NEAR = 3
"""Content words at most this far apart are a pair whose order counts."""
_FAR = -100
_CELLS_AT_ONCE = 16_384

_compiled = numba.njit(nogil=True, cache=True)


class SameContent:
    """Captions that hold the same content words: only their order can depend on roles.

    ``columns`` has one column for each different text of such a group, group after group from ``start`` on;
    ``group`` is the group of every caption, -1 for a caption that is alone; ``first`` the first caption with its text.
    """

    def __init__(self, captions: Texts) -> None:
        first_of: dict[str, int] = {}
        self.first = np.array([first_of.setdefault(text, at) for at, text in enumerate(captions)], np.int64)
        groups: dict[frozenset[str], list[int]] = {}
        for text, at in first_of.items():
            groups.setdefault(content_words(text), []).append(at)
        several = [columns for columns in groups.values() if len(columns) > 1]
        self.start = group_starts(several)
        self.columns = np.array([at for columns in several for at in columns], np.int64)
        self.group = np.full(len(captions), -1, np.int64)
        self.group[self.columns] = np.repeat(np.arange(len(several)), np.diff(self.start))
        self.group = self.group[self.first]

    def members(self, groups: Array) -> tuple[Array, Array]:
        """Where in ``columns`` the captions of these groups are, and which of the groups asked for each belongs to."""
        return group_members(groups, self.start), np.repeat(np.arange(len(groups)), np.diff(self.start)[groups])


class _Words(NamedTuple):
    """All words of all texts in one row: of each its spelling and its stem, as numbers, and a weight.

    ``content`` says whether it says something, ``ordered`` whether the order of its text counts.
    """

    spelling: Array
    stem: Array
    weight: Array
    content: Array
    ordered: Array


class Roles:
    """The evidence of one collection. ``vectors`` gives words a vector on a grid, per encoder."""

    def __init__(
        self,
        references: References,
        captions: Texts,
        vectors: Callable[[Sequence[str]], list[Array]],
        grid: int,
        threads: int,
    ) -> None:
        texts, self._reference, self._caption = distinct_texts(references, captions)
        self._start = group_starts(references)
        words = [WORD.findall(text.lower()) for text in texts]
        self._bounds = group_starts(words)
        self._spellings = spellings = sorted({word for text in words for word in text})
        # Rare words weigh more, as among the shared words; every spelling is folded, weighed and looked up once.
        counts: Counter[str] = Counter()
        fold_of: dict[str, str] = {}
        for image in references:
            image_words = {word for text in image for word in WORD.findall(text.lower())}
            counts.update({fold_of.get(word) or fold_of.setdefault(word, fold(word)) for word in image_words})
        total = sum(1 for image in references if len(image))
        values = word_weights(np.array(list(counts.values()), np.int64), total).tolist()
        weights, unknown = dict(zip(counts, values, strict=True)), int(word_weights(np.zeros(1, np.int64), total)[0])
        number = {word: at for at, word in enumerate(spellings)}
        folded = [fold(word) for word in spellings]
        stems = {stem: at for at, stem in enumerate(dict.fromkeys(folded))}
        spelling = np.array([number[word] for text in words for word in text], np.int64)
        stem = np.array([stems[word] for word in folded], np.int64)
        weight = np.array([weights.get(word, unknown) for word in folded], np.int64)
        content = np.array([word not in EMPTY_WORDS for word in spellings], np.bool_)
        ordered = np.repeat(np.array([PASSIVE not in text for text in words], np.bool_), [len(text) for text in words])
        self._words = _Words(spelling, stem[spelling], weight[spelling], content[spelling], ordered)
        self._negated = np.array([not NEGATIONS.isdisjoint(text) for text in words], np.bool_)
        self._encode, self._grid, self._threads = vectors, grid, threads
        self._vectors: list[Array] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """For other processes: the vectors of all words, and no encoder."""
        self._encoded()
        return {**vars(self), "_encode": None}

    def _encoded(self) -> list[Array]:
        if self._vectors is None:
            self._vectors = self._encode(self._spellings)
        return self._vectors

    def cells(self, images: Array, captions: Array) -> Array:
        """The evidence of single cells: float64, one column per kind."""
        out = np.zeros((len(images), len(ROLES)))
        # In portions of neighbouring images: of each portion, all words are compared with one another.
        order = np.argsort(images, kind="stable")
        for at in range(0, len(order), _CELLS_AT_ONCE):
            part = order[at : at + _CELLS_AT_ONCE]
            self._cells(images[part], self._caption[captions[part]], out, part)
        return out

    def _cells(self, images: Array, captions: Array, out: Array, part: Array) -> None:
        spelling, stem, weight, content, ordered = self._words
        caption_members = group_members(np.unique(captions), self._bounds)
        references = self._reference[group_members(np.unique(images), self._start)]
        reference_members = group_members(np.unique(references), self._bounds)
        row, column = np.unique(spelling[caption_members]), np.unique(spelling[reference_members])
        place = np.zeros((2, len(self._spellings)), np.int64)
        place[0, row], place[1, column] = np.arange(len(row)), np.arange(len(column))
        support = np.zeros((len(row), len(column)), np.int32)
        for vectors in self._encoded():
            support += (vectors[row] @ vectors[column].T).astype(np.int32)
        full = len(self._encoded()) * self._grid**2
        support, rows, columns = np.clip(support, 0, full), place[0][spelling], place[1][spelling]
        against = np.zeros((len(images), len(ROLES)))

        def work(start: int, stop: int) -> None:
            _compare(
                support, full, rows, columns, stem, weight, content, ordered, self._bounds, self._reference,
                self._start, images[start:stop], captions[start:stop], against[start:stop],
            )  # fmt: skip

        in_parallel(work, len(images), self._threads)
        # How far the caption is from the references: their share with a negation against its own 0 or 1.
        sums = np.concatenate([[0], np.cumsum(self._negated[self._reference])])
        begin, end = self._start[images], self._start[images + 1]
        against[:, 4] = np.abs((sums[end] - sums[begin]) / np.maximum(end - begin, 1) - self._negated[captions])
        out[part] = against


@_compiled
def _compare(
    support: Any, full: int, row: Any, column: Any, stem: Any, weight: Any, content: Any, ordered: Any, ends: Any,
    reference: Any, start: Any, images: Any, captions: Any, out: Any,
) -> None:  # fmt: skip
    for cell in range(images.size):
        begin, end = ends[captions[cell]], ends[captions[cell] + 1]
        from_, to = start[images[cell]], start[images[cell] + 1]
        if begin == end or from_ == to:
            continue
        best = np.zeros((3, end - begin), np.int64)  # of a word; with the next; with the one after it
        for at in range(from_, to):
            first, last = ends[reference[at]], ends[reference[at] + 1]
            for i in range(begin, end):
                for j in range(first, last):
                    supported = support[row[i], column[j]]
                    best[0, i - begin] = max(best[0, i - begin], supported)
                    for gap in range(1, min(3, end - i)):
                        for later in range(j + 1, min(j + 3, last)):  # at most one word between them
                            pair = min(supported, support[row[i + gap], column[later]])
                            best[gap, i - begin] = max(best[gap, i - begin], pair)
        for gap in range(3):
            if gap < end - begin:
                out[cell, gap] = _unsupported(weight, begin, end, gap, best[gap], full)
            else:
                out[cell, gap] = out[cell, gap - 1]
        out[cell, 3] = _inverted(stem, weight, content, ordered, ends, begin, end, reference, from_, to)


@_compiled
def _unsupported(weight: Any, begin: int, end: int, gap: int, support: Any, full: int) -> float:
    total, supported = np.int64(0), np.int64(0)
    for i in range(begin, end - gap):
        amount = weight[i] + (weight[i + gap] if gap else 0)
        total += amount
        supported += amount * support[i - begin]
    return 1.0 - supported / (total * full)


@_compiled
def _inverted(
    stem: Any, weight: Any, content: Any, ordered: Any, ends: Any, begin: int, end: int, reference: Any, from_: int,
    to: int,
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
            if stem[i] == stem[j]:
                continue
            amount = min(weight[i], weight[j])
            total += amount
            same, other = False, False
            for at in range(from_, to):
                first, last = ends[reference[at]], ends[reference[at] + 1]
                has = _orders(stem, content, ordered, first, last, stem[i], stem[j])
                same, other = same or has[0], other or has[1]
            if other and not same:
                inverted += amount
    return inverted / total if total else 0.0


@_compiled
def _orders(stem: Any, content: Any, ordered: Any, begin: int, end: int, first: int, second: int) -> tuple[bool, bool]:
    """Whether a text has both words near each other: in this order, in the other."""
    at, last_first, last_second = 0, _FAR, _FAR
    same, other = False, False
    for word in range(begin, end):
        if not content[word] or not ordered[word]:
            continue
        if stem[word] == first:
            last_first = at
            other = other or at - last_second <= _NEAR
        elif stem[word] == second:
            last_second = at
            same = same or at - last_first <= _NEAR
        at += 1
    return same, other
