"""Rankings on one or several devices, in blocks: pairs of blocks are ranked one by one, and what they give is merged.

A device takes a block of the longer axis and ranks it against all blocks of the other, of which the next is copied in
the meantime. Where everything fits one device there is one pair of blocks, and nothing to merge.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import CrosslensError, needs_extra
from crosslens.engine import Progress, SilentProgress, in_threads, stage, torch_devices
from crosslens.rank.gpu.blocks import LEAST_WORK, MOST_WORK, Products, device_memory, needed_bytes, plan_blocks
from crosslens.rank.gpu.direction import DeviceDirection, fused, inference_on, pair_scores, relevant_scores
from crosslens.rank.gpu.frequent import WithoutFrequent, frequent_vectors
from crosslens.rank.gpu.fused_pass import LONGEST_LIST, MOST_RELEVANT, SMALLEST, fused_pass
from crosslens.rank.gpu.tile_pass import tile_pass
from crosslens.rank.merged import Blocks, Merged
from crosslens.rank.scorers import InnerProduct
from crosslens.storage import DEVICE_BYTES, Array, VectorBlocks, fingerprint
from crosslens.values import Ranking, Relevance

Tensor = Any

_AT_ONCE = 1 << 26
"""Bytes that are read at a time."""


class Upload:
    """Copies blocks of vectors to one device, inside ``with``."""

    def __init__(self, where: Any) -> None:
        import torch

        self._where = where
        cuda: Any = torch.cuda
        self._stream = cuda.Stream(where) if where.type == "cuda" else None
        self._pool = ThreadPoolExecutor(1)
        self._last: tuple[slice, Tensor] | None = None
        self._coming: tuple[slice, Future[Tensor]] | None = None

    def __enter__(self) -> Upload:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def block(self, vectors: VectorBlocks, part: slice) -> Tensor:
        """These vectors, on the device."""
        return self._fill(self._empty(vectors, part), vectors, part)

    def stream(self, vectors: VectorBlocks, part: slice, after: slice | None) -> Tensor:
        """These vectors, copied if they are neither those of the last call nor those that it named as ``after``.

        Those that come after them are copied while the caller uses them.
        """
        last, coming, self._last, self._coming = self._last, self._coming, None, None
        if coming is not None and coming[0] == part:
            block = coming[1].result()
        else:
            block = last[1] if last is not None and last[0] == part else None
        del last, coming  # what is not needed any more makes room
        self._last = part, self.block(vectors, part) if block is None else block
        if after is not None:
            self._coming = after, self._pool.submit(self._fill, self._empty(vectors, after), vectors, after)
        return self._last[1]

    def _empty(self, vectors: VectorBlocks, part: slice) -> Tensor:
        """Memory for a block. Nothing on the device uses it any more, so that another stream may write to it."""
        import torch

        if self._stream is not None:
            torch.cuda.current_stream(self._where).synchronize()
        return torch.empty((part.stop - part.start, vectors.shape[1]), dtype=torch.float32, device=self._where)

    def _fill(self, block: Tensor, vectors: VectorBlocks, part: slice) -> Tensor:
        import torch

        rows = min(len(block), max(1, _AT_ONCE // (4 * vectors.shape[1])))
        on_cpu = block.device.type == "cpu"
        staging = None if on_cpu else torch.empty((rows, vectors.shape[1]), pin_memory=self._stream is not None)
        with torch.inference_mode(), torch.cuda.stream(self._stream) if self._stream else nullcontext():
            for start in range(0, len(block), rows):
                chunk = vectors.block(part.start + start, min(part.start + start + rows, part.stop))
                into = block[start : start + len(chunk)] if staging is None else staging[: len(chunk)]
                np.copyto(into.numpy(), chunk)
                if staging is not None:
                    block[start : start + len(chunk)].copy_(into, non_blocking=True)
                    if self._stream is not None:
                        self._stream.synchronize()
        return block


def merged_blocks(products: Products, blocks: Blocks) -> Merged:
    """Nothing merged yet."""
    offsets = {axis: products.relevant[axis].offsets for axis in products.axes}
    return Merged(blocks, offsets, {axis: products.keep(axis) for axis in products.axes})


def rankings_of(products: Products, merged: Merged, names: tuple[str, str]) -> dict[str, Ranking]:
    """The ranking of every wanted direction, once all pairs are merged."""
    return {names[axis]: merged.lists[axis].ranking(names[axis], products.relevant[axis]) for axis in products.axes}


def checkpoint_key(scorer: InnerProduct, products: Products, targets: tuple[Array, Array]) -> str:
    """Changes when anything that the ranking depends on does."""
    parts: dict[str, Any] = {"depth": products.depth, "shape": list(scorer.shape), "wanted": list(products.axes)}
    parts |= {"row slack": scorer.row_slack, "column slack": scorer.column_slack}
    for axis, relevance in enumerate(products.relevant):
        parts |= {f"offsets {axis}": relevance.offsets, f"items {axis}": relevance.items}
        parts |= {f"targets {axis}": targets[axis]}
    return fingerprint("checkpoint of blocks", parts)


_STEPS = 100
"""Of a pair of blocks, for the eye."""
_MEMORY_VARIES = 1.05
"""Blocks of an earlier call are taken again if they need so many times what is free now, at most."""


def require_torch() -> None:
    """Raise where torch is not installed."""
    with needs_extra("the torch backend", "torch", "torch"):
        import torch  # noqa: F401


def devices_of(names: str | None) -> list[Any]:
    """The devices of these names; without any all GPUs, or the CPU."""
    require_torch()
    return torch_devices(names)


def rank_on_devices(
    scorer: InnerProduct,
    products: Products,
    names: tuple[str, str],
    devices: Sequence[Any],
    progress: Progress,
    checkpoint: str | Path | None = None,
) -> dict[str, Ranking]:
    """Rank inner products on devices of this machine; with a checkpoint, resume where an interrupted call stopped."""
    devices = devices[: max(1, products.work // LEAST_WORK["cuda"])]
    work = BlockRanking(products, devices)
    if checkpoint is not None:
        work.keep_in(Path(checkpoint), scorer)
    work.run(progress)
    return rankings_of(products, work.merged, names)


class BlockRanking:
    """The pairs of blocks of a ranking on devices of this machine.

    ``targets`` are the scores of the relevant pairs, needed where some items are in none of the blocks.
    """

    def __init__(self, products: Products, devices: Sequence[Any], targets: tuple[Array, Array] | None = None) -> None:
        self._products, self._devices, self._targets = products, devices, targets
        self._relevant: dict[int, list[Relevance]] = {}
        self._room = min(device_memory(device) for device in devices)
        most = MOST_WORK["cuda" if devices[0].type == "cuda" else "cpu"]
        sizes = products.shape, products.dimension, products.item_bytes
        blocks = plan_blocks(*sizes, self._room, most, len(devices))
        self.merged = merged_blocks(products, blocks)
        if self.merged.done.size > 1:
            self._score_relevant()

    def keep_in(self, folder: Path, scorer: InnerProduct) -> None:
        """Store the state there, and go on from what is stored."""
        alone = len(self._products.axes) == 1  # the other direction is ranked by another call
        if self.merged.done.size == 1 and not folder.exists() and not alone:
            return  # nothing to store: there is one pair of blocks
        key = checkpoint_key(scorer, self._products, self._score_relevant())
        self.merged.keep_in(folder, key, self._fits)

    def _fits(self, blocks: Blocks) -> bool:
        return needed_bytes(blocks, self._products.dimension, self._products.item_bytes) <= _MEMORY_VARIES * self._room

    def _score_relevant(self) -> tuple[Array, Array]:
        if self._targets is None:
            products, where = self._products, self._devices[0]
            self._targets = relevant_scores(
                products.relevant, lambda rows, columns: pair_scores(products.vectors, rows, columns, where)
            )
        return self._targets

    def run(self, progress: Progress) -> None:
        """Rank all pairs that are not done."""
        lock = threading.Lock()

        def advance(steps: int) -> None:
            with lock:
                progress.advance(steps)

        def work(numbers: Iterator[int], worker: int, stop: threading.Event) -> None:
            self._rank_on(self._devices[worker], numbers, lambda: _PairProgress(advance, stop))

        for axis, relevance in enumerate(self._products.relevant):
            self._relevant[axis] = [relevance.part(queries) for queries in self.merged.blocks.parts(axis)]
        done = self.merged.done
        with stage(progress, "ranking", _STEPS * done.size, done=_STEPS * int(done.sum())):
            in_threads(np.flatnonzero(~done.all(axis=1)).tolist(), len(self._devices), SilentProgress(), work)

    def _rank_on(self, where: Any, numbers: Iterator[int], progress: Callable[[], _PairProgress]) -> None:
        """Rank these blocks of the outer axis on a device."""
        import torch

        blocks, vectors = self.merged.blocks, self._products.vectors
        outer = blocks.outer
        outer_parts, inner_parts = (blocks.parts(axis) for axis in (outer, 1 - outer))
        order = list(range(len(inner_parts)))
        try:
            with inference_on(where), Upload(where) as upload:
                for number in numbers:
                    block = upload.block(vectors[outer], outer_parts[number])
                    todo = [other for other in order if not self.merged.done[number, other]]
                    for other, after in zip(todo, [*todo[1:], None], strict=True):
                        ahead = None if after is None else inner_parts[after]
                        streamed = upload.stream(vectors[1 - outer], inner_parts[other], ahead)
                        pair, both = (number, other), (block, streamed)
                        if outer == 1:
                            pair, both = pair[::-1], both[::-1]
                        self._rank_pair(pair, both, where, progress())
                        del both, streamed  # the next but one takes its memory
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

        def directions() -> tuple[DeviceDirection, DeviceDirection]:
            return self._direction(0, pair, blocks, where), self._direction(1, pair, blocks, where)

        ranked = rank_pair(directions, self._products.tile, progress)
        self.merged.add(pair, {axis: ranked[axis].lists() for axis in self._products.axes})
        progress.complete()

    def _direction(
        self, axis: int, pair: tuple[int, int], blocks: tuple[Tensor, Tensor], where: Any
    ) -> DeviceDirection:
        import torch

        parts = self.merged.parts(pair)
        queries, gallery, scores = parts[axis], parts[1 - axis], None
        if self._targets is not None:
            first, last = self._products.relevant[axis].offsets[[queries.start, queries.stop]]
            scores = torch.from_numpy(np.array(self._targets[axis][first:last]))
        return DeviceDirection.of(
            self._relevant[axis][pair[axis]], blocks[axis], blocks[1 - axis], self._products.depth_of(axis),
            start=gallery.start, scores=scores, listed=self.merged.listed(axis, queries),
        )  # fmt: skip


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


def rank_pair(
    directions: Callable[[], tuple[DeviceDirection, DeviceDirection]],
    tile: int | None,
    progress: Progress,
    *,
    kernels: bool = True,
    half: bool = True,
) -> tuple[DeviceDirection, DeviceDirection]:
    """Count and collect for both directions; ``directions`` makes them, again if a pass cannot decide the scores."""
    both = directions()
    groups = frequent_vectors(both[0].queries), frequent_vectors(both[1].queries)
    if groups == ([], []):
        return _run_passes(both, directions, tile, progress, kernels=kernels, half=half)
    rest = WithoutFrequent(both, groups)
    ranked = None
    if not rest.empty:
        ranked = _run_passes(rest.directions(), rest.directions, tile, progress, kernels=kernels, half=half)
    rest.finish(ranked)
    return both


def _run_passes(
    both: tuple[DeviceDirection, DeviceDirection],
    again: Callable[[], tuple[DeviceDirection, DeviceDirection]],
    tile: int | None,
    progress: Progress,
    *,
    kernels: bool,
    half: bool,
) -> tuple[DeviceDirection, DeviceDirection]:
    rows, columns = (direction.queries for direction in both)
    widest = max(len(direction.targets) for direction in both)
    longest = max(direction.keep for direction in both)
    suited = min(len(rows), len(columns)) >= SMALLEST and widest <= MOST_RELEVANT and longest <= LONGEST_LIST
    if kernels and suited and tile is None and fused(rows.device.type):
        blocks = fused_pass(*both, progress)
        if blocks is not None:
            if blocks:
                tile_pass(*both, progress, half=False, blocks=blocks)
            return both
        both = again()
        half = False  # too many near-ties: tiles in half precision would leave as many undecided
    tile_pass(*both, progress, half=half and rows.device.type == "cuda", tile=tile)
    return both
