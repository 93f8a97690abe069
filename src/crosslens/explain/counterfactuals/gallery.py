"""Where a text's own image stands among all images: the questions of a search, answered exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosslens.core.embeddings import Embeddings
from crosslens.core.errors import InputError
from crosslens.core.relevance import IMAGE_TO_TEXT, TEXT_TO_IMAGE, Relevance
from crosslens.rank import rank_both, scorer_of

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Standing:
    """What a text finds: ``top`` is the first image, ``rank`` the place of its own image, whose score is ``score``.

    ``rival`` is the best of the other images. Ties are broken as everywhere: the image that comes first in the dataset
    stands first.
    """

    text: str
    top: str
    rank: int
    score: float
    rival: str
    rival_score: float

    @property
    def right(self) -> bool:
        """Whether its own image comes first."""
        return self.rank == 1

    @property
    def margin(self) -> float:
        """How far its own image is ahead of the best other one; below 0 where it is behind."""
        return self.score - self.rival_score


@dataclass(frozen=True, eq=False)
class Gallery:
    """The vectors of all images, and how a text's vector is compared with them."""

    images: Embeddings
    score: str

    def __post_init__(self) -> None:
        if len(self.images.ids) < 2:
            raise InputError(
                "a gallery of one image", expected="two or more: the only one is always first", fix="add images"
            )

    def standings(self, texts: Sequence[str], vectors: Array, own: Sequence[int]) -> list[Standing]:
        """For each text, given as its vector, how it finds the image in row ``own``."""
        names = tuple(str(place) for place in range(len(texts)))
        scorer = scorer_of(self.images, Embeddings(names, vectors), self.score)
        columns, rows = np.arange(len(texts)), np.asarray(own, np.int64)
        truth = Relevance.from_indices(self.images.ids, names, rows, columns)
        ranking = rank_both(scorer, {IMAGE_TO_TEXT: truth, TEXT_TO_IMAGE: truth.flip()}, depth=2)[TEXT_TO_IMAGE]
        scores = scorer.exact(rows, columns)
        ranks = 1 + ranking.above + ranking.tied_before
        # The best other image is the first of the list, or the second where the first is its own.
        second = (ranking.top_items[:, 0] == rows).astype(np.int64)
        rivals = ranking.top_items[columns, second]
        rival_scores = scorer.exact(rivals, columns)
        ids = self.images.ids
        return [
            Standing(text, ids[top], int(rank), float(score), ids[rival], float(rival_score))
            for text, top, rank, score, rival, rival_score in zip(
                texts, ranking.top_items[:, 0], ranks, scores, rivals, rival_scores, strict=True
            )
        ]
