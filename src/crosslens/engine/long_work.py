"""Long work: how it reports its progress without knowing who watches, its threads, and how to wait for them."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from html import escape
from typing import Any, ClassVar, Protocol, TypeVar

from threadpoolctl import ThreadpoolController

from crosslens.core import printable_line, to_stderr

T = TypeVar("T")


class Progress(Protocol):
    """Something that shows progress: a bar on a terminal, a line in a log, nothing."""

    def start(self, label: str, total: int) -> None:
        """A stage of ``total`` steps begins."""

    def advance(self, steps: int = 1) -> None:
        """``steps`` more steps are done."""

    def finish(self) -> None:
        """The stage is over, or was interrupted."""


P = TypeVar("P", bound=Progress)


class SilentProgress:
    """Shows nothing."""

    def start(self, label: str, total: int) -> None: ...
    def show_beside(self, text: str) -> None: ...
    def advance(self, steps: int = 1) -> None: ...
    def finish(self) -> None: ...


class NotebookBar:
    """A bar below the running cell of a notebook, from half a second into a stage until the stage is over.

    It is HTML that is replaced in place, so it needs no widgets, and a stored notebook keeps an empty output at most.
    The stages of a cell share one output; a stage within the stage of another bar shows none.
    """

    _DELAY, _EVERY = 0.5, 0.1
    _lock: ClassVar[threading.RLock] = threading.RLock()  # work advances in threads
    _cell: ClassVar[tuple[Any, str]] = (None, "")
    """The execution count of the last cell that showed a bar, and the id of the output that holds it."""
    _active: ClassVar[tuple[Any, NotebookBar | None]] = (None, None)

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._label, self._beside, self._total, self._done = "", "", 0, 0
        self._started = self._drawn = 0.0
        self._timer: threading.Timer | None = None

    def start(self, label: str, total: int) -> None:
        self.finish()
        with self._lock:
            cell, bar = NotebookBar._active
            if bar is not None and cell == self._shell.execution_count:
                return
            NotebookBar._active = self._shell.execution_count, self
            self._label, self._beside, self._total, self._done = label, "", total, 0
            self._started = time.monotonic()
            self._drawn = 0.0
            self._timer = threading.Timer(self._DELAY, self._draw)
            self._timer.daemon = True
            self._timer.start()

    def show_beside(self, text: str) -> None:
        """Show a short text at the end of the bar."""
        self._beside = text

    def advance(self, steps: int = 1) -> None:
        self._done += steps
        if self._drawn and time.monotonic() - self._drawn >= self._EVERY:
            self._draw()

    def finish(self) -> None:
        with self._lock:
            if NotebookBar._active[1] is self:
                NotebookBar._active = None, None
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
                if self._drawn:
                    self._show("", "")

    def note(self, text: str) -> None:
        to_stderr(f"note: {text}")

    def _draw(self) -> None:
        with self._lock:
            if self._timer is None:
                return  # the stage was over before
            self._drawn = time.monotonic()
            counts = f"{self._done:,} of {self._total:,}"
            elapsed = self._drawn - self._started
            if 0 < self._done < self._total:
                counts += f", about {duration(elapsed / self._done * (self._total - self._done))} left"
            label, beside = printable_line(self._label), printable_line(self._beside)
            line = f"{label}: {counts}" + (f" ({beside})" if beside else "")
            bar = f'<progress value="{self._done}" max="{max(self._total, 1)}" style="width: 16em"></progress>'
            self._show(f"<div>{bar} {escape(line)}</div>", line)

    def _show(self, html: str, text: str) -> None:
        cell, output = NotebookBar._cell
        same_cell = cell == self._shell.execution_count
        if not same_cell:
            output = os.urandom(8).hex()
            NotebookBar._cell = self._shell.execution_count, output
        bundle = {"text/html": html, "text/plain": text}
        self._shell.display_pub.publish(bundle, transient={"display_id": output}, update=same_cell)


def shown_progress(progress: P | None) -> P | NotebookBar | SilentProgress:
    """Who is told of the progress: whom the caller names, else a bar where a notebook runs this, else nobody."""
    if progress is not None:
        return progress
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return SilentProgress() if getattr(shell, "kernel", None) is None else NotebookBar(shell)


def duration(seconds: float) -> str:
    """``45 s``, ``3 min 20 s``, ``2 h 5 min``."""
    whole = round(seconds)
    hours, minutes = whole // 3600, whole % 3600 // 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole % 60} s" if minutes else f"{whole} s"


def note_resumed(progress: Progress, label: str, done: int, total: int, unit: str = "step") -> None:
    """Tell whoever watches that interrupted work goes on: ``training: resumed at step 45 of 60``.

    Of a progress that has a method ``note``, as those of the command line and of notebooks have.
    """
    note = getattr(progress, "note", None)
    if done and note is not None:
        note(f"{label}: resumed at {unit} {done:,} of {total:,}")


@contextmanager
def stage(progress: Progress, label: str, total: int, *, done: int = 0, unit: str = "step") -> Iterator[Progress]:
    """A stage that is finished however the block ends; interrupted work had ``done`` so many units of it."""
    note_resumed(progress, label, done, total, unit)
    progress.start(label, total)
    if done:
        progress.advance(done)
    try:
        yield progress
    finally:
        progress.finish()


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
