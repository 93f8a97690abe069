"""What this machine offers: cores to work on, and a place for what is worth keeping between runs."""

from __future__ import annotations

import os
from pathlib import Path


def available_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cache_folder(given: str | Path | None = None) -> Path:
    """Where results are kept between runs: the folder given, ``$CROSSLENS_CACHE``, or ``~/.cache/crosslens``."""
    return Path(given or os.environ.get("CROSSLENS_CACHE") or "~/.cache/crosslens").expanduser()
