"""OCR: which word is written on something."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from crosslens.synth.backdrops import BACKDROPS
from crosslens.synth.captions import Five, Wording, pick, whereabouts
from crosslens.synth.grammar import a
from crosslens.synth.kinds import KINDS
from crosslens.synth.plan import Part, Plan
from crosslens.synth.scene import SIZE, Thing
from crosslens.synth.tasks.task import EVERYDAY, Random, Task, choose, usual_colour
from crosslens.synth.words import SIGNS

PANELS = ("sign", "poster", "billboard", "banner", "shop")
_BACKDROPS = (
    "street",
    "beach",
    "meadow",
    "city at night",
    "snowy field",
    "desert",
    "farm",
    "garden",
    "mountains",
    "blue sky",
    "sunset",
    "rain",
    "brick wall",
    "striped wallpaper",
)
_NEAR = 3


@dataclass(frozen=True)
class OcrFacts:
    """A word, what it is written on, and a thing beside it."""

    word: str
    panel: str
    colour: str
    extra: str
    extra_colour: str
    backdrop: str


def _draw(random: Random) -> OcrFacts:
    panel, extra = choose(random, PANELS), choose(random, EVERYDAY)
    colours = usual_colour(random, panel), usual_colour(random, extra)
    return OcrFacts(choose(random, tuple(SIGNS)), panel, colours[0], extra, colours[1], choose(random, _BACKDROPS))


def _plan(facts: OcrFacts) -> Plan:
    return Plan(
        facts.backdrop,
        (Part(facts.panel, facts.colour, text=facts.word), Part(facts.extra, facts.extra_colour, "small")),
    )


def _describe(facts: OcrFacts, things: Sequence[Thing], random: Random) -> Five:
    place = BACKDROPS[facts.backdrop]
    panel, extra = Wording(facts.panel, facts.colour), Wording(facts.extra, facts.extra_colour)
    word = facts.word
    return Five(
        literal=pick(
            random,
            (
                f'{a(panel.plain)} that says "{word}" next to {a(extra.plain)} {place.at}',
                f'{place.at}, {a(panel.plain)} with the word "{word}" and {a(extra.plain)}',
                f'the word "{word}" on {a(panel.plain)}, with {a(extra.plain)} {place.at}',
            ),
        ),
        sparse=pick(random, (f'{a(panel.kind.name)} reading "{word}"', f'"{word}" on {a(panel.kind.name)}')),
        detailed=(
            f"{a(panel.plain)} {whereabouts(things[0].box, SIZE)} carries a single word in capitals, "
            f'"{word}"; {a(extra.plain)} is {whereabouts(things[1].box, SIZE)}, {place.at}'
        ),
        paraphrased=pick(
            random,
            (
                f"somebody wrote {word.lower()} on {a(panel.other(random))}, {place.also}",
                f"{place.also}, {a(panel.other(random))} spells out {'-'.join(word)}",
            ),
        ),
        figurative=f"{place.riddle}, {a(panel.riddle)} near {a(extra.riddle)} lets you know: {SIGNS[word]}",
    )


def _another_word(facts: OcrFacts, random: Random) -> OcrFacts:
    """One of the words that look most like it."""
    near = sorted((word for word in SIGNS if word != facts.word), key=lambda word: (_distance(word, facts.word), word))
    return replace(facts, word=choose(random, near[:_NEAR]))


def _distance(one: str, other: str) -> int:
    """How many letters have to be put in, taken out or changed."""
    row = list(range(len(other) + 1))
    for here, letter in enumerate(one, start=1):
        above, row[0] = row[0], here
        for place, match in enumerate(other, start=1):
            above, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, above + (letter != match))
    return row[-1]


TASK = Task(
    "ocr",
    _draw,
    _plan,
    _describe,
    {
        "word": _another_word,
        "panel": lambda facts, random: replace(facts, panel=choose(random, PANELS, but=[facts.panel])),
        "colour": lambda facts, random: replace(
            facts, colour=choose(random, KINDS[facts.panel].colours, but=[facts.colour])
        ),
        "extra": lambda facts, random: replace(facts, extra=choose(random, EVERYDAY, but=[facts.extra])),
        "backdrop": lambda facts, random: replace(facts, backdrop=choose(random, _BACKDROPS, but=[facts.backdrop])),
    },
    core=("word",),
    essence=lambda facts: facts.word,
)
