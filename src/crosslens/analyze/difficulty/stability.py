"""Does the level of a pair depend on who is in the panel? Random panels, and the panel without one model (IMP 4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from crosslens.analyze.difficulty.assignment import Difficulty, count_votes, name_levels
from crosslens.analyze.difficulty.levels import DIFFICULTY, Levels
from crosslens.core import UsageError, json_form, random_stream
from crosslens.statistics import cohen_kappa

Array = np.ndarray[Any, Any]

STRONGEST, WEAKEST, TIE_BREAKER = "strongest", "weakest", "tie-breaker"
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
        return dict(json_form({**asdict(self), "mean": self.mean, "lowest": self.lowest, "highest": self.highest}))


@dataclass(frozen=True)
class LeftOut:
    """The levels that a panel assigns without one of its models, against those of the whole panel.

    ``role`` is ``"strongest"`` for the model of the panel that matches the most pairs (all belong together: it is right
    most often), ``"weakest"`` for the one that matches the fewest, ``"tie-breaker"``, or empty. ``changed`` is the
    share of pairs whose level changes; ``kappa`` is NaN where both panels give every pair the same single level.
    """

    model: str
    role: str
    matches: float
    changed: float
    kappa: float
    shares: dict[str, float]

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return dict(json_form(asdict(self)))


def measure_left_out(difficulty: Difficulty) -> tuple[LeftOut, ...]:
    """The levels without each one of the models; none for a panel of one, and for a mapping that counts votes.

    Five of five votes are not five of six: only levels that are shares of the votes compare panels of two sizes. A
    tie-breaker is asked by panels of an even size.
    """
    levels, members = _mapping(difficulty), difficulty.panel
    if len(members) < 2 or levels.count_votes or not len(difficulty):
        return ()
    whole = _positions(difficulty.table[DIFFICULTY].to_numpy(), levels)
    matched = {model: float(difficulty.matches(model).mean()) for model in difficulty.models}
    ordered = sorted(members, key=lambda model: matched[model])
    roles = {difficulty.tie_breaker: TIE_BREAKER}
    if matched[ordered[0]] < matched[ordered[-1]]:
        roles |= {ordered[0]: WEAKEST, ordered[-1]: STRONGEST}
    results = []
    for model in difficulty.models:
        rest = tuple(member for member in members if member != model)
        codes = _assign(difficulty, rest, levels, None if model == difficulty.tie_breaker else difficulty.tie_breaker)
        changed = float(np.mean(codes != whole))
        kappa = cohen_kappa(np.stack((whole, codes), axis=1))
        results.append(LeftOut(model, roles.get(model, ""), matched[model], changed, kappa, _shares(codes, levels)))
    return tuple(results)


def measure_stability(difficulty: Difficulty, size: int, *, repeats: int = 10, seed: int = 0) -> Stability:
    """κ between the levels that ``repeats`` different random panels of ``size`` of the panel's models assign.

    The models vote by the same thresholds and mapping. A tie-breaker is asked by panels of an even size.
    """
    members = difficulty.panel
    if not 1 <= size < len(members):
        fix = f"use a whole number from 1 to {len(members) - 1}, or add models"
        raise UsageError(f"panels of {size} of {len(members)} models", fix=fix, option="stability")
    if repeats < 2:
        raise UsageError(f"{repeats} panels to compare", fix="use 2 or more", option="repeats")
    levels = _mapping(difficulty)
    panels = draw_panels(members, size, repeats, seed)
    codes = [_assign(difficulty, panel, levels, difficulty.tie_breaker) for panel in panels]
    kappas = tuple(cohen_kappa(np.stack(two, axis=1)) for two in combinations(codes, 2))
    return Stability(size, len(members), tuple(panels), kappas, tuple(_shares(own, levels) for own in codes))


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


def _mapping(difficulty: Difficulty) -> Levels:
    if not difficulty.mapping:
        fix = "measure the difficulty again, or keep its table as .parquet"
        raise UsageError("the table does not say which votes give which level", fix=fix, option="stability")
    return Levels.parse(difficulty.mapping)


def _assign(difficulty: Difficulty, panel: Sequence[str], levels: Levels, tie_breaker: str | None) -> Array:
    """The level of every pair by the votes of these models, as its position in the mapping."""
    tie_breaker = tie_breaker if len(panel) % 2 == 0 else None
    asked = (*panel, tie_breaker) if tie_breaker is not None else panel
    votes = count_votes({model: difficulty.matches(model) for model in asked}, tie_breaker)
    return _positions(name_levels(*votes, levels, len(panel), tie_breaker=tie_breaker is not None), levels)


def _positions(named: Array, levels: Levels) -> Array:
    codes = np.zeros(len(named))
    for position, name in enumerate(levels.names):
        codes[named == name] = position
    return codes


def _shares(codes: Array, levels: Levels) -> dict[str, float]:
    return {name: float(np.mean(codes == position)) for position, name in enumerate(levels.names)}
