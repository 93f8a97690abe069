"""Tasks about where it is: scene (which place), landmark (which sight, where other benchmarks ask for celebrities)."""

from __future__ import annotations

from dataclasses import dataclass

from crosslens.synth.backdrops import BACKDROPS
from crosslens.synth.captions import CaptionStyles, Wording, pick
from crosslens.synth.grammar import a
from crosslens.synth.kinds import KINDS, kinds_of
from crosslens.synth.layout import Part, Plan
from crosslens.synth.tasks.task import (
    EVERYDAY,
    PLACES,
    SKIES,
    Facts,
    Objects,
    Random,
    Task,
    another,
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


_SCENE_CHANGES = {
    "backdrop": another("backdrop", PLACES),
    "kind": another("kind", EVERYDAY, unlike=["other_kind"]),
    "other_kind": another("other_kind", EVERYDAY, unlike=["kind"]),
}
SCENE = Task("scene", SceneFacts, _SCENE_CHANGES, core=("backdrop",), essence=("backdrop",))

LANDMARKS: dict[str, tuple[str, str]] = {
    "Eiffel Tower": ("the", "Paris"),
    "Pyramids of Giza": ("the", "Egypt"),
    "Big Ben": ("", "London"),
    "Taj Mahal": ("the", "India"),
    "Statue of Liberty": ("the", "New York"),
    "Sydney Opera House": ("the", "Australia"),
    "Leaning Tower of Pisa": ("the", "Italy"),
    "Colosseum": ("the", "Rome"),
    "Golden Gate Bridge": ("the", "San Francisco"),
    "Stonehenge": ("", "England"),
    "Christ the Redeemer": ("", "Rio de Janeiro"),
    "Parthenon": ("the", "Athens"),
    "Mount Fuji": ("", "Japan"),
    "Arc de Triomphe": ("the", "France"),
}
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


_LANDMARK_CHANGES = {
    "landmark": another("landmark", tuple(LANDMARKS)),
    "extra": another("extra", _EXTRAS),
    "backdrop": another("backdrop", SKIES),
}
LANDMARK = Task("landmark", LandmarkFacts, _LANDMARK_CHANGES, core=("landmark",), essence=("landmark",))
