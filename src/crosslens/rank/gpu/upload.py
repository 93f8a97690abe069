"""Blocks of vectors, copied to a device; the next one while the current one is ranked."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import numpy as np

from crosslens.core import VectorBlocks

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
