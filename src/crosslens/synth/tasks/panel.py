"""What the tasks with a written word share: something to write on, and a thing beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from crosslens.synth.kinds import KINDS
from crosslens.synth.plan import Part, Plan
from crosslens.synth.tasks.task import EVERYDAY, Change, Random, another, choose, usual_colour

PANELS = ("sign", "poster", "billboard", "banner", "shop")


@dataclass(frozen=True)
class PanelFacts:
    """A word, what it is written on, and a thing beside it."""

    word: str
    panel: str
    colour: str
    extra: str
    extra_colour: str
    backdrop: str


F = TypeVar("F", bound=PanelFacts)


def draw_panel(kind: type[F], words: Sequence[str], backdrops: Sequence[str], random: Random) -> F:
    """One of the words on some panel, before one of the backdrops."""
    panel, extra = choose(random, PANELS), choose(random, EVERYDAY)
    colours = usual_colour(random, panel), usual_colour(random, extra)
    return kind(choose(random, words), panel, colours[0], extra, colours[1], choose(random, backdrops))


def plan_panel(facts: PanelFacts) -> Plan:
    """The panel with its word, and the small thing."""
    panel = Part(facts.panel, facts.colour, text=facts.word)
    return Plan(facts.backdrop, (panel, Part(facts.extra, facts.extra_colour, "small")))


def panel_changes(word: Change, backdrops: Sequence[str]) -> dict[str, Change]:
    """All that may change; how the word does is the task's own affair."""
    return {
        "word": word,
        "panel": another("panel", PANELS),
        "colour": another("colour", lambda facts: KINDS[facts.panel].colours),
        "extra": another("extra", EVERYDAY),
        "backdrop": another("backdrop", backdrops),
    }
