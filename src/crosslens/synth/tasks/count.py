"""Count: how many of one kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from crosslens.synth.backdrops import BACKDROPS
from crosslens.synth.captions import Five, Wording, many, pick
from crosslens.synth.grammar import number_word, pluralise
from crosslens.synth.layout import Zone
from crosslens.synth.plan import Part, Plan
from crosslens.synth.scene import Thing
from crosslens.synth.tasks.task import COLOUR_NAMES, EVERYDAY, SURFACES, Random, Task, another, choose, usual_colour

MOST = 9
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
_BACKDROPS = (*SURFACES, "desert", "snowy field", "outer space")
"""Places where nothing in the background could be counted along."""


@dataclass(frozen=True)
class CountFacts:
    """So many things of one kind and colour."""

    kind: str
    count: int
    colour: str
    backdrop: str


def _draw(random: Random) -> CountFacts:
    kind = choose(random, EVERYDAY, but=["pine tree", "snowflake", "planet"])
    count = 1 + int(random.integers(MOST))
    return CountFacts(kind, count, usual_colour(random, kind), choose(random, _BACKDROPS))


def _plan(facts: CountFacts) -> Plan:
    size = "medium" if facts.count <= 4 else "small"
    top = max(0.03, BACKDROPS[facts.backdrop].floor / 100 - 0.25)
    zone = Zone(0.03, top, 0.97, 0.97)
    return Plan(facts.backdrop, (Part(facts.kind, facts.colour, size, zone=zone),) * facts.count)


def _describe(facts: CountFacts, things: Sequence[Thing], random: Random) -> Five:
    place, one = BACKDROPS[facts.backdrop], Wording(facts.kind, facts.colour)
    number, several = facts.count, many(facts.count, one.plain)
    be = "is" if number == 1 else "are"
    other = one.other(random)
    group = _GROUPS.get(number, f"{number_word(number)} {{}} in all")
    said = group.format(other if number == 1 else pluralise(other))
    riddles = pluralise(one.riddle)
    exactly = f"exactly {several}"
    rest = "with nothing else around" if number == 1 else "and nothing else"
    return Five(
        literal=pick(
            random, (f"{several} {place.at}", f"there {be} {several} {place.at}", f"a picture of {several} {place.at}")
        ),
        sparse=several,
        detailed=f"{place.at} there {be} {exactly}, each of them {_SIZED[things[0].size]}, {rest}"
        if number > 1 and len({thing.size for thing in things}) == 1
        else f"{place.at} there {be} {exactly}, {rest}",
        paraphrased=pick(
            random, (f"{said}, {place.also}", f"{place.also}: {said}", f"someone left {said}, {place.also}")
        ),
        figurative=f"as many {riddles} as {_RIDDLES[number]}, {place.riddle}",
    )


def _recount(facts: CountFacts, random: Random) -> CountFacts:
    step = choose(random, [step for step in (-1, 1) if 1 <= facts.count + step <= MOST])
    return replace(facts, count=facts.count + step)


def _rekind(facts: CountFacts, random: Random) -> CountFacts:
    return replace(facts, kind=choose(random, EVERYDAY, but=[facts.kind, "pine tree", "snowflake", "planet"]))


TASK = Task(
    "count",
    _draw,
    _plan,
    _describe,
    {
        "count": _recount,
        "kind": _rekind,
        "colour": another("colour", COLOUR_NAMES),
        "backdrop": another("backdrop", _BACKDROPS),
    },
    core=("count",),
    essence=lambda facts: (facts.kind, facts.count),
)
