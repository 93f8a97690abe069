"""What the pairs of blocks ranked so far say together, in memory and in a checkpoint that a later call resumes from."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import Ranking, fingerprint
from crosslens.rank.gpu.blocks import Blocks
from crosslens.rank.gpu.lists import Lists
from crosslens.rank.gpu.products import Products
from crosslens.rank.scorers import InnerProduct
from crosslens.rank.state_folder import store_state, stored_state

Array = np.ndarray[Any, Any]
Tensor = Any
PairResult = Mapping[int, tuple[Tensor, Tensor]]
"""Per wanted direction, the keys of the best items of the block's queries, and the counts of their relevant pairs."""

_SECONDS_BETWEEN_CHECKPOINTS = 60.0
_MOST_TIME_FOR_CHECKPOINTS = 1 / 20


class Merged:
    """Lists and counts of all queries, and which pairs of blocks (outer, inner) are in them."""

    def __init__(self, products: Products, blocks: Blocks) -> None:
        self.blocks = blocks
        self.lists = {axis: Lists(products.relevant[axis], products.keep(axis)) for axis in products.wanted}
        self.done = np.zeros(blocks.counts, bool)
        self._lock, self._checkpoint = threading.Lock(), _NO_CHECKPOINT

    def parts(self, pair: tuple[int, int]) -> tuple[slice, slice]:
        """The rows and the columns of a pair of blocks (of rows, of columns)."""
        return self.blocks.parts(0)[pair[0]], self.blocks.parts(1)[pair[1]]

    def listed(self, axis: int, queries: slice, where: Any) -> Tensor | None:
        """The best items of these queries in the blocks ranked so far, on a device; None without any."""
        with self._lock:
            return self.lists[axis].listed(queries, where) if axis in self.lists else None

    def add(self, pair: tuple[int, int], result: PairResult) -> None:
        """Merge what a pair of blocks (of rows, of columns) gave."""
        parts = self.parts(pair)
        with self._lock:
            for axis, (keys, counts) in result.items():
                self.lists[axis].add(parts[axis], keys, counts)
            self.done[pair if self.blocks.outer == 0 else pair[::-1]] = True
            self._checkpoint.save_if_due(self)

    def todo(self) -> list[tuple[int, int]]:
        """The pairs of blocks (of rows, of columns) that are not merged yet."""
        pairs = [(int(outer), int(inner)) for outer, inner in np.argwhere(~self.done)]
        return pairs if self.blocks.outer == 0 else [pair[::-1] for pair in pairs]

    def keep_in(self, checkpoint: BlockCheckpoint, fits: Callable[[Blocks], bool]) -> None:
        """From now on store the state there; go on from a state of the same ranking whose blocks ``fits`` accepts."""
        self._checkpoint = checkpoint
        checkpoint.resume(self, fits)

    def rankings(self, names: tuple[str, str]) -> dict[str, Ranking]:
        """The ranking of every wanted direction, once all pairs are merged."""
        return {names[axis]: lists.ranking(names[axis]) for axis, lists in self.lists.items()}


class BlockCheckpoint:
    """The folder of a ranking that may be interrupted.

    ``finished`` says that the state of a finished ranking is stored, too: others follow, and a call that is interrupted
    then need not repeat it.
    """

    def __init__(self, folder: Path | None, key: str = "", *, finished: bool = False) -> None:
        self._folder, self._key, self._finished = folder, key, finished
        self._saved, self._saving = time.monotonic(), 0.0

    def save_if_due(self, merged: Merged) -> None:
        """Store what is merged so far, if the last time is long ago."""
        began = time.monotonic()
        wait = max(_SECONDS_BETWEEN_CHECKPOINTS, self._saving / _MOST_TIME_FOR_CHECKPOINTS)
        due = self._finished if merged.done.all() else began - self._saved >= wait
        if self._folder is None or not due:
            return
        arrays: dict[str, Array] = {"done": merged.done}
        for axis, lists in merged.lists.items():
            arrays |= {f"keys{axis}": lists.keys.numpy(), f"counts{axis}": lists.counts.numpy()}
        header = {"size": list(merged.blocks.size), "outer": merged.blocks.outer}
        store_state(self._folder, self._key, header, arrays)
        self._saved = time.monotonic()
        self._saving = self._saved - began

    def resume(self, merged: Merged, fits: Callable[[Blocks], bool]) -> None:
        """Take over what an interrupted call of the same ranking has stored, and its blocks."""
        import torch

        stored = None if self._folder is None else stored_state(self._folder, self._key)
        if stored is None:
            return
        header, arrays = stored
        blocks = Blocks(merged.blocks.shape, (header["size"][0], header["size"][1]), header["outer"])
        if fits(blocks):
            merged.blocks, merged.done = blocks, np.array(arrays["done"])
            for axis, lists in merged.lists.items():
                lists.keys = torch.tensor(arrays[f"keys{axis}"])
                lists.counts = torch.tensor(arrays[f"counts{axis}"])


_NO_CHECKPOINT = BlockCheckpoint(None)


def checkpoint_key(scorer: InnerProduct, products: Products, targets: tuple[Array, Array]) -> str:
    """Changes when anything that the ranking depends on does."""
    parts: dict[str, Any] = {"depth": products.depth, "shape": list(scorer.shape), "wanted": list(products.wanted)}
    parts |= {"row slack": scorer.row_slack, "column slack": scorer.column_slack}
    for axis, relevance in enumerate(products.relevant):
        parts |= {f"offsets {axis}": relevance.offsets, f"items {axis}": relevance.items}
        parts |= {f"targets {axis}": targets[axis]}
    return fingerprint("checkpoint of blocks", parts)
