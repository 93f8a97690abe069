"""What a task asks to be drawn, before chance decides on shades and places."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosslens.synth.backdrops import BACKDROPS
from crosslens.synth.colours import shade
from crosslens.synth.kinds import kind_named
from crosslens.synth.layout import Slot, Zone
from crosslens.synth.sprites import Look

SIZES = {"small": 0.2, "medium": 0.32, "large": 0.5}
"""Size word → the longer side of a thing, as a part of the picture's."""
_USUAL = 0.3
_STILL = ("panel", "landmark", "figure", "building", "plant")
"""Categories that are never tilted; what a panel shows is never mirrored."""


@dataclass(frozen=True)
class Part:
    """One thing to draw. ``size`` is a size word; empty is the kind's usual size beside others."""

    kind: str
    colour: str
    size: str = ""
    pose: str = ""
    text: str = ""
    zone: Zone | None = None
    on: int | None = None
    inside: int | None = None


@dataclass(frozen=True)
class Plan:
    """A backdrop and the things on it; ``scale`` shrinks or grows all things of usual size."""

    backdrop: str
    parts: tuple[Part, ...]
    scale: float = 1.0


def slots(plan: Plan, size: int, random: np.random.Generator) -> tuple[Slot, ...]:
    """The parts of a plan with their looks; the same number of random draws for every part."""
    return tuple(_slot(part, plan, size, random) for part in plan.parts)


def _slot(part: Part, plan: Plan, size: int, random: np.random.Generator) -> Slot:
    kind = kind_named(part.kind)
    rgb = shade(part.colour, random)
    mirrored, tilt, wobble, variant = (
        random.random() < 0.5,
        random.uniform(-9, 9),
        random.uniform(0.92, 1.05),
        int(random.integers(1 << 30)),
    )
    zone = part.zone or default_zone(plan.backdrop)
    fraction = SIZES[part.size] if part.size else _USUAL * kind.size * plan.scale * wobble
    look = Look(
        part.kind,
        rgb,
        round(fraction * size),
        pose=part.pose or (kind.poses[0] if kind.poses else ""),
        mirrored=mirrored and kind.category not in ("panel", "landmark", "figure"),
        tilt=0 if zone.standing or part.on is not None or kind.category in _STILL else round(tilt),
        text=part.text,
        variant=variant if kind.category == "panel" else 0,
    )
    return Slot(look, zone, part.on, part.inside)


def default_zone(backdrop: str) -> Zone:
    """On the floor where there is one, anywhere where there is none."""
    floor = BACKDROPS[backdrop].floor
    return Zone(top=floor / 100 + 0.03, bottom=0.97, standing=True) if floor else Zone(0.03, 0.03, 0.97, 0.97)
