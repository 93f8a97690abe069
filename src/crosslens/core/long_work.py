"""Long work: how it reports its progress without knowing who watches, its threads, and how to wait for them."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from typing import Any, Protocol, TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")


class Progress(Protocol):
    """Something that shows progress: a bar on a terminal, a line in a log, nothing."""

    def start(self, label: str, total: int) -> None:
        """A stage of ``total`` steps begins."""

    def advance(self, steps: int = 1) -> None:
        """``steps`` more steps are done."""

    def finish(self) -> None:
        """The stage is over, or was interrupted."""


class SilentProgress:
    """Shows nothing."""

    def start(self, label: str, total: int) -> None: ...
    def advance(self, steps: int = 1) -> None: ...
    def finish(self) -> None: ...


@contextmanager
def stage(progress: Progress, label: str, total: int) -> Iterator[Progress]:
    """A stage that is finished however the block ends."""
    progress.start(label, total)
    try:
        yield progress
    finally:
        progress.finish()


_MOST_CORES: int | None = None


def limit_cores(most: int | None) -> None:
    """Have this process use so many cores at most, whatever the machine has: others are given to other tasks."""
    global _MOST_CORES
    _MOST_CORES = most


def core_limit() -> int | None:
    """What :func:`limit_cores` set last."""
    return _MOST_CORES


def available_cores() -> int:
    """Cores this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores if _MOST_CORES is None else min(cores, _MOST_CORES)


@lru_cache(maxsize=1)
def _libraries_with_threads(imported_modules: int) -> ThreadpoolController:
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Have each thread of ours multiply matrices by itself, as the work is divided among threads already.

    Libraries are looked for anew only after an import: looking through all that torch loads takes longer than ranking
    a small gallery.
    """
    limited: AbstractContextManager[Any] = _libraries_with_threads(len(sys.modules)).limit(limits=1, user_api="blas")
    return limited


def wait_for_all(jobs: Iterable[Future[Any]]) -> None:
    """Wait until all are done, in a way that Ctrl-C can interrupt; the first error is raised at once.

    The wait has a time limit: polars installs a signal handler after which an endless wait is never interrupted.
    """
    pending = set(jobs)
    while pending:
        done, pending = wait(pending, 0.1, FIRST_COMPLETED)
        for job in done:
            job.result()


def in_threads(
    blocks: Iterable[T], threads: int, progress: Progress, work: Callable[[Iterator[T], int, threading.Event], None]
) -> None:
    """Call ``work`` in every thread, with blocks that no other thread has, its number, and a sign to stop."""
    remaining, lock, stop = iter(blocks), threading.Lock(), threading.Event()

    def remaining_blocks() -> Iterator[T]:
        while not stop.is_set():
            with lock:
                try:
                    block = next(remaining)
                except StopIteration:
                    return
            yield block
            with lock:
                progress.advance()

    with ThreadPoolExecutor(threads) as pool:
        jobs = [pool.submit(work, remaining_blocks(), worker, stop) for worker in range(threads)]
        try:
            wait_for_all(jobs)
        finally:
            stop.set()
