"""A ranking in blocks: what each pair of blocks gives is merged, and kept in a folder so that the same call resumes.

Whoever ranks a pair of blocks, a core, a device or another machine, returns :class:`Lists` per direction, numbered
within the blocks. Counts add up and top lists merge, so the result does not depend on the blocks or on their order.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import CrosslensError, available_cores
from crosslens.engine import wait_for_all
from crosslens.storage import HEADER_FILE, Array, Layout, atomic_folder, read_folder, write_parts
from crosslens.values import UNRANKED, Ranking, Relevance, as_top_scores

SECONDS_BETWEEN_CHECKPOINTS = 60.0
MOST_TIME_FOR_CHECKPOINTS = 1 / 20
_LAYOUT = Layout("a checkpoint", HEADER_FILE, ("*.npy",))
_QUERIES_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class Blocks:
    """Blocks of rows and of columns; those of the axis ``outer`` are shared out."""

    shape: tuple[int, int]
    size: tuple[int, int]
    outer: int

    def parts(self, axis: int) -> list[slice]:
        """The blocks of rows (0) or columns (1)."""
        length, size = self.shape[axis], self.size[axis]
        return [slice(start, min(start + size, length)) for start in range(0, length, size)]

    @property
    def counts(self) -> tuple[int, int]:
        """How many blocks of outer and inner items."""
        outer, inner = (-(-self.shape[axis] // self.size[axis]) for axis in (self.outer, 1 - self.outer))
        return outer, inner


@dataclass
class Lists:
    """The top lists of some queries, best first, equal scores by index; and three counts of every relevant pair.

    ``items`` and ``scores`` are queries × depth, UNRANKED and NaN past the end of a list. ``counts`` are how many items
    are above each relevant one, tied with it, and tied before it.
    """

    items: Array
    scores: Array
    counts: Array

    def packed(self) -> Lists:
        """As few bytes as can be: for every part of a ranking, the lists of a whole axis travel."""
        counts = self.counts.astype(np.min_scalar_type(self.counts.max(initial=0)))
        return Lists(self.items.astype(np.int32), self.scores, counts)

    @property
    def nbytes(self) -> int:
        return self.items.nbytes + self.scores.nbytes + self.counts.nbytes

    def merge(self, queries: slice, pairs: slice, block: Lists, start: int) -> None:
        """Add what another block of the gallery, which begins at item ``start``, gave for some queries."""
        self.counts[:, pairs] += block.counts
        first = np.isnan(self.scores[queries, 0]).all()

        def merge_some(begin: int) -> None:
            part = slice(begin, min(begin + _QUERIES_AT_ONCE, len(block.items)))
            kept_items, kept_scores = (table[queries][part] for table in (self.items, self.scores))
            items, scores = block.items[part].astype(np.int32), block.scores[part]
            items[items != UNRANKED] += start
            if first:
                kept_items[:, : items.shape[1]], kept_scores[:, : items.shape[1]] = items, scores
                return
            # Most lists of a large gallery stay: nothing in the block reaches their last item.
            reached = np.flatnonzero(~(scores[:, 0] < kept_scores[:, -1]))
            items = np.concatenate([kept_items[reached], items[reached]], axis=1)
            scores = np.concatenate([kept_scores[reached], scores[reached]], axis=1)
            order = np.lexsort((items, -scores))[:, : kept_items.shape[1]]  # NaN comes last
            kept_items[reached] = np.take_along_axis(items, order, 1)
            kept_scores[reached] = np.take_along_axis(scores, order, 1)

        with ThreadPoolExecutor(available_cores()) as pool:
            wait_for_all([pool.submit(merge_some, begin) for begin in range(0, len(block.items), _QUERIES_AT_ONCE)])

    def ranking(self, direction: str, relevance: Relevance) -> Ranking:
        """The ranking of all queries, whose relevant pairs are in the order of ``relevance``."""
        return Ranking(
            direction,
            relevance.query_ids,
            relevance.item_ids,
            self.items.astype(np.int64, copy=False),
            as_top_scores(self.scores),
            np.full(len(relevance.query_ids), len(relevance.item_ids), np.int64),
            relevance.offsets,
            relevance.items,
            relevance.grades,
            *self.counts.astype(np.int64, copy=False),
        )


class Merged:
    """The lists of all queries of the wanted directions, and which pairs of blocks (outer, inner) are in them.

    ``offsets`` are, per wanted direction, those of the relevant pairs of its queries; ``depth`` the length of a list.
    """

    def __init__(
        self, blocks: Blocks, offsets: Mapping[int, Array], depth: Mapping[int, int], precision: Any = np.float32
    ) -> None:
        self.blocks, self.done = blocks, np.zeros(blocks.counts, bool)
        self.lists: dict[int, Lists] = {}
        self._offsets, self._depth, self._precision = offsets, depth, precision
        self._lock = threading.Lock()
        self._folder: Path | None = None
        self._key, self._saved, self._saving = "", time.monotonic(), 0.0

    def parts(self, pair: tuple[int, int]) -> tuple[slice, slice]:
        """The rows and the columns of a pair of blocks (of rows, of columns)."""
        return self.blocks.parts(0)[pair[0]], self.blocks.parts(1)[pair[1]]

    def todo(self) -> list[tuple[int, int]]:
        """The pairs of blocks (of rows, of columns) that are not merged yet."""
        pairs = [(int(outer), int(inner)) for outer, inner in np.argwhere(~self.done)]
        return pairs if self.blocks.outer == 0 else [pair[::-1] for pair in pairs]

    def listed(self, axis: int, queries: slice) -> tuple[Array, Array] | None:
        """The items and scores that blocks ranked so far have listed for these queries; None without any."""
        with self._lock:
            lists = self.lists.get(axis)
            if lists is None or np.isnan(lists.scores[queries.start, 0]):  # a ranked block lists something for each
                return None
            return lists.items[queries].copy(), lists.scores[queries].copy()

    def add(self, pair: tuple[int, int], results: Mapping[int, Lists]) -> None:
        """Merge what a pair of blocks (of rows, of columns) gave, per wanted direction; store the state if due."""
        blocks = self.parts(pair)
        with self._lock:
            for axis, block in results.items():
                if self.done.size == 1:  # nothing to merge it with
                    self.lists[axis] = block
                    continue
                offsets, queries = self._offsets[axis], blocks[axis]
                if axis not in self.lists:
                    shape = len(offsets) - 1, self._depth[axis]
                    scores = np.full(shape, np.nan, self._precision)
                    counts = np.zeros((3, int(offsets[-1])), np.int64)
                    self.lists[axis] = Lists(np.full(shape, UNRANKED, np.int32), scores, counts)
                pairs = slice(int(offsets[queries.start]), int(offsets[queries.stop]))
                self.lists[axis].merge(queries, pairs, block, blocks[1 - axis].start)
            self.done[pair if self.blocks.outer == 0 else pair[::-1]] = True
            began = time.monotonic()
            wait = max(SECONDS_BETWEEN_CHECKPOINTS, self._saving / MOST_TIME_FOR_CHECKPOINTS)
            due = len(self._offsets) == 1 if self.done.all() else began - self._saved >= wait
            if self._folder is None or not due:
                return
            arrays = {f"{name}{axis}": part for axis, lists in self.lists.items() for name, part in vars(lists).items()}
            header = {"key": self._key, "size": list(self.blocks.size), "outer": self.blocks.outer}
            with atomic_folder(self._folder, _LAYOUT) as new:
                write_parts(new, "checkpoint", header=header, arrays={"done": self.done, **arrays})
            self._saved = time.monotonic()
            self._saving = self._saved - began

    def result_bytes(self) -> int:
        """How much the lists of a pair of blocks take, at most."""
        entry = 4 + np.dtype(self._precision).itemsize
        return sum(
            self.blocks.size[axis] * (entry * self._depth[axis] + 24 * -(-int(offsets[-1]) // max(1, len(offsets) - 1)))
            for axis, offsets in self._offsets.items()
        )

    def keep_in(self, folder: Path, key: str, fits: Callable[[Blocks], bool] = lambda blocks: True) -> None:
        """From now on store the state there; go on from a stored one of the same ``key`` whose blocks ``fits`` accepts.

        ``key`` changes when anything that the ranking depends on does. Of one direction the finished state is stored,
        too: the other one follows, and a call that is interrupted then need not repeat the first.
        """
        self._folder, self._key = folder, key
        try:
            header, arrays, _ = read_folder(folder, "checkpoint") if folder.exists() else ({}, {}, None)
        except CrosslensError:
            return
        if header.get("key") != key:
            return
        blocks = Blocks(self.blocks.shape, (header["size"][0], header["size"][1]), header["outer"])
        if fits(blocks):
            self.blocks, self.done = blocks, np.array(arrays["done"])
            for axis in self._offsets:
                self.lists[axis] = Lists(*(np.array(arrays[f"{part}{axis}"]) for part in Lists.__annotations__))
