"""Where each caption's own image stands in every run, and which other image stands before it in all of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np

from crosslens.core.dataset import Dataset
from crosslens.core.errors import UsageError
from crosslens.core.ids import positions
from crosslens.core.ranking import UNRANKED, Ranking
from crosslens.core.relevance import TEXT_TO_IMAGE
from crosslens.core.run import Run
from crosslens.explain.failures import TEXT_TO_TEXT, outcomes_of, ranking_of

Array = np.ndarray[Any, Any]
AnyRun = Run | Mapping[str, Ranking]


@dataclass(frozen=True)
class Standing:
    """One caption in one run: the rank of its own image among so many, and the images before it that the run kept.

    ``rank`` is the least that it can be where a ready-made list ends before the image. ``before`` maps rows of images
    to (place, lead): by how much the image is scored above the caption's own, at least.
    """

    rank: int
    gallery: int
    before: Mapping[int, tuple[int, float]]

    @property
    def depth(self) -> float:
        """0 for the first place, 1 for the last, by the logarithm of the rank."""
        return log(self.rank) / log(self.gallery) if self.gallery > 1 else 0.0


@dataclass(frozen=True)
class Rival:
    """An image that stands before a caption's own in every run; ``lead`` is the smallest of the runs."""

    image: int
    places: tuple[int, ...]
    lead: float


def standings(run: AnyRun, dataset: Dataset, direction: str | None = None) -> dict[int, Standing]:
    """The captions (rows of the dataset) that asked in a run, with the standing of their images."""
    ranking = caption_ranking(run, direction)
    outcomes = outcomes_of({ranking.direction: ranking}, dataset, ranking.direction)
    rows = positions(outcomes["query"].to_list(), dataset.caption_ids, "caption").tolist()
    places = positions(outcomes["query"].to_list(), ranking.query_ids, "query").tolist()
    images = positions(ranking.item_ids, dataset.image_ids, "image")
    own = (outcomes["score"] - outcomes["margin"]).to_list()
    found = {}
    for row, place, rank, truth in zip(rows, places, outcomes["rank"].to_list(), own, strict=True):
        known = int(ranking.known[place])
        least = known + 1 if rank is None else rank
        found[row] = Standing(least, max(len(ranking.item_ids), least), _before(ranking, place, least, truth, images))
    return found


def caption_ranking(run: AnyRun, direction: str | None = None) -> Ranking:
    """The ranking in which captions ask for images: t2i, or t2t of text-only retrieval."""
    if direction is not None and direction not in (TEXT_TO_IMAGE, TEXT_TO_TEXT):
        raise UsageError(f"direction {direction!r}", fix="labels are judged where captions ask: t2i or t2t")
    rankings = run.rankings if isinstance(run, Run) else run
    asking = {one: rankings[one] for one in (TEXT_TO_IMAGE, TEXT_TO_TEXT) if one in rankings}
    if not asking and rankings:
        name = f"the run {run.name!r}" if isinstance(run, Run) else "a run"
        raise UsageError(
            f"in {name} no caption asks: it has {', '.join(rankings)}",
            fix="evaluate in both directions (the default), or with --direction t2i",
        )
    return ranking_of(run, direction or next(iter(asking), None))


def _before(ranking: Ranking, row: int, rank: int, truth: float | None, images: Array) -> dict[int, tuple[int, float]]:
    items = ranking.top_items[row][: rank - 1]
    items = items[items != UNRANKED]
    scores = ranking.top_scores[row][: len(items)].astype(np.float64)
    kept = ranking.top_scores[row][ranking.top_items[row] != UNRANKED]
    beyond = float(kept[-1]) if truth is None else truth
    leads = (scores - beyond).tolist()
    return {int(image): (place, lead) for place, (image, lead) in enumerate(zip(images[items], leads, strict=True), 1)}


def rival_of(standing: Sequence[Standing], besides: Collection[int] = ()) -> Rival | None:
    """Of the images before the caption's own in every run, the one whose places sum to the least.

    ``besides`` are images that do not count, such as the same picture under another id.
    """
    shared = set.intersection(*(set(one.before) for one in standing)) - set(besides) if standing else set()
    if not shared:
        return None
    best = min(shared, key=lambda image: (sum(one.before[image][0] for one in standing), image))
    told = [one.before[best] for one in standing]
    return Rival(best, tuple(place for place, _ in told), min(lead for _, lead in told))
