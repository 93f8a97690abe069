"""Rules that settings of several losses follow."""

from __future__ import annotations

from collections.abc import Sequence

from crosslens.core import UsageError


def check_positive(name: str, value: float) -> None:
    """Raise unless a number that something is divided by is above 0."""
    if not value > 0:
        raise UsageError(f"{name} is {value}", fix=f"{name} must be above 0", option=name)


def check_sampling(sampling: str, known: Sequence[str]) -> None:
    """Raise unless this way of choosing negatives is among the known ones."""
    if sampling not in known:
        fix = f"choose {', '.join(known[:-1])} or {known[-1]}"
        raise UsageError(f"sampling is {sampling!r}", fix=fix, option="sampling")
