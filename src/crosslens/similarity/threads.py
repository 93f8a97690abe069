"""Rows shared out among threads; each row is computed whole by one of them, so the answer is always the same."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from crosslens.core.errors import UsageError
from crosslens.core.machine import available_cores
from crosslens.rank.waiting import finish_all

_PIECES_PER_THREAD = 8


def thread_count(threads: int | None) -> int:
    """As many as asked for, or as there are cores."""
    if threads is not None and threads < 1:
        raise UsageError(f"threads {threads}", fix="use 1 or more, or leave it out")
    return threads or available_cores()


def in_parallel(work: Callable[[int, int], object], count: int, threads: int) -> None:
    """Call ``work(start, stop)`` for ranges that together cover ``range(count)``."""
    if threads == 1 or count < 2:
        work(0, count)
        return
    step = max(1, -(-count // (threads * _PIECES_PER_THREAD)))
    with ThreadPoolExecutor(threads) as pool:
        try:
            finish_all([pool.submit(work, at, min(at + step, count)) for at in range(0, count, step)])
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
