"""Pairs that form a grid, such as all images × captions of a batch, are cheaper as one than one by one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crosslens.similarity.protocol import Array

_FILLED = 4
"""A grid is worth its cells where at least one in so many is asked for."""


class PairGrid(NamedTuple):
    """Distinct images and captions, and the row and column of each pair."""

    images: Array
    captions: Array
    row: Array
    column: Array


def as_grid(images: Array, captions: Array, shape: tuple[int, int]) -> PairGrid | None:
    """The grid that pairs fill; None where they are too few for it."""
    if not len(images):
        return None
    distinct_images, row = _distinct(images, shape[0])
    distinct_captions, column = _distinct(captions, shape[1])
    if len(distinct_images) * len(distinct_captions) > _FILLED * len(images):
        return None
    return PairGrid(distinct_images, distinct_captions, row, column)


def _distinct(positions: Array, count: int) -> tuple[Array, Array]:
    """The distinct positions, and where among them each one is: without sorting, which would cost more than φ."""
    number = np.zeros(count, np.int64)
    number[positions] = 1
    distinct = np.flatnonzero(number)
    number[distinct] = np.arange(len(distinct))
    return distinct, number[positions]
