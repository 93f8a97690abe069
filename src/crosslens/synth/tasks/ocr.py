"""OCR: which word is written on something."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crosslens.synth.backdrops import BACKDROPS
from crosslens.synth.captions import Five, Wording, pick, whereabouts
from crosslens.synth.grammar import a
from crosslens.synth.scene import SIZE, Thing
from crosslens.synth.tasks.panel import PanelFacts, draw_panel, panel_changes, plan_panel
from crosslens.synth.tasks.task import Random, Task, choose
from crosslens.synth.words import SIGNS

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


class OcrFacts(PanelFacts):
    """A word in capitals."""


def _draw(random: Random) -> OcrFacts:
    return draw_panel(OcrFacts, tuple(SIGNS), _BACKDROPS, random)


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
    plan_panel,
    _describe,
    panel_changes(_another_word, _BACKDROPS),
    core=("word",),
    essence=lambda facts: facts.word,
)
