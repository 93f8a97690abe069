"""Action: what somebody is doing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from crosslens.synth.backdrops import BACKDROPS
from crosslens.synth.captions import Five, Wording, pick, whereabouts
from crosslens.synth.grammar import a
from crosslens.synth.kinds import KINDS, kind_named
from crosslens.synth.plan import Part, Plan
from crosslens.synth.scene import SIZE, Thing
from crosslens.synth.tasks.task import EVERYDAY, PLACES, Random, Task, another, choose, usual_colour

ACTORS = tuple(kind.name for kind in KINDS.values() if len(kind.poses) > 1)
_EXTRAS = tuple(name for name in EVERYDAY if name not in ACTORS)
SAID: dict[str, tuple[str, str]] = {
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
class ActionFacts:
    """Who does what, in which colour, and what is nearby."""

    actor: str
    action: str
    colour: str
    extra: str
    extra_colour: str
    backdrop: str


def _draw(random: Random) -> ActionFacts:
    people = tuple(name for name in ACTORS if KINDS[name].category == "person")
    actor = choose(random, people if random.random() < 0.5 else ACTORS)
    extra = choose(random, _EXTRAS)
    action = choose(random, kind_named(actor).poses)
    colours = usual_colour(random, actor), usual_colour(random, extra)
    return ActionFacts(actor, action, colours[0], extra, colours[1], choose(random, _places()))


def _places() -> tuple[str, ...]:
    """Where one can stand: somebody kicking a ball under water would be hard to believe."""
    return tuple(name for name in PLACES if BACKDROPS[name].floor and name != "open sea")


def _plan(facts: ActionFacts) -> Plan:
    return Plan(
        facts.backdrop, (Part(facts.actor, facts.colour, pose=facts.action), Part(facts.extra, facts.extra_colour)), 1.2
    )


def _describe(facts: ActionFacts, things: Sequence[Thing], random: Random) -> Five:
    place = BACKDROPS[facts.backdrop]
    actor, extra = Wording(facts.actor, facts.colour), Wording(facts.extra, facts.extra_colour)
    said, story = SAID[facts.action]
    if facts.action == "standing" and actor.kind.category == "person":
        said = _PERSON_STANDING
    near = a(extra.plain)
    return Five(
        literal=pick(
            random,
            (
                f"{a(actor.plain)} is {facts.action} near {near} {place.at}",
                f"{a(actor.plain)} {facts.action} {place.at}, close to {near}",
                f"{place.at}, {a(actor.plain)} is {facts.action} near {near}",
            ),
        ),
        sparse=pick(
            random,
            (f"{a(actor.kind.name)} {facts.action} by {a(extra.kind.name)}", f"{facts.action}: {a(actor.kind.name)}"),
        ),
        detailed=(
            f"{a(actor.plain)} is {facts.action} {whereabouts(things[0].box, SIZE)}; the scene is set {place.at}, "
            f"and {near} can be seen {whereabouts(things[1].box, SIZE)}"
        ),
        paraphrased=pick(
            random,
            (
                f"{a(actor.other(random))} {said} {place.also}, with {a(extra.other(random))} nearby",
                f"{place.also}, {a(actor.other(random))} is {said}; {a(extra.other(random))} is nearby",
            ),
        ),
        figurative=f"{a(actor.riddle)} is {story} {place.riddle}, watched by {a(extra.riddle)}",
    )


def _recast(facts: ActionFacts, random: Random) -> ActionFacts:
    """Somebody else who can do the same, or does something else where nobody can."""
    others = [name for name in ACTORS if name != facts.actor]
    able = [name for name in others if facts.action in kind_named(name).poses]
    actor = choose(random, able or others)
    return replace(facts, actor=actor, action=facts.action if able else choose(random, kind_named(actor).poses))


TASK = Task(
    "action",
    _draw,
    _plan,
    _describe,
    {
        "action": another("action", lambda facts: kind_named(facts.actor).poses),
        "actor": _recast,
        "colour": lambda facts, random: replace(facts, colour=usual_colour(random, facts.actor, but=[facts.colour])),
        "extra": another("extra", _EXTRAS),
        "backdrop": another("backdrop", _places()),
    },
    core=("action",),
    essence=lambda facts: (facts.actor, facts.action),
)
