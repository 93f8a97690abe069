"""What findings are looked for in: one model on one dataset, in memory, so that defects can be planted; and by what."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from crosslens.core import Presented, Registry
from crosslens.engine import Progress, shown_progress
from crosslens.rank import rank_both, scorer_of
from crosslens.storage import Array, IntArray
from crosslens.values import IMAGE_TO_TEXT, TEXT_TO_IMAGE, Dataset, Embeddings, Ranking, Relevance

EncodeTexts = Callable[[Sequence[str]], Array]


@dataclass(frozen=True, eq=False)
class Subject:
    """One model on one dataset, as far as it is there.

    ``rankings`` by direction; ``images`` and ``captions`` are vectors in the order of the dataset, None where only
    scores or lists were given; ``score`` compares them; ``encode`` makes vectors of texts as the model does, None where
    only vectors were given; ``pictures`` are files by image id.
    """

    dataset: Dataset
    rankings: Mapping[str, Ranking]
    images: Embeddings | None = None
    captions: Embeddings | None = None
    score: str = "cosine"
    encode: EncodeTexts | None = None
    pictures: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0
    progress: Progress = field(default_factory=lambda: shown_progress(None))

    @classmethod
    def of(
        cls, dataset: Dataset, images: Array, captions: Array, *, score: str = "cosine",
        encode: EncodeTexts | None = None, pictures: Mapping[str, str] | None = None, seed: int = 0,
    ) -> Subject:  # fmt: skip
        """A subject from vectors in the order of the dataset, ranked."""
        vectors = Embeddings(dataset.image_ids, images), Embeddings(dataset.caption_ids, captions)
        return cls(dataset, {}, *vectors, score, encode, pictures or {}, seed).ranked()

    def ranked(self) -> Subject:
        """The same with the rankings that the vectors give now."""
        assert self.images is not None
        assert self.captions is not None
        scorer = scorer_of(self.images, self.captions, self.score)
        return replace(self, rankings=rank_both(scorer, Relevance.from_dataset(self.dataset), depth=10))

    def with_vectors(self, images: Array | None = None, captions: Array | None = None) -> Subject:
        """The same with other vectors of these sides, in the order of the dataset, ranked again."""
        dataset, changed = self.dataset, self
        if images is not None:
            changed = replace(changed, images=Embeddings(dataset.image_ids, images))
        if captions is not None:
            changed = replace(changed, captions=Embeddings(dataset.caption_ids, captions))
        return changed.ranked()

    @property
    def has_vectors(self) -> bool:
        """Whether both sides are single vectors, into which a defect can be planted."""
        return all(side is not None and side.kind == "single" for side in (self.images, self.captions))

    @property
    def owner(self) -> IntArray:
        """The image (row) of each caption (row)."""
        return self.dataset.caption_image

    @cached_property
    def caption_hits(self) -> Array:
        """Of each caption (row), whether its own image is first: the headline metric; NaN where it did not ask.

        Where items with one score are first, how often it is in a random order of them: the order of rows is no merit.
        """
        return _hits(self.rankings.get(TEXT_TO_IMAGE), self.dataset.caption_ids)

    @cached_property
    def image_hits(self) -> Array:
        """Of each image (row), whether one of its captions is first, likewise; NaN: it did not ask or has none."""
        return _hits(self.rankings.get(IMAGE_TO_TEXT), self.dataset.image_ids)


def _hits(ranking: Ranking | None, ids: Sequence[str]) -> Array:
    hits = np.full(len(ids), np.nan)
    if ranking is not None:
        rows = {query: row for row, query in enumerate(ids)}
        at = np.array([rows[query] for query in ranking.query_ids], np.int64)
        first = (ranking.above == 0) / (1.0 + ranking.tied)
        hits[at] = np.where(ranking.relevant_counts > 0, np.bincount(ranking.rows, first, len(at)), np.nan)
    return hits


class Planted(NamedTuple):
    """A subject with a defect, and the ids of the captions and images that have it: none where nothing was planted."""

    subject: Subject
    ids: frozenset[str] = frozenset()

    @classmethod
    def at(cls, subject: Subject, *, images: Iterable[int] = (), captions: Iterable[int] = ()) -> Planted:
        """With the defect at these rows."""
        ids, dataset = frozenset[str](), subject.dataset
        ids |= {dataset.image_ids[row] for row in images}
        return cls(subject, ids | {dataset.caption_ids[row] for row in captions})


Analysis = Callable[..., Presented]
"""What looks at a :class:`Subject`; its result has the sections, and the findings."""
ANALYSES: Registry[Analysis] = Registry("analysis", "analyses", ("crosslens.analyze",))


def analysis(
    name: str, *, order: int = 39, needs: Sequence[str] = (), cost: tuple[float, float] = (1, 0.3),
    quick: Mapping[str, Any] | None = None, answers: str = "",
) -> Callable[[Analysis], Analysis]:  # fmt: skip
    """Decorate a function from a subject to a result: a stage of audits, repeated by ``calibrate`` on planted defects.

    ``order`` says when its turn is, ``needs`` what it takes besides a dataset and rankings, in the words of an audit's
    conditions (``"caption queries for images"``). ``cost`` weighs it in the progress display: expected seconds on one
    core in any case, and per thousand captions. ``quick`` are keywords of the function in a quick audit. ``answers`` is
    the question of a report that its findings answer: what the model does not read (``"reading"``), where it fails
    (``"failures"``), whether labels can be trusted (``"labels"``). An audit's own stage of the same name takes the
    place of the one that is made of this.
    """
    return ANALYSES.register(name, order=order, needs=tuple(needs), cost=cost, quick=dict(quick or {}), answers=answers)
