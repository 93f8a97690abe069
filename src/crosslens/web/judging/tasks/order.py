"""In which order items are shown: the same seed gives the same order, and each person has an own one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

WINDOW = 16
"""Among how many vacant items a person's next one is drawn. Small, so that items are completed one after another."""


def sort_key(seed: int, *parts: object) -> bytes:
    """Where something stands in an order drawn from the seed."""
    return hashlib.sha256("/".join(map(str, (seed, *parts))).encode()).digest()


def shuffled_positions(seed: int, first: int, count: int) -> list[int]:
    """Positions ``first``, ``first + 1``, … for ``count`` items in an order drawn from the seed."""
    order = sorted(range(count), key=lambda index: sort_key(seed, "item", first + index))
    positions = [0] * count
    for position, index in enumerate(order):
        positions[index] = first + position
    return positions


def in_order(seed: int, account: int, positions: Sequence[int]) -> list[int]:
    """The positions in the order in which an account sees them."""
    return sorted(positions, key=lambda position: sort_key(seed, "account", account, position))


def checks_due(seed: int, account: int, shared: int, every: int) -> int:
    """How many attention checks an account should have had after ``shared`` items.

    One within each ``every`` items, at a point drawn for this account, so that nobody can count on its position.
    """
    if every <= 0:
        return 0
    complete, rest = divmod(shared, every)
    point = int.from_bytes(sort_key(seed, "check", account, complete)[:4], "big") % every
    return complete + (rest > point)
