"""Rankings for an evaluation from scores over a dataset, whole or in folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from crosslens.core import InputError, UsageError, argument, merged_notes
from crosslens.engine import Progress
from crosslens.pipeline.evaluations.inputs import (
    TEXT_TO_TEXT,
    direction_ids,
    lists_by_direction,
    lists_over,
    parse_by_direction,
    relevance_by_direction,
    relevance_facts,
    score_source,
)
from crosslens.pipeline.options import EvaluateOptions
from crosslens.rank import rank_both, rank_lists, rank_queries
from crosslens.storage import Array, random_stream
from crosslens.values import (
    IMAGE_TO_TEXT,
    TEXT_TO_IMAGE,
    UNRANKED,
    Dataset,
    Ids,
    RankedLists,
    Ranking,
    Relevance,
    match_ids,
    spelled_as,
)

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
        self._complete, self._ties, self.clusters = options.complete_lists, options.ties, list_clusters
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
            for direction, lists in self.lists.items():
                self.lists[direction], self._galleries[direction], notes = lists_over(
                    dataset, lists, direction, skip_unknown=options.skip_unknown
                )
                self.notes += notes
            self.relevance, facts, notes = relevance_by_direction(dataset, relevance, skip_unknown=options.skip_unknown)
            self.notes += notes
        elif relevance is None:
            raise UsageError("a run without judgements", fix=f"pass {argument('relevance')}, or the dataset")
        else:
            parsed = parse_by_direction(relevance, Relevance)
            if isinstance(parsed, Relevance):
                # One set of judgements for both directions is of the direction whose queries have its query ids.
                matches = [
                    name
                    for name, lists in self.lists.items()
                    if len(self.lists) == 1 or (match_ids(lists.query_ids, parsed.query_ids) >= 0).any()
                ]
                if len(matches) != 1:
                    fix = "pass relevance={'i2t': …, 't2i': …}"
                    raise UsageError("the direction of the judgements is ambiguous", fix=fix)
                parsed = {name: parsed if name == matches[0] else parsed.flip() for name in self.directions}
            missing = [direction for direction in self.directions if direction not in parsed]
            if missing:
                raise UsageError(f"no judgements for {missing[0]}", fix="pass relevance for every direction of the run")
            self.relevance = parsed
            facts = relevance_facts(self.relevance)
            for name, lists in self.lists.items():  # an image with or without the ending of its file
                queries = spelled_as(self.relevance[name].query_ids, lists.query_ids)
                items = spelled_as(self.relevance[name].item_ids, lists.item_ids)
                self.lists[name] = replace(lists, query_ids=queries, item_ids=items)
        self.description: dict[str, Any] = {"inputs": inputs, "relevance": facts, "directions": list(self.directions)}
        for option in ("complete_lists", "skip_unknown"):
            if getattr(options, option):
                self.description[option] = True

    def rank(self, depth: int, progress: Progress, checkpoint: Path | None) -> dict[str, Ranking]:
        return {
            direction: rank_lists(
                lists, self.relevance[direction], direction, gallery=self._galleries.get(direction), depth=depth,
                complete=self._complete,
            )
            for direction, lists in self.lists.items()
        }  # fmt: skip

    def notes_on_ties(self, rankings: Mapping[str, Ranking]) -> list[str]:
        """Where whoever wrote the lists decided the rank of a relevant item among items of the same score."""
        notes = {}
        for direction, ranking in rankings.items() if self._ties == "stable" else ():
            tied = ranking.tied > 0
            # The relevant items of a tie have the same query and the same number of items above.
            groups = np.stack([ranking.rows[tied], ranking.above[tied]])
            _, which, relevant = np.unique(groups, axis=1, return_inverse=True, return_counts=True)
            mixed = ranking.tied[tied] + 1 > relevant[which.ravel()]
            count = len(np.unique(ranking.rows[tied][mixed]))
            if count:
                notes[direction] = (
                    f"in {count:,} of {len(self.lists[direction].query_ids):,} lists a relevant item has the same "
                    f"score as an irrelevant one; {ORDER_DECIDES}"
                )
        return merged_notes(notes.items())


def list_clusters(rankings: Mapping[str, Ranking]) -> dict[str, Array]:
    """Per direction, a caption goes with its relevant image; where that is not one image, every query is a cluster."""
    clusters: dict[str, Array] = {}
    for direction, ranking in rankings.items():
        clusters[direction] = np.arange(len(ranking.query_ids))
        if direction == TEXT_TO_IMAGE and (ranking.relevant_counts == 1).all():
            images = rankings[IMAGE_TO_TEXT].query_ids if IMAGE_TO_TEXT in rankings else ranking.item_ids
            row_of = {image: row for row, image in enumerate(images)}
            rows = np.array([row_of.get(ranking.item_ids[item], -1) for item in ranking.relevant], np.int64)
            clusters[direction] = rows if (rows >= 0).all() else clusters[direction]
    return clusters


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


def draw_queries(askable: Array, count: int | None, seed: int, direction: str) -> Array:
    """The rows of ``count`` of the queries that can be asked, or of all, ascending.

    Every query is as likely as any other, and a larger sample of the same seed contains the smaller ones.
    """
    rows = np.flatnonzero(askable)
    return np.sort(random_stream(seed, "queries", direction).permutation(rows)[:count])


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
    top_items, top_scores = [], []
    for part, (_, items) in zip(parts, sides, strict=True):  # padded to a common depth
        shape = (len(part.query_ids), depth)
        top_items.append(np.full(shape, UNRANKED, np.int64))
        top_scores.append(np.full(shape, np.nan, part.top_scores.dtype))
        top_items[-1][:, : part.depth], top_scores[-1][:, : part.depth] = items[part.top_items], part.top_scores
    rows = np.concatenate([query_rows[part.rows] for part, (query_rows, _) in zip(parts, sides, strict=True)])
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
        top_items=by_query(top_items),
        top_scores=by_query(top_scores),
        known=by_query([part.known for part in parts]),
        offsets=np.concatenate([[0], np.cumsum(counts)]),
        relevant=relevant[order],
        **by_pair,
    )


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
        self.sample: dict[str, Array] = {}
        """Per direction, the rows of the sampled queries; nothing without a sample."""
        sampled = {}
        if options.queries is not None and options.folds != 1:
            problem = f"{argument('queries', options.queries)} and {argument('folds', options.folds)}"
            fix = "leave out one: a sample is ranked against the whole gallery, a fold is not"
            raise UsageError(problem, fix=fix, option="queries")
        for name in () if options.queries is None else self.directions:
            # The others have no relevant item, and no rank to sample.
            askable = np.diff(self._judged(name).relevant().offsets) > 0
            self.sample[name] = draw_queries(askable, options.queries, options.seed, name)
            count, every = len(self.sample[name]), int(askable.sum())
            sampled[name] = {"queries": count, "of": every, "seed": options.seed}
            note = f"{name}: all {every:,} queries are ranked, as there are no more"
            if count < every:
                note = (
                    f"{name}: a random sample of {count:,} of {every:,} queries (seed {options.seed}) against the "
                    "whole gallery; its intervals say how far other images of this kind may differ, and for the value "
                    f"of all {every:,} queries they need to be at most {np.sqrt(1 - count / every):.2f} times as wide"
                )
            self.notes.append(note)
        self.folds = split_folds(dataset, options.folds)
        self.parts: Sequence[Fold] = () if options.folds == 1 else self.folds
        self.strata: dict[str, Array] | None = None
        if options.folds > 1:  # the fold of every query
            of_image = np.concatenate([np.full(len(fold.images), number) for number, fold in enumerate(self.folds)])
            of_caption = of_image[dataset.caption_image]
            self.strata = {IMAGE_TO_TEXT: of_image, TEXT_TO_IMAGE: of_caption, TEXT_TO_TEXT: of_caption}
        self.description: dict[str, Any] = {
            "inputs": dict(self.source.description),
            "relevance": facts,
            "score": self.source.score,
            "directions": list(self.directions),
        }
        if sampled:
            self.description["sample"] = sampled

    def rank(self, depth: int, progress: Progress, checkpoint: Path | None) -> dict[str, Ranking]:
        """The ranking of every direction, with the top ``depth`` of every list."""
        options: dict[str, Any] = {key: getattr(self.options, key) for key in ("backend", "device", "tile", "threads")}
        options |= {"depth": depth, "progress": progress}
        if self.sample:
            sampled = {}
            for name, rows in self.sample.items():
                as_rows, every = name == IMAGE_TO_TEXT, self._judged(name)
                sample = within_fold(every, rows, np.arange(len(every.item_ids)))
                scorer = self.source.restricted(*((rows, slice(None)) if as_rows else (slice(None), rows)))
                file = None if checkpoint is None else checkpoint.with_name(f"{checkpoint.name}-{name}")
                sampled[name] = rank_queries(scorer, sample, name, as_rows=as_rows, checkpoint=file, **options)
            return sampled
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

    def clusters(self, rankings: Mapping[str, Ranking]) -> dict[str, Array]:
        """Per direction, the image of every query; a caption goes with its image."""
        images, captions = np.arange(len(self.dataset.image_ids)), self.dataset.caption_image
        every = {direction: images if direction == IMAGE_TO_TEXT else captions for direction in rankings}
        return {name: clusters[self.sample[name]] if self.sample else clusters for name, clusters in every.items()}

    def _judged(self, direction: str) -> Relevance:
        return self.relevance[TEXT_TO_IMAGE if direction == TEXT_TO_TEXT else direction]


Ranker = ScoreRanker | ListRanker
"""Makes the rankings of an evaluation, and knows how queries group into images (clusters) and folds (strata, parts)."""
