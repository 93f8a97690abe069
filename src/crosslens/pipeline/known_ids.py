"""Ranked lists and judgements over a dataset: their ids matched with its own, and what it lacks skipped or refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from crosslens.core import (
    IMAGE_TO_TEXT,
    TEXT_TO_IMAGE,
    Dataset,
    Ids,
    InputError,
    RankedLists,
    Relevance,
    UnknownNameError,
    UsageError,
    argument,
    match_ids,
    spelled_as,
)

Array = np.ndarray[Any, Any]

TEXT_TO_TEXT = "t2t"
"""Text-only retrieval: captions are the queries, and the images' vectors come from other captions."""

SAME_SPLIT = "check that both are of the same split and use the same ids"
_FEW = 0.01
"""The share of unknown ids that is skipped unasked: published files differ by a few captions, another split by most."""
_LARGER_GALLERY = f", and {argument('extra_images')} adds images without captions to it"
_CLEARLY = 2.0
"""How many times better one direction must fit than the other, where ids of images and captions overlap."""


class ListsOverDataset(NamedTuple):
    """Ranked lists in the dataset's ids; ``gallery`` has its items and, behind them, what only the lists name."""

    lists: RankedLists
    gallery: Ids
    notes: list[str]


class JudgementsOverDataset(NamedTuple):
    """Judgements over all of the dataset's ids."""

    relevance: Relevance
    notes: list[str]


def direction_ids(dataset: Dataset, direction: str) -> tuple[Ids, Ids]:
    """The query ids and the item ids of a direction."""
    if direction == IMAGE_TO_TEXT:
        return dataset.image_ids, dataset.caption_ids
    if direction in (TEXT_TO_IMAGE, TEXT_TO_TEXT):
        return dataset.caption_ids, dataset.image_ids
    raise UsageError(f"unknown direction {direction!r}", fix="use 'i2t' or 't2i'; 't2t' for text-only retrieval")


def direction_of(value: Relevance | RankedLists, dataset: Dataset) -> str:
    """The direction whose query ids and item ids these are: clearly more of them than of the other direction's."""
    shares = {}
    for direction in (IMAGE_TO_TEXT, TEXT_TO_IMAGE):
        queries, items = direction_ids(dataset, direction)
        shares[direction] = _share_known(value.query_ids, queries), _share_known(value.item_ids, items)
    what = "judgements" if isinstance(value, Relevance) else "run"
    fits = {name: sum(parts) for name, parts in shares.items() if all(parts)}
    if not fits:
        known = {*dataset.image_ids, *dataset.caption_ids}
        unknown = next((name for name in (*value.query_ids, *value.item_ids) if name not in known), "")
        raise InputError(
            f"the ids of the {what} are not those of the dataset (such as {unknown!r})",
            expected="queries and items among the dataset's image and caption ids",
            fix=SAME_SPLIT,
            code="unknown-id",
            subject=unknown,
        )
    best, *others = sorted(fits, key=lambda name: -fits[name])
    only_complete = min(shares[best]) == 1 and not any(min(shares[other]) == 1 for other in others)
    if others and not only_complete and fits[best] < _CLEARLY * fits[others[0]]:
        raise UsageError(
            f"the {what} fit both directions: image ids and caption ids overlap",
            fix="name the direction: i2t (image to text) or t2i (text to image)",
        )
    return best


def _share_known(names: Ids, ids: Ids) -> float:
    """Which share of the names is among the ids; all of them where there are none."""
    return float((match_ids(names, ids) >= 0).mean()) if names else 1.0


def lists_over(dataset: Dataset, lists: RankedLists, direction: str, *, skip_unknown: bool = False) -> ListsOverDataset:
    """The lists in the dataset's ids.

    Queries that the dataset lacks are left out. Items that it lacks keep their ranks: they count as irrelevant, and the
    figures are those of the lists as they are; with ``skip_unknown`` they are taken out, and the ranks are those among
    the dataset's items. More than a few of either raise unless ``skip_unknown``.
    """
    queries, items = direction_ids(dataset, direction)
    lists = replace(lists, query_ids=spelled_as(queries, lists.query_ids), item_ids=spelled_as(items, lists.item_ids))
    notes = []
    unknown = _unknown(lists.query_ids, queries)
    if unknown.any():
        names = [lists.query_ids[row] for row in np.flatnonzero(unknown)]
        _refuse_many("query", names, _share(unknown), queries, skip_unknown)
        lists = _with_queries(lists, ~unknown)
        notes.append(f"{direction}: {_left_out(len(names), len(unknown), 'queries', names[0])}")
    unknown = _unknown(lists.item_ids, items)
    if not unknown.any():
        return ListsOverDataset(lists, items, notes)
    entries = unknown[lists.items]
    names = [lists.item_ids[column] for column in np.flatnonzero(unknown)]
    larger = _LARGER_GALLERY if direction == TEXT_TO_IMAGE else ""
    _refuse_many("item", names, _share(entries), items, skip_unknown, larger)
    if skip_unknown:
        notes.append(f"{direction}: {_left_out(int(entries.sum()), len(entries), 'list entries', names[0])}")
        return ListsOverDataset(_without_entries(lists, entries, ~unknown), items, notes)
    notes.append(
        f"{direction}: {entries.sum():,} of {len(entries):,} list entries are not in the dataset (such as "
        f"{names[0]!r}); they keep their ranks and count as irrelevant"
    )
    return ListsOverDataset(lists, (*items, *names), notes)


