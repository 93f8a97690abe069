"""Texts as counted n-grams (n = 1..4) in one sparse table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from crosslens.similarity.protocol import Array

LONGEST = 4


class Grams(NamedTuple):
    """Texts' n-grams: text t holds ``gram[start[t]:start[t + 1]]``, ascending, each ``counts`` times.

    ``order`` is n − 1 of each gram; ``length`` is each text's number of tokens.
    """

    start: Array
    gram: Array
    counts: Array
    order: Array
    length: Array


def count_grams(texts: Sequence[Sequence[str]]) -> Grams:
    """The n-grams of tokenized texts, numbered across all of them."""
    length = np.fromiter(map(len, texts), np.int64, len(texts))
    tokens = number_tokens(texts)
    text = np.repeat(np.arange(len(texts)), length)
    room = np.repeat(np.cumsum(length), length) - np.arange(len(tokens))  # tokens from here to the end of the text
    keys, owners, order = [], [], []
    gram, known = tokens, 0
    for n in range(LONGEST):
        here = room > n
        if n:
            # A gram of n + 1 tokens is the gram of n that starts here with the token after it.
            gram = np.where(here, gram * (tokens.max(initial=0) + 1) + np.roll(tokens, -n), -1)
        names, gram = np.unique(gram, return_inverse=True)
        keys.append(gram[here] + known)
        owners.append(text[here])
        order.append(np.full(len(names), n, np.int8))
        known += len(names)
    return _table(np.concatenate(keys), np.concatenate(owners), np.concatenate(order), length)


def number_tokens(texts: Sequence[Sequence[str]]) -> Array:
    """All tokens one after the other, each different one by its own number."""
    numbers: dict[str, int] = {}
    return np.fromiter((numbers.setdefault(token, len(numbers)) for text in texts for token in text), np.int64)


def _table(keys: Array, owners: Array, order: Array, length: Array) -> Grams:
    width = max(len(order), 1)
    cells, count = np.unique(owners * width + keys, return_counts=True)
    start = np.searchsorted(cells, np.arange(len(length) + 1) * width)
    return Grams(start, (cells % width).astype(np.int32), count.astype(np.int32), order, length)


def image_frequency(grams: Grams, owner: Array, first: int = 0) -> Array:
    """For each n-gram, in how many images' texts it occurs; ``owner`` is the image of each text from ``first`` on."""
    start = grams.start[first : first + len(owner) + 1]
    image = np.repeat(owner, np.diff(start))
    gram = grams.gram[start[0] : start[-1]]
    width = max(len(grams.order), 1)
    cells = np.unique(image * width + gram)
    return np.bincount(cells % width, minlength=len(grams.order))
