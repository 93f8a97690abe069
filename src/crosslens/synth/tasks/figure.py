"""Figure: geometric shapes, one inside or beside another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crosslens.synth.backdrops import BACKDROPS
from crosslens.synth.captions import Five, Wording, pick, whereabouts
from crosslens.synth.grammar import a
from crosslens.synth.kinds import kinds_of
from crosslens.synth.layout import Zone
from crosslens.synth.plan import Part, Plan
from crosslens.synth.scene import SIZE, Thing
from crosslens.synth.tasks.task import COLOUR_NAMES, SURFACES, Random, Task, another, choose

SHAPES = tuple(kind.name for kind in kinds_of("figure"))
_ROOMY = ("circle", "square", "pentagon", "hexagon", "octagon", "ellipse", "rectangle")
"""Shapes with enough room in their middle for another."""


@dataclass(frozen=True)
class FigureFacts:
    """A small shape, a large one, and whether the small one lies inside or beside it."""

    shape: str
    colour: str
    large_shape: str
    large_colour: str
    inside: bool
    backdrop: str


def _draw(random: Random) -> FigureFacts:
    large = choose(random, _ROOMY)
    shape, colour = choose(random, SHAPES, but=[large]), choose(random, COLOUR_NAMES)
    inside = bool(random.random() < 0.5)
    return FigureFacts(
        shape, colour, large, choose(random, COLOUR_NAMES, but=[colour]), inside, choose(random, SURFACES)
    )


def _plan(facts: FigureFacts) -> Plan:
    zone = Zone(0.04, 0.04, 0.96, 0.96)
    large = Part(facts.large_shape, facts.large_colour, "large", zone=zone)
    return Plan(
        facts.backdrop, (large, Part(facts.shape, facts.colour, "small", zone=zone, inside=0 if facts.inside else None))
    )


def _describe(facts: FigureFacts, things: Sequence[Thing], random: Random) -> Five:
    place = BACKDROPS[facts.backdrop]
    small, large = Wording(facts.shape, facts.colour), Wording(facts.large_shape, facts.large_colour)
    link = "inside" if facts.inside else "next to"
    said = "enclosed by" if facts.inside else "not far from"
    story = "lives within" if facts.inside else "keeps company with"
    return Five(
        literal=pick(
            random,
            (
                f"a small {small.plain} {link} a large {large.plain} {place.at}",
                f"{place.at}: a small {small.plain} {link} a large {large.plain}",
            ),
        ),
        sparse=f"{a(small.plain)} {link} {a(large.kind.name)}",
        detailed=(
            f"two figures are drawn {place.at}: a large {large.plain} {whereabouts(things[0].box, SIZE)} "
            f"and {link} it a small {small.plain}"
        ),
        paraphrased=pick(
            random,
            (
                f"{a(small.other(random))} {said} {a(large.other(random))}, {place.also}",
                f"{place.also}, {a(small.other(random))} is {said} {a(large.other(random))}",
            ),
        ),
        figurative=f"{a(small.riddle)}, {small.hue}, {story} {a(large.riddle)}, {place.riddle}",
    )


TASK = Task(
    "figure",
    _draw,
    _plan,
    _describe,
    {
        "shape": another("shape", SHAPES, unlike=["large_shape"]),
        "colour": another("colour", COLOUR_NAMES, unlike=["large_colour"]),
        "large_shape": another("large_shape", _ROOMY, unlike=["shape"]),
        "backdrop": another("backdrop", SURFACES),
    },
    core=("shape", "colour"),
    essence=lambda facts: (facts.shape, facts.colour, facts.large_shape, facts.inside),
)
