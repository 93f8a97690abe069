"""Tasks about where: scene (which place), landmark (which sight, where other benchmarks ask for celebrities), location
(on which side of another object), figure (inside or beside another).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from crosslens.synth.captions import WORDS, Wording, a, pick, setting_name
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

    def phrases(self, objects: Objects, random: Random) -> dict[str, Any]:
        return {
            "name": setting_name(self.backdrop),
            "main": Wording(self.kind, self.colour),
            "other": Wording(self.other_kind, self.other_colour),
        }


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

    def phrases(self, objects: Objects, random: Random) -> dict[str, Any]:
        article, country = LANDMARKS[self.landmark]
        kind = KINDS[self.landmark]
        return {
            "name": f"{article} {self.landmark}".strip(),
            "country": country,
            "other": pick(random, *kind.also),
            "riddle": kind.riddle,
            "extra": Wording(self.extra, self.extra_colour),
        }


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

    def phrases(self, objects: Objects, random: Random) -> dict[str, Any]:
        main, other = Wording(self.kind, self.colour), Wording(self.other_kind, self.other_colour)
        before, after = (main, other) if self.relation in _ZONES else (other, main)
        riddle = "if {} fell straight down, it would land on {}"
        if self.relation in ("left of", "right of"):
            riddle = "read like a line of text, {} comes before {}"
        return {
            "main": main,
            "other": other,
            "first": main.other(random),
            "second": other.other(random),
            "phrase": _PHRASES[self.relation],
            "reverse": _PHRASES[OPPOSITE[self.relation]],
            "short": _SHORT[self.relation],
            "riddle": riddle.format(a(before.riddle), a(after.riddle)),
        }


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

    def phrases(self, objects: Objects, random: Random) -> dict[str, Any]:
        return {
            "small": Wording(self.shape, self.colour),
            "large": Wording(self.large_shape, self.large_colour),
            "link": "inside" if self.inside else "next to",
            "phrase": "enclosed by" if self.inside else "not far from",
            "story": "lives within" if self.inside else "keeps company with",
        }


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
