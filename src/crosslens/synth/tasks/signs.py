"""Tasks about a written word: ocr (which word it is), translation (what a Chinese word means)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from crosslens.synth.backdrops import BACKDROPS
from crosslens.synth.captions import CaptionStyles, Wording, many, pick
from crosslens.synth.grammar import a
from crosslens.synth.kinds import KINDS
from crosslens.synth.layout import Part, Plan
from crosslens.synth.tasks.task import EVERYDAY, Change, Objects, Random, Task, another, choose, names, usual_colour
from crosslens.synth.tasks.words import CHINESE, SIGNS

PANELS = ("sign", "poster", "billboard", "banner", "shop")
_SIGN_BACKDROPS = names(
    "street, beach, meadow, city at night, snowy field, desert, farm, garden, mountains, blue sky, sunset, rain, "
    "brick wall, striped wallpaper"
)
_CHINESE_BACKDROPS = names(
    "street, city at night, garden, mountains, meadow, snowy field, blue sky, sunset, brick wall, wooden board, "
    "tiled wall, striped wallpaper"
)
_NEAR = 3


@dataclass(frozen=True)
class PanelFacts:
    """A word, what it is written on, and an object beside it."""

    word: str
    panel: str
    colour: str
    extra: str
    extra_colour: str
    backdrop: str


class OcrFacts(PanelFacts):
    """A word in capitals."""


class TranslationFacts(PanelFacts):
    """A word in Chinese characters."""

    @property
    def meaning(self) -> str:
        """In English."""
        return CHINESE[self.word][0]


def _plan(facts: PanelFacts) -> Plan:
    panel = Part(facts.panel, facts.colour, text=facts.word)
    return Plan(facts.backdrop, (panel, Part(facts.extra, facts.extra_colour, "small")))


def _describe_ocr(facts: OcrFacts, objects: Objects, random: Random) -> CaptionStyles:
    backdrop = BACKDROPS[facts.backdrop]
    panel, extra = Wording(facts.panel, facts.colour), Wording(facts.extra, facts.extra_colour)
    word = facts.word
    return CaptionStyles(
        literal=pick(
            random,
            f'{a(panel.plain)} that says "{word}" next to {a(extra.plain)} {backdrop.at}',
            f'{backdrop.at}, {a(panel.plain)} with the word "{word}" and {a(extra.plain)}',
            f'the word "{word}" on {a(panel.plain)}, with {a(extra.plain)} {backdrop.at}',
        ),
        sparse=pick(random, f'{a(panel.kind.name)} reading "{word}"', f'"{word}" on {a(panel.kind.name)}'),
        detailed=(
            f"{a(panel.plain)} {objects[0].whereabouts} carries a single word in capitals, "
            f'"{word}"; {a(extra.plain)} is {objects[1].whereabouts}, {backdrop.at}'
        ),
        paraphrased=pick(
            random,
            f"somebody wrote {word.lower()} on {a(panel.other(random))}, {backdrop.also}",
            f"{backdrop.also}, {a(panel.other(random))} spells out {'-'.join(word)}",
        ),
        figurative=f"{backdrop.riddle}, {a(panel.riddle)} near {a(extra.riddle)} lets you know: {SIGNS[word]}",
    )


def _describe_translation(facts: TranslationFacts, objects: Objects, random: Random) -> CaptionStyles:
    backdrop = BACKDROPS[facts.backdrop]
    panel, extra = Wording(facts.panel, facts.colour), Wording(facts.extra, facts.extra_colour)
    meaning, paraphrase, hint = CHINESE[facts.word]
    return CaptionStyles(
        literal=pick(
            random,
            f'{a(panel.plain)} with Chinese writing that means "{meaning}" next to {a(extra.plain)} {backdrop.at}',
            f'the Chinese for "{meaning}" on {a(panel.plain)} {backdrop.at}, with {a(extra.plain)}',
        ),
        sparse=pick(
            random,
            f'{a(panel.kind.name)} saying "{meaning}" in Chinese',
            f'"{meaning}" in Chinese on {a(panel.kind.name)}',
        ),
        detailed=(
            f"{a(panel.plain)} {objects[0].whereabouts} shows {many(len(facts.word), 'Chinese character')} "
            f'meaning "{meaning}"; {a(extra.plain)} is {objects[1].whereabouts}, {backdrop.at}'
        ),
        paraphrased=pick(
            random,
            f"{a(panel.other(random))} {backdrop.also} speaks of {paraphrase} in the language of Beijing",
            f"{backdrop.also}, {a(panel.other(random))} in Mandarin is about {paraphrase}",
        ),
        figurative=(
            f"for those who read Chinese, {a(panel.riddle)} near {a(extra.riddle)} tells of {hint}, {backdrop.riddle}"
        ),
    )


def _panel_task(
    name: str,
    facts_type: type[PanelFacts],
    words: Sequence[str],
    backdrops: Sequence[str],
    describe: Callable[[Any, Objects, Random], CaptionStyles],
    change_word: Change,
) -> Task:
    def draw(random: Random) -> PanelFacts:
        panel, extra = choose(random, PANELS), choose(random, EVERYDAY)
        colours = usual_colour(random, panel), usual_colour(random, extra)
        return facts_type(choose(random, words), panel, colours[0], extra, colours[1], choose(random, backdrops))

    changes = {
        "word": change_word,
        "panel": another("panel", PANELS),
        "colour": another("colour", lambda facts: KINDS[facts.panel].colours),
        "extra": another("extra", EVERYDAY),
        "backdrop": another("backdrop", backdrops),
    }
    return Task(name, draw, _plan, describe, changes, core=("word",), essence=lambda facts: facts.word)


def _similar_sign(facts: OcrFacts, random: Random) -> OcrFacts:
    """One of the words that look most like it."""
    near = sorted((word for word in SIGNS if word != facts.word), key=lambda word: (_edits(word, facts.word), word))
    return replace(facts, word=choose(random, near[:_NEAR]))


def _edits(word: str, other: str) -> int:
    """How many letters have to be inserted, deleted or changed."""
    row = list(range(len(other) + 1))
    for index, letter in enumerate(word, start=1):
        above, row[0] = row[0], index
        for column, match in enumerate(other, start=1):
            above, row[column] = row[column], min(row[column] + 1, row[column - 1] + 1, above + (letter != match))
    return row[-1]


def _same_length(word: str) -> tuple[str, ...]:
    """Chinese words as long as this one, or all if it is the only one so long."""
    same = tuple(other for other in CHINESE if len(other) == len(word))
    return same if len(same) > 1 else tuple(CHINESE)


OCR = _panel_task("ocr", OcrFacts, tuple(SIGNS), _SIGN_BACKDROPS, _describe_ocr, _similar_sign)
TRANSLATION = _panel_task(
    "translation",
    TranslationFacts,
    tuple(CHINESE),
    _CHINESE_BACKDROPS,
    _describe_translation,
    another("word", lambda facts: _same_length(facts.word)),
)
