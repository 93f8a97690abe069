"""What comes first for each query of a direction: all that the checks of a ranking need, from scores or from lists."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crosslens.analyze.subject import Subject
from crosslens.core import Effect, Evidence
from crosslens.statistics import estimate
from crosslens.storage import Array, BoolArray, FloatArray, IntArray
from crosslens.values import IMAGE_TO_TEXT, TEXT_TO_IMAGE, Ranking


@dataclass(frozen=True, eq=False)
class Firsts:
    """One direction of a subject, query by query in the order of its ranking.

    ``images`` are the images (rows of the dataset) that the queries belong to, the units of chance; ``retrieved`` those
    that their first items belong to, -1 where nothing came or the dataset lacks it.
    """

    direction: str
    ranking: Ranking
    images: IntArray
    retrieved: IntArray
    gallery: int

    @classmethod
    def of(cls, subject: Subject) -> dict[str, Firsts]:
        """The directions that were ranked."""
        dataset, firsts = subject.dataset, {}
        images: dict[str, int] = dict(dataset.image_rows)
        captions: dict[str, int] = dict(zip(dataset.caption_ids, subject.owner.tolist(), strict=True))
        for direction, owners in ((TEXT_TO_IMAGE, (captions, images)), (IMAGE_TO_TEXT, (images, captions))):
            ranking = subject.rankings.get(direction)
            if ranking is not None and len(ranking.query_ids) and ranking.depth:
                asking, of_items = (
                    np.array([owner.get(name, -1) for name in ids], np.int64)
                    for owner, ids in zip(owners, (ranking.query_ids, ranking.item_ids), strict=True)
                )
                first = ranking.top_items[:, 0]
                gallery = max(len(ranking.item_ids), len(owners[1]))
                firsts[direction] = cls(direction, ranking, asking, np.where(first < 0, -1, of_items[first]), gallery)
        return firsts

    @property
    def query(self) -> str:
        return "caption" if self.direction == TEXT_TO_IMAGE else "image"

    @property
    def item(self) -> str:
        return "image" if self.direction == TEXT_TO_IMAGE else "caption"

    @property
    def items(self) -> IntArray:
        """The first item of each query, as a position in the gallery; -1 where nothing came."""
        return self.ranking.top_items[:, 0]

    @cached_property
    def right(self) -> BoolArray:
        """Whether the first item is relevant."""
        return self.within(1)

    def within(self, depth: int) -> BoolArray:
        """Whether a relevant item is among the first ``depth``."""
        ranking = self.ranking
        high = (ranking.above >= 0) & (ranking.above + ranking.tied_before < depth)
        return np.bincount(ranking.rows, high, len(self.images)) > 0

    @cached_property
    def places(self) -> FloatArray:
        """How far up the relevant items are on average: 1 first, 0 last, 0.5 by chance.

        What a list that was cut off does not hold is taken to be in the middle of the rest. NaN: nothing is relevant.
        """
        ranking, last = self.ranking, max(self.gallery - 1, 1)
        middle = (ranking.known[ranking.rows] + last) / 2
        above = np.where(ranking.above < 0, middle, ranking.above + ranking.tied / 2)
        counts = np.bincount(ranking.rows, minlength=len(self.images))
        with np.errstate(invalid="ignore"):
            return np.asarray(1 - np.bincount(ranking.rows, above / last, len(self.images)) / counts)

    @cached_property
    def answerable(self) -> BoolArray:
        """Whether the query has a relevant item and belongs to an image of the dataset."""
        return (self.ranking.relevant_counts > 0) & (self.images >= 0)

    def evidence(self, rows: Array) -> tuple[Evidence, ...]:
        """These queries, each with the item that comes first."""
        ids = self.ranking
        return tuple(
            {"query": ids.query_ids[row], "item": ids.item_ids[self.items[row]]} for row in rows if self.items[row] >= 0
        )


def share_of(concerned: BoolArray, images: IntArray, unit: str) -> Effect:
    """The share of the queries that are concerned, with its interval over their images."""
    share = estimate(concerned.astype(np.float64), images, bounds=(0, 1))
    return Effect.of(unit, share.mean, *share.interval)
