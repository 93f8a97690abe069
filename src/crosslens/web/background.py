"""Values that take a while to make, kept while they are in use: the least recently used go first."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any, Generic, TypeVar

from crosslens.core import ConflictError, CrosslensError
from crosslens.storage import fetching_nothing

V = TypeVar("V")


class RecentCache(Generic[V]):
    """At most ``most`` values by key; two requests for one key make it once."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[Hashable, V] = OrderedDict()
        self._making: dict[Hashable, Lock] = {}
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], V]) -> V:
        """The value of the key, made if it is not kept; what ``make`` raises is not kept."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
            making = self._making.setdefault(key, Lock())
        with making:
            with self._lock:
                if key in self._values:
                    return self._values[key]
            try:
                value = make()
                with self._lock:
                    self._values[key] = value
                    while len(self._values) > self._most:
                        self._values.popitem(last=False)
            finally:
                with self._lock:
                    self._making.pop(key, None)
        return value


WAITING, RUNNING, FAILED, DONE = "waiting", "running", "failed", "done"
MOST_JOBS = 8
BUG = "A bug in crosslens: the terminal of the server shows the details."


@dataclass
class JobProgress:
    """What a job is doing now; ``total`` is 0 where nobody knows how many steps there are.

    Once ``is_stopped``, the next step of the job raises: a server that is stopped does not wait for hours of encoding.
    """

    state: str = WAITING
    stage: str = ""
    done: int = 0
    total: int = 0
    problem: str = ""
    fix: str = ""
    started: float = 0.0
    is_stopped: Callable[[], bool] = lambda: False

    def start(self, label: str, total: int) -> None:
        self.stage, self.done, self.total = label, 0, total

    def advance(self, steps: int = 1) -> None:
        self.done += steps
        if self.is_stopped():
            raise ConflictError("the server is stopping", fix="start it again: what was encoded is kept")

    def finish(self) -> None:
        if self.total:
            self.done = self.total

    def report(self) -> dict[str, Any]:
        """How far the job is, as the JSON of pages says it."""
        seconds = round(time.monotonic() - self.started, 1) if self.started else 0.0
        return {"stage": self.stage, "done": self.done, "total": self.total, "seconds": seconds, "fix": self.fix}


class Jobs:
    """Pieces of work in one thread, in the order of their start; at most ``most`` of them are under way."""

    def __init__(self, most: int = MOST_JOBS, noun: str = "jobs") -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=f"crosslens-{noun}")
        self._progress: dict[Hashable, JobProgress] = {}
        self._lock = threading.RLock()
        self._most, self._noun, self._under_way = most, noun, 0
        self._stopped = threading.Event()

    def submit(self, work: Callable[[], V]) -> Future[V]:
        """Put work at the end of the queue; a full queue raises."""
        with self._lock:
            if self._under_way >= self._most:
                problem = f"{self._under_way} {self._noun} are under way"
                raise ConflictError(problem, fix="try again in a moment", code="busy")
            self._under_way += 1

        def ended(_: Future[V]) -> None:
            with self._lock:
                self._under_way -= 1

        future = self._pool.submit(work)
        future.add_done_callback(ended)
        return future

    def start(self, name: Hashable, work: Callable[[JobProgress], object]) -> JobProgress:
        """Begin the work of this name unless it is under way."""
        with self._lock:
            before = self._progress.get(name)
            if before is not None and before.state in (WAITING, RUNNING):
                return before
            progress = JobProgress(is_stopped=self._stopped.is_set)
            self.submit(partial(carry_out, progress, partial(work, progress)))
            self._progress[name] = progress
        return progress

    def progress(self, name: Hashable) -> JobProgress | None:
        return self._progress.get(name)

    def forget(self, name: Hashable) -> None:
        """Say nothing more of a job that has ended."""
        self._progress.pop(name, None)

    def stop(self) -> None:
        """End what is under way: its work is lost, nothing is left half written."""
        self._stopped.set()
        self._pool.shutdown(wait=False, cancel_futures=True)


def carry_out(progress: JobProgress, work: Callable[[], object]) -> None:
    """Do the work, and note in its progress how it ended: what goes wrong is a message, not an exception."""
    progress.state, progress.started = RUNNING, time.monotonic()
    try:
        with fetching_nothing():
            work()
    except CrosslensError as error:
        progress.problem, progress.fix, progress.state = error.problem, error.fix or "", FAILED
    except Exception:  # a page must not wait for ever
        logging.getLogger("crosslens.web").exception("work in the background")
        progress.problem, progress.state = BUG, FAILED
    else:
        progress.state = DONE
