"""The exact scores of relevant pairs whose vectors are not on one device together: gathered, a part at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import numpy as np

from crosslens.core import Relevance, SilentProgress, VectorBlocks, available_cores, in_threads
from crosslens.rank.gpu.exact import exact_scores

Array = np.ndarray[Any, Any]

_AT_ONCE = 1 << 26
"""Bytes of vectors of a part."""
_READERS = 4
"""Threads that gather vectors: each has a part of both sides on the device."""


def inference_on(where: Any) -> AbstractContextManager[Any]:
    """Inside, this thread computes on a device, without gradients."""
    import torch

    stack = ExitStack()
    stack.enter_context(torch.inference_mode())
    if where.type == "cuda":
        stack.enter_context(torch.cuda.device(where))
    return stack


def relevant_scores(relevant: Sequence[Relevance], scores_of: Callable[[Array, Array], Array]) -> tuple[Array, Array]:
    """The scores of the relevant pairs of both directions, in the order of each; ``scores_of`` (rows, columns)."""
    rows, columns = relevant
    scores = scores_of(rows.rows, rows.items)
    order = np.lexsort((columns.rows, columns.items))
    if np.array_equal(columns.items[order], rows.rows) and np.array_equal(columns.rows[order], rows.items):
        flipped = np.empty_like(scores)
        flipped[order] = scores
        return scores, flipped
    return scores, scores_of(columns.items, columns.rows)


def pair_scores(vectors: tuple[VectorBlocks, VectorBlocks], rows: Array, columns: Array, where: Any) -> Array:
    """One score per (row, column) pair."""
    import torch

    scores = np.empty(len(rows), np.float32)
    size = max(1, _AT_ONCE // (4 * vectors[0].shape[1]))

    def work(starts: Iterator[int], worker: int, stop: threading.Event) -> None:
        with inference_on(where):
            for start in starts:
                part = slice(start, min(start + size, len(rows)))
                left, right = (
                    torch.from_numpy(np.require(side.rows(numbers[part]), np.float32, ["C", "W"])).to(where)
                    for side, numbers in zip(vectors, (rows, columns), strict=True)
                )
                both = torch.arange(len(left), dtype=torch.int32, device=where)
                scores[part] = exact_scores(left, right, both, both).cpu().numpy()

    in_threads(range(0, len(rows), size), min(_READERS, available_cores()), SilentProgress(), work)
    return scores
