"""What comes first for each query of a direction: all that the checks of a ranking need, from scores or from lists."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crosslens.analyze.subject import Subject
from crosslens.core import (
    IMAGE_TO_TEXT,
    TEXT_TO_IMAGE,
    Array,
    BoolArray,
    Effect,
    Evidence,
    Figure,
    FloatArray,
    IntArray,
    Ranking,
)
from crosslens.statistics import Bootstrap, Estimate

QUERIES = {TEXT_TO_IMAGE: "captions", IMAGE_TO_TEXT: "images"}
ITEMS = {TEXT_TO_IMAGE: "image", IMAGE_TO_TEXT: "caption"}
MOST_EVIDENCE = 200
"""Ids that an observation carries at most."""


@dataclass(frozen=True, eq=False)
class Firsts:
    """One direction of a subject, query by query in the order of its ranking.

    ``images`` are the images (rows of the dataset) that the queries belong to, the units of chance; ``seen`` the images
    that their first items belong to, -1 where nothing came or the dataset lacks it.
    """

    direction: str
    ranking: Ranking
    images: IntArray
    seen: IntArray
    gallery: int

    @classmethod
    def of(cls, subject: Subject) -> dict[str, Firsts]:
        """The directions that were ranked."""
        dataset, firsts = subject.dataset, {}
        for direction in (TEXT_TO_IMAGE, IMAGE_TO_TEXT):
            ranking = subject.rankings.get(direction)
            if ranking is None or not len(ranking.query_ids) or not ranking.depth:
                continue
            captions = {caption: int(image) for caption, image in zip(dataset.caption_ids, subject.owner, strict=True)}
            images: dict[str, int] = dict(dataset.image_rows)
            of_queries, of_items = (captions, images) if direction == TEXT_TO_IMAGE else (images, captions)
            item_images = np.array([of_items.get(item, -1) for item in ranking.item_ids], np.int64)
            first = ranking.top_items[:, 0]
            firsts[direction] = cls(
                direction, ranking,
                np.array([of_queries.get(query, -1) for query in ranking.query_ids], np.int64),
                np.where(first < 0, -1, item_images[first]),
                max(len(ranking.item_ids), len(of_items)),
            )  # fmt: skip
        return firsts

    @property
    def items(self) -> IntArray:
        """The first item of each query, as a position in the gallery; -1 where nothing came."""
        return self.ranking.top_items[:, 0]

    @cached_property
    def right(self) -> BoolArray:
        """Whether the first item is relevant."""
        ranking = self.ranking
        return self._any((ranking.above == 0) & (ranking.tied_before == 0))

    @cached_property
    def within_ten(self) -> BoolArray:
        """Whether a relevant item is among the first ten."""
        ranking = self.ranking
        return self._any((ranking.above >= 0) & (ranking.above + ranking.tied_before < 10))

    @cached_property
    def places(self) -> FloatArray:
        """How far up the relevant items are on average: 1 first, 0 last, 0.5 by chance.

        What a list that was cut off does not hold is taken to be in the middle of the rest. NaN: nothing is relevant.
        """
        ranking, last = self.ranking, max(self.gallery - 1, 1)
        rest = (ranking.known[ranking.rows] + last) / 2
        above = np.where(ranking.above < 0, rest, ranking.above + ranking.tied / 2)
        counts = np.bincount(ranking.rows, minlength=len(self.images))
        with np.errstate(invalid="ignore"):
            return np.asarray(1 - np.bincount(ranking.rows, above / last, len(self.images)) / counts)

    @cached_property
    def asked(self) -> BoolArray:
        """Whether the query has a relevant item and belongs to an image of the dataset."""
        return (self.ranking.relevant_counts > 0) & (self.images >= 0)

    def evidence(self, rows: Array) -> tuple[Evidence, ...]:
        """These queries, each with the item that comes first."""
        ids = self.ranking
        return tuple(
            {"query": ids.query_ids[row], "item": ids.item_ids[self.items[row]]}
            for row in rows[:MOST_EVIDENCE]
            if self.items[row] >= 0
        )

    def _any(self, condition: Array) -> BoolArray:
        return np.bincount(self.ranking.rows, condition, len(self.images)) > 0


def interval_of(values: Array, images: Array, *, level: float = 0.95, seed: int = 0) -> Estimate:
    """The mean of hits, misses or differences of them, with its interval over images."""
    values = np.asarray(values, np.float64)
    bounds = (-1.0, 1.0) if (values < 0).any() else (0.0, 1.0)
    return Bootstrap(images, 1000, seed).estimate(values, level=level, bounds=bounds)


def effect_of(estimate: Estimate, unit: str) -> Effect:
    """With None for ends that are not there."""
    low, high = (None if np.isnan(end) else float(end) for end in estimate.interval)
    return Effect(float(estimate.mean), low, high, unit)


def percent(effect: Effect | float, unit: str = " %") -> str:
    """``8 % [7, 10]``; a decimal where a whole number would say little."""
    value, low, high = (effect, None, None) if isinstance(effect, float) else effect[:3]
    digits = 2 if 0 < abs(value) < 0.001 else 1 if 0 < abs(value) < 0.1 or 0.99 < abs(value) < 1 else 0
    low, high = (np.nan if end is None else end for end in (low, high))
    return str(Figure(value, low, high, scale=100.0, digits=digits, unit=unit))


def count(number: int, noun: str, several: str = "") -> str:
    """``1 caption``, ``1,200 captions``."""
    return f"{number:,} {noun if number == 1 else several or noun + 's'}"
