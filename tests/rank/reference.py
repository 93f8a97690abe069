"""Ranking the slow and obvious way: one query at a time, every score compared with every other."""

from __future__ import annotations

import numpy as np

from crosslens.core.relevance import Relevance


def counts(scores: np.ndarray, relevance: Relevance) -> list[tuple[int, int, int]]:
    """For every relevant pair, in order: how many items are above, tied, tied with a lower index."""
    rows = []
    for query in range(len(relevance.query_ids)):
        row = scores[query].tolist()
        for item in relevance.items[relevance.offsets[query] : relevance.offsets[query + 1]]:
            mine = row[item]
            above = sum(score > mine for score in row)
            tied = sum(score == mine for score in row) - 1
            before = sum(score == mine for score in row[:item])
            rows.append((above, tied, before))
    return rows


def top(scores: np.ndarray, depth: int) -> list[list[int]]:
    """Best first; equal scores by index."""
    return [sorted(range(len(row)), key=lambda i, row=row: (-row[i], i))[:depth] for row in scores.tolist()]
