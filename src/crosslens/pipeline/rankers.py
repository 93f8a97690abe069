"""Rankings for an evaluation from scores over a dataset, whole or in folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from crosslens.core import (
    IMAGE_TO_TEXT,
    TEXT_TO_IMAGE,
    UNRANKED,
    Dataset,
    Ids,
    InputError,
    Progress,
    Ranking,
    Relevance,
    UsageError,
    argument,
    random_stream,
)
from crosslens.pipeline.inputs import relevance_by_direction, score_source
from crosslens.pipeline.known_ids import TEXT_TO_TEXT, direction_ids
from crosslens.pipeline.list_ranker import ListRanker
from crosslens.pipeline.options import EvaluateOptions
from crosslens.rank import rank_both, rank_queries

Array = np.ndarray[Any, Any]


class Fold(NamedTuple):
    """Rows of the images and captions of one fold."""

    images: Array
    captions: Array

    def sides(self, direction: str) -> tuple[Array, Array]:
        """The rows of queries and of items."""
        return (self.images, self.captions) if direction == IMAGE_TO_TEXT else (self.captions, self.images)


def split_folds(dataset: Dataset, count: int) -> list[Fold]:
    """``count`` consecutive parts of the images (1,000 each for COCO's 5,000 in 5), with their captions."""
    if not isinstance(count, int) or not 1 <= count <= len(dataset.image_ids):
        raise UsageError(
            f"{count} folds of {len(dataset.image_ids)} images", fix="use a whole number from 1 to the number of images"
        )
    behind = len(dataset.image_ids) - 1 - int(dataset.caption_image.max(initial=-1))
    if count > 1 and behind:
        problem = f"{count} folds, and the last {behind:,} images have no captions: they belong to no fold"
        raise UsageError(problem, fix=f"leave out {argument('folds')}, or these images", option="folds")
    return [
        Fold(rows, np.flatnonzero((dataset.caption_image >= rows[0]) & (dataset.caption_image <= rows[-1])))
        for rows in np.array_split(np.arange(len(dataset.image_ids)), count)
    ]


def draw_queries(askable: Array, count: int, seed: int, direction: str) -> Array:
    """The rows of ``count`` of the queries that can be asked, or of all, ascending.

    Every query is as likely as any other, and a larger sample of the same seed contains the smaller ones.
    """
    rows = np.flatnonzero(askable)
    return np.sort(random_stream(seed, "queries", direction).permutation(rows)[:count])


def fold_numbers(dataset: Dataset, folds: Sequence[Fold]) -> dict[str, Array]:
    """Per direction, the fold of every query."""
    of_image = np.concatenate([np.full(len(fold.images), number) for number, fold in enumerate(folds)])
    of_caption = of_image[dataset.caption_image]
    return {IMAGE_TO_TEXT: of_image, TEXT_TO_IMAGE: of_caption, TEXT_TO_TEXT: of_caption}


def within_fold(relevance: Relevance, queries: Array, items: Array) -> Relevance:
    """The judgements whose query and item are both in a fold, of which these are the rows."""
    row_of, column_of = np.full(len(relevance.query_ids), -1), np.full(len(relevance.item_ids), -1)
    row_of[queries], column_of[items] = np.arange(len(queries)), np.arange(len(items))
    rows, columns = row_of[relevance.rows], column_of[relevance.items]
    inside = (rows >= 0) & (columns >= 0)
    return Relevance.from_indices(
        tuple(relevance.query_ids[row] for row in queries), tuple(relevance.item_ids[column] for column in items),
        rows[inside], columns[inside], relevance.grades[inside], relevance.source,
    )  # fmt: skip


def join_folds(parts: Sequence[Ranking], folds: Sequence[Fold], query_ids: Ids, item_ids: Ids) -> Ranking:
    """One ranking over all queries, each ranked in its fold; indices are those of the whole dataset."""
    sides = [fold.sides(parts[0].direction) for fold in folds]
    depth = max(part.depth for part in parts)
    queries = np.concatenate([rows for rows, _ in sides])
    lists = [_global_lists(part, items, depth) for part, (_, items) in zip(parts, sides, strict=True)]
    rows = np.concatenate([own[part.rows] for part, (own, _) in zip(parts, sides, strict=True)])
    relevant = np.concatenate([items[part.relevant] for part, (_, items) in zip(parts, sides, strict=True)])
    order = np.lexsort((relevant, rows))
    counts = np.bincount(rows, minlength=len(query_ids))

    def by_query(values: Sequence[Array]) -> Array:
        joined = np.concatenate(values)
        ordered = np.empty_like(joined)
        ordered[queries] = joined
        return ordered

    by_pair: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])[order]
        for name in ("grades", "above", "tied", "tied_before")
    }
    return replace(
        parts[0],
        query_ids=query_ids,
        item_ids=item_ids,
        top_items=by_query([items for items, _ in lists]),
        top_scores=by_query([scores for _, scores in lists]),
        known=by_query([part.known for part in parts]),
        offsets=np.concatenate([[0], np.cumsum(counts)]),
        relevant=relevant[order],
        **by_pair,
    )


def _global_lists(part: Ranking, items: Array, depth: int) -> tuple[Array, Array]:
    """A fold's lists in the indices of the whole dataset, padded to a common depth."""
    shape = (len(part.query_ids), depth)
    top_items, top_scores = np.full(shape, UNRANKED, np.int64), np.full(shape, np.nan, part.top_scores.dtype)
    top_items[:, : part.depth] = items[part.top_items]
    top_scores[:, : part.depth] = part.top_scores
    return top_items, top_scores


