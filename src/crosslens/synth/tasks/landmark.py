"""Landmark: which famous place it is (where other benchmarks ask for celebrities)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crosslens.synth.backdrops import BACKDROPS
from crosslens.synth.captions import Five, Wording, pick, whereabouts
from crosslens.synth.grammar import a
from crosslens.synth.kinds import KINDS, kinds_of
from crosslens.synth.plan import Part, Plan
from crosslens.synth.scene import SIZE, Thing
from crosslens.synth.tasks.task import SKIES, Random, Task, another, choose, usual_colour

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
class LandmarkFacts:
    """A landmark, the sky over it, and somebody or something before it."""

    landmark: str
    backdrop: str
    extra: str
    extra_colour: str


def _draw(random: Random) -> LandmarkFacts:
    extra = choose(random, _EXTRAS)
    return LandmarkFacts(choose(random, tuple(LANDMARKS)), choose(random, SKIES), extra, usual_colour(random, extra))


def _plan(facts: LandmarkFacts) -> Plan:
    return Plan(facts.backdrop, (Part(facts.landmark, "grey"), Part(facts.extra, facts.extra_colour, "small")))


def _describe(facts: LandmarkFacts, things: Sequence[Thing], random: Random) -> Five:
    place, extra = BACKDROPS[facts.backdrop], Wording(facts.extra, facts.extra_colour)
    article, where = LANDMARKS[facts.landmark]
    name = f"{article} {facts.landmark}".strip()
    kind = KINDS[facts.landmark]
    other, story = f"the {pick(random, kind.also)}", f"the {kind.riddle}"
    return Five(
        literal=pick(
            random,
            (
                f"{name} {place.at} with {a(extra.plain)} in front",
                f"{place.at}, {name} and {a(extra.plain)}",
                f"a picture of {name} {place.at}, with {a(extra.plain)}",
            ),
        ),
        sparse=pick(random, (f"{name} and {a(extra.kind.name)}", f"{a(extra.kind.name)} at {name}")),
        detailed=(
            f"{name}, known from pictures of {where}, {whereabouts(things[0].box, SIZE)}, {place.at}; "
            f"there is also {a(extra.plain)} {whereabouts(things[1].box, SIZE)}"
        ),
        paraphrased=pick(
            random,
            (
                f"{other} {place.also}, with {a(extra.other(random))} passing by",
                f"{place.also}, {a(extra.other(random))} passes {other}",
            ),
        ),
        figurative=f"{a(extra.riddle)} has come to see {story} {place.riddle}",
    )


TASK = Task(
    "landmark",
    _draw,
    _plan,
    _describe,
    {
        "landmark": another("landmark", tuple(LANDMARKS)),
        "extra": another("extra", _EXTRAS),
        "backdrop": another("backdrop", SKIES),
    },
    core=("landmark",),
    essence=lambda facts: facts.landmark,
)
