"""Object: which three things there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from crosslens.synth.backdrops import BACKDROPS
from crosslens.synth.captions import Five, Wording, pick, whereabouts
from crosslens.synth.grammar import a, listing
from crosslens.synth.plan import Part, Plan
from crosslens.synth.scene import SIZE, Thing
from crosslens.synth.tasks.task import EVERYDAY, PLACES, Random, Task, another, choose, usual_colour


@dataclass(frozen=True)
class ObjectFacts:
    """Three things of different kinds, and their colours."""

    first: str
    second: str
    third: str
    first_colour: str
    second_colour: str
    third_colour: str
    backdrop: str

    @property
    def kinds(self) -> tuple[str, str, str]:
        """The three kinds."""
        return self.first, self.second, self.third

    @property
    def colours(self) -> tuple[str, str, str]:
        """Their colours."""
        return self.first_colour, self.second_colour, self.third_colour


def _draw(random: Random) -> ObjectFacts:
    first = choose(random, EVERYDAY)
    second = choose(random, EVERYDAY, but=[first])
    third = choose(random, EVERYDAY, but=[first, second])
    colours = (usual_colour(random, first), usual_colour(random, second), usual_colour(random, third))
    return ObjectFacts(first, second, third, *colours, choose(random, PLACES))


def _plan(facts: ObjectFacts) -> Plan:
    return Plan(facts.backdrop, tuple(Part(*pair) for pair in zip(facts.kinds, facts.colours, strict=True)))


def _describe(facts: ObjectFacts, things: Sequence[Thing], random: Random) -> Five:
    place = BACKDROPS[facts.backdrop]
    words = [Wording(*pair) for pair in zip(facts.kinds, facts.colours, strict=True)]
    plain = listing([a(word.plain) for word in words])
    said = listing([a(word.other(random)) for word in words])
    riddles = listing([a(word.riddle) for word in words])
    spots = listing([f"{a(word.plain)} {whereabouts(one.box, SIZE)}" for word, one in zip(words, things, strict=True)])
    return Five(
        literal=pick(random, (f"{plain} {place.at}", f"there are {plain} {place.at}", f"{place.at} are {plain}")),
        sparse=listing([a(word.kind.name) for word in words]),
        detailed=f"{place.at} one can see {spots}",
        paraphrased=pick(random, (f"{said}, all {place.also}", f"{place.also}, somebody has gathered {said}")),
        figurative=f"{riddles} have met {place.riddle}",
    )


TASK = Task(
    "object",
    _draw,
    _plan,
    _describe,
    {
        "second": another("second", EVERYDAY, unlike=["first", "third"]),
        "third": another("third", EVERYDAY, unlike=["first", "second"]),
        "first_colour": lambda facts, random: replace(
            facts, first_colour=usual_colour(random, facts.first, but=[facts.first_colour])
        ),
        "backdrop": another("backdrop", PLACES),
    },
    core=("second", "third"),
    essence=lambda facts: facts.kinds,
)
