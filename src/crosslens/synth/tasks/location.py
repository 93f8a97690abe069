"""Location: which of two things is on which side of the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from crosslens.synth.backdrops import BACKDROPS
from crosslens.synth.captions import Five, Wording, pick, whereabouts
from crosslens.synth.grammar import a
from crosslens.synth.layout import Zone
from crosslens.synth.plan import Part, Plan
from crosslens.synth.relations import OPPOSITE
from crosslens.synth.scene import SIZE, Thing
from crosslens.synth.tasks.task import EVERYDAY, SURFACES, Random, Task, another, choose, usual_colour

_ZONES = {
    "left of": (Zone(0.04, 0.3, 0.47, 0.72), Zone(0.53, 0.3, 0.96, 0.72)),
    "above": (Zone(0.3, 0.04, 0.72, 0.47), Zone(0.3, 0.53, 0.72, 0.96)),
}
_SAID = {"left of": "to the left of", "right of": "to the right of", "above": "above", "below": "below"}
_SHORT = {"left of": "left of", "right of": "right of", "above": "over", "below": "under"}
_BACKDROPS = (*SURFACES, "underwater", "outer space", "blue sky", "starry night")


@dataclass(frozen=True)
class LocationFacts:
    """A thing, how it lies to another, and the other."""

    kind: str
    colour: str
    relation: str
    other_kind: str
    other_colour: str
    backdrop: str


def _draw(random: Random) -> LocationFacts:
    kind, other = choose(random, EVERYDAY), choose(random, EVERYDAY)
    while other == kind:
        other = choose(random, EVERYDAY)
    relation = choose(random, tuple(OPPOSITE))
    colours = usual_colour(random, kind), usual_colour(random, other)
    return LocationFacts(kind, colours[0], relation, other, colours[1], choose(random, _BACKDROPS))


def _plan(facts: LocationFacts) -> Plan:
    turned = facts.relation not in _ZONES
    first, second = _ZONES[OPPOSITE[facts.relation] if turned else facts.relation]
    if turned:
        first, second = second, first
    parts = (
        Part(facts.kind, facts.colour, "medium", zone=first),
        Part(facts.other_kind, facts.other_colour, "medium", zone=second),
    )
    return Plan(facts.backdrop, parts)


def _describe(facts: LocationFacts, things: Sequence[Thing], random: Random) -> Five:
    place = BACKDROPS[facts.backdrop]
    main, other = Wording(facts.kind, facts.colour), Wording(facts.other_kind, facts.other_colour)
    said, back = _SAID[facts.relation], _SAID[OPPOSITE[facts.relation]]
    first, second = main.other(random), other.other(random)
    return Five(
        literal=pick(
            random,
            (
                f"{a(main.plain)} {said} {a(other.plain)} {place.at}",
                f"{place.at} there is {a(main.plain)} {said} {a(other.plain)}",
            ),
        ),
        sparse=f"{a(main.kind.name)} {_SHORT[facts.relation]} {a(other.kind.name)}",
        detailed=(
            f"{a(main.plain)} {whereabouts(things[0].box, SIZE)} and "
            f"{a(other.plain)} {whereabouts(things[1].box, SIZE)}, {place.at}: "
            f"the {main.kind.name} is {said} the {other.kind.name}"
        ),
        paraphrased=pick(
            random, (f"{a(second)} {back} {a(first)}, {place.also}", f"{place.also}, {a(second)} is {back} {a(first)}")
        ),
        figurative=_figurative(facts.relation, main.riddle, other.riddle, place.riddle),
    )


def _figurative(relation: str, first: str, second: str, where: str) -> str:
    if relation in ("left of", "right of"):
        ahead, behind = (first, second) if relation == "left of" else (second, first)
        return f"read like a line of text, {a(ahead)} comes before {a(behind)}, {where}"
    high, low = (first, second) if relation == "above" else (second, first)
    return f"if {a(high)} fell straight down, it would land on {a(low)}, {where}"


TASK = Task(
    "location",
    _draw,
    _plan,
    _describe,
    {
        "relation": lambda facts, random: replace(facts, relation=OPPOSITE[facts.relation]),
        "colour": lambda facts, random: replace(facts, colour=usual_colour(random, facts.kind, but=[facts.colour])),
        "other_kind": another("other_kind", EVERYDAY, unlike=["kind"]),
        "backdrop": another("backdrop", _BACKDROPS),
    },
    core=("relation",),
    essence=lambda facts: (facts.kind, facts.relation, facts.other_kind),
)
