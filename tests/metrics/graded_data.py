"""Small collections for graded metrics: scores, values and judgements, seen from both sides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np
from hypothesis import strategies as st

from crosslens.metrics import GainMatrix
from crosslens.values import Ranking
from tests.metrics.brute import rank
from tests.metrics.graded_reference import Query


@dataclass(frozen=True)
class Collection:
    """Images × captions: what a model scores, what φ says, which pairs are judged with which grade."""

    scores: np.ndarray
    phi: np.ndarray
    image_of: np.ndarray
    grades: np.ndarray
    other: np.ndarray

    def gains(self) -> dict[str, GainMatrix]:
        from crosslens.rank import ScoreMatrix

        return {
            "cider": GainMatrix(self.phi, image_of=self.image_of),
            "other": GainMatrix.of_scorer(ScoreMatrix(np.asarray(self.other, np.float32))),
        }

    def side(self, direction: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Scores, values, grades and another model's scores: queries × items."""
        tables = (self.scores, self.phi, self.grades, self.other)
        return tables if direction == "i2t" else tuple(table.T for table in tables)

    def ranking(self, direction: str, length: int | None = None) -> Ranking:
        scores, _, grades, _ = self.side(direction)
        ranking = rank(scores, [set(np.flatnonzero(row).tolist()) for row in grades], direction, length=length)
        return replace(ranking, grades=grades[ranking.rows, ranking.relevant].astype(np.float32))

    def queries(self, direction: str) -> list[Query]:
        scores, phi, grades, groups = (table.tolist() for table in self.side(direction))
        return [
            Query(
                scores[query],
                phi[query],
                {item: grade for item, grade in enumerate(grades[query]) if grade},
                self._groups(direction, query),
                self._groups(direction, query, non_gt=True),
                groups[query],
            )
            for query in range(len(scores))
        ]

    def _groups(self, direction: str, query: int, non_gt: bool = False) -> list[list[int]]:
        """Images in the order of the votes of the captions of the query's image, as the items of that direction."""
        captions = {image: np.flatnonzero(self.image_of == image).tolist() for image in range(len(self.phi))}
        own_image = query if direction == "i2t" else int(self.image_of[query])
        items = captions if direction == "i2t" else {image: [image] for image in captions}
        relevant = set(np.flatnonzero(self.grades[query] if direction == "i2t" else self.grades[:, query]).tolist())
        left = [
            image
            for image in captions
            if items[image] and not (non_gt and (image == own_image or relevant & set(items[image])))
        ]
        if not captions[own_image]:
            return []
        votes = {image: fmean(self.phi[image, caption] for caption in captions[own_image]) for image in left}
        return [items[image] for image in sorted(left, key=lambda image: (-votes[image], image))]

    def moved(self, images: np.ndarray, captions: np.ndarray) -> Collection:
        """The same with images and captions in another order."""
        new_row = np.argsort(images)
        both = np.ix_(images, captions)
        return Collection(
            self.scores[both],
            self.phi[both],
            new_row[self.image_of[captions]],
            self.grades[both],
            self.other[both],
        )


def made_up(seed: int, images: int = 6, captions: int = 14) -> Collection:
    """Without ties, anywhere."""
    random = np.random.default_rng(seed)
    image_of = np.sort(np.append(np.arange(images), random.integers(0, images, captions - images)))
    return Collection(
        random.permutation(images * captions).reshape(images, captions) / 100,
        (random.permutation(images * captions).reshape(images, captions) + 1) / 8,
        image_of,
        np.where(image_of == np.arange(images)[:, None], random.integers(1, 4, (images, captions)), 0),
        random.normal(size=(images, captions)).astype(np.float32).astype(float),
    )


@st.composite
def collections(draw: st.DrawFn, images: int = 4, captions: int = 4) -> Collection:
    """Few different scores and values, so that both are tied; any number of captions per image, and of judgements."""
    shape = draw(st.integers(1, images)), draw(st.integers(1, captions))

    def table(values: st.SearchStrategy[int]) -> np.ndarray:
        row = st.lists(values, min_size=shape[1], max_size=shape[1])
        return np.array(draw(st.lists(row, min_size=shape[0], max_size=shape[0])), float)

    image_of = np.array(draw(st.lists(st.integers(0, shape[0] - 1), min_size=shape[1], max_size=shape[1])))
    return Collection(
        table(st.integers(0, 2)), table(st.integers(0, 4)), image_of, table(st.sampled_from([0, 0, 1, 2])),
        table(st.integers(-2, 2)) / 4,
    )  # fmt: skip