class ScoreRanker:
    """Ranks by embeddings or a score matrix over a dataset."""

    def __init__(
        self, dataset: Dataset, images: Any, captions: Any, scores: Any,
        relevance: Relevance | Mapping[str, Any] | None, options: EvaluateOptions,
    ) -> None:  # fmt: skip
        if not dataset.caption_ids:
            raise InputError(
                "a dataset without captions", expected="at least one caption", fix="check the captions file"
            )
        self.dataset, self.options = dataset, options
        self.source = score_source(dataset, images, captions, scores, options.score)
        self.relevance, facts, self.notes = relevance_by_direction(
            dataset, relevance, skip_unknown=options.skip_unknown
        )
        self.directions = tuple(options.directions or (IMAGE_TO_TEXT, TEXT_TO_IMAGE))
        for direction in self.directions:
            direction_ids(dataset, direction)
        self.sample = self._drawn()
        self.notes += map(self._sample_note, self.sample)
        self.folds = split_folds(dataset, options.folds)
        self.strata = None if options.folds == 1 else fold_numbers(dataset, self.folds)
        self.parts: Sequence[Fold] = () if options.folds == 1 else self.folds
        self.description: dict[str, Any] = {
            "inputs": dict(self.source.description),
            "relevance": facts,
            "score": self.source.score,
            "directions": list(self.directions),
        }
        if self.sample:
            self.description["sample"] = {
                name: {"queries": len(rows), "of": int(self._askable(name).sum()), "seed": options.seed}
                for name, rows in self.sample.items()
            }

    def rank(self, depth: int, progress: Progress, checkpoint: Path | None) -> dict[str, Ranking]:
        """The ranking of every direction, with the top ``depth`` of every list."""
        options: dict[str, Any] = {key: getattr(self.options, key) for key in ("backend", "device", "tile", "threads")}
        options |= {"depth": depth, "progress": progress}
        if self.sample:
            return {name: self._rank_sample(name, options, checkpoint) for name in self.directions}
        if len(self.folds) == 1:
            rankings = rank_both(self.source.scorer, self.relevance, checkpoint=checkpoint, **options)
        else:
            parts = []
            for fold in self.folds:
                judged = {name: within_fold(relevance, *fold.sides(name)) for name, relevance in self.relevance.items()}
                parts.append(rank_both(self.source.restricted(*fold), judged, **options))
            rankings = {
                name: join_folds([part[name] for part in parts], self.folds, *direction_ids(self.dataset, name))
                for name in self.relevance
            }
        # Text-only retrieval is t2i by another name: whose vectors the images' are makes no difference to ranking.
        rankings[TEXT_TO_TEXT] = replace(rankings[TEXT_TO_IMAGE], direction=TEXT_TO_TEXT)
        return {direction: rankings[direction] for direction in self.directions}

    def notes_on_ties(self, rankings: Mapping[str, Ranking]) -> list[str]:
        """Nothing: tied scores are ordered by the dataset, not by whoever made the lists."""
        return []

    def clusters(self, rankings: Mapping[str, Ranking]) -> dict[str, Array]:
        """Per direction, the image of every query; a caption goes with its image."""
        images, captions = np.arange(len(self.dataset.image_ids)), self.dataset.caption_image
        every = {direction: images if direction == IMAGE_TO_TEXT else captions for direction in rankings}
        return {name: clusters[self.sample[name]] if self.sample else clusters for name, clusters in every.items()}

    def _drawn(self) -> dict[str, Array]:
        """Per direction, the rows of the sampled queries; nothing without a sample."""
        count, seed = self.options.queries, self.options.seed
        if count is None:
            return {}
        if self.options.folds != 1:
            problem = f"{argument('queries', count)} and {argument('folds', self.options.folds)}"
            fix = "leave out one: a sample is ranked against the whole gallery, a fold is not"
            raise UsageError(problem, fix=fix, option="queries")
        return {name: draw_queries(self._askable(name), count, seed, name) for name in self.directions}

    def _askable(self, direction: str) -> Array:
        """Which queries have a relevant item: the others have no rank to sample."""
        return np.diff(self._judged(direction).relevant().offsets) > 0

    def _judged(self, direction: str) -> Relevance:
        return self.relevance[TEXT_TO_IMAGE if direction == TEXT_TO_TEXT else direction]

    def _sample_note(self, direction: str) -> str:
        drawn, every = len(self.sample[direction]), int(self._askable(direction).sum())
        if drawn == every:
            return f"{direction}: all {every:,} queries are ranked, as there are no more"
        share = np.sqrt(1 - drawn / every)
        return (
            f"{direction}: a random sample of {drawn:,} of {every:,} queries (seed {self.options.seed}) against the "
            "whole gallery; its intervals say how far other images of this kind may differ, and for the value of all "
            f"{every:,} queries they need to be at most {share:.2f} times as wide"
        )

    def _rank_sample(self, direction: str, options: dict[str, Any], checkpoint: Path | None) -> Ranking:
        """The sampled queries of one direction, ranked against the whole gallery."""
        rows, as_rows, whole = self.sample[direction], direction == IMAGE_TO_TEXT, slice(None)
        judged = self._judged(direction)
        judged = within_fold(judged, rows, np.arange(len(judged.item_ids)))
        scorer = self.source.restricted(*((rows, whole) if as_rows else (whole, rows)))
        own = None if checkpoint is None else checkpoint.with_name(f"{checkpoint.name}-{direction}")
        return rank_queries(scorer, judged, direction, as_rows=as_rows, checkpoint=own, **options)


Ranker = ScoreRanker | ListRanker
"""Makes the rankings of an evaluation, and knows how queries group into images (clusters) and folds (strata, parts)."""
