"""Scene: which place it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crosslens.synth.backdrops import BACKDROPS
from crosslens.synth.captions import Five, Wording, pick, whereabouts
from crosslens.synth.grammar import a
from crosslens.synth.plan import Part, Plan
from crosslens.synth.scene import SIZE, Thing
from crosslens.synth.tasks.task import EVERYDAY, PLACES, Random, Task, another, choose, usual_colour

_NAMES = {
    "open sea": "the open sea",
    "underwater": "the world under water",
    "outer space": "outer space",
    "mountains": "the mountains",
}


@dataclass(frozen=True)
class SceneFacts:
    """A place, and two things to be found there."""

    backdrop: str
    kind: str
    colour: str
    other_kind: str
    other_colour: str


def _draw(random: Random) -> SceneFacts:
    kind = choose(random, EVERYDAY)
    other = choose(random, EVERYDAY, but=[kind])
    return SceneFacts(choose(random, PLACES), kind, usual_colour(random, kind), other, usual_colour(random, other))


def _plan(facts: SceneFacts) -> Plan:
    return Plan(facts.backdrop, (Part(facts.kind, facts.colour), Part(facts.other_kind, facts.other_colour)), 0.85)


def _describe(facts: SceneFacts, things: Sequence[Thing], random: Random) -> Five:
    place = BACKDROPS[facts.backdrop]
    name = _NAMES.get(place.name, a(place.name))
    one, other = Wording(facts.kind, facts.colour), Wording(facts.other_kind, facts.other_colour)
    both = f"{a(one.plain)} and {a(other.plain)}"
    return Five(
        literal=pick(
            random, (f"{name} with {both}", f"a picture of {name} with {both}", f"this is {name}, with {both}")
        ),
        sparse=pick(random, (f"{name} with {a(one.kind.name)}", f"{a(one.kind.name)}, and {name} around it")),
        detailed=(
            f"the picture shows {name}; {a(one.plain)} is {whereabouts(things[0].box, SIZE)}, "
            f"{a(other.plain)} {whereabouts(things[1].box, SIZE)}"
        ),
        paraphrased=pick(
            random,
            (
                f"{place.also}, in the company of {a(one.other(random))} and {a(other.other(random))}",
                f"{a(one.other(random))} and {a(other.other(random))} {place.also}",
            ),
        ),
        figurative=f"{a(one.riddle)} has found its way to a spot {place.riddle}, and so has {a(other.riddle)}",
    )


TASK = Task(
    "scene",
    _draw,
    _plan,
    _describe,
    {
        "backdrop": another("backdrop", PLACES),
        "kind": another("kind", EVERYDAY, unlike=["other_kind"]),
        "other_kind": another("other_kind", EVERYDAY, unlike=["kind"]),
    },
    core=("backdrop",),
    essence=lambda facts: facts.backdrop,
)
