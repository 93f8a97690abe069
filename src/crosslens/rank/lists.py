"""Ready-made lists as a :class:`Ranking`: what is in a list is ranked, what is not stays unknown."""

from __future__ import annotations

import numpy as np

from crosslens.core.errors import InputError
from crosslens.core.ids import Ids
from crosslens.core.lists import RankedLists
from crosslens.core.ranking import UNRANKED, Ranking, as_top_scores
from crosslens.core.relevance import Relevance


def rank_lists(
    lists: RankedLists, relevance: Relevance, direction: str, *, gallery: Ids | None = None, depth: int = 10
) -> Ranking:
    """Place every relevant item in its query's list.

    ``gallery`` names all items that could have been listed; a listed item outside it raises. Without one, the judged
    and the listed items together are the gallery. Queries that only one of the two sides knows are kept: without a
    relevant item a query is counted and excluded, without a list it raises in any metric that needs the list.
    """
    relevance = relevance.relevant()
    query_ids = tuple(dict.fromkeys((*relevance.query_ids, *lists.query_ids)))
    item_ids = gallery or tuple(dict.fromkeys((*relevance.item_ids, *lists.item_ids)))
    row_of = {one: row for row, one in enumerate(query_ids)}
    column_of = {one: column for column, one in enumerate(item_ids)}
    if gallery:
        strange = [one for one in (*lists.item_ids, *relevance.item_ids) if one not in column_of]
        if strange:
            raise InputError(
                f"item {strange[0]!r} is not in the gallery"
                + (f", nor are {len(strange) - 1} others of the run" if len(strange) > 1 else ""),
                expected=f"one of its {len(item_ids)} ids",
                fix="check that both are of the same split, or pass judgements (--qrels) instead of a dataset: "
                "an item that nobody judged then counts as irrelevant",
            )
    list_row = np.array([row_of[one] for one in lists.query_ids], np.int64)
    list_column = np.array([column_of[one] for one in lists.item_ids], np.int64)
    lengths = np.diff(lists.offsets)
    known = np.zeros(len(query_ids), np.int64)
    known[list_row] = lengths
    rows = np.repeat(list_row, lengths)
    columns = list_column[lists.items]
    place = np.arange(len(rows)) - np.repeat(lists.offsets[:-1], lengths)

    keep = min(depth, int(known.max(initial=0)))
    top_items = np.full((len(query_ids), keep), UNRANKED, np.int64)
    top_scores = np.full((len(query_ids), keep), np.nan, np.float64)
    kept = place < keep
    top_items[rows[kept], place[kept]] = columns[kept]
    top_scores[rows[kept], place[kept]] = lists.scores[kept]

    # A run of equal scores within one list is a group of ties: where it starts, and how long it is.
    starts = np.ones(len(rows), bool)
    starts[1:] = (rows[1:] != rows[:-1]) | (lists.scores[1:] != lists.scores[:-1])
    group = np.cumsum(starts) - 1
    first = np.flatnonzero(starts)
    size = np.diff(np.append(first, len(rows)))

    order = np.lexsort((columns, rows))
    keys = rows[order] * len(item_ids) + columns[order]
    query_row = np.array([row_of[one] for one in relevance.query_ids], np.int64)
    item_column = np.array([column_of[one] for one in relevance.item_ids], np.int64)
    wanted = query_row[relevance.rows] * len(item_ids) + item_column[relevance.items]
    found = np.searchsorted(keys, wanted)
    listed = np.zeros(len(wanted), bool)
    inside = found < len(keys)
    listed[inside] = keys[found[inside]] == wanted[inside]
    above, tied, before = (np.full(len(wanted), fill, np.int64) for fill in (UNRANKED, 0, 0))
    if listed.any():
        at = order[found[listed]]
        above[listed] = place[first[group[at]]]
        tied[listed] = size[group[at]] - 1
        before[listed] = at - first[group[at]]

    # Relevance queries come first and in their own order, so its rows carry over; list-only queries have none.
    offsets = np.full(len(query_ids) + 1, len(wanted), np.int64)
    offsets[: len(relevance.offsets)] = relevance.offsets
    return Ranking(
        direction,
        query_ids,
        item_ids,
        top_items,
        as_top_scores(top_scores),
        known,
        offsets,
        item_column[relevance.items],
        relevance.grades,
        above,
        tied,
        before,
        complete=bool((known == len(item_ids)).all()) and gallery is not None,
    )
