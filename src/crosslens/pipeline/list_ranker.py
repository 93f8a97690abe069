"""Rankings for an evaluation from lists that another system made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import (
    IMAGE_TO_TEXT,
    TEXT_TO_IMAGE,
    Dataset,
    Ids,
    Progress,
    RankedLists,
    Ranking,
    Relevance,
    UsageError,
    argument,
    match_ids,
    spelled_as,
)
from crosslens.pipeline.inputs import lists_by_direction, parse_by_direction, relevance_by_direction, relevance_facts
from crosslens.pipeline.known_ids import lists_over
from crosslens.pipeline.options import EvaluateOptions
from crosslens.rank import rank_lists

Array = np.ndarray[Any, Any]

ORDER_DECIDES = "the order of the list decides between them (tie mode stable)"


class ListRanker:
    """Finds the relevant items in given lists, with or without the dataset they are over."""

    def __init__(
        self, dataset: Dataset | None, run: RankedLists | Mapping[str, Any],
        relevance: Relevance | Mapping[str, Any] | None, options: EvaluateOptions,
    ) -> None:  # fmt: skip
        if options.folds != 1:
            raise UsageError(
                "folds need scores", fix="ranked lists cannot be ranked again within folds; leave folds out"
            )
        if options.queries is not None:
            fix = f"leave it out: the lists of {argument('run')} are ranked already, and all of them are used"
            problem = f"{argument('queries', options.queries)} and ranked lists"
            raise UsageError(problem, fix=fix, option="queries")
        self._complete = options.complete_lists
        self._ties = options.ties
        self.strata: dict[str, Array] | None = None
        self.parts: Sequence[Any] = ()
        self.lists = lists_by_direction(dataset, run, options.directions)
        self.directions = tuple(self.lists)
        self.notes: list[str] = []
        self._galleries: dict[str, Ids] = {}
        inputs = {
            direction: {"system": lists.system, "fingerprint": lists.fingerprint}
            for direction, lists in self.lists.items()
        }
        if dataset is not None:
            facts = self._match_dataset(dataset, relevance, options.skip_unknown)
        elif relevance is None:
            raise UsageError("a run without judgements", fix=f"pass {argument('relevance')}, or the dataset")
        else:
            self.relevance = self._parse_relevance(relevance)
            facts = relevance_facts(self.relevance)
            self.lists = {name: _spelled_like(lists, self.relevance[name]) for name, lists in self.lists.items()}
        self.description: dict[str, Any] = {"inputs": inputs, "relevance": facts, "directions": list(self.directions)}
        for option in ("complete_lists", "skip_unknown"):
            if getattr(options, option):
                self.description[option] = True

    def _match_dataset(
        self, dataset: Dataset, relevance: Relevance | Mapping[str, Any] | None, skip_unknown: bool
    ) -> dict[str, Any]:
        """Bring lists and judgements into the ids of the dataset; returns where the judgements came from."""
        for direction, lists in self.lists.items():
            over = lists_over(dataset, lists, direction, skip_unknown=skip_unknown)
            self.lists[direction], self._galleries[direction] = over.lists, over.gallery
            self.notes += over.notes
        self.relevance, facts, notes = relevance_by_direction(dataset, relevance, skip_unknown=skip_unknown)
        self.notes += notes
        return facts

    def _parse_relevance(self, relevance: Relevance | Mapping[str, Any]) -> dict[str, Relevance]:
        parsed = parse_by_direction(relevance, Relevance)
        if isinstance(parsed, dict):
            missing = [direction for direction in self.directions if direction not in parsed]
            if missing:
                raise UsageError(f"no judgements for {missing[0]}", fix="pass relevance for every direction of the run")
            return parsed
        if len(self.directions) == 1:
            return {self.directions[0]: parsed}
        # One set of judgements for both directions is of the direction whose queries have its query ids.
        matches = [
            name for name, lists in self.lists.items() if (match_ids(lists.query_ids, parsed.query_ids) >= 0).any()
        ]
        if len(matches) != 1:
            raise UsageError("the direction of the judgements is ambiguous", fix="pass relevance={'i2t': …, 't2i': …}")
        return {direction: parsed if direction == matches[0] else parsed.flip() for direction in self.directions}

    def rank(self, depth: int, progress: Progress, checkpoint: Path | None) -> dict[str, Ranking]:
        """The ranking of every direction."""
        return {
            direction: rank_lists(
                lists, self.relevance[direction], direction, gallery=self._galleries.get(direction), depth=depth,
                complete=self._complete,
            )
            for direction, lists in self.lists.items()
        }  # fmt: skip

    def notes_on_ties(self, rankings: Mapping[str, Ranking]) -> list[str]:
        """Where whoever wrote the lists decided the rank of a relevant item among items of the same score."""
        if self._ties != "stable":
            return []
        counts = {direction: _ranked_by_ties(ranking) for direction, ranking in rankings.items()}
        return [
            f"{direction}: in {count:,} of {len(self.lists[direction].query_ids):,} lists a relevant item has the same "
            f"score as an irrelevant one; {ORDER_DECIDES}"
            for direction, count in counts.items()
            if count
        ]

    def clusters(self, rankings: Mapping[str, Ranking]) -> dict[str, Array]:
        """A caption goes with its relevant image; where that is not one image, every query is a cluster."""
        return list_clusters(rankings)


def list_clusters(rankings: Mapping[str, Ranking]) -> dict[str, Array]:
    """Per direction, which queries are resampled together."""
    clusters: dict[str, Array] = {}
    for direction, ranking in rankings.items():
        clusters[direction] = np.arange(len(ranking.query_ids))
        if direction == TEXT_TO_IMAGE and (ranking.relevant_counts == 1).all():
            images = rankings[IMAGE_TO_TEXT].query_ids if IMAGE_TO_TEXT in rankings else ranking.item_ids
            row_of = {image: row for row, image in enumerate(images)}
            rows = np.array([row_of.get(ranking.item_ids[item], -1) for item in ranking.relevant], np.int64)
            clusters[direction] = rows if (rows >= 0).all() else clusters[direction]
    return clusters


def _spelled_like(lists: RankedLists, relevance: Relevance) -> RankedLists:
    """The lists with ids as the judgements write them: an image with or without the ending of its file."""
    return replace(
        lists,
        query_ids=spelled_as(relevance.query_ids, lists.query_ids),
        item_ids=spelled_as(relevance.item_ids, lists.item_ids),
    )


def _ranked_by_ties(ranking: Ranking) -> int:
    """The number of queries with a relevant item in a tie that holds irrelevant ones, too."""
    tied = ranking.tied > 0
    # The relevant items of a tie have the same query and the same number of items above.
    groups = np.stack([ranking.rows[tied], ranking.above[tied]])
    _, which, relevant = np.unique(groups, axis=1, return_inverse=True, return_counts=True)
    mixed = ranking.tied[tied] + 1 > relevant[which.ravel()]
    return len(np.unique(ranking.rows[tied][mixed]))
