"""Tasks about what there is: colour (which object has which), count (how many), object (which three), action."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from crosslens.synth.backdrops import BACKDROPS
from crosslens.synth.captions import WORDS, Wording, a, listing, many, number_word, pluralise
from crosslens.synth.kinds import KINDS, kind_named
from crosslens.synth.scene import Part, Plan, Zone
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

    def phrases(self, objects: Objects, random: Random) -> dict[str, Any]:
        main, other = Wording(self.kind, self.colour), Wording(self.other_kind, self.other_colour)
        paraphrase = f"{a(main.other(random))} and {a(other.other(random))}"
        return {"main": main, "other": other, "paraphrase": paraphrase}


COLOUR = Task(
    "colour",
    ColourFacts,
    {
        "colour": another("colour", COLOUR_NAMES, unlike=["other_colour"]),
        "other_colour": another("other_colour", COLOUR_NAMES, unlike=["colour"]),
        "other_kind": another("other_kind", EVERYDAY, unlike=["kind"]),
        "backdrop": another("backdrop", PLACES),
    },
    core=("colour",),
    essence=("kind", "colour"),
)

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

    def phrases(self, objects: Objects, random: Random) -> dict[str, Any]:
        wording, number = Wording(self.kind, self.colour), self.count
        other = wording.other(random)
        group = _GROUPS.get(number, f"{number_word(number)} {{}} in all")
        rest = "with nothing else around" if number == 1 else "and nothing else"
        if number > 1 and len({item.size for item in objects}) == 1:
            rest = f"each of them {_SIZED[objects[0].size]}, {rest}"
        return {
            "several": many(number, wording.plain),
            "be": "is" if number == 1 else "are",
            "rest": rest,
            "paraphrase": group.format(other if number == 1 else pluralise(other)),
            "riddles": pluralise(wording.riddle),
            "comparison": _RIDDLES[number],
        }


def _change_count(facts: CountFacts, random: Random) -> CountFacts:
    step = choose(random, [step for step in (-1, 1) if 1 <= facts.count + step <= _MOST])
    return replace(facts, count=facts.count + step)


COUNT = Task(
    "count",
    CountFacts,
    {
        "count": _change_count,
        "kind": another("kind", _COUNTABLE),
        "colour": another("colour", COLOUR_NAMES),
        "backdrop": another("backdrop", _COUNT_BACKDROPS),
    },
    core=("count",),
    essence=("kind", "count"),
)


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

    def phrases(self, objects: Objects, random: Random) -> dict[str, Any]:
        wordings = [Wording(kind, colour) for kind, colour in self.coloured]
        spots = [f"{a(wording.plain)} {item.whereabouts}" for wording, item in zip(wordings, objects, strict=True)]
        return {
            "plain": listing([a(wording.plain) for wording in wordings]),
            "names": listing([a(wording.kind.name) for wording in wordings]),
            "spots": listing(spots),
            "paraphrase": listing([a(wording.other(random)) for wording in wordings]),
            "riddles": listing([a(wording.riddle) for wording in wordings]),
        }


OBJECT = Task(
    "object",
    ObjectFacts,
    {
        "second": another("second", EVERYDAY, unlike=["first", "third"]),
        "third": another("third", EVERYDAY, unlike=["first", "second"]),
        "first_colour": another_colour("first_colour", "first"),
        "backdrop": another("backdrop", PLACES),
    },
    core=("second", "third"),
    essence=("kinds",),
)


_ACTION_BACKDROPS = tuple(name for name in PLACES if BACKDROPS[name].floor and name != "open sea")
"""Where one can stand: somebody kicking a ball under water would be hard to believe."""
ACTORS = tuple(kind.name for kind in KINDS.values() if len(kind.poses) > 1)
_EXTRAS = tuple(name for name in EVERYDAY if name not in ACTORS)
POSE_PHRASES = {pose: (other, story) for pose, other, story in WORDS["poses"]}
"""Pose → another way to say it, and one that does not say it."""
PERSON_STANDING = "upright on both feet"
"""The other way to say it of a person who is standing."""


@dataclass(frozen=True)
class ActionFacts(Facts):
    """Who does what, in which colour, and what is nearby."""

    actor: str
    action: str
    colour: str
    extra: str
    extra_colour: str
    backdrop: str

    @classmethod
    def draw(cls, random: Random) -> ActionFacts:
        people = tuple(name for name in ACTORS if KINDS[name].category == "person")
        actor = choose(random, people if random.random() < 0.5 else ACTORS)
        extra = choose(random, _EXTRAS)
        action = choose(random, kind_named(actor).poses)
        colours = usual_colour(random, actor), usual_colour(random, extra)
        return cls(actor, action, colours[0], extra, colours[1], choose(random, _ACTION_BACKDROPS))

    def plan(self) -> Plan:
        return Plan(
            self.backdrop, (Part(self.actor, self.colour, pose=self.action), Part(self.extra, self.extra_colour)), 1.2
        )

    def phrases(self, objects: Objects, random: Random) -> dict[str, Any]:
        actor, extra = Wording(self.actor, self.colour), Wording(self.extra, self.extra_colour)
        phrase, story = POSE_PHRASES[self.action]
        if self.action == "standing" and actor.kind.category == "person":
            phrase = PERSON_STANDING
        return {"actor": actor, "extra": extra, "phrase": phrase, "story": story}


def _recast(facts: ActionFacts, random: Random) -> ActionFacts:
    """Somebody else who can do the same, or does something else where nobody can."""
    others = [name for name in ACTORS if name != facts.actor]
    able = [name for name in others if facts.action in kind_named(name).poses]
    actor = choose(random, able or others)
    return replace(facts, actor=actor, action=facts.action if able else choose(random, kind_named(actor).poses))


ACTION = Task(
    "action",
    ActionFacts,
    {
        "action": another("action", lambda facts: kind_named(facts.actor).poses),
        "actor": _recast,
        "colour": another_colour("colour", "actor"),
        "extra": another("extra", _EXTRAS),
        "backdrop": another("backdrop", _ACTION_BACKDROPS),
    },
    core=("action",),
    essence=("actor", "action"),
)
