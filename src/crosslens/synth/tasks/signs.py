"""Tasks about a written word: ocr (which word it is), translation (what a Chinese word means)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from crosslens.synth.backdrops import BACKDROPS
from crosslens.synth.captions import WORDS, CaptionStyles, Wording, a, many, pick
from crosslens.synth.kinds import KINDS
from crosslens.synth.scene import Part, Plan
from crosslens.synth.tasks.task import (
    EVERYDAY,
    Change,
    Facts,
    Objects,
    Random,
    Task,
    another,
    choose,
    names,
    usual_colour,
)

SIGNS: dict[str, str] = dict(WORDS["signs"])
"""A word in capitals → a hint at it."""
CHINESE: dict[str, tuple[str, str, str]] = {
    word: (meaning, other, hint) for word, meaning, other, hint in WORDS["chinese"]
}
"""Chinese → its meaning, the same in other words, and a hint at it."""
PANELS = ("sign", "poster", "billboard", "banner", "shop")
_NEAR = 3


@dataclass(frozen=True)
class PanelFacts(Facts):
    """A word, what it is written on, and an object beside it."""

    word: str
    panel: str
    colour: str
    extra: str
    extra_colour: str
    backdrop: str
    words: ClassVar[tuple[str, ...]]
    backdrops: ClassVar[tuple[str, ...]]

    @classmethod
    def draw(cls, random: Random) -> PanelFacts:
        panel, extra = choose(random, PANELS), choose(random, EVERYDAY)
        colours = usual_colour(random, panel), usual_colour(random, extra)
        return cls(choose(random, cls.words), panel, colours[0], extra, colours[1], choose(random, cls.backdrops))

    def plan(self) -> Plan:
        panel = Part(self.panel, self.colour, text=self.word)
        return Plan(self.backdrop, (panel, Part(self.extra, self.extra_colour, "small")))


class OcrFacts(PanelFacts):
    """A word in capitals."""

    words = tuple(SIGNS)
    backdrops = names(
        "street, beach, meadow, city at night, snowy field, desert, farm, garden, mountains, blue sky, sunset, rain, "
        "brick wall, striped wallpaper"
    )

    def describe(self, objects: Objects, random: Random) -> CaptionStyles:
        backdrop = BACKDROPS[self.backdrop]
        panel, extra = Wording(self.panel, self.colour), Wording(self.extra, self.extra_colour)
        word = self.word
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


class TranslationFacts(PanelFacts):
    """A word in Chinese characters."""

    words = tuple(CHINESE)
    backdrops = names(
        "street, city at night, garden, mountains, meadow, snowy field, blue sky, sunset, brick wall, wooden board, "
        "tiled wall, striped wallpaper"
    )

    @property
    def meaning(self) -> str:
        return CHINESE[self.word][0]

    def describe(self, objects: Objects, random: Random) -> CaptionStyles:
        backdrop = BACKDROPS[self.backdrop]
        panel, extra = Wording(self.panel, self.colour), Wording(self.extra, self.extra_colour)
        meaning, paraphrase, hint = CHINESE[self.word]
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
                f"{a(panel.plain)} {objects[0].whereabouts} shows {many(len(self.word), 'Chinese character')} "
                f'meaning "{meaning}"; {a(extra.plain)} is {objects[1].whereabouts}, {backdrop.at}'
            ),
            paraphrased=pick(
                random,
                f"{a(panel.other(random))} {backdrop.also} speaks of {paraphrase} in the language of Beijing",
                f"{backdrop.also}, {a(panel.other(random))} in Mandarin is about {paraphrase}",
            ),
            figurative=(
                f"for those who read Chinese, {a(panel.riddle)} near {a(extra.riddle)} tells of {hint}, "
                f"{backdrop.riddle}"
            ),
        )


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


def _panel_task(name: str, facts: type[PanelFacts], change_word: Change) -> Task:
    changes = {
        "word": change_word,
        "panel": another("panel", PANELS),
        "colour": another("colour", lambda facts: KINDS[facts.panel].colours),
        "extra": another("extra", EVERYDAY),
        "backdrop": another("backdrop", facts.backdrops),
    }
    return Task(name, facts, changes, core=("word",), essence=("word",))


OCR = _panel_task("ocr", OcrFacts, _similar_sign)
TRANSLATION = _panel_task("translation", TranslationFacts, another("word", lambda facts: _same_length(facts.word)))
