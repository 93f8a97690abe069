"""Does the level of a pair depend on who is in the panel? Cohen's κ between random panels (IMP 4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from crosslens.analyze.difficulty.assignment import Difficulty, count_votes, name_levels
from crosslens.analyze.difficulty.levels import Levels
from crosslens.core import UsageError, json_form, random_stream
from crosslens.statistics import cohen_kappa

Array = np.ndarray[Any, Any]

_MOST_LISTED = 100_000
"""Panels that are listed to draw from; of more, the drawn ones are checked for repetition instead."""


@dataclass(frozen=True)
class Stability:
    """κ of every two assignments by random panels of ``size`` models.

    ``kappas`` has one value per two panels, NaN where both give every pair the same single level. ``shares`` are the
    shares of the levels that each panel assigns.
    """

    size: int
    models: int
    panels: tuple[tuple[str, ...], ...]
    kappas: tuple[float, ...]
    shares: tuple[dict[str, float], ...]

    @property
    def defined(self) -> tuple[float, ...]:
        return tuple(kappa for kappa in self.kappas if np.isfinite(kappa))

    @property
    def mean(self) -> float:
        return float(np.mean(self.defined)) if self.defined else float("nan")

    @property
    def lowest(self) -> float:
        return min(self.defined, default=float("nan"))

    @property
    def highest(self) -> float:
        return max(self.defined, default=float("nan"))

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        content = {
            "size": self.size, "models": self.models, "panels": self.panels, "kappas": self.kappas,
            "mean": self.mean, "lowest": self.lowest, "highest": self.highest, "shares": self.shares,
        }  # fmt: skip
        return dict(json_form(content))


def measure_stability(difficulty: Difficulty, size: int, *, repeats: int = 10, seed: int = 0) -> Stability:
    """κ between the levels that ``repeats`` different random panels of ``size`` of the panel's models assign.

    The models vote by the same thresholds and mapping. A tie-breaker is asked by panels of an even size.
    """
    members = difficulty.panel
    if not 1 <= size < len(members):
        fix = f"use a whole number from 1 to {len(members) - 1}, or add models"
        raise UsageError(f"panels of {size} of {len(members)} models", fix=fix, option="stability")
    if not set(difficulty.models) <= set(difficulty.thresholds):
        fix = "measure the difficulty again, or keep its table as .parquet"
        raise UsageError("the table does not say by which thresholds its models voted", fix=fix, option="stability")
    if repeats < 2:
        raise UsageError(f"{repeats} panels to compare", fix="use 2 or more", option="repeats")
    matches = {model: difficulty.scores(model) >= difficulty.thresholds[model] for model in difficulty.models}
    panels = draw_panels(members, size, repeats, seed)
    tie_breaker = difficulty.tie_breaker if size % 2 == 0 else None
    levels = Levels.parse(difficulty.mapping)
    codes, shares = [], []
    for panel in panels:
        asked = (*panel, tie_breaker) if tie_breaker is not None else panel
        votes = count_votes({model: matches[model] for model in asked}, tie_breaker)
        named = name_levels(*votes, levels, size, tie_breaker=tie_breaker is not None)
        codes.append(np.array([levels.names.index(name) for name in named], np.float64))
        shares.append({name: float(np.mean(named == name)) for name in levels.names})
    kappas = tuple(cohen_kappa(np.stack(two, axis=1)) for two in combinations(codes, 2))
    return Stability(size, len(members), tuple(panels), kappas, tuple(shares))


def draw_panels(models: Sequence[str], size: int, count: int, seed: int) -> list[tuple[str, ...]]:
    """``count`` different panels, or all there are; the models of each in the order given."""
    random = random_stream(seed, "panels", size)
    possible = comb(len(models), size)
    if possible <= _MOST_LISTED:
        every = list(combinations(models, size))
        return [every[row] for row in random.permutation(possible)[:count]]
    drawn: dict[tuple[int, ...], None] = {}
    while len(drawn) < count:
        drawn[tuple(sorted(random.choice(len(models), size, replace=False).tolist()))] = None
    return [tuple(models[row] for row in rows) for rows in drawn]
