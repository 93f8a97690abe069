"""Translation: a Chinese word or phrase; captions are about its meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from crosslens.synth.backdrops import BACKDROPS
from crosslens.synth.captions import Five, Wording, many, pick, whereabouts
from crosslens.synth.grammar import a
from crosslens.synth.kinds import KINDS
from crosslens.synth.plan import Part, Plan
from crosslens.synth.scene import SIZE, Thing
from crosslens.synth.tasks.task import EVERYDAY, Random, Task, choose, usual_colour
from crosslens.synth.words import CHINESE

PANELS = ("sign", "poster", "billboard", "banner", "shop")
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


@dataclass(frozen=True)
class TranslationFacts:
    """Chinese characters, what they are written on, and a thing beside it."""

    word: str
    panel: str
    colour: str
    extra: str
    extra_colour: str
    backdrop: str

    @property
    def meaning(self) -> str:
        """In English."""
        return CHINESE[self.word][0]


def _draw(random: Random) -> TranslationFacts:
    panel, extra = choose(random, PANELS), choose(random, EVERYDAY)
    colours = usual_colour(random, panel), usual_colour(random, extra)
    return TranslationFacts(
        choose(random, tuple(CHINESE)), panel, colours[0], extra, colours[1], choose(random, _BACKDROPS)
    )


def _plan(facts: TranslationFacts) -> Plan:
    panel = Part(facts.panel, facts.colour, text=facts.word)
    return Plan(facts.backdrop, (panel, Part(facts.extra, facts.extra_colour, "small")))


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
    _plan,
    _describe,
    {
        "word": lambda facts, random: replace(facts, word=choose(random, _like(facts.word), but=[facts.word])),
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


def _like(word: str) -> tuple[str, ...]:
    """Words as long as this one, or all if it is the only one so long."""
    same = tuple(other for other in CHINESE if len(other) == len(word))
    return same if len(same) > 1 else tuple(CHINESE)
