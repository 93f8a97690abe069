"""Tasks about what there is: colour (which object has which), count (how many), object (which three)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from crosslens.synth.backdrops import BACKDROPS
from crosslens.synth.captions import CaptionStyles, Wording, many, pick
from crosslens.synth.grammar import a, listing, number_word, pluralise
from crosslens.synth.layout import Part, Plan, Zone
from crosslens.synth.tasks.task import (
    COLOUR_NAMES,
    EVERYDAY,
    PLACES,
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
class ColourFacts(Facts):
    """An object, its colour, and a companion of another colour."""

    kind: str
    colour: str
    other_kind: str
    other_colour: str
    backdrop: str

    @classmethod
    def draw(cls, random: Random) -> ColourFacts:
        kind, colour = choose(random, EVERYDAY), choose(random, COLOUR_NAMES)
        other_kind, other_colour = choose(random, EVERYDAY, but=[kind]), choose(random, COLOUR_NAMES, but=[colour])
        return cls(kind, colour, other_kind, other_colour, choose(random, PLACES + SURFACES))

    def plan(self) -> Plan:
        return Plan(self.backdrop, (Part(self.kind, self.colour), Part(self.other_kind, self.other_colour)), 1.15)

    def describe(self, objects: Objects, random: Random) -> CaptionStyles:
        backdrop = BACKDROPS[self.backdrop]
        main, other = Wording(self.kind, self.colour), Wording(self.other_kind, self.other_colour)
        both = f"{a(main.plain)} and {a(other.plain)}"
        paraphrase = f"{a(main.other(random))} and {a(other.other(random))}"
        return CaptionStyles(
            literal=pick(
                random, f"{both} {backdrop.at}", f"there is {both} {backdrop.at}", f"a picture of {both} {backdrop.at}"
            ),
            sparse=pick(
                random, f"{a(main.plain)}, and {a(other.kind.name)}", f"{a(other.kind.name)} and {a(main.plain)}"
            ),
            detailed=(
                f"{backdrop.at} there is {a(main.plain)} {objects[0].whereabouts}, "
                f"and with it {a(other.plain)} {objects[1].whereabouts}"
            ),
            paraphrased=pick(
                random,
                f"{backdrop.also} one sees {paraphrase}",
                f"{paraphrase} {backdrop.also}",
                f"someone put {paraphrase} {backdrop.also}",
            ),
            figurative=pick(
                random,
                f"{a(main.riddle)}, {main.hue}, shares the stage with {a(other.riddle)} {backdrop.riddle}",
                f"{backdrop.riddle}, {a(main.riddle)} wears {main.hue} beside {a(other.riddle)}",
            ),
        )


_COLOUR_CHANGES = {
    "colour": another("colour", COLOUR_NAMES, unlike=["other_colour"]),
    "other_colour": another("other_colour", COLOUR_NAMES, unlike=["colour"]),
    "other_kind": another("other_kind", EVERYDAY, unlike=["kind"]),
    "backdrop": another("backdrop", PLACES),
}
COLOUR = Task("colour", ColourFacts, _COLOUR_CHANGES, core=("colour",), essence=("kind", "colour"))

_MOST = 9
_GROUPS = {1: "a lone {}", 2: "a pair of {}", 3: "a trio of {}", 4: "a quartet of {}", 6: "half a dozen {}"}
_RIDDLES = {
    1: "there are moons in our night sky",
    2: "a person has eyes",
    3: "a tricycle has wheels",
    4: "a horse has legs",
    5: "a hand has fingers",
    6: "a die has faces",
    7: "a week has days",
    8: "a spider has legs",
    9: "a cat is said to have lives",
}
_SIZED = {"small": "small", "medium": "of middling size", "large": "large"}
_COUNTABLE = tuple(kind for kind in EVERYDAY if kind not in ("pine tree", "snowflake", "planet"))
_COUNT_BACKDROPS = (*SURFACES, "desert", "snowy field", "outer space")
"""Places where nothing in the background could be counted along."""


@dataclass(frozen=True)
class CountFacts(Facts):
    """So many objects of one kind and colour."""

    kind: str
    count: int
    colour: str
    backdrop: str

    @classmethod
    def draw(cls, random: Random) -> CountFacts:
        kind = choose(random, _COUNTABLE)
        count = 1 + int(random.integers(_MOST))
        return cls(kind, count, usual_colour(random, kind), choose(random, _COUNT_BACKDROPS))

    def plan(self) -> Plan:
        size = "medium" if self.count <= 4 else "small"
        zone = Zone(0.03, max(0.03, BACKDROPS[self.backdrop].floor / 100 - 0.25), 0.97, 0.97)
        return Plan(self.backdrop, (Part(self.kind, self.colour, size, zone=zone),) * self.count)

    def describe(self, objects: Objects, random: Random) -> CaptionStyles:
        backdrop, wording = BACKDROPS[self.backdrop], Wording(self.kind, self.colour)
        number, several = self.count, many(self.count, wording.plain)
        be = "is" if number == 1 else "are"
        other = wording.other(random)
        group = _GROUPS.get(number, f"{number_word(number)} {{}} in all")
        paraphrase = group.format(other if number == 1 else pluralise(other))
        rest = "with nothing else around" if number == 1 else "and nothing else"
        if number > 1 and len({item.size for item in objects}) == 1:
            rest = f"each of them {_SIZED[objects[0].size]}, {rest}"
        return CaptionStyles(
            literal=pick(
                random,
                f"{several} {backdrop.at}",
                f"there {be} {several} {backdrop.at}",
                f"a picture of {several} {backdrop.at}",
            ),
            sparse=several,
            detailed=f"{backdrop.at} there {be} exactly {several}, {rest}",
            paraphrased=pick(
                random,
                f"{paraphrase}, {backdrop.also}",
                f"{backdrop.also}: {paraphrase}",
                f"someone left {paraphrase}, {backdrop.also}",
            ),
            figurative=f"as many {pluralise(wording.riddle)} as {_RIDDLES[number]}, {backdrop.riddle}",
        )


def _change_count(facts: CountFacts, random: Random) -> CountFacts:
    step = choose(random, [step for step in (-1, 1) if 1 <= facts.count + step <= _MOST])
    return replace(facts, count=facts.count + step)


_COUNT_CHANGES = {
    "count": _change_count,
    "kind": another("kind", _COUNTABLE),
    "colour": another("colour", COLOUR_NAMES),
    "backdrop": another("backdrop", _COUNT_BACKDROPS),
}
COUNT = Task("count", CountFacts, _COUNT_CHANGES, core=("count",), essence=("kind", "count"))


@dataclass(frozen=True)
class ObjectFacts(Facts):
    """Three objects of different kinds, and their colours."""

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
    def coloured(self) -> tuple[tuple[str, str], ...]:
        """Kind and colour of each."""
        return tuple(zip(self.kinds, (self.first_colour, self.second_colour, self.third_colour), strict=True))

    @classmethod
    def draw(cls, random: Random) -> ObjectFacts:
        first = choose(random, EVERYDAY)
        second = choose(random, EVERYDAY, but=[first])
        third = choose(random, EVERYDAY, but=[first, second])
        colours = (usual_colour(random, first), usual_colour(random, second), usual_colour(random, third))
        return cls(first, second, third, *colours, choose(random, PLACES))

    def plan(self) -> Plan:
        return Plan(self.backdrop, tuple(Part(kind, colour) for kind, colour in self.coloured))

    def describe(self, objects: Objects, random: Random) -> CaptionStyles:
        backdrop = BACKDROPS[self.backdrop]
        wordings = [Wording(kind, colour) for kind, colour in self.coloured]
        plain = listing([a(wording.plain) for wording in wordings])
        paraphrase = listing([a(wording.other(random)) for wording in wordings])
        riddles = listing([a(wording.riddle) for wording in wordings])
        spots = listing(
            [f"{a(wording.plain)} {item.whereabouts}" for wording, item in zip(wordings, objects, strict=True)]
        )
        return CaptionStyles(
            literal=pick(
                random, f"{plain} {backdrop.at}", f"there are {plain} {backdrop.at}", f"{backdrop.at} are {plain}"
            ),
            sparse=listing([a(wording.kind.name) for wording in wordings]),
            detailed=f"{backdrop.at} one can see {spots}",
            paraphrased=pick(
                random, f"{paraphrase}, all {backdrop.also}", f"{backdrop.also}, somebody has gathered {paraphrase}"
            ),
            figurative=f"{riddles} have met {backdrop.riddle}",
        )


_OBJECT_CHANGES = {
    "second": another("second", EVERYDAY, unlike=["first", "third"]),
    "third": another("third", EVERYDAY, unlike=["first", "second"]),
    "first_colour": another_colour("first_colour", "first"),
    "backdrop": another("backdrop", PLACES),
}
OBJECT = Task("object", ObjectFacts, _OBJECT_CHANGES, core=("second", "third"), essence=("kinds",))
