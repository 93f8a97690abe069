"""How many cores this process may use."""

from __future__ import annotations

import os

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
