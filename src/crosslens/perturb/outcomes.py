"""Everything that a perturbation could do to a caption, instead of one thing by chance.

A perturbation decides by its draws alone. So it is run again and again with draws that do not draw but choose: the
first option everywhere, then every other, until all ways through its choices were taken. No perturbation has to know
about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple, TypeVar

from crosslens.perturb.caption import Caption
from crosslens.perturb.draws import Draws
from crosslens.perturb.perturbation import CannotApply, Edits, Perturbation

T = TypeVar("T")
Path = tuple[int, ...]

LIMIT = 8_000
"""How often a perturbation is run on one caption, at most."""
_LONGEST = 400
"""Choices in one run: more are only made by a run that does not come to an end."""
_LOOK_AROUND = 2
"""Choices that are gone through even where nothing was found yet."""
_ENDS = (0.0, 1 - 2.0**-53)


class Outcomes(NamedTuple):
    """What a perturbation can make of a caption, each once; ``complete`` where no way to another was left."""

    edits: tuple[Edits, ...]
    complete: bool


def outcomes(
    name: str, change: Perturbation, caption: Caption, options: Mapping[str, Any], *, limit: int = LIMIT, seed: int = 0
) -> Outcomes:
    """Every outcome of one perturbation of one caption, those by the fewest choices first.

    Of an order, the outcomes are those that swap two things and leave the others: the smallest changes. Runs with more
    choices than any that brought something new are not made: a perturbation that picks a word, finds it of no use and
    picks another comes to nothing that the other word alone would not give. Where ``limit`` runs are too few, half of
    them are drawn by the seed, so that every part of the caption has its chance.
    """
    found: dict[Edits, None] = {}
    complete = _walk(change, caption, options, limit - limit // 2, found)
    for run in range(0 if complete else limit // 2):
        try:
            found[change(caption, Draws(seed, name, caption.id, str(run)), **options)] = None
        except CannotApply:
            continue
    return Outcomes(tuple(found), complete)


def _walk(
    change: Perturbation, caption: Caption, options: Mapping[str, Any], limit: int, found: dict[Edits, None]
) -> bool:
    """Put the outcomes into ``found``; False where the runs did not suffice."""
    waiting: dict[int, list[Path]] = {0: [()]}
    runs, longest, whole = 0, _LOOK_AROUND, True
    while waiting and min(waiting) <= longest:
        for path in waiting.pop(min(waiting)):
            if runs == limit:
                return False
            runs += 1
            draws, known = ChosenDraws(path), len(found)
            try:
                found[change(caption, draws, **options)] = None
            except (CannotApply, _Again):
                pass
            except _NoEnd:
                whole = False
            if len(found) > known:
                longest = max(longest, draws.length)
            whole &= draws.widest <= limit
            for other in draws.other_paths(limit):
                waiting.setdefault(len(other), []).append(other)
    return whole


class _Again(Exception):
    """The same things are to be ordered again: the order given will not do, and others get runs of their own."""


class _NoEnd(Exception):
    """A run that goes on and on."""


class ChosenDraws(Draws):
    """Draws that take the options of a path, then always the first, and remember how many there were."""

    __slots__ = ("_counts", "_ordered", "_path", "_taken")

    def __init__(self, path: Path) -> None:
        self._path = path
        self._taken: list[int] = []
        self._counts: list[int] = []
        self._ordered: list[Any] | None = None

    @property
    def length(self) -> int:
        """How many choices were made."""
        return len(self._taken)

    @property
    def widest(self) -> int:
        """The most options that a choice had."""
        return max(self._counts, default=0)

    def below(self, count: int) -> int:
        """The option that the path names."""
        if self.length == _LONGEST:
            raise _NoEnd
        choice = self._path[self.length] if self.length < len(self._path) else 0
        self._taken.append(choice)
        self._counts.append(count)
        return choice

    def shuffled(self, values: Sequence[T]) -> list[T]:
        """The values with two of them swapped; neighbours are the first option."""
        order = list(values)
        if order == self._ordered:
            raise _Again
        self._ordered = list(values)
        if len(order) > 1:
            one, other = self.choice(_pairs(len(order)))
            order[one], order[other] = order[other], order[one]
        return order

    def favourite(self, options: Iterable[T]) -> T:
        """Any of the options."""
        return self.choice(list(options))

    def fraction(self) -> float:
        """Either end: whatever it is compared with, both answers come up."""
        return _ENDS[self.below(len(_ENDS))]

    def other_paths(self, most: int) -> Iterator[Path]:
        """The ways that branch off after the given path, at most so many at each choice."""
        for place in range(len(self._path), self.length):
            for option in range(1, min(self._counts[place], most)):
                yield (*self._taken[:place], option)


@cache
def _pairs(count: int) -> tuple[tuple[int, int], ...]:
    """Two of so many places, neighbours first."""
    return tuple(sorted(combinations(range(count), 2), key=lambda pair: (pair[1] - pair[0], pair[0])))
