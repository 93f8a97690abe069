"""Which of a caption's words an image's captions say too: the lexical half of ``semantic``.

Words are folded roughly (``dogs``, ``dog``; ``running``, ``runs``), words that say nothing about a picture are left
out, and rare words weigh more. Weights are whole numbers, so sums are exact and no order of adding changes a result.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain

import numpy as np
from scipy.sparse import csr_array

from crosslens.similarity.protocol import Array, References, Texts, group_starts

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
        known: dict[str, frozenset[str]] = {}
        for text in chain(captions, *references):
            if text not in known:
                known[text] = content_words(text)
        images = [frozenset(chain.from_iterable(known[text] for text in image)) for image in references]
        own = [known[text] for text in captions]
        number_of = {word: number for number, word in enumerate(sorted(set().union(*images, *own)))}
        self._images = _incidence(images, number_of)
        image_count = np.bincount(self._images.indices, minlength=len(number_of))
        count = sum(1 for image in references if len(image))
        weight = word_weights(image_count, count)
        self._captions = _incidence(own, number_of)
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
