"""What a task is: facts drawn by chance, a plan to draw them, five captions about them, and what may change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from crosslens.synth.backdrops import BACKDROPS, backdrops_of
from crosslens.synth.captions import Five
from crosslens.synth.colours import COLOURS
from crosslens.synth.kinds import KINDS, kinds_of
from crosslens.synth.plan import Plan
from crosslens.synth.scene import Thing

Random = np.random.Generator
Facts = Any
"""A frozen dataclass of the task's own."""
T = TypeVar("T")
_ATTEMPTS = 200


Change = Callable[[Facts, Random], Facts]
"""Gives the facts with another value of one of them."""


@dataclass(frozen=True)
class Task:
    """One of the twelve.

    ``changes`` maps the name of a fact to what gives the facts with another value of it; a twin differs in one of
    ``core``, the facts that every caption speaks of. ``essence`` is what even the sparsest caption says: scenes of
    equal essence could not be told apart by it.
    """

    name: str
    draw: Callable[[Random], Facts]
    plan: Callable[[Facts], Plan]
    describe: Callable[[Facts, Sequence[Thing], Random], Five]
    changes: Mapping[str, Change]
    core: tuple[str, ...]
    essence: Callable[[Facts], Any]

    def twin(self, facts: Facts, random: Random) -> tuple[Facts, tuple[str, ...]]:
        """The facts with one core fact changed."""
        name = choose(random, self.core)
        return self.changes[name](facts, random), (name,)

    def similar(self, facts: Facts, twin: Facts, random: Random) -> tuple[Facts, tuple[str, ...]]:
        """The facts with a core fact and one or two others changed: like the original, and like its twin, but no
        caption of either fits.
        """
        ruled_out = (self.essence(facts), self.essence(twin))
        for attempt in range(_ATTEMPTS):
            core = choose(random, self.core)
            others = [name for name in self.changes if name != core]
            more = random.permutation(len(others))[: 1 + int(random.integers(2))]
            names = (core, *(others[place] for place in more))
            changed = facts
            # Where one step leads to the twin only, several lead further.
            for name in (*(core,) * (attempt // 8), *names):
                changed = self.changes[name](changed, random)
            if self.essence(changed) not in ruled_out:
                return changed, names
        raise AssertionError(f"{self.name}: nothing is like {facts} but itself and its twin")


def choose(random: Random, options: Sequence[T], *, but: Sequence[Any] = ()) -> T:
    """One of the options at random, other than those in ``but``."""
    left = [option for option in options if option not in but] if but else options
    return left[int(random.integers(len(left)))]


def another(
    fact: str, options: Sequence[Any] | Callable[[Facts], Sequence[Any]], *, unlike: Sequence[str] = ()
) -> Change:
    """A change of one fact to another of the options, which may depend on the facts; never to what it is already, nor
    to what the facts named in ``unlike`` are.
    """

    def change(facts: Facts, random: Random) -> Facts:
        found = options(facts) if callable(options) else options
        return replace(facts, **{fact: choose(random, found, but=[getattr(facts, one) for one in (fact, *unlike)])})

    return change


EVERYDAY = tuple(
    kind.name for kind in kinds_of("animal", "person", "vehicle", "food", "plant", "building", "thing", "household")
)
"""Kinds that stand in ordinary scenes."""
PLACES = tuple(one.name for one in backdrops_of("place"))
SKIES = tuple(one.name for one in backdrops_of("sky"))
SURFACES = tuple(one.name for one in backdrops_of("surface"))
COLOUR_NAMES = tuple(COLOURS)


def usual_colour(random: Random, kind: str, *, but: Sequence[str] = ()) -> str:
    """A colour such a thing often has, or any if those are ruled out."""
    left = [colour for colour in KINDS[kind].colours if colour not in but]
    return choose(random, left) if left else choose(random, COLOUR_NAMES, but=but)


def at(backdrop: str) -> str:
    """``on a beach``."""
    return BACKDROPS[backdrop].at
