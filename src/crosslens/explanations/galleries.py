"""Galleries: what several models retrieve for the same queries, the top of their lists side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np

from crosslens.core import (
    ABSENT,
    Cards,
    InputError,
    Part,
    PictureCard,
    Presented,
    Section,
    Table,
    Text,
    UsageError,
    argument,
)
from crosslens.explanations.failures import first_relevant, ranking_of
from crosslens.metrics import format_count
from crosslens.similarity import relevance_pairs
from crosslens.storage import json_form, random_stream
from crosslens.values import DIRECTION_LABELS, IMAGE_TO_TEXT, UNRANKED, Dataset, Ranking, Run

_MOST_MATCHES = 20
"""Queries that a part of their text selects, at most."""
_MOST_RIGHT = 4
"""Relevant images shown beside a text query."""
_RELEVANT = "✓"


@dataclass(frozen=True)
class GalleryItem:
    """An item of a list: an image, or a caption with its ``text`` and the ``image`` that it belongs to."""

    rank: int
    item: str
    score: float
    relevant: bool
    image: str | None
    text: str | None
    lists: int
    """How many of the models have it in their top k."""
    phi: float | None = None
    """How similar it is to the query, where that was asked for."""


@dataclass(frozen=True)
class GalleryList:
    """The top k of one model; ``first_relevant`` is the rank of the first relevant item, in or below it.

    None where there is no relevant item, or where a ready-made list ends before it.
    """

    model: str
    items: tuple[GalleryItem, ...]
    first_relevant: int | None


@dataclass(frozen=True)
class GalleryQuery:
    """A query with its list of each model. ``image`` is the query of i2t; ``right`` are the relevant images of t2i.

    ``overlap`` is overlap@k: the share of items that two lists have in common, the mean over pairs of models.
    """

    query: str
    text: str | None
    image: str | None
    right: tuple[str, ...]
    relevant: int
    lists: tuple[GalleryList, ...]
    overlap: float


@dataclass(frozen=True)
class Gallery(Presented):
    """Queries with the top ``k`` of every model; ``overlap`` is the mean over all queries that the models share.

    ``pictures`` are the files of images, for a page, and ``problem`` says why there are none.
    """

    dataset: str
    direction: str
    k: int
    models: tuple[str, ...]
    queries: tuple[GalleryQuery, ...]
    overlap: float
    shared: int
    notes: tuple[str, ...] = ()
    pictures: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    phi: str | None = None

    @property
    def images(self) -> tuple[str, ...]:
        """The images that a page shows."""
        pictures: dict[str, None] = {}
        for query in self.queries:
            images = [query.image, *query.right, *(item.image for top in query.lists for item in top.items)]
            pictures.update(dict.fromkeys(image for image in images if image is not None))
        return tuple(pictures)

    @property
    def title(self) -> str:
        return f"Top {self.k} on {self.dataset}, {DIRECTION_LABELS.get(self.direction, self.direction)}"

    def as_dict(self) -> dict[str, Any]:
        return {name: value for name, value in json_form(self).items() if name not in ("pictures", "problem")}

    def sections(self) -> Iterator[Section]:
        """Per query a table with a row per rank and a column per model; on pages, the pictures of each list."""
        for query in self.queries:
            head = f"{query.query}: {query.text}" if query.text is not None else query.query
            columns, places, lists = [], [], []
            for top in query.lists:
                cells, cards = [], []
                for item in top.items:
                    mark: Literal["", "right"] = "right" if item.relevant else ""
                    text = item.item if item.text is None else item.text
                    similar = "" if item.phi is None else f" φ {item.phi:.2f}"
                    cells.append(f"{_RELEVANT if mark else ' '} {item.score:.3f}{similar} {text}")
                    title = f"{item.rank}  {item.score:.3f}{similar}{f' {_RELEVANT} relevant' if mark else ''}"
                    texts = () if item.text is None else (item.text,)
                    shared = (f"in {item.lists} of {len(self.models)} lists",) if self.models[1:] else ()
                    cards.append(PictureCard(title, texts, item.image, mark, (item.item, *shared)))
                columns.append(cells + [ABSENT] * (self.k - len(cells)))
                first = top.first_relevant
                places.append("none in the list" if first is None else f"rank {first:,}")
                below = f", below the top {self.k}" if first is not None and first > self.k else ""
                title = f"{top.model}, first relevant item: {places[-1]}{below}"
                lists.append(Cards(title, tuple(cards), self.pictures, most=0))
            rows = [(str(rank), *cells) for rank, cells in enumerate(zip(*columns, strict=True), start=1)]
            table = Table(("rank", *self.models), [*rows, ("first relevant", *places)], cut=True, aside=True)
            overlap = f"overlap@{self.k}: {query.overlap:.2f}" if self.models[1:] else ""
            parts: list[Part] = [table, Text.of(overlap, note=True), *lists]
            if self.pictures:  # first that of the query, or those of the images that are relevant to its text
                front = [PictureCard("relevant", image=image, details=(image,)) for image in query.right[:_MOST_RIGHT]]
                title = format_count(query.relevant, "relevant item")
                if query.image is not None:
                    front, title = [PictureCard("query image", image=query.image, details=(query.query,))], ""
                parts.insert(0, Cards(title, tuple(front), self.pictures, most=0))
            yield Section(head, tuple(parts), query.query)
        closing = f"{_RELEVANT} marks relevant items." + (
            f" φ: how similar an item is to the query, by {self.phi}." if self.phi else ""
        )
        if len(self.models) > 1:
            closing += (
                f" Overlap@{self.k} over all {self.shared:,} queries: {self.overlap:.2f}, the share of items that the "
                "lists of two models have in common."
            )
        problem = f"note: the pictures are missing: {self.problem}" if self.problem else ""
        yield Section("", (Text.of(closing, *(f"note: {note}" for note in self.notes), problem, note=True),))


def retrieval_gallery(
    runs: Mapping[str, Run],
    dataset: Dataset,
    queries: Sequence[str] = (),
    *,
    hardest: int = 0,
    random: int = 0,
    seed: int = 0,
    direction: str | None = None,
    k: int = 5,
    phi: str | None = None,
) -> Gallery:
    """The top ``k`` of each run for the chosen queries.

    ``queries`` are ids, or parts of the text (of i2t: of a caption of the image). ``hardest`` adds queries that every
    model ranks badly: by the best rank of any model, the worst first. ``random`` adds drawn ones; 5 where nothing else
    is chosen. ``direction``: by default the first that a run has, captions first. ``phi`` says of each item how similar
    it is to the query (``"spice"``), as equally good lists can hold images that are near and far.
    """
    first = next(iter(runs.values()))
    ranking = ranking_of(first, direction, dataset)
    if direction is None and queries and not set(queries) & set(ranking.query_ids):  # the other direction may have them
        others = [ranking_of(first, other, dataset) for other in first.rankings if other != ranking.direction]
        ranking = next((other for other in others if set(queries) & set(other.query_ids)), ranking)
    direction = ranking.direction
    if k < 1:
        raise UsageError(f"k is {k}", fix="k must be at least 1", option="k")
    rankings = {name: ranking_of(run, direction, dataset) for name, run in runs.items()}
    for name, ranking in rankings.items():
        if ranking.depth < min(k, len(ranking.item_ids)):
            raise UsageError(
                f"k is {k}, and the run {name!r} keeps the first {ranking.depth} items of each list",
                fix=f"choose {argument('k')} up to {ranking.depth}, or repeat the evaluation with a larger depth",
                option="k",
            )
    common = set.intersection(*(set(ranking.query_ids) for ranking in rankings.values()))
    if not common:
        raise InputError(
            "the runs have no query in common", expected="runs of one dataset", fix="name runs of the same queries"
        )
    shared = [query for query in rankings[next(iter(rankings))].query_ids if query in common]
    by_model = {name: _Lists(ranking, k) for name, ranking in rankings.items()}
    notes: list[str] = []
    selected: dict[str, None] = {}
    keys = dataset.caption_ids
    if direction == IMAGE_TO_TEXT:
        keys = tuple(dataset.image_ids[row] for row in dataset.caption_image)
    for word in queries:
        matches, part = [word] if word in common else [], word.casefold()
        if not matches and part.strip():  # queries whose text contains the word, in any case
            containing = {key for key, text in zip(keys, dataset.texts, strict=True) if part in text.casefold()}
            matches = [query for query in shared if query in containing]
        if not matches:
            raise InputError(
                f"no {direction} query has the id {word!r} or contains it",
                expected="the id of a query, or a part of its text",
                fix=f"check the spelling, or name the other direction: {argument('direction')}",
                code="unknown-id",
                subject=word,
            )
        if len(matches) > _MOST_MATCHES:
            notes.append(f"{len(matches):,} queries contain {word!r}: the first {_MOST_MATCHES} are shown")
        selected.update(dict.fromkeys(matches[:_MOST_MATCHES]))
    if hardest:  # by the best rank of any model, then by the worst; the worst first
        far = np.iinfo(np.int64).max  # a ready-made list ended before the relevant item
        answerable = [query for query in shared if all(query in lists.answerable for lists in by_model.values())]
        ranks = {query: [lists.rank[query] or far for lists in by_model.values()] for query in answerable}
        answerable.sort(key=lambda query: (-min(ranks[query]), -max(ranks[query])))
        selected.update(dict.fromkeys(answerable[:hardest]))
    if count := random if random or hardest or queries else min(5, len(shared)):
        order = random_stream(seed, "gallery", direction).permutation(len(shared))
        rest = [query for query in (sorted(shared)[row] for row in order) if query not in selected]
        selected.update(dict.fromkeys(rest[:count]))
    overlap = float(np.mean([_overlap([lists.items(query) for lists in by_model.values()]) for query in shared]))
    gallery = [_query(query, by_model, dataset, direction) for query in selected]
    if phi is not None:
        gallery = _with_phi(gallery, dataset, phi)
    return Gallery(
        dataset.name, direction, k, tuple(rankings), tuple(gallery), overlap, len(shared), tuple(notes), phi=phi
    )


def _with_phi(queries: Sequence[GalleryQuery], dataset: Dataset, phi: str) -> list[GalleryQuery]:
    """The queries with the φ of every item whose image and caption the dataset has."""
    pairs = [
        (query.image, item.item) if query.image is not None else (item.image, query.query)
        for query in queries
        for top in query.lists
        for item in top.items
    ]
    present = [image in dataset.image_rows and caption in dataset.caption_rows for image, caption in pairs]
    rows = [(dataset.image_rows[str(image)], dataset.caption_rows[caption])
            for (image, caption), is_present in zip(pairs, present, strict=True) if is_present]  # fmt: skip
    numbers = iter(relevance_pairs(dataset, phi, *np.array(rows, np.int64).reshape(-1, 2).T).tolist())
    values = iter([next(numbers) if is_present else None for is_present in present])
    return [
        replace(query, lists=tuple(
            replace(top, items=tuple(replace(item, phi=next(values)) for item in top.items))
            for top in query.lists
        ))
        for query in queries
    ]  # fmt: skip


class _Lists:
    """A ranking by query id: the top k, what is relevant, and the rank of the first relevant item."""

    def __init__(self, ranking: Ranking, k: int) -> None:
        self.ranking, self.k = ranking, k
        self._row = {query: row for row, query in enumerate(ranking.query_ids)}
        best, ranks = first_relevant(ranking)
        self.answerable = {query for query, item in zip(ranking.query_ids, best, strict=True) if item != UNRANKED}
        pairs = zip(ranking.query_ids, ranks.tolist(), strict=True)
        self.rank: dict[str, int | None] = {query: None if rank == UNRANKED else rank for query, rank in pairs}

    def items(self, query: str) -> list[str]:
        row = self.ranking.top_items[self._row[query], : self.k]
        return [self.ranking.item_ids[item] for item in row if item != UNRANKED]

    def relevant(self, query: str) -> list[str]:
        row = self._row[query]
        part = slice(self.ranking.offsets[row], self.ranking.offsets[row + 1])
        items = self.ranking.relevant[part][self.ranking.grades[part] > 0]
        return [self.ranking.item_ids[item] for item in items]


def _overlap(lists: Sequence[Sequence[str]]) -> float:
    """Mean over pairs of lists: the items in common, as a share of the longer list; 1 for a single list."""
    shares = [len(set(left) & set(right)) / max(len(left), len(right), 1) for left, right in combinations(lists, 2)]
    return float(np.mean(shares)) if shares else 1.0


def _query(query: str, by_model: Mapping[str, _Lists], dataset: Dataset, direction: str) -> GalleryQuery:
    tops = {name: lists.items(query) for name, lists in by_model.items()}
    relevant = list(dict.fromkeys(item for lists in by_model.values() for item in lists.relevant(query)))
    forward = direction == IMAGE_TO_TEXT
    lists = []
    for name, ranks in by_model.items():
        relevant_items = set(ranks.relevant(query))
        items = []
        for rank, (item, score) in enumerate(ranks.ranking.top(query, ranks.k), start=1):
            image: str | None = item
            text = None
            if forward:  # a ready-made list may name captions that the dataset does not have
                row = dataset.caption_rows.get(item)
                image = None if row is None else dataset.image_ids[dataset.caption_image[row]]
                text = None if row is None else dataset.texts[row]
            lists_with = sum(item in top for top in tops.values())
            items.append(GalleryItem(rank, item, score, item in relevant_items, image, text, lists_with))
        lists.append(GalleryList(name, tuple(items), ranks.rank[query]))
    return GalleryQuery(
        query,
        None if forward else dataset.texts[dataset.caption_rows[query]],
        query if forward else None,
        () if forward else tuple(relevant),
        len(relevant),
        tuple(lists),
        _overlap(list(tops.values())),
    )