def judgements_over(
    dataset: Dataset, relevance: Relevance, direction: str, *, skip_unknown: bool = False
) -> JudgementsOverDataset:
    """The judgements over all queries and items of the dataset, without pairs that it lacks.

    More than a few such pairs raise unless ``skip_unknown``.
    """
    queries, items = direction_ids(dataset, direction)
    if (relevance.query_ids, relevance.item_ids) == (queries, items):
        return JudgementsOverDataset(relevance, [])
    rows, columns = match_ids(relevance.query_ids, queries), match_ids(relevance.item_ids, items)
    outside = (rows[relevance.rows] < 0) | (columns[relevance.items] < 0)
    for what, ids, known, places in (("query", relevance.query_ids, queries, rows),
                                     ("item", relevance.item_ids, items, columns)):  # fmt: skip
        names = [ids[row] for row in np.flatnonzero(places < 0)]
        if names:
            _refuse_many(what, names, _share(outside), known, skip_unknown)
    notes = []
    if outside.any():
        first = int(np.argmax(outside))
        row, column = relevance.rows[first], relevance.items[first]
        name = relevance.query_ids[row] if rows[row] < 0 else relevance.item_ids[column]
        notes.append(f"{direction}: {_left_out(int(outside.sum()), len(outside), 'judged pairs', name)}")
    inside = ~outside
    over = Relevance.from_indices(
        queries, items, rows[relevance.rows[inside]], columns[relevance.items[inside]], relevance.grades[inside],
        relevance.source,
    )  # fmt: skip
    return JudgementsOverDataset(over, notes)


def _unknown(names: Ids, ids: Ids) -> Array:
    known = set(ids)
    return np.fromiter((name not in known for name in names), np.bool_, len(names))


def _share(unknown: Array) -> float:
    return float(unknown.mean()) if len(unknown) else 0.0


def _left_out(count: int, total: int, what: str, example: str) -> str:
    return f"{count:,} of {total:,} {what} are left out, as the dataset does not have them (such as {example!r})"


def _with_queries(lists: RankedLists, kept: Array) -> RankedLists:
    """The lists of some of the queries, and the items in them."""
    lengths = np.diff(lists.offsets)
    queries = tuple(query for query, stays in zip(lists.query_ids, kept, strict=True) if stays)
    entries = np.repeat(kept, lengths)
    listed = np.zeros(len(lists.item_ids), np.bool_)
    listed[lists.items[entries]] = True
    offsets = np.concatenate([[0], np.cumsum(lengths[kept])])
    lists = replace(lists, query_ids=queries, offsets=offsets, items=lists.items[entries], scores=lists.scores[entries])
    return _with_items(lists, listed)


def _without_entries(lists: RankedLists, removed: Array, items: Array) -> RankedLists:
    """The lists without some of their entries; ``items`` says which items are left."""
    offsets = np.concatenate([[0], np.cumsum(~removed)])[lists.offsets]
    lists = replace(lists, offsets=offsets, items=lists.items[~removed], scores=lists.scores[~removed])
    return _with_items(lists, items)


def _with_items(lists: RankedLists, kept: Array) -> RankedLists:
    column_of = np.cumsum(kept) - 1
    ids = tuple(item for item, stays in zip(lists.item_ids, kept, strict=True) if stays)
    return replace(lists, item_ids=ids, items=column_of[lists.items])


def _refuse_many(
    what: str, unknown: Sequence[str], share: float, known: Ids, skip_unknown: bool, otherwise: str = ""
) -> None:
    """Raise where more than a few ids are unknown, unless they are to be skipped; and always where all are."""
    if share <= _FEW or (skip_unknown and share < 1):
        return
    near = UnknownNameError(what, unknown[0], known[:20_000]).suggestions
    skip = f"{argument('skip_unknown', True)} leaves out what the dataset does not have{otherwise}"
    raise InputError(
        f"unknown {what} id {unknown[0]!r}" + (f", and {len(unknown) - 1:,} more" if len(unknown) > 1 else ""),
        expected="ids of the dataset",
        fix=f"did you mean {near[0]!r}? If not, {skip}" if near and len(unknown) == 1 else f"{SAME_SPLIT}; {skip}",
        code="unknown-id",
        subject=unknown[0],
    )
