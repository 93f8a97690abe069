"""Translation: a Chinese word or phrase; captions are about its meaning."""

from __future__ import annotations

from collections.abc import Sequence

from crosslens.synth.backdrops import BACKDROPS
from crosslens.synth.captions import Five, Wording, many, pick, whereabouts
from crosslens.synth.grammar import a
from crosslens.synth.scene import SIZE, Thing
from crosslens.synth.tasks.panel import PanelFacts, draw_panel, panel_changes, plan_panel
from crosslens.synth.tasks.task import Random, Task, another
from crosslens.synth.words import CHINESE

_BACKDROPS = (
    "street",
    "city at night",
    "garden",
    "mountains",
    "meadow",
    "snowy field",
    "blue sky",
    "sunset",
    "brick wall",
    "wooden board",
    "tiled wall",
    "striped wallpaper",
)


class TranslationFacts(PanelFacts):
    """A word in Chinese characters."""

    @property
    def meaning(self) -> str:
        """In English."""
        return CHINESE[self.word][0]


def _draw(random: Random) -> TranslationFacts:
    return draw_panel(TranslationFacts, tuple(CHINESE), _BACKDROPS, random)


def _describe(facts: TranslationFacts, things: Sequence[Thing], random: Random) -> Five:
    place = BACKDROPS[facts.backdrop]
    panel, extra = Wording(facts.panel, facts.colour), Wording(facts.extra, facts.extra_colour)
    meaning, said, hint = CHINESE[facts.word]
    characters = many(len(facts.word), "Chinese character")
    return Five(
        literal=pick(
            random,
            (
                f'{a(panel.plain)} with Chinese writing that means "{meaning}" next to {a(extra.plain)} {place.at}',
                f'the Chinese for "{meaning}" on {a(panel.plain)} {place.at}, with {a(extra.plain)}',
            ),
        ),
        sparse=pick(
            random,
            (f'{a(panel.kind.name)} saying "{meaning}" in Chinese', f'"{meaning}" in Chinese on {a(panel.kind.name)}'),
        ),
        detailed=(
            f'{a(panel.plain)} {whereabouts(things[0].box, SIZE)} shows {characters} meaning "{meaning}"; '
            f"{a(extra.plain)} is {whereabouts(things[1].box, SIZE)}, {place.at}"
        ),
        paraphrased=pick(
            random,
            (
                f"{a(panel.other(random))} {place.also} speaks of {said} in the language of Beijing",
                f"{place.also}, {a(panel.other(random))} in Mandarin is about {said}",
            ),
        ),
        figurative=(
            f"for those who read Chinese, {a(panel.riddle)} near {a(extra.riddle)} tells of {hint}, {place.riddle}"
        ),
    )


TASK = Task(
    "translation",
    _draw,
    plan_panel,
    _describe,
    panel_changes(another("word", lambda facts: _like(facts.word)), _BACKDROPS),
    core=("word",),
    essence=lambda facts: facts.word,
)


def _like(word: str) -> tuple[str, ...]:
    """Words as long as this one, or all if it is the only one so long."""
    same = tuple(other for other in CHINESE if len(other) == len(word))
    return same if len(same) > 1 else tuple(CHINESE)
