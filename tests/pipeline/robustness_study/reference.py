"""The tables of a robustness study by plain loops, straight from score matrices (images × captions)."""

from __future__ import annotations

from itertools import combinations

import numpy as np


def rank_of(scores: list[float], right: int) -> int:
    """1 + items scored higher + equal ones of lower index."""
    above = sum(score > scores[right] for score in scores)
    return 1 + above + sum(score == scores[right] for score in scores[:right])


def ranks(matrix: np.ndarray, image_of: list[int]) -> list[int]:
    """Of every caption, the place of its image."""
    return [rank_of([float(x) for x in matrix[:, c]], g) for c, g in enumerate(image_of)]


def image_ranks(matrix: np.ndarray, image_of: list[int]) -> list[int]:
    """Of every image, the best place of its captions."""
    return [
        min(rank_of([float(x) for x in matrix[i]], c) for c, g in enumerate(image_of) if g == i)
        for i in range(len(matrix))
    ]


def hits(places: list[int]) -> list[int]:
    return [(r <= 1) + (r <= 5) + (r <= 10) for r in places]


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def rsum(matrix: np.ndarray, image_of: list[int]) -> float:
    return 100 * (mean(hits(ranks(matrix, image_of))) + mean(hits(image_ranks(matrix, image_of))))


def groups(before: list[int], after: list[int]) -> dict[str, set[int]]:
    moved = [b - a for a, b in zip(hits(before), hits(after), strict=True)]
    return {
        "decreased": {n for n, change in enumerate(moved) if change < 0},
        "increased": {n for n, change in enumerate(moved) if change > 0},
        "unchanged": {n for n, change in enumerate(moved) if change == 0},
    }


def mean_jaccard(before: list[int], variants: list[list[int]], group: str) -> float | None:
    values = []
    for left, right in combinations(variants, 2):
        first, second = groups(before, left)[group], groups(before, right)[group]
        if first | second:
            values.append(len(first & second) / len(first | second))
    return mean(values) if values else None


def moves(before: list[int], after: list[int], changed: list[bool]) -> dict[str, float]:
    pairs = [(a, b) for a, b, c in zip(before, after, changed, strict=True) if c]
    return {
        "lower": mean([b > a for a, b in pairs]),
        "higher": mean([b < a for a, b in pairs]),
        "same": mean([b == a for a, b in pairs]),
    }


def odd(first: np.ndarray, second: np.ndarray, image_of: list[int], changed: list[bool]) -> int:
    """Changed captions whose image moved up while its own score went down."""
    before, after = ranks(first, image_of), ranks(second, image_of)
    return sum(changed[c] and after[c] < before[c] and second[g, c] < first[g, c] for c, g in enumerate(image_of))
