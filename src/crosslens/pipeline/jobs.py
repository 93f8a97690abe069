"""What an evaluation ranks: scores over a dataset, or lists that are ready-made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from crosslens.core.dataset import Dataset
from crosslens.core.errors import InputError, UsageError
from crosslens.core.ids import positions
from crosslens.core.lists import RankedLists
from crosslens.core.progress import Progress
from crosslens.core.ranking import Ranking
from crosslens.core.relevance import IMAGE_TO_TEXT, TEXT_TO_IMAGE, Relevance
from crosslens.pipeline.folds import fold_numbers, folds_of, joined, within
from crosslens.pipeline.sources import (
    TEXT_TO_TEXT,
    gallery_of,
    judgements,
    lists_by_direction,
    relevance_from,
    scores_from,
)
from crosslens.rank import rank_both, rank_lists

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Means:
    """How to compute, which changes nothing about what comes out."""

    backend: str
    device: str | None
    tile: int | None
    threads: int | None
    progress: Progress
    checkpoint: Path | None = None


class Job(Protocol):
    """What is ranked, in which directions, and how queries group into images and folds."""

    directions: tuple[str, ...]
    description: dict[str, Any]
    relevance: dict[str, Relevance]
    strata: dict[str, Array] | None
    parts: Sequence[tuple[Array, Array]]
    """Rows of images and of captions of each fold; none without folds."""

    def rank(self, depth: int, means: Means) -> dict[str, Ranking]:
        """The ranking of every direction, with the first ``depth`` places of every list."""

    def clusters(self, rankings: Mapping[str, Ranking]) -> dict[str, Array]:
        """Per direction, the image of every query."""


class ScoreJob:
    """Embeddings or a score matrix over a dataset."""

    def __init__(
        self, dataset: Dataset, images: Any, captions: Any, scores: Any, score: str | None,
        relevance: Relevance | Mapping[str, Any] | None, directions: Sequence[str] | None, folds: int,
    ) -> None:  # fmt: skip
        if not dataset.caption_ids:
            raise InputError(
                "a dataset without captions", expected="at least one caption", fix="check the captions file"
            )
        self.dataset = dataset
        self.source, score = scores_from(dataset, images, captions, scores, score)
        self.relevance, described = relevance_from(dataset, relevance)
        self.directions = tuple(directions or (IMAGE_TO_TEXT, TEXT_TO_IMAGE))
        for direction in self.directions:
            gallery_of(dataset, direction)
        self.folds = folds_of(dataset, folds)
        self.strata = None if folds == 1 else fold_numbers(dataset, self.folds)
        self.parts: Sequence[tuple[Array, Array]] = () if folds == 1 else self.folds
        self.description = {
            "inputs": dict(self.source.description),
            "relevance": described,
            "score": score,
            "directions": list(self.directions),
        }

    def rank(self, depth: int, means: Means) -> dict[str, Ranking]:
        """One pass over all scores, or one per fold."""
        how: dict[str, Any] = {
            "depth": depth,
            "backend": means.backend,
            "device": means.device,
            "tile": means.tile,
            "threads": means.threads,
            "progress": means.progress,
        }
        if len(self.folds) == 1:
            everything = slice(None)
            scorer = self.source.restricted(everything, everything)
            rankings = rank_both(scorer, self.relevance, checkpoint=means.checkpoint, **how)
        else:
            parts = [
                rank_both(self.source.restricted(*fold), within(self.relevance, fold), **how) for fold in self.folds
            ]
            rankings = {
                one: joined([part[one] for part in parts], self.folds, *gallery_of(self.dataset, one))
                for one in self.relevance
            }
        # Text-only retrieval is t2i by another name: whose vectors the images' are makes no difference to ranking.
        rankings[TEXT_TO_TEXT] = replace(rankings[TEXT_TO_IMAGE], direction=TEXT_TO_TEXT)
        return {one: rankings[one] for one in self.directions}

    def clusters(self, rankings: Mapping[str, Ranking]) -> dict[str, Array]:
        """A caption goes with its image."""
        pictures = np.arange(len(self.dataset.image_ids))
        return {one: pictures if one == IMAGE_TO_TEXT else self.dataset.caption_image for one in rankings}


class ListJob:
    """Ready-made lists, with or without the dataset they are over."""

    def __init__(
        self, dataset: Dataset | None, run: RankedLists | Mapping[str, Any],
        relevance: Relevance | Mapping[str, Any] | None, directions: Sequence[str] | None, folds: int,
    ) -> None:  # fmt: skip
        if folds != 1:
            raise UsageError(
                "folds need scores", fix="ranked lists cannot be ranked again within folds; leave folds out"
            )
        self.dataset = dataset
        self.strata: dict[str, Array] | None = None
        self.parts: Sequence[tuple[Array, Array]] = ()
        self.lists = lists_by_direction(dataset, run, directions)
        self.directions = tuple(self.lists)
        if dataset is not None:
            for one, lists in self.lists.items():
                positions(lists.query_ids, gallery_of(dataset, one)[0], "query")
        if dataset is not None:
            self.relevance, described = relevance_from(dataset, relevance)
        elif relevance is None:
            raise UsageError("a run without judgements", fix="pass relevance= (--qrels), or a dataset (--dataset)")
        else:
            self.relevance = self._given(relevance)
            described = {
                one: {"source": two.source, "fingerprint": two.fingerprint} for one, two in self.relevance.items()
            }
        self.description = {
            "inputs": {one: {"system": two.system, "fingerprint": two.fingerprint} for one, two in self.lists.items()},
            "relevance": described,
            "directions": list(self.directions),
        }

    def _given(self, relevance: Relevance | Mapping[str, Any]) -> dict[str, Relevance]:
        given = judgements(relevance)
        if isinstance(given, dict):
            missing = [one for one in self.directions if one not in given]
            if missing:
                raise UsageError(f"no judgements for {missing[0]}", fix="pass relevance for every direction of the run")
            return given
        if len(self.directions) == 1:
            return {self.directions[0]: given}
        # One set of judgements for both directions: it is seen from the queries of the direction whose ids it has.
        fits = [one for one, lists in self.lists.items() if set(lists.query_ids) & set(given.query_ids)]
        if len(fits) != 1:
            raise UsageError(
                "cannot tell which direction the judgements are of", fix="pass relevance={'i2t': …, 't2i': …}"
            )
        return {one: given if one == fits[0] else given.flip() for one in self.directions}

    def rank(self, depth: int, means: Means) -> dict[str, Ranking]:
        """Place the relevant items in the lists."""
        return {
            one: rank_lists(
                lists,
                self.relevance[one],
                one,
                gallery=None if self.dataset is None else gallery_of(self.dataset, one)[1],
                depth=depth,
            )
            for one, lists in self.lists.items()
        }

    def clusters(self, rankings: Mapping[str, Ranking]) -> dict[str, Array]:
        """A caption goes with the image it is relevant to; where that is not one image, queries stand by themselves."""
        found: dict[str, Array] = {}
        for one, ranking in rankings.items():
            found[one] = np.arange(len(ranking.query_ids))
            if one == TEXT_TO_IMAGE and (ranking.relevant_counts == 1).all():
                images = rankings[IMAGE_TO_TEXT].query_ids if IMAGE_TO_TEXT in rankings else ranking.item_ids
                row_of = {image: row for row, image in enumerate(images)}
                of = np.array([row_of.get(ranking.item_ids[item], -1) for item in ranking.relevant], np.int64)
                found[one] = of if (of >= 0).all() else found[one]
        return found
