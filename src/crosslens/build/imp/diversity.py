"""Diverse captions of an image: those with the lowest pairwise similarity, or one of each K-means cluster.

The paper states both: section 4.1 the first, appendix C.5 the second.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations, islice
from typing import Any

import numpy as np

from crosslens.analyze import unit_vectors
from crosslens.build.imp.planar_map import FEWEST, planar_map
from crosslens.build.imp.settings import LOWEST
from crosslens.core import MissingExtraError, random_stream

Array = np.ndarray[Any, Any]

MOST_SUBSETS = 200_000
"""Up to this many subsets are all compared; beyond, captions are added one by one and then exchanged."""
_BLOCK = 20_000
_GAIN = 1e-12


def select_diverse(vectors: Array, count: int, how: str, *, seed: int, image: str) -> list[int]:
    """The rows of ``count`` diverse captions, in ascending order; there must be as many."""
    if len(vectors) == count:
        return list(range(count))
    if how == LOWEST:
        return lowest_similarity(vectors, count)
    points = planar_map(vectors, seed) if len(vectors) >= FEWEST else vectors
    return one_of_each_cluster(points, count, seed=seed, image=image)


def lowest_similarity(vectors: Array, count: int) -> list[int]:
    """The rows with the lowest mean cosine over all their pairs; of equal subsets the first in the order of rows.

    Exact up to ``MOST_SUBSETS`` subsets. Beyond that greedy: the least similar pair, then again and again the caption
    with the lowest sum of cosines with the chosen ones, and at the end exchanges of a chosen caption for another one
    as long as that lowers the sum.
    """
    unit = unit_vectors(vectors)
    cosines = np.einsum("id,jd->ij", unit, unit)
    if count == 1:
        return [0]
    if math.comb(len(vectors), count) <= MOST_SUBSETS:
        return _best_subset(cosines, count)
    return _exchanged(cosines, _greedy(cosines, count))


def pairwise_mean(vectors: Array) -> float:
    """The mean cosine over all pairs of these vectors; NaN for one."""
    unit = unit_vectors(vectors)
    pairs = list(combinations(range(len(unit)), 2))
    return float(np.mean([float(unit[left] @ unit[right]) for left, right in pairs])) if pairs else float("nan")


def one_of_each_cluster(points: Array, count: int, *, seed: int, image: str) -> list[int]:
    """K-means with ``count`` clusters, and a row of each drawn at random.

    Where points coincide there are fewer clusters: the remaining rows are drawn from all that are left.
    """
    try:
        from sklearn.cluster import KMeans
    except ImportError as error:
        raise MissingExtraError("K-means", "scikit-learn", "polysemy") from error
    draw = random_stream(seed, "imp diverse", image)
    clusters = min(count, len(np.unique(points, axis=0)))
    labels = KMeans(n_clusters=clusters, n_init=10, random_state=seed % 2**32).fit_predict(points)
    chosen = [int(draw.choice(np.flatnonzero(labels == label))) for label in dict.fromkeys(labels.tolist())]
    rest = np.setdiff1d(np.arange(len(points)), chosen)
    chosen += draw.permutation(rest)[: count - len(chosen)].tolist()
    return sorted(chosen)


def _best_subset(cosines: Array, count: int) -> list[int]:
    pairs = np.array(list(combinations(range(count), 2)))
    best, chosen = np.inf, np.arange(count)
    for block in _blocks(combinations(range(len(cosines)), count)):
        sums = cosines[block[:, pairs[:, 0]], block[:, pairs[:, 1]]].sum(axis=1)
        at = int(np.argmax(sums <= sums.min() + _GAIN))  # equal ones differ by rounding
        if sums[at] < best - _GAIN:
            best, chosen = sums[at], block[at]
    return [int(row) for row in chosen]


def _blocks(subsets: Iterator[tuple[int, ...]]) -> Iterator[Array]:
    while block := list(islice(subsets, _BLOCK)):
        yield np.array(block)


def _greedy(cosines: Array, count: int) -> list[int]:
    upper = np.where(np.triu(np.ones_like(cosines, bool), 1), cosines, np.inf)
    chosen = [int(row) for row in np.unravel_index(np.argmin(upper), upper.shape)]
    while len(chosen) < count:
        sums = cosines[:, chosen].sum(axis=1)
        sums[chosen] = np.inf
        chosen.append(int(np.argmin(sums)))
    return chosen


def _exchanged(cosines: Array, chosen: list[int]) -> list[int]:
    """The subset after exchanges, each the one that lowers the sum of cosines most."""
    while True:
        best, exchange = -_GAIN, (-1, -1)
        for at, row in enumerate(chosen):
            others = [other for other in chosen if other != row]
            sums = cosines[:, others].sum(axis=1)
            gains = sums - sums[row]
            gains[chosen] = np.inf
            new = int(np.argmin(gains))
            if gains[new] < best:
                best, exchange = float(gains[new]), (at, new)
        if exchange[0] < 0:
            return sorted(chosen)
        chosen[exchange[0]] = exchange[1]
