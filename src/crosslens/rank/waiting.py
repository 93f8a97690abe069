"""Waiting for threads in a way that Ctrl-C can interrupt."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any


def finish_all(jobs: Iterable[Future[Any]]) -> None:
    """Wait until all are done; the first error is raised at once.

    The wait has a time limit: polars installs a signal handler after which an endless wait is never interrupted.
    """
    pending = set(jobs)
    while pending:
        done, pending = wait(pending, 0.1, FIRST_COMPLETED)
        for job in done:
            job.result()
