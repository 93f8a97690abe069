"""Threads: how many to use, and how to wait for them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any


def available_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def wait_for_all(jobs: Iterable[Future[Any]]) -> None:
    """Wait until all are done, in a way that Ctrl-C can interrupt; the first error is raised at once.

    The wait has a time limit: polars installs a signal handler after which an endless wait is never interrupted.
    """
    pending = set(jobs)
    while pending:
        done, pending = wait(pending, 0.1, FIRST_COMPLETED)
        for job in done:
            job.result()
