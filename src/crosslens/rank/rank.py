"""Rankings from scores, exact and in both directions at once, or from ready-made lists; and their re-ranking."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np

from crosslens.core import InputError, UnknownNameError, UsageError, argument, available_cores
from crosslens.engine import Progress, current_engine, shown_progress
from crosslens.rank.scorers import InnerProduct, Scorer
from crosslens.storage import Array
from crosslens.values import (
    IMAGE_TO_TEXT,
    TEXT_TO_IMAGE,
    UNRANKED,
    Ids,
    RankedLists,
    Ranking,
    Relevance,
    as_top_scores,
    positions,
)

BACKENDS = ("numpy", "torch")
PairScores = Callable[[Sequence[tuple[str, str]]], Array]
"""Pairs of an image's and a text's id → one score each."""


def rank_both(
    scorer: Scorer,
    relevance: Relevance | Mapping[str, Relevance],
    *,
    depth: int = 10,
    backend: str = "numpy",
    device: str | None = None,
    tile: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    checkpoint: str | Path | None = None,
    names: tuple[str, str] = (IMAGE_TO_TEXT, TEXT_TO_IMAGE),
) -> dict[str, Ranking]:
    """Rank rows against columns and columns against rows in one pass over the scores.

    ``relevance`` is seen from the rows, or one per direction where the two differ. The result does not depend on
    ``tile``, ``threads``, ``backend`` or ``device``: they only change how fast it comes. ``checkpoint`` is a folder
    in which a long pass keeps its state; an interrupted pass resumes from it. Inside :func:`crosslens.use_engine` the
    ranking is made in tasks of that engine. With torch, each has a GPU if there are any; where the engine has no other
    devices than this process, or ``device`` names one by its number, this process ranks by itself.
    """
    _check_options(backend, device, depth=depth, tile=tile, threads=threads)
    both = relevance if isinstance(relevance, Mapping) else {names[0]: relevance, names[1]: relevance.flip()}
    relevant = [both[name].relevant() for name in names]
    rows, columns = relevant
    if 0 in scorer.shape:
        raise InputError(
            f"nothing to rank: {scorer.shape[0]} × {scorer.shape[1]} scores", expected="a non-empty gallery"
        )
    shape = (len(rows.query_ids), len(rows.item_ids))
    if scorer.shape != shape or shape != (len(columns.item_ids), len(columns.query_ids)):
        raise InputError(
            f"scores of shape {scorer.shape[0]} × {scorer.shape[1]} for relevance of {shape[0]} × {shape[1]}",
            expected="a row per image and a column per caption, in the dataset's order",
            fix="check that scores and dataset are of the same split, and not transposed",
        )
    if np.abs(rows.grades).sum() == 0 and np.abs(columns.grades).sum() == 0:
        raise InputError("no relevant pair at all", fix="check that the ids of the judgements match the dataset's")
    progress = shown_progress(progress)
    if backend == "torch":
        from crosslens.rank.gpu.task_ranking import ANY_MACHINE, rank_products

        if isinstance(scorer, InnerProduct):
            return rank_products(scorer, relevant, depth, names, device, tile, progress, checkpoint)
        if device not in ANY_MACHINE or not current_engine().exceeds(available_cores()):
            from crosslens.rank.gpu.block_ranking import devices_of
            from crosslens.rank.gpu.tile_pass import rank_scores

            return rank_scores(scorer, relevant, depth, names, devices_of(device)[0], tile, progress)
        threads = None  # cores make these scores, here or there
    from crosslens.rank.direction_state import Direction  # compiled code: slow to import
    from crosslens.rank.distinct import without_copies
    from crosslens.rank.parts import rank_in_parts

    scorer, *same = without_copies(scorer)

    def prepared(axis: int) -> Direction:
        queries, items = same[axis], same[1 - axis]
        return Direction.of(relevant[axis], scorer, depth, as_rows=axis == 0, same_queries=queries, same_items=items)

    with ThreadPoolExecutor(2) as pool:
        by_row, by_column = pool.map(prepared, (0, 1))
    return rank_in_parts(
        scorer, (by_row, by_column), names, tile=tile, threads=threads, progress=progress, checkpoint=checkpoint
    )


def _check_options(backend: str, device: str | None, **counts: int | None) -> None:
    for name, value in counts.items():
        if value is not None and value < 1:
            raise UsageError(f"{name} is {value}", fix=f"use {argument(name, 1)} or more", option=name)
    if backend not in BACKENDS:
        raise UnknownNameError("backend", backend, BACKENDS)
    if device is not None and backend == "numpy":
        problem = f"the numpy backend cannot use the device {device!r}"
        raise UsageError(problem, fix=f"use {argument('backend', 'torch')}", option="device")


def rank_queries(
    scorer: Scorer,
    relevance: Relevance,
    name: str,
    *,
    as_rows: bool,
    depth: int = 10,
    backend: str = "numpy",
    device: str | None = None,
    tile: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    checkpoint: str | Path | None = None,
) -> Ranking:
    """Rank the queries of one direction, which are the rows of the scorer or its columns; ``name`` it so.

    The same ranking as that of :func:`rank_both`, without the work and the memory for the other direction.
    ``checkpoint`` is a folder in which the pass keeps its state: an interrupted call resumes from it, and a finished
    one need not be repeated. Scores other than inner products are ranked on cores, whatever the ``backend``.
    """
    _check_options(backend, device, depth=depth, tile=tile, threads=threads)
    relevance, progress, names = relevance.relevant(), shown_progress(progress), (name, name)
    if backend == "torch" and isinstance(scorer, InnerProduct):
        from crosslens.rank.gpu.task_ranking import rank_products

        both = (relevance, relevance.flip()) if as_rows else (relevance.flip(), relevance)
        axes = (0 if as_rows else 1,)
        return rank_products(scorer, both, depth, names, device, tile, progress, checkpoint, axes)[name]
    from crosslens.rank.direction_state import Direction  # compiled code: slow to import
    from crosslens.rank.parts import rank_in_parts

    direction = Direction.of(relevance, scorer, depth, as_rows=as_rows)
    directions = (direction, None) if as_rows else (None, direction)
    return rank_in_parts(
        scorer, directions, names, tile=tile, threads=threads, progress=progress, checkpoint=checkpoint
    )[name]


def rank_lists(
    lists: RankedLists,
    relevance: Relevance,
    direction: str,
    *,
    gallery: Ids | None = None,
    depth: int = 10,
    complete: bool = False,
) -> Ranking:
    """Rank every relevant item by its query's list; an item that is not listed stays unranked.

    ``gallery`` names all items that could have been listed; a listed item outside it raises. Without one, the judged
    and the listed items together are the gallery. ``complete`` declares that no list was cut off: without a gallery
    each list is the whole gallery of its query. A list that lacks an item of the gallery, or a relevant one, raises.
    Queries that only one of the two sides knows are kept: without a relevant item a query is counted and excluded,
    without a list it raises in any metric that needs the list.
    """
    relevance = relevance.relevant()
    query_ids = tuple(dict.fromkeys((*relevance.query_ids, *lists.query_ids)))
    item_ids = gallery or tuple(dict.fromkeys((*relevance.item_ids, *lists.item_ids)))
    if gallery:
        _check_gallery(lists, relevance, gallery)
    list_rows = positions(lists.query_ids, query_ids, "query")
    lengths = np.diff(lists.offsets)
    lengths_of = np.zeros(len(query_ids), np.int64)
    lengths_of[list_rows] = lengths
    rows = np.repeat(list_rows, lengths)
    columns = positions(lists.item_ids, item_ids, "item")[lists.items]
    rank = np.arange(len(rows)) - np.repeat(lists.offsets[:-1], lengths)

    keep = min(depth, int(lengths_of.max(initial=0)))
    top_items = np.full((len(query_ids), keep), UNRANKED, np.int64)
    top_scores = np.full((len(query_ids), keep), np.nan, np.float64)
    in_list = rank < keep
    top_items[rows[in_list], rank[in_list]] = columns[in_list]
    top_scores[rows[in_list], rank[in_list]] = lists.scores[in_list]

    relevant = positions(relevance.item_ids, item_ids, "item")[relevance.items]
    pairs = positions(relevance.query_ids, query_ids, "query")[relevance.rows] * len(item_ids) + relevant
    above, tied, tied_before = _count_listed(rows, rows * len(item_ids) + columns, rank, lists.scores, pairs)
    if complete:
        _check_complete(lists, relevance, gallery, above)
    # Relevance queries come first and in their own order, so its rows carry over; list-only queries have none.
    offsets = np.full(len(query_ids) + 1, len(pairs), np.int64)
    offsets[: len(relevance.offsets)] = relevance.offsets
    return Ranking(
        direction,
        query_ids,
        item_ids,
        top_items,
        as_top_scores(top_scores),
        lengths_of,
        offsets,
        relevant,
        relevance.grades,
        above,
        tied,
        tied_before,
        complete=complete or (gallery is not None and bool((lengths_of == len(item_ids)).all())),
    )


def _check_gallery(lists: RankedLists, relevance: Relevance, gallery: Ids) -> None:
    gallery_ids = set(gallery)
    unknown = [item for item in (*lists.item_ids, *relevance.item_ids) if item not in gallery_ids]
    if unknown:
        others = f", nor are {len(unknown) - 1} others of the run" if len(unknown) > 1 else ""
        raise InputError(
            f"item {unknown[0]!r} is not in the gallery{others}",
            expected=f"one of its {len(gallery)} ids",
            fix=f"check that both are of the same split, or pass judgements ({argument('qrels')}) instead of a "
            "dataset: an item that nobody judged then counts as irrelevant",
            code="unknown-id",
            subject=unknown[0],
        )


def _check_complete(lists: RankedLists, relevance: Relevance, gallery: Ids | None, above: Array) -> None:
    """Raise where lists that are said to be complete are not."""
    fix = f"pass lists of all items, or drop {argument('complete_lists', True)}: lists may be cut off"
    lengths = np.diff(lists.offsets)
    if gallery is not None and (lengths < len(gallery)).any():
        query = int(np.argmin(lengths))
        raise InputError(
            f"the list of query {lists.query_ids[query]!r} has {lengths[query]:,} of {len(gallery):,} items",
            expected="complete lists: every item of the gallery in each",
            fix=fix,
        )
    if (above == UNRANKED).any():
        pair = int(np.argmax(above == UNRANKED))
        query_id, item = relevance.query_ids[relevance.rows[pair]], relevance.item_ids[relevance.items[pair]]
        raise InputError(
            f"item {item!r} is relevant to query {query_id!r}, but not in its list",
            expected="complete lists: every item of the gallery in each",
            fix=fix,
        )


def _count_listed(rows: Array, keys: Array, rank: Array, scores: Array, pairs: Array) -> tuple[Array, Array, Array]:
    """How many listed items are above each relevant pair, tied with it, and tied before it.

    ``keys`` number the listed (query, item) pairs, ``pairs`` the relevant ones in the same way.
    """
    # A run of equal scores within one list is a group of ties: where it starts, and how long it is.
    starts = np.ones(len(rows), bool)
    starts[1:] = (rows[1:] != rows[:-1]) | (scores[1:] != scores[:-1])
    group = np.cumsum(starts) - 1
    first = np.flatnonzero(starts)
    size = np.diff(np.append(first, len(rows)))

    order = np.argsort(keys, kind="stable")
    nearest = np.searchsorted(keys[order], pairs)
    inside = nearest < len(keys)
    listed = np.zeros(len(pairs), bool)
    listed[inside] = keys[order[nearest[inside]]] == pairs[inside]
    above, tied, before = (np.full(len(pairs), fill, np.int64) for fill in (UNRANKED, 0, 0))
    entry = order[nearest[listed]]
    above[listed] = rank[first[group[entry]]]
    tied[listed] = size[group[entry]] - 1
    before[listed] = entry - first[group[entry]]
    return above, tied, before


def rerank(ranking: Ranking, scores_of: PairScores, k: int, *, keep: int | None = None) -> Ranking:
    """The ranking with the first ``k`` ranks of every list put into the order of other scores.

    What was below rank k stays below, in its order; the lists that are kept end at k (or at ``keep``, if that is less),
    so that their scores are all of one kind. Equal scores are ties, as everywhere; where the first ranking has a tie
    across rank k, the lower gallery index is inside.
    """
    if ranking.direction not in (IMAGE_TO_TEXT, TEXT_TO_IMAGE):
        raise UsageError(f"direction {ranking.direction!r} cannot be re-ranked", fix="re-rank i2t or t2i")
    if not 1 <= k <= ranking.depth:
        raise UsageError(
            f"k is {k}, but the lists hold {ranking.depth} items",
            fix=f"rank with {argument('depth', max(k, 1))} or more",
        )
    items = ranking.top_items[:, :k]
    listed = np.nonzero(items != UNRANKED)
    pairs = [
        (ranking.query_ids[row], ranking.item_ids[item]) for row, item in zip(listed[0], items[listed], strict=True)
    ]
    if ranking.direction == TEXT_TO_IMAGE:
        pairs = [(image, text) for text, image in pairs]
    scores = np.full(items.shape, -np.inf, np.float32)
    scores[listed] = scores_of(pairs)
    # Equal scores: the lower gallery index first, which is the tie rule of every ranking.
    order = np.lexsort((np.where(items == UNRANKED, np.iinfo(np.int64).max, items), -scores))
    items, scores = np.take_along_axis(items, order, 1), np.take_along_axis(scores, order, 1)
    # The new rank of every relevant item.
    above, tied, before, rows = ranking.above, ranking.tied, ranking.tied_before, ranking.rows
    relevant = items[rows] == ranking.relevant[:, None]
    inside, column = relevant.any(axis=1), relevant.argmax(axis=1)
    own_score = scores[rows, column]
    higher, equal = scores[rows] > own_score[:, None], scores[rows] == own_score[:, None]
    earlier = equal & (np.arange(k) < column[:, None])
    # Below k nothing moves, but what was tied with an item inside the first k is now ranked below it.
    passed = np.where((above != UNRANKED) & ~inside, np.clip(np.minimum(ranking.known[rows], k) - above, 0, None), 0)
    return replace(
        ranking,
        top_items=items[:, :keep],
        top_scores=np.where(items == UNRANKED, np.nan, scores).astype(np.float32)[:, :keep],
        above=np.where(inside, higher.sum(axis=1), above + passed),
        tied=np.where(inside, equal.sum(axis=1) - 1, tied - passed),
        tied_before=np.where(inside, earlier.sum(axis=1), before - passed),
    )
