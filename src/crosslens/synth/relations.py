"""How boxes lie to each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crosslens.synth.layout import Box

OPPOSITE = {"left of": "right of", "right of": "left of", "above": "below", "below": "above"}
_SHARED = 0.3
"""Two things are beside each other if they share this part of the smaller one's height."""


@dataclass(frozen=True)
class Relation:
    """``subject`` and ``object`` are numbers of things in their scene."""

    subject: int
    predicate: str
    object: int


def relations_between(boxes: Sequence[Box], known: Mapping[tuple[int, int], str]) -> tuple[Relation, ...]:
    """One relation for every pair that has a clear one; ``known`` says what boxes alone cannot: on, inside."""
    found = [Relation(first, predicate, second) for (first, second), predicate in known.items()]
    for first in range(len(boxes)):
        for second in range(first + 1, len(boxes)):
            if (first, second) not in known and (second, first) not in known:
                predicate = relation(boxes[first], boxes[second])
                if predicate is not None:
                    found.append(Relation(first, predicate, second))
    return tuple(found)


def relation(one: Box, other: Box) -> str | None:
    """Left of, right of, above, below or inside, seen from the first; None where it is none of them clearly."""
    if other.holds(one):
        return "inside"
    across = min(one.right, other.right) - max(one.x, other.x)
    down = min(one.bottom, other.bottom) - max(one.y, other.y)
    if across <= 0 and down >= _SHARED * min(one.h, other.h):
        return "left of" if one.x < other.x else "right of"
    if down <= 0 and across >= _SHARED * min(one.w, other.w):
        return "above" if one.y < other.y else "below"
    return None
