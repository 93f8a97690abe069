"""Rankings for tests, made from full score matrices by counting: no cleverness that could be wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from crosslens.values import UNRANKED, Ranking


def rank(
    scores: Sequence[Sequence[float]] | np.ndarray,
    relevant: Sequence[Iterable[int]],
    direction: str = "i2t",
    *,
    length: int | None = None,
    ids: Sequence[str] | None = None,
) -> Ranking:
    """A ranking of every row of ``scores``; with ``length``, as if only lists of that length had been handed in."""
    scores = np.asarray(scores, np.float64).reshape(len(relevant), -1)
    queries, items = scores.shape
    depth = items if length is None else min(length, items)
    top, top_scores, pairs, rows = [], [], [], []
    for query, row in enumerate(scores):
        order = sorted(range(items), key=lambda item: (-row[item], item))[:depth]
        top.append(order)
        top_scores.append([row[item] for item in order])
        for item in sorted(relevant[query]):
            counts = (UNRANKED, 0, 0)
            if item in order:
                above = sum(row[item_above] > row[item] for item_above in order)
                tied = [tied_item for tied_item in order if row[tied_item] == row[item] and tied_item != item]
                counts = above, len(tied), sum(tied_item < item for tied_item in tied)
            pairs.append((item, *counts))
            rows.append(query)
    columns = np.array(pairs, np.int64).reshape(-1, 4).T
    return Ranking(
        direction,
        tuple(f"q{number}" for number in range(queries)) if ids is None else tuple(ids),
        tuple(f"d{number}" for number in range(items)),
        np.array(top, np.int64).reshape(queries, depth),
        np.array(top_scores, np.float32).reshape(queries, depth),
        np.full(queries, depth, np.int64),
        np.concatenate([[0], np.cumsum(np.bincount(np.array(rows, np.int64), minlength=queries))]).astype(np.int64),
        columns[0],
        np.ones(len(pairs), np.float32),
        columns[1],
        columns[2],
        columns[3],
        complete=length is None,
    )
