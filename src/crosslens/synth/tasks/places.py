"""Tasks about where: scene (which place), landmark (which sight, where other benchmarks ask for celebrities), location
(on which side of another object), figure (inside or beside another).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from crosslens.synth.backdrops import BACKDROPS
from crosslens.synth.captions import WORDS, CaptionStyles, Wording, a, pick
from crosslens.synth.kinds import KINDS, kinds_of
from crosslens.synth.scene import OPPOSITE, Part, Plan, Zone
from crosslens.synth.tasks.task import (
    COLOUR_NAMES,
    EVERYDAY,
    PLACES,
    SKIES,
    SURFACES,
    Facts,
    Objects,
    Random,
    Task,
    another,
    another_colour,
    choose,
    usual_colour,
)

_NAMES = {
    "open sea": "the open sea",
    "underwater": "the world under water",
    "outer space": "outer space",
    "mountains": "the mountains",
}


@dataclass(frozen=True)
class SceneFacts(Facts):
    """A place, and two objects to be seen there."""

    backdrop: str
    kind: str
    colour: str
    other_kind: str
    other_colour: str

    @classmethod
    def draw(cls, random: Random) -> SceneFacts:
        kind = choose(random, EVERYDAY)
        other = choose(random, EVERYDAY, but=[kind])
        return cls(choose(random, PLACES), kind, usual_colour(random, kind), other, usual_colour(random, other))

    def plan(self) -> Plan:
        return Plan(self.backdrop, (Part(self.kind, self.colour), Part(self.other_kind, self.other_colour)), 0.85)

    def describe(self, objects: Objects, random: Random) -> CaptionStyles:
        backdrop = BACKDROPS[self.backdrop]
        name = _NAMES.get(backdrop.name, a(backdrop.name))
        main, other = Wording(self.kind, self.colour), Wording(self.other_kind, self.other_colour)
        both = f"{a(main.plain)} and {a(other.plain)}"
        return CaptionStyles(
            literal=pick(
                random, f"{name} with {both}", f"a picture of {name} with {both}", f"this is {name}, with {both}"
            ),
            sparse=pick(random, f"{name} with {a(main.kind.name)}", f"{a(main.kind.name)}, and {name} around it"),
            detailed=(
                f"the picture shows {name}; {a(main.plain)} is {objects[0].whereabouts}, "
                f"{a(other.plain)} {objects[1].whereabouts}"
            ),
            paraphrased=pick(
                random,
                f"{backdrop.also}, in the company of {a(main.other(random))} and {a(other.other(random))}",
                f"{a(main.other(random))} and {a(other.other(random))} {backdrop.also}",
            ),
            figurative=f"{a(main.riddle)} has found its way to a spot {backdrop.riddle}, and so has {a(other.riddle)}",
        )


SCENE = Task(
    "scene",
    SceneFacts,
    {
        "backdrop": another("backdrop", PLACES),
        "kind": another("kind", EVERYDAY, unlike=["other_kind"]),
        "other_kind": another("other_kind", EVERYDAY, unlike=["kind"]),
    },
    core=("backdrop",),
    essence=("backdrop",),
)

LANDMARKS = {name: (article, country) for name, article, country in WORDS["landmarks"]}
"""Landmark → its article, and where it is."""
_EXTRAS = tuple(kind.name for kind in kinds_of("person", "vehicle", "animal") if 0.8 <= kind.size <= 1.3)


@dataclass(frozen=True)
class LandmarkFacts(Facts):
    """A landmark, the sky over it, and somebody or something before it."""

    landmark: str
    backdrop: str
    extra: str
    extra_colour: str

    @classmethod
    def draw(cls, random: Random) -> LandmarkFacts:
        extra = choose(random, _EXTRAS)
        return cls(choose(random, tuple(LANDMARKS)), choose(random, SKIES), extra, usual_colour(random, extra))

    def plan(self) -> Plan:
        return Plan(self.backdrop, (Part(self.landmark, "grey"), Part(self.extra, self.extra_colour, "small")))

    def describe(self, objects: Objects, random: Random) -> CaptionStyles:
        backdrop, extra = BACKDROPS[self.backdrop], Wording(self.extra, self.extra_colour)
        article, country = LANDMARKS[self.landmark]
        name = f"{article} {self.landmark}".strip()
        kind = KINDS[self.landmark]
        other = f"the {pick(random, *kind.also)}"
        return CaptionStyles(
            literal=pick(
                random,
                f"{name} {backdrop.at} with {a(extra.plain)} in front",
                f"{backdrop.at}, {name} and {a(extra.plain)}",
                f"a picture of {name} {backdrop.at}, with {a(extra.plain)}",
            ),
            sparse=pick(random, f"{name} and {a(extra.kind.name)}", f"{a(extra.kind.name)} at {name}"),
            detailed=(
                f"{name}, known from pictures of {country}, {objects[0].whereabouts}, {backdrop.at}; "
                f"there is also {a(extra.plain)} {objects[1].whereabouts}"
            ),
            paraphrased=pick(
                random,
                f"{other} {backdrop.also}, with {a(extra.other(random))} passing by",
                f"{backdrop.also}, {a(extra.other(random))} passes {other}",
            ),
            figurative=f"{a(extra.riddle)} has come to see the {kind.riddle} {backdrop.riddle}",
        )


LANDMARK = Task(
    "landmark",
    LandmarkFacts,
    {
        "landmark": another("landmark", tuple(LANDMARKS)),
        "extra": another("extra", _EXTRAS),
        "backdrop": another("backdrop", SKIES),
    },
    core=("landmark",),
    essence=("landmark",),
)


_ZONES = {
    "left of": (Zone(0.04, 0.3, 0.47, 0.72), Zone(0.53, 0.3, 0.96, 0.72)),
    "above": (Zone(0.3, 0.04, 0.72, 0.47), Zone(0.3, 0.53, 0.72, 0.96)),
}
_PHRASES = {"left of": "to the left of", "right of": "to the right of", "above": "above", "below": "below"}
_SHORT = {"left of": "left of", "right of": "right of", "above": "over", "below": "under"}
_LOCATION_BACKDROPS = (*SURFACES, "underwater", "outer space", "blue sky", "starry night")


@dataclass(frozen=True)
class LocationFacts(Facts):
    """An object, how it lies to another, and the other."""

    kind: str
    colour: str
    relation: str
    other_kind: str
    other_colour: str
    backdrop: str

    @classmethod
    def draw(cls, random: Random) -> LocationFacts:
        kind, other = choose(random, EVERYDAY), choose(random, EVERYDAY)
        while other == kind:
            other = choose(random, EVERYDAY)
        relation = choose(random, tuple(OPPOSITE))
        colours = usual_colour(random, kind), usual_colour(random, other)
        return cls(kind, colours[0], relation, other, colours[1], choose(random, _LOCATION_BACKDROPS))

    def plan(self) -> Plan:
        if self.relation in _ZONES:
            zone, other_zone = _ZONES[self.relation]
        else:
            other_zone, zone = _ZONES[OPPOSITE[self.relation]]
        main = Part(self.kind, self.colour, "medium", zone=zone)
        return Plan(self.backdrop, (main, Part(self.other_kind, self.other_colour, "medium", zone=other_zone)))

    def describe(self, objects: Objects, random: Random) -> CaptionStyles:
        backdrop = BACKDROPS[self.backdrop]
        main, other = Wording(self.kind, self.colour), Wording(self.other_kind, self.other_colour)
        phrase, reverse = _PHRASES[self.relation], _PHRASES[OPPOSITE[self.relation]]
        first, second = main.other(random), other.other(random)
        return CaptionStyles(
            literal=pick(
                random,
                f"{a(main.plain)} {phrase} {a(other.plain)} {backdrop.at}",
                f"{backdrop.at} there is {a(main.plain)} {phrase} {a(other.plain)}",
            ),
            sparse=f"{a(main.kind.name)} {_SHORT[self.relation]} {a(other.kind.name)}",
            detailed=(
                f"{a(main.plain)} {objects[0].whereabouts} and {a(other.plain)} {objects[1].whereabouts}, "
                f"{backdrop.at}: the {main.kind.name} is {phrase} the {other.kind.name}"
            ),
            paraphrased=pick(
                random,
                f"{a(second)} {reverse} {a(first)}, {backdrop.also}",
                f"{backdrop.also}, {a(second)} is {reverse} {a(first)}",
            ),
            figurative=_location_riddle(self.relation, main.riddle, other.riddle, backdrop.riddle),
        )


def _location_riddle(relation: str, main: str, other: str, where: str) -> str:
    first, second = (main, other) if relation in _ZONES else (other, main)
    if relation in ("left of", "right of"):
        return f"read like a line of text, {a(first)} comes before {a(second)}, {where}"
    return f"if {a(first)} fell straight down, it would land on {a(second)}, {where}"


LOCATION = Task(
    "location",
    LocationFacts,
    {
        "relation": lambda facts, random: replace(facts, relation=OPPOSITE[facts.relation]),
        "colour": another_colour("colour", "kind"),
        "other_kind": another("other_kind", EVERYDAY, unlike=["kind"]),
        "backdrop": another("backdrop", _LOCATION_BACKDROPS),
    },
    core=("relation",),
    essence=("kind", "relation", "other_kind"),
)

_SHAPES = tuple(kind.name for kind in kinds_of("figure"))
_ROOMY = ("circle", "square", "pentagon", "hexagon", "octagon", "ellipse", "rectangle")
"""Shapes with enough room in their middle for another."""


@dataclass(frozen=True)
class FigureFacts(Facts):
    """A small shape, a large one, and whether the small one lies inside or beside it."""

    shape: str
    colour: str
    large_shape: str
    large_colour: str
    inside: bool
    backdrop: str

    @classmethod
    def draw(cls, random: Random) -> FigureFacts:
        large = choose(random, _ROOMY)
        shape, colour = choose(random, _SHAPES, but=[large]), choose(random, COLOUR_NAMES)
        inside = bool(random.random() < 0.5)
        large_colour = choose(random, COLOUR_NAMES, but=[colour])
        return cls(shape, colour, large, large_colour, inside, choose(random, SURFACES))

    def plan(self) -> Plan:
        zone = Zone(0.04, 0.04, 0.96, 0.96)
        large = Part(self.large_shape, self.large_colour, "large", zone=zone)
        small = Part(self.shape, self.colour, "small", zone=zone, inside=0 if self.inside else None)
        return Plan(self.backdrop, (large, small))

    def describe(self, objects: Objects, random: Random) -> CaptionStyles:
        backdrop = BACKDROPS[self.backdrop]
        small, large = Wording(self.shape, self.colour), Wording(self.large_shape, self.large_colour)
        link = "inside" if self.inside else "next to"
        phrase = "enclosed by" if self.inside else "not far from"
        story = "lives within" if self.inside else "keeps company with"
        return CaptionStyles(
            literal=pick(
                random,
                f"a small {small.plain} {link} a large {large.plain} {backdrop.at}",
                f"{backdrop.at}: a small {small.plain} {link} a large {large.plain}",
            ),
            sparse=f"{a(small.plain)} {link} {a(large.kind.name)}",
            detailed=(
                f"two figures are drawn {backdrop.at}: a large {large.plain} {objects[0].whereabouts} "
                f"and {link} it a small {small.plain}"
            ),
            paraphrased=pick(
                random,
                f"{a(small.other(random))} {phrase} {a(large.other(random))}, {backdrop.also}",
                f"{backdrop.also}, {a(small.other(random))} is {phrase} {a(large.other(random))}",
            ),
            figurative=f"{a(small.riddle)}, {small.hue}, {story} {a(large.riddle)}, {backdrop.riddle}",
        )


FIGURE = Task(
    "figure",
    FigureFacts,
    {
        "shape": another("shape", _SHAPES, unlike=["large_shape"]),
        "colour": another("colour", COLOUR_NAMES, unlike=["large_colour"]),
        "large_shape": another("large_shape", _ROOMY, unlike=["shape"]),
        "backdrop": another("backdrop", SURFACES),
    },
    core=("shape", "colour"),
    essence=("shape", "colour", "large_shape", "inside"),
)
