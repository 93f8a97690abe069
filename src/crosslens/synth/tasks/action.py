"""Action: what somebody is doing."""

from __future__ import annotations

from dataclasses import dataclass, replace

from crosslens.synth.backdrops import BACKDROPS
from crosslens.synth.captions import CaptionStyles, Wording, pick
from crosslens.synth.grammar import a
from crosslens.synth.kinds import KINDS, kind_named
from crosslens.synth.layout import Part, Plan
from crosslens.synth.tasks.task import (
    EVERYDAY,
    PLACES,
    Facts,
    Objects,
    Random,
    Task,
    another,
    another_colour,
    choose,
    usual_colour,
)

_BACKDROPS = tuple(name for name in PLACES if BACKDROPS[name].floor and name != "open sea")
"""Where one can stand: somebody kicking a ball under water would be hard to believe."""
ACTORS = tuple(kind.name for kind in KINDS.values() if len(kind.poses) > 1)
_EXTRAS = tuple(name for name in EVERYDAY if name not in ACTORS)
POSE_PHRASES: dict[str, tuple[str, str]] = {
    "standing": ("upright on all its feet", "waiting for something to happen"),
    "waving": ("raising a hand in greeting", "saying hello without a word"),
    "running": ("sprinting along", "racing against an invisible clock"),
    "jumping": ("leaping into the air", "arguing with gravity"),
    "sitting": ("taking a seat", "giving tired legs a holiday"),
    "sleeping": ("lying fast asleep", "off to the land of dreams"),
    "dancing": ("moving to the music", "following a tune nobody else hears"),
    "kicking a ball": ("playing football", "dreaming of the winning goal"),
    "reading a book": ("studying the pages of a book", "travelling far without a ticket"),
    "holding an umbrella": ("sheltering under a brolly", "not trusting the sky"),
    "riding a bicycle": ("pedalling on two wheels", "burning breakfast instead of petrol"),
    "lifting weights": ("pushing up a barbell", "picking a quarrel with iron"),
    "flying a kite": ("letting a toy rise on the wind", "taking the wind for a walk on a string"),
    "perching": ("resting on its thin legs", "taking a break from the clouds"),
    "flying": ("spreading its wings in the air", "looking down on the rest of us"),
}
"""Pose → another way to say it, and one that does not say it."""
_PERSON_STANDING = "upright on both feet"


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
        return cls(actor, action, colours[0], extra, colours[1], choose(random, _BACKDROPS))

    def plan(self) -> Plan:
        return Plan(
            self.backdrop, (Part(self.actor, self.colour, pose=self.action), Part(self.extra, self.extra_colour)), 1.2
        )

    def describe(self, objects: Objects, random: Random) -> CaptionStyles:
        backdrop = BACKDROPS[self.backdrop]
        actor, extra = Wording(self.actor, self.colour), Wording(self.extra, self.extra_colour)
        phrase, story = POSE_PHRASES[self.action]
        if self.action == "standing" and actor.kind.category == "person":
            phrase = _PERSON_STANDING
        near = a(extra.plain)
        return CaptionStyles(
            literal=pick(
                random,
                f"{a(actor.plain)} is {self.action} near {near} {backdrop.at}",
                f"{a(actor.plain)} {self.action} {backdrop.at}, close to {near}",
                f"{backdrop.at}, {a(actor.plain)} is {self.action} near {near}",
            ),
            sparse=pick(
                random,
                f"{a(actor.kind.name)} {self.action} by {a(extra.kind.name)}",
                f"{self.action}: {a(actor.kind.name)}",
            ),
            detailed=(
                f"{a(actor.plain)} is {self.action} {objects[0].whereabouts}; the scene is set {backdrop.at}, "
                f"and {near} can be seen {objects[1].whereabouts}"
            ),
            paraphrased=pick(
                random,
                f"{a(actor.other(random))} {phrase} {backdrop.also}, with {a(extra.other(random))} nearby",
                f"{backdrop.also}, {a(actor.other(random))} is {phrase}; {a(extra.other(random))} is nearby",
            ),
            figurative=f"{a(actor.riddle)} is {story} {backdrop.riddle}, watched by {a(extra.riddle)}",
        )


def _recast(facts: ActionFacts, random: Random) -> ActionFacts:
    """Somebody else who can do the same, or does something else where nobody can."""
    others = [name for name in ACTORS if name != facts.actor]
    able = [name for name in others if facts.action in kind_named(name).poses]
    actor = choose(random, able or others)
    return replace(facts, actor=actor, action=facts.action if able else choose(random, kind_named(actor).poses))


_CHANGES = {
    "action": another("action", lambda facts: kind_named(facts.actor).poses),
    "actor": _recast,
    "colour": another_colour("colour", "actor"),
    "extra": another("extra", _EXTRAS),
    "backdrop": another("backdrop", _BACKDROPS),
}
ACTION = Task("action", ActionFacts, _CHANGES, core=("action",), essence=("actor", "action"))
