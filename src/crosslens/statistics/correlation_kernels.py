"""Compiled correlations of weighted pairs: a weight says how often a pair is there, as in a bootstrap resample."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

Array = np.ndarray[Any, Any]

_compiled = numba.njit(nogil=True, cache=True, error_model="numpy")

PEARSON, SPEARMAN, KENDALL_B, KENDALL_C = range(4)


@_compiled
def _product_moment(first: Array, second: Array, weights: Array) -> float:
    total, mean_first, mean_second = 0.0, 0.0, 0.0
    for i in range(first.size):
        total += weights[i]
        mean_first += weights[i] * first[i]
        mean_second += weights[i] * second[i]
    mean_first /= total
    mean_second /= total
    both, squares_first, squares_second = 0.0, 0.0, 0.0
    for i in range(first.size):
        x, y = first[i] - mean_first, second[i] - mean_second
        both += weights[i] * x * y
        squares_first += weights[i] * x * x
        squares_second += weights[i] * y * y
    if squares_first <= 0.0 or squares_second <= 0.0:
        return np.nan
    share: float = both / np.sqrt(squares_first) / np.sqrt(squares_second)
    return min(1.0, max(-1.0, share))


@_compiled
def _counts(levels: Array, weights: Array, out: Array) -> None:
    """How many pairs each level has."""
    out[:] = 0
    for i in range(levels.size):
        out[levels[i]] += weights[i]


@_compiled
def _several(counts: Array) -> int:
    """How many levels are there at all."""
    found = 0
    for level in range(counts.size):
        found += counts[level] > 0
    return found


@_compiled
def _middle_ranks(counts: Array, levels: Array, out: Array) -> None:
    """The rank of every pair, equal values sharing the middle of their ranks."""
    middles = np.empty(counts.size, np.float64)
    before = 0
    for level in range(counts.size):
        middles[level] = before + (counts[level] + 1) / 2
        before += counts[level]
    for i in range(levels.size):
        out[i] = middles[levels[i]]


@_compiled
def _tied(counts: Array) -> float:
    pairs = 0.0
    for level in range(counts.size):
        pairs += counts[level] * (counts[level] - 1.0) / 2
    return pairs


@_compiled
def _up_to(tree: Array, level: int) -> int:
    """The sum of levels 0 … level of a Fenwick tree."""
    total = 0
    place = level + 1
    while place > 0:
        total += tree[place]
        place &= place - 1
    return total


@_compiled
def _add(tree: Array, level: int, amount: int) -> None:
    place = level + 1
    while place < tree.size:
        tree[place] += amount
        place += place & -place


@_compiled
def _concordant_less_discordant(first: Array, second: Array, weights: Array, tree: Array) -> float:
    """Pairs of pairs in the same order in both, less those in opposite orders; ``first`` ascends."""
    tree[:] = 0
    surplus, added, start = 0.0, 0, 0
    while start < first.size:
        end = start
        while end < first.size and first[end] == first[start]:
            if weights[end]:
                below = _up_to(tree, second[end] - 1)
                above = added - _up_to(tree, second[end])
                surplus += float(weights[end]) * (below - above)
            end += 1
        for i in range(start, end):  # only now: values that are equal in ``first`` are no pair
            if weights[i]:
                _add(tree, second[i], weights[i])
                added += weights[i]
        start = end
    return surplus


@_compiled
def resampled(
    first: Array,
    second: Array,
    first_levels: Array,
    second_levels: Array,
    clusters: Array,
    draws: Array,
    out: Array,
) -> None:
    """The four coefficients of every row of ``draws``, which says how often each cluster is there.

    ``*_levels`` number the distinct values from 0 up; the pairs ascend by ``first_levels``. NaN where a coefficient is
    undefined: one of the two sides is constant.
    """
    n = first.size
    weights = np.empty(n, np.int64)
    first_counts = np.empty(first_levels.max() + 1, np.int64)
    second_counts = np.empty(second_levels.max() + 1, np.int64)
    tree = np.empty(second_counts.size + 1, np.int64)
    first_ranks, second_ranks = np.empty(n), np.empty(n)
    for row in range(draws.shape[0]):
        total = 0.0
        for i in range(n):
            weights[i] = draws[row, clusters[i]]
            total += weights[i]
        _counts(first_levels, weights, first_counts)
        _counts(second_levels, weights, second_counts)
        fewest = min(_several(first_counts), _several(second_counts))
        if fewest < 2:
            out[row] = np.nan
            continue
        _middle_ranks(first_counts, first_levels, first_ranks)
        _middle_ranks(second_counts, second_levels, second_ranks)
        surplus = _concordant_less_discordant(first_levels, second_levels, weights, tree)
        comparable = total * (total - 1.0) / 2
        sides = np.sqrt(comparable - _tied(first_counts)) * np.sqrt(comparable - _tied(second_counts))
        out[row, PEARSON] = _product_moment(first, second, weights)
        out[row, SPEARMAN] = _product_moment(first_ranks, second_ranks, weights)
        out[row, KENDALL_B] = min(1.0, max(-1.0, surplus / sides))
        out[row, KENDALL_C] = 2 * surplus * fewest / (total * total * (fewest - 1.0))
