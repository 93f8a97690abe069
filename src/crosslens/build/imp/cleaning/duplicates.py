"""Near-duplicates: texts that share most of their character trigrams, found by MinHash and verified exactly.

MinHash: two sets agree in the smallest element under a random order with a probability that is their Jaccard index. The
minima of several orders form bands; texts that agree in a whole band are candidates. The Jaccard index of each
candidate pair is then computed from the trigrams themselves, so that no pair below the threshold counts. Three code
points fit into 63 bits: trigrams are compared, not hashes of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
import polars as pl

from crosslens.core import UsageError
from crosslens.storage import IntArray, random_stream

_compiled = numba.njit(nogil=True, cache=True)
_ORDERS = 128
"""Random orders, at most: more find more pairs, and take longer."""
_RECALL = 0.99
"""The bands are chosen so that a pair exactly at the threshold is a candidate with at least this probability."""
_LOWEST = 0.1
_POINT_BITS = np.uint64(21)
_SEPARATORS = r"[^\p{L}\p{M}\p{N}]+"


def near_duplicates(texts: Sequence[str], *, threshold: float, seed: int = 0) -> IntArray:
    """The group of each text: the row of the first text of its group, so that ``groups == np.arange(n)`` are kept.

    Two texts belong together when the Jaccard index of their character trigrams is at least ``threshold``, letter case,
    punctuation and spaces aside; groups are the connected components. Every pair that joins two texts is verified; one
    exactly at the threshold is found with a probability of at least 0.99, more similar ones almost surely.
    """
    if not _LOWEST <= threshold <= 1:
        raise UsageError(f"threshold is {threshold}", fix=f"threshold must be from {_LOWEST} to 1", option="threshold")
    column = pl.Series("text", list(texts), dtype=pl.String)
    plain = column.str.to_lowercase().str.replace_all(_SEPARATORS, " ").str.strip_chars()
    plain = plain.zip_with(plain != "", column)  # punctuation alone is compared as it is
    first = plain.to_frame("text").with_row_index("row").with_columns(first=pl.col("row").min().over("text"))["first"]
    rows = first.unique().sort()  # each distinct text once, in its order
    # All texts after one another, each with a space at either end, and where each begins.
    padded = [f" {text} " for text in plain.gather(rows)]
    ends = np.cumsum([0, *map(len, padded)], dtype=np.int64)
    trigrams, starts = _trigram_sets(np.frombuffer("".join(padded).encode("utf-32-le"), np.uint32), ends)
    groups = np.arange(len(rows))
    height, bands = band_shape(threshold)
    stream = random_stream(seed, "near duplicates")
    for _ in range(bands):
        factors = stream.integers(0, 2**64, height, dtype=np.uint64) | np.uint64(1)
        keys = _band_keys(trigrams, starts, factors)
        order = np.argsort(keys, kind="stable")
        _join_candidates(keys[order], order, trigrams, starts, float(threshold), groups)
    positions = np.searchsorted(rows.to_numpy(), first.to_numpy())
    first_rows: IntArray = rows.to_numpy()[_roots(groups)[positions]].astype(np.int64)
    return first_rows


def band_shape(threshold: float) -> tuple[int, int]:
    """How many orders make a band, and how many bands there are: the highest bands that reach the recall."""
    shapes = ((height, _ORDERS // height) for height in range(_ORDERS, 0, -1))
    # A pair of this Jaccard index agrees in at least one band with this probability.
    return next((height, bands) for height, bands in shapes if 1 - (1 - threshold**height) ** bands >= _RECALL)


@_compiled
def _trigram_sets(points: Any, starts: Any) -> Any:
    """The distinct trigrams of every text in ascending order, after one another, and where each text's begin."""
    trigrams = np.empty(len(points), np.uint64)
    ends = np.zeros(len(starts), np.int64)
    filled = 0
    for text in range(len(starts) - 1):
        low, high = starts[text], starts[text + 1]
        count = max(high - low - 2, 1)
        of_text = np.empty(count, np.uint64)
        for position in range(count):
            value = np.uint64(0)
            for point in points[low + position : min(low + position + 3, high)]:
                value = (value << _POINT_BITS) | np.uint64(point)
            of_text[position] = value
        of_text.sort()
        for position in range(count):
            if position == 0 or of_text[position] != of_text[position - 1]:
                trigrams[filled] = of_text[position]
                filled += 1
        ends[text + 1] = filled
    return trigrams[:filled].copy(), ends


@_compiled
def _mixed(value: Any) -> Any:
    """A number that looks random and depends on every bit (the finalizer of splitmix64)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@_compiled
def _band_keys(trigrams: Any, starts: Any, factors: Any) -> Any:
    """A number for each text that is equal where the smallest trigrams are, under each of the orders."""
    keys = np.empty(len(starts) - 1, np.uint64)
    smallest = np.empty(len(factors), np.uint64)
    for text in range(len(keys)):
        smallest[:] = np.uint64(0xFFFFFFFFFFFFFFFF)
        for position in range(starts[text], starts[text + 1]):
            value = _mixed(trigrams[position])
            for order in range(len(factors)):
                smallest[order] = min(smallest[order], value * factors[order])
        key = np.uint64(0)
        for order in range(len(factors)):
            key = _mixed(key ^ smallest[order]) + np.uint64(order)
        keys[text] = key
    return keys


@_compiled
def _root(groups: Any, text: int) -> int:
    while groups[text] != text:
        groups[text] = groups[groups[text]]
        text = groups[text]
    return text


@_compiled
def _roots(groups: Any) -> Any:
    return np.array([_root(groups, text) for text in range(len(groups))], np.int64)


@_compiled
def _join_candidates(keys: Any, order: Any, trigrams: Any, starts: Any, threshold: float, groups: Any) -> None:
    """Join texts of equal keys that are similar enough; pairs that are joined already need no look."""
    low = 0
    while low < len(keys):
        high = low + 1
        while high < len(keys) and keys[high] == keys[low]:
            high += 1
        for left in range(low, high):
            for right in range(left + 1, high):
                a, b = _root(groups, order[left]), _root(groups, order[right])
                if a != b and _jaccard(trigrams, starts, order[left], order[right], threshold) >= threshold:
                    groups[max(a, b)] = min(a, b)
        low = high


@_compiled
def _jaccard(trigrams: Any, starts: Any, first: int, second: int, threshold: float) -> float:
    """The Jaccard index of two texts; 0 where their sizes alone rule out the threshold."""
    a, a_end, b, b_end = starts[first], starts[first + 1], starts[second], starts[second + 1]
    sizes = a_end - a + b_end - b
    if min(a_end - a, b_end - b) < threshold * max(a_end - a, b_end - b):
        return 0.0
    common = 0
    while a < a_end and b < b_end:
        if trigrams[a] == trigrams[b]:
            common += 1
            a += 1
            b += 1
        elif trigrams[a] < trigrams[b]:
            a += 1
        else:
            b += 1
    index: float = common / (sizes - common)
    return index
