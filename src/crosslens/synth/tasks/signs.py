"""Tasks about a written word: ocr (which word it is), translation (what a Chinese word means)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from crosslens.synth.captions import WORDS, Wording, many
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

    def phrases(self, objects: Objects, random: Random) -> dict[str, Any]:
        return {"panel": Wording(self.panel, self.colour), "extra": Wording(self.extra, self.extra_colour)}


class OcrFacts(PanelFacts):
    """A word in capitals."""

    words = tuple(SIGNS)
    backdrops = names(
        "street, beach, meadow, city at night, snowy field, desert, farm, garden, mountains, blue sky, sunset, rain, "
        "brick wall, striped wallpaper"
    )

    def phrases(self, objects: Objects, random: Random) -> dict[str, Any]:
        return super().phrases(objects, random) | {
            "lower": self.word.lower(),
            "spelled": "-".join(self.word),
            "hint": SIGNS[self.word],
        }


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

    def phrases(self, objects: Objects, random: Random) -> dict[str, Any]:
        meaning, paraphrase, hint = CHINESE[self.word]
        characters = many(len(self.word), "Chinese character")
        texts = {"meaning": meaning, "paraphrase": paraphrase, "hint": hint, "characters": characters}
        return super().phrases(objects, random) | texts


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


def _same_length(facts: TranslationFacts) -> tuple[str, ...]:
    """Chinese words as long as this one, or all if it is the only one so long."""
    same = tuple(word for word in CHINESE if len(word) == len(facts.word))
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
TRANSLATION = _panel_task("translation", TranslationFacts, another("word", _same_length))
