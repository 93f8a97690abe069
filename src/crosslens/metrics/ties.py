"""What to make of equal scores."""

from __future__ import annotations

from typing import Literal, get_args

from crosslens.core.errors import UnknownNameError

Ties = Literal["stable", "optimistic", "pessimistic", "expected"]
"""``stable``: the lower gallery index comes first. ``optimistic``: relevant items come first within a tie;
``pessimistic``: last. ``expected``: the exact expectation of the metric over all orders within the ties."""

TIES: tuple[Ties, ...] = get_args(Ties)


def require_ties(ties: str) -> None:
    """Refuse an unknown tie mode."""
    if ties not in TIES:
        raise UnknownNameError("tie mode", ties, TIES)
