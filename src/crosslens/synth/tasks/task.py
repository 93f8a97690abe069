"""What a task is: facts drawn at random, a plan to draw them, five captions about them, and what may change."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

from crosslens.synth.backdrops import BACKDROPS, backdrops_of
from crosslens.synth.captions import SceneCaption, write_captions
from crosslens.synth.drawing import COLOURS
from crosslens.synth.kinds import KINDS, kinds_of
from crosslens.synth.scene import Plan, SceneObject

Random = np.random.Generator
Objects = Sequence[SceneObject]
Change = Callable[[Any, Random], Any]
"""Gives the facts with another value of one of them."""
T = TypeVar("T")
_ATTEMPTS = 200

EVERYDAY = tuple(
    kind.name for kind in kinds_of("animal", "person", "vehicle", "food", "plant", "building", "thing", "household")
)
"""Kinds that stand in ordinary scenes."""
PLACES = tuple(backdrop.name for backdrop in backdrops_of("place"))
SKIES = tuple(backdrop.name for backdrop in backdrops_of("sky"))
SURFACES = tuple(backdrop.name for backdrop in backdrops_of("surface"))
COLOUR_NAMES = tuple(COLOURS)


class Facts(ABC):
    """What the captions of a scene are about; every task has a frozen dataclass of its own."""

    backdrop: str

    @classmethod
    @abstractmethod
    def draw(cls, random: Random) -> Facts:
        """Facts at random."""

    @abstractmethod
    def plan(self) -> Plan:
        """The backdrop and the objects that show them."""

    @abstractmethod
    def phrases(self, objects: Objects, random: Random) -> dict[str, Any]:
        """What the captions of the task (``captions.txt``) are filled with; ``objects`` are where they were drawn."""


@dataclass(frozen=True)
class Task:
    """One of the twelve, or one that has to be named. ``label`` is what a dataset calls it, if not by its name.

    ``changes`` maps the name of a fact to what gives the facts with another value of it; a twin differs in one of
    ``core``, the facts that every caption speaks of. ``essence`` names what even the sparsest caption says: scenes that
    agree in all of it could not be told apart by it.
    """

    name: str
    facts: type[Facts]
    changes: Mapping[str, Change]
    core: tuple[str, ...]
    essence: tuple[str, ...]
    label: str = ""

    def essence_of(self, facts: Facts) -> tuple[Any, ...]:
        return tuple(getattr(facts, name) for name in self.essence)

    def describe(self, facts: Facts, objects: Objects, random: Random) -> tuple[SceneCaption, ...]:
        """Five captions; ``objects`` are those drawn."""
        words = SimpleNamespace(facts=facts, backdrop=BACKDROPS[facts.backdrop], **facts.phrases(objects, random))
        vars(words).update(zip(("here", "there"), (item.whereabouts for item in objects), strict=False))
        return write_captions(self.name, words, random)

    def twin(self, facts: Facts, random: Random) -> tuple[Facts, tuple[str, ...]]:
        """The facts with one core fact changed."""
        name = choose(random, self.core)
        return self.changes[name](facts, random), (name,)

    def similar(self, facts: Facts, twin: Facts, random: Random) -> tuple[Facts, tuple[str, ...]]:
        """The facts with a core fact and one or two others changed: like the original, and like its twin, but no
        caption of either fits.
        """
        ruled_out = (self.essence_of(facts), self.essence_of(twin))
        for attempt in range(_ATTEMPTS):
            core = choose(random, self.core)
            others = [name for name in self.changes if name != core]
            more = random.permutation(len(others))[: 1 + int(random.integers(2))]
            names = (core, *(others[index] for index in more))
            changed = facts
            # Where one step leads to the twin only, several lead further.
            for name in (*(core,) * (attempt // 8), *names):
                changed = self.changes[name](changed, random)
            if self.essence_of(changed) not in ruled_out:
                return changed, names
        raise AssertionError(f"{self.name}: nothing is like {facts} but itself and its twin")


def choose(random: Random, options: Sequence[T], *, but: Sequence[Any] = ()) -> T:
    """One of the options at random, other than those in ``but``."""
    possible = [option for option in options if option not in but] if but else options
    return possible[int(random.integers(len(possible)))]


def another(
    fact: str, options: Sequence[Any] | Callable[[Any], Sequence[Any]], *, unlike: Sequence[str] = ()
) -> Change:
    """A change of one fact to another of the options, which may depend on the facts; never to what it is already, nor
    to what the facts named in ``unlike`` are.
    """

    def change(facts: Any, random: Random) -> Any:
        possible = options(facts) if callable(options) else options
        ruled_out = [getattr(facts, name) for name in (fact, *unlike)]
        return replace(facts, **{fact: choose(random, possible, but=ruled_out)})

    return change


def another_colour(fact: str, kind: str) -> Change:
    """A change of the colour stored as ``fact`` to another that is usual for the kind stored as ``kind``."""

    def change(facts: Any, random: Random) -> Any:
        colour = usual_colour(random, getattr(facts, kind), but=[getattr(facts, fact)])
        return replace(facts, **{fact: colour})

    return change


def usual_colour(random: Random, kind: str, *, but: Sequence[str] = ()) -> str:
    """A colour such an object often has, or any if those are ruled out."""
    possible = [colour for colour in KINDS[kind].colours if colour not in but]
    return choose(random, possible) if possible else choose(random, COLOUR_NAMES, but=but)


def names(text: str) -> tuple[str, ...]:
    """Names separated by commas."""
    return tuple(text.split(", "))
