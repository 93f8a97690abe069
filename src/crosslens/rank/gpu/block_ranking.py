"""Rankings on one or several devices, in blocks: pairs of blocks are ranked one by one, and what they give is merged.

A device takes a block of the longer axis and ranks it against all blocks of the other, of which the next is copied in
the meantime. Where everything fits one device there is one pair of blocks, and nothing to merge.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import (
    DEVICE_BYTES,
    CrosslensError,
    MissingExtraError,
    Progress,
    Ranking,
    Relevance,
    SilentProgress,
    fingerprint,
    in_threads,
    stage,
    torch_devices,
)
from crosslens.rank.gpu.blocks import Blocks, bytes_of_query, device_memory, needed_bytes, plan_blocks
from crosslens.rank.gpu.lists import Lists
from crosslens.rank.gpu.ranking import rank_sides
from crosslens.rank.gpu.side import Side
from crosslens.rank.gpu.targets import inference_on, relevant_scores
from crosslens.rank.gpu.upload import Upload
from crosslens.rank.scorers import InnerProduct
from crosslens.rank.state_folder import store_state, stored_state

Array = np.ndarray[Any, Any]
Tensor = Any

_LEAST_WORK = 10**14
"""Multiplications that a further device is worth its start for: about a second of a fast GPU."""
_STEPS = 100
"""Of a pair of blocks, for the eye."""
_SECONDS_BETWEEN_CHECKPOINTS = 60.0
_MOST_TIME_FOR_CHECKPOINTS = 1 / 20
_MEMORY_VARIES = 1.05
"""Blocks of an earlier call are taken again if they need so many times what is free now, at most."""


def devices_of(names: str | None) -> list[Any]:
    """The devices of these names; without any all GPUs, or the CPU."""
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("the torch backend", "torch", "torch") from error
    return torch_devices(names)


def rank_products(
    scorer: InnerProduct,
    relevant: Sequence[Relevance],
    depth: int,
    names: tuple[str, str],
    devices: Sequence[Any],
    tile: int | None,
    progress: Progress,
    checkpoint: str | Path | None = None,
) -> dict[str, Ranking]:
    """Rank inner products in both directions; with a checkpoint, resume where an interrupted call stopped."""
    worthwhile = max(1, scorer.shape[0] * scorer.shape[1] * scorer.work // _LEAST_WORK)
    devices = devices[:worthwhile]
    work = BlockRanking(scorer, relevant, depth, devices, tile, None if checkpoint is None else Path(checkpoint))
    work.run(progress)
    return {name: lists.ranking(name) for name, lists in zip(names, work.lists, strict=True)}


class BlockRanking:
    """The pairs of blocks of a ranking: which there are, which are done, and what they gave."""

    def __init__(
        self,
        scorer: InnerProduct,
        relevant: Sequence[Relevance],
        depth: int,
        devices: Sequence[Any],
        tile: int | None,
        checkpoint: Path | None = None,
    ) -> None:
        self._vectors, self._depth, self._tile = (scorer.rows, scorer.columns), depth, tile
        self._devices, self._checkpoint, self._key = devices, checkpoint, ""
        self.lists = [Lists(relevance, depth) for relevance in relevant]
        self._lock, self._saved, self._saving = threading.Lock(), time.monotonic(), 0.0
        sizes = [bytes_of_query(scorer.work, depth, relevance) for relevance in relevant]
        room = min(device_memory(device) for device in devices)
        self.blocks = plan_blocks(scorer.shape, scorer.work, sizes, room, len(devices))
        self.done = np.zeros(self.blocks.counts, bool)
        self._targets: tuple[Array, Array] | None = None
        if self.done.size > 1 or (checkpoint is not None and checkpoint.exists()):
            self._targets = relevant_scores(self._vectors, relevant, devices[0])
        if checkpoint is not None and self._targets is not None:
            self._key = _key(scorer, relevant, depth, self._targets)
            self._resume(lambda blocks: needed_bytes(blocks, scorer.work, sizes) <= _MEMORY_VARIES * room)
        self._relevant = [
            [relevance.part(part) for part in self.blocks.parts(axis)] for axis, relevance in enumerate(relevant)
        ]

    def run(self, progress: Progress) -> None:
        """Rank all pairs that are not done."""
        shown = threading.Lock()

        def advance(steps: int) -> None:
            with shown:
                progress.advance(steps)

        def work(numbers: Iterator[int], worker: int, stop: threading.Event) -> None:
            self._rank_on(self._devices[worker], numbers, lambda: _PairProgress(advance, stop))

        with stage(progress, "ranking", _STEPS * self.done.size):
            advance(_STEPS * int(self.done.sum()))
            in_threads(np.flatnonzero(~self.done.all(axis=1)).tolist(), len(self._devices), SilentProgress(), work)

    def _rank_on(self, where: Any, numbers: Iterator[int], progress: Callable[[], _PairProgress]) -> None:
        """Rank these blocks of the outer axis on a device."""
        import torch

        outer = self.blocks.outer
        own, others = (self.blocks.parts(axis) for axis in (outer, 1 - outer))
        order = list(range(len(others)))
        try:
            with inference_on(where), Upload(where) as upload:
                for number in numbers:
                    block = upload.block(self._vectors[outer], own[number])
                    todo = [other for other in order if not self.done[number, other]]
                    for other, after in zip(todo, [*todo[1:], None], strict=True):
                        ahead = None if after is None else others[after]
                        streamed = upload.stream(self._vectors[1 - outer], others[other], ahead)
                        pair, blocks = (number, other), (block, streamed)
                        if outer == 1:
                            pair, blocks = pair[::-1], blocks[::-1]
                        self._rank_pair(pair, blocks, where, progress())
                        del blocks, streamed  # the next but one takes its memory
                    del block
                    order.reverse()  # the last block is on the device already
        except torch.OutOfMemoryError as error:
            raise CrosslensError(
                f"the device {where} has run out of memory",
                fix=f"end other programs that use it, or set the environment variable {DEVICE_BYTES.variable} to fewer "
                "bytes than it has",
                option="device",
            ) from error

    def _rank_pair(
        self, pair: tuple[int, int], blocks: tuple[Tensor, Tensor], where: Any, progress: _PairProgress
    ) -> None:
        """Rank a pair of blocks, and merge what it gives."""

        def sides() -> tuple[Side, Side]:
            return self._side(0, pair, blocks, where), self._side(1, pair, blocks, where)

        results = [(side.best(), side.counts()) for side in rank_sides(sides, self._tile, progress)]
        with self._lock:
            for axis, result in enumerate(results):
                self.lists[axis].add(self.blocks.parts(axis)[pair[axis]], *result)
            self.done[pair if self.blocks.outer == 0 else pair[::-1]] = True
            self._save_if_due()
        progress.complete()

    def _side(self, axis: int, pair: tuple[int, int], blocks: tuple[Tensor, Tensor], where: Any) -> Side:
        import torch

        queries, gallery = self.blocks.parts(axis)[pair[axis]], self.blocks.parts(1 - axis)[pair[1 - axis]]
        lists, scores = self.lists[axis], None
        if self._targets is not None:
            first, last = lists.relevance.offsets[[queries.start, queries.stop]]
            scores = torch.from_numpy(self._targets[axis][first:last])
        with self._lock:
            listed = lists.listed(queries, where)
        return Side.of(
            self._relevant[axis][pair[axis]], blocks[axis], blocks[1 - axis], self._depth, start=gallery.start,
            scores=scores, listed=listed,
        )  # fmt: skip

    def _save_if_due(self) -> None:
        """Store what is merged so far, if the last time is long ago."""
        began = time.monotonic()
        wait = max(_SECONDS_BETWEEN_CHECKPOINTS, self._saving / _MOST_TIME_FOR_CHECKPOINTS)
        if self._checkpoint is None or self.done.all() or began - self._saved < wait:
            return
        arrays: dict[str, Array] = {"done": self.done}
        for axis, lists in enumerate(self.lists):
            arrays |= {f"keys{axis}": lists.keys.numpy(), f"counts{axis}": lists.counts.numpy()}
        header = {"size": list(self.blocks.size), "outer": self.blocks.outer}
        store_state(self._checkpoint, self._key, header, arrays)
        self._saved = time.monotonic()
        self._saving = self._saved - began

    def _resume(self, fits: Callable[[Blocks], bool]) -> None:
        """Take over what an interrupted call of the same ranking has stored, and its blocks."""
        import torch

        assert self._checkpoint is not None
        stored = stored_state(self._checkpoint, self._key)
        if stored is None:
            return
        header, arrays = stored
        blocks = Blocks(self.blocks.shape, (header["size"][0], header["size"][1]), header["outer"])
        if fits(blocks):
            self.blocks, self.done = blocks, np.array(arrays["done"])
            for axis, lists in enumerate(self.lists):
                lists.keys = torch.tensor(arrays[f"keys{axis}"])
                lists.counts = torch.tensor(arrays[f"counts{axis}"])


class _PairProgress:
    """How far a pair of blocks is, as a part of the whole; ends its pass when the ranking is stopped."""

    def __init__(self, advance: Callable[[int], None], stop: threading.Event) -> None:
        self._advance, self._stop, self._shown = advance, stop, 0
        self._done = self._total = 0

    def start(self, label: str, total: int) -> None:
        """A pass of so many steps begins: the second one, if the first could not decide the scores."""
        self._done, self._total = 0, total

    def advance(self, steps: int = 1) -> None:
        """More steps of the pass are done."""
        if self._stop.is_set():
            raise _StoppedError
        self._done += steps
        self._show(_STEPS * self._done // self._total)

    def finish(self) -> None:
        """The pass is over; the pair is not, yet."""

    def complete(self) -> None:
        """The pair is merged."""
        self._show(_STEPS)

    def _show(self, reached: int) -> None:
        more = reached - self._shown
        if more > 0:
            self._shown = reached
            self._advance(more)


class _StoppedError(Exception):
    """Another device failed, or somebody pressed Ctrl-C."""


def _key(scorer: InnerProduct, relevant: Sequence[Relevance], depth: int, targets: tuple[Array, Array]) -> str:
    """Changes when anything that the ranking depends on does."""
    parts: dict[str, Any] = {"depth": depth, "shape": list(scorer.shape)}
    parts |= {"row slack": scorer.row_slack, "column slack": scorer.column_slack}
    for axis, relevance in enumerate(relevant):
        parts |= {f"offsets {axis}": relevance.offsets, f"items {axis}": relevance.items}
        parts |= {f"targets {axis}": targets[axis]}
    return fingerprint("checkpoint of blocks", parts)
