"""Re-ranking: a slower, better scorer re-orders the top of every list, and every rank stays exact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from crosslens.core import IMAGE_TO_TEXT, TEXT_TO_IMAGE, UNRANKED, Ranking, UsageError, argument

Array = np.ndarray[Any, Any]

PairScores = Callable[[Sequence[tuple[str, str]]], Array]
"""Pairs of an image's and a text's id → one score each."""


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
    rows, columns = np.nonzero(items != UNRANKED)
    pairs = [
        (ranking.query_ids[row], ranking.item_ids[item]) for row, item in zip(rows, items[rows, columns], strict=True)
    ]
    if ranking.direction == TEXT_TO_IMAGE:
        pairs = [(image, text) for text, image in pairs]
    scores = np.full(items.shape, -np.inf, np.float32)
    scores[rows, columns] = scores_of(pairs)
    # Equal scores: the lower gallery index first, which is the tie rule of every ranking.
    order = np.lexsort((np.where(items == UNRANKED, np.iinfo(np.int64).max, items), -scores))
    reranked = _with_top(ranking, np.take_along_axis(items, order, 1), np.take_along_axis(scores, order, 1))
    return replace(reranked, top_items=reranked.top_items[:, :keep], top_scores=reranked.top_scores[:, :keep])


def _with_top(ranking: Ranking, items: Array, scores: Array) -> Ranking:
    """The ranking with these lists on top, and the new rank of every relevant item."""
    k = items.shape[1]
    above, tied, before = (np.array(getattr(ranking, name)) for name in ("above", "tied", "tied_before"))
    rows = ranking.rows
    listed = items[rows] == ranking.relevant[:, None]
    inside = listed.any(axis=1)
    column = listed.argmax(axis=1)
    own_score = scores[rows, column]
    higher, equal = scores[rows] > own_score[:, None], scores[rows] == own_score[:, None]
    earlier = equal & (np.arange(k) < column[:, None])
    # Below k nothing moves, but what was tied with an item inside the first k is now ranked below it.
    passed = np.where((above != UNRANKED) & ~inside, np.clip(np.minimum(ranking.known[rows], k) - above, 0, None), 0)
    return replace(
        ranking,
        top_items=items,
        top_scores=np.where(items == UNRANKED, np.nan, scores).astype(np.float32),
        above=np.where(inside, higher.sum(axis=1), above + passed),
        tied=np.where(inside, equal.sum(axis=1) - 1, tied - passed),
        tied_before=np.where(inside, earlier.sum(axis=1), before - passed),
    )
