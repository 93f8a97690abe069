"""Colour: which of two things has which colour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crosslens.synth.backdrops import BACKDROPS
from crosslens.synth.captions import Five, Wording, pick, whereabouts
from crosslens.synth.grammar import a
from crosslens.synth.plan import Part, Plan
from crosslens.synth.scene import SIZE, Thing
from crosslens.synth.tasks.task import COLOUR_NAMES, EVERYDAY, PLACES, SURFACES, Random, Task, another, choose


@dataclass(frozen=True)
class ColourFacts:
    """A thing, its colour, and a companion of another colour."""

    kind: str
    colour: str
    other_kind: str
    other_colour: str
    backdrop: str


def _draw(random: Random) -> ColourFacts:
    kind, colour = choose(random, EVERYDAY), choose(random, COLOUR_NAMES)
    other_kind, other_colour = choose(random, EVERYDAY, but=[kind]), choose(random, COLOUR_NAMES, but=[colour])
    return ColourFacts(kind, colour, other_kind, other_colour, choose(random, PLACES + SURFACES))


def _plan(facts: ColourFacts) -> Plan:
    return Plan(facts.backdrop, (Part(facts.kind, facts.colour), Part(facts.other_kind, facts.other_colour)), 1.15)


def _describe(facts: ColourFacts, things: Sequence[Thing], random: Random) -> Five:
    place = BACKDROPS[facts.backdrop]
    main, other = Wording(facts.kind, facts.colour), Wording(facts.other_kind, facts.other_colour)
    both = f"{a(main.plain)} and {a(other.plain)}"
    said = f"{a(main.other(random))} and {a(other.other(random))}"
    return Five(
        literal=pick(random, (f"{both} {place.at}", f"there is {both} {place.at}", f"a picture of {both} {place.at}")),
        sparse=pick(
            random, (f"{a(main.plain)}, and {a(other.kind.name)}", f"{a(other.kind.name)} and {a(main.plain)}")
        ),
        detailed=(
            f"{place.at} there is {a(main.plain)} {whereabouts(things[0].box, SIZE)}, "
            f"and with it {a(other.plain)} {whereabouts(things[1].box, SIZE)}"
        ),
        paraphrased=pick(
            random, (f"{place.also} one sees {said}", f"{said} {place.also}", f"someone put {said} {place.also}")
        ),
        figurative=pick(
            random,
            (
                f"{a(main.riddle)}, {main.hue}, shares the stage with {a(other.riddle)} {place.riddle}",
                f"{place.riddle}, {a(main.riddle)} wears {main.hue} beside {a(other.riddle)}",
            ),
        ),
    )


TASK = Task(
    "colour",
    _draw,
    _plan,
    _describe,
    {
        "colour": another("colour", COLOUR_NAMES, unlike=["other_colour"]),
        "other_colour": another("other_colour", COLOUR_NAMES, unlike=["colour"]),
        "other_kind": another("other_kind", EVERYDAY, unlike=["kind"]),
        "backdrop": another("backdrop", PLACES),
    },
    core=("colour",),
    essence=lambda facts: (facts.kind, facts.colour),
)
