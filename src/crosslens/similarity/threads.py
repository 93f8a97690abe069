"""Rows divided among threads; each row is computed by one of them, so the result does not depend on their number."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from crosslens.core import UsageError, available_cores, core_limit, wait_for_all
from crosslens.similarity.protocol import Array

_PIECES_PER_THREAD = 8


def thread_count(threads: int | None) -> int:
    """The number that is passed, or that of the cores."""
    if threads is not None and threads < 1:
        raise UsageError(f"threads = {threads}", fix="use 1 or more, or leave it out", option="threads")
    return threads or available_cores()


def in_parallel(work: Callable[[int, int], object], count: int, threads: int) -> None:
    """Call ``work(start, stop)`` for ranges that together cover ``range(count)``."""
    threads = min(threads, core_limit() or threads)  # prepared by a process that has more cores than this one
    if threads == 1 or count < 2:
        work(0, count)
        return
    step = max(1, -(-count // (threads * _PIECES_PER_THREAD)))
    with ThreadPoolExecutor(threads) as pool:
        try:
            wait_for_all([pool.submit(work, at, min(at + step, count)) for at in range(0, count, step)])
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def in_cells(
    kernel: Callable[..., None], images: Array, captions: Array, arguments: tuple[Any, ...], threads: int
) -> Array:
    """Single cells, float32, from a kernel that is called with the output, images, captions and ``arguments``."""
    images, captions = np.asarray(images, np.int64), np.asarray(captions, np.int64)
    out = np.empty(len(images), np.float32)

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        if start < stop:
            kernel(out[part], images[part], captions[part], *arguments)

    in_parallel(work, len(out), threads)
    return out
