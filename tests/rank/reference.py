"""Ranking the slow and obvious way: one query at a time, every score compared with every other."""

from __future__ import annotations

import numpy as np

from crosslens.values import Relevance


def counts(scores: np.ndarray, relevance: Relevance) -> list[tuple[int, int, int]]:
    """For every relevant pair, in order: how many items are above, tied, tied with a lower index."""
    rows = []
    for query in range(len(relevance.query_ids)):
        row = scores[query]
        for item in relevance.items[relevance.offsets[query] : relevance.offsets[query + 1]]:
            mine = row[item]
            tied = row == mine
            rows.append((int((row > mine).sum()), int(tied.sum()) - 1, int(tied[:item].sum())))
    return rows


def top(scores: np.ndarray, depth: int) -> list[list[int]]:
    """Best first; equal scores by index."""
    return [np.argsort(-row, kind="stable")[:depth].tolist() for row in scores]
