"""How difficulty is shown: shares of levels, thresholds, pairs; and does a level depend on the panel (IMP 4.2)?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import comb, isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from crosslens.analyze.options import DIFFICULTY
from crosslens.analyze.pair_difficulty.assignment import (
    Difficulty,
    Levels,
    count_votes,
    level_codes,
    model_label,
    shares_chart,
    shares_table,
    thresholds_table,
)
from crosslens.core import (
    Cards,
    Cell,
    Cloud,
    Figure,
    Part,
    PictureCard,
    Presented,
    Scatter,
    Section,
    Table,
    Text,
    UsageError,
)
from crosslens.metrics import format_count
from crosslens.statistics import cohen_kappa
from crosslens.storage import Array, json_form, random_stream
from crosslens.values import Dataset

if TYPE_CHECKING:
    import polars as pl

    from crosslens.analyze.pair_difficulty.thresholds import Calibration
    from crosslens.statistics import PrecisionRecall


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
        return {**vars(self), "mean": self.mean, "lowest": self.lowest, "highest": self.highest}


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


def measure_left_out(difficulty: Difficulty) -> tuple[LeftOut, ...]:
    """The levels without each one of the models; none for a panel of one, and for a mapping that counts votes.

    Five of five votes are not five of six: only levels that are shares of the votes compare panels of two sizes. A
    tie-breaker is asked by panels of an even size.
    """
    levels, members = _mapping(difficulty), difficulty.panel
    if len(members) < 2 or levels.count_votes or not len(difficulty):
        return ()
    whole = np.array([*map(list(levels.ranges).index, difficulty.table[DIFFICULTY])], np.float64)
    matched = {model: float(difficulty.matches(model).mean()) for model in difficulty.models}
    ordered = sorted(members, key=lambda model: matched[model])
    roles = {difficulty.tie_breaker: TIE_BREAKER}
    if matched[ordered[0]] < matched[ordered[-1]]:
        roles |= {ordered[0]: WEAKEST, ordered[-1]: STRONGEST}
    results = []
    for model in difficulty.models:
        panel = tuple(member for member in members if member != model)
        codes = _assign(difficulty, panel, levels, None if model == difficulty.tie_breaker else difficulty.tie_breaker)
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
    random, possible = random_stream(seed, "panels", size), comb(len(members), size)
    if possible <= _MOST_LISTED:
        every = list(combinations(members, size))
        panels = [every[row] for row in random.permutation(possible)[:repeats]]
    else:
        panel_rows: dict[tuple[int, ...], None] = {}
        while len(panel_rows) < repeats:
            panel_rows[tuple(sorted(random.choice(len(members), size, replace=False).tolist()))] = None
        panels = [tuple(members[row] for row in rows) for rows in panel_rows]
    codes = [_assign(difficulty, panel, levels, difficulty.tie_breaker) for panel in panels]
    kappas = tuple(cohen_kappa(np.stack(two, axis=1)) for two in combinations(codes, 2))
    return Stability(size, len(members), tuple(panels), kappas, tuple(_shares(assigned, levels) for assigned in codes))


def _mapping(difficulty: Difficulty) -> Levels:
    if not difficulty.mapping:
        fix = "measure the difficulty again, or keep its table as .parquet"
        raise UsageError("the table does not say which votes give which level", fix=fix, option="stability")
    return Levels.parse(difficulty.mapping)


def _assign(difficulty: Difficulty, panel: Sequence[str], levels: Levels, tie_breaker: str | None) -> Array:
    """The level of every pair by the votes of these models, as its position in the mapping."""
    tie_breaker = tie_breaker if len(panel) % 2 == 0 else None
    voters = (*panel, tie_breaker) if tie_breaker is not None else panel
    votes = count_votes({model: difficulty.matches(model) for model in voters}, tie_breaker)
    return level_codes(*votes, levels, len(panel), tie_breaker=tie_breaker is not None).astype(np.float64)


def _shares(codes: Array, levels: Levels) -> dict[str, float]:
    return {name: float(np.mean(codes == position)) for position, name in enumerate(levels.ranges)}


_MOST_PAIRS = 60
"""On a page, of the hardest and of those of each model."""
_MOST_TEXTS = 4
"""Captions that stand for a picture."""
_MOST_POINTS = 300
"""Of a curve: more could not be distinguished."""
_LEFT_OUT = (
    "In percent of pairs: those whose level changes without the model, and the levels then; κ is against the whole "
    "panel's levels. The strongest model matches the most pairs here, the weakest the fewest."
)


@dataclass(frozen=True, eq=False)
class DifficultyStudy(Presented):
    """A dataset's levels with all that was asked beside them; of the ``dataset`` pairs are shown too.

    ``disagreements`` are the pairs that only one of two models matches, shown instead of the hardest. A terminal shows
    ``shown`` pairs. ``pictures`` are files by image.
    """

    result: Difficulty
    beside: tuple[Difficulty, ...] = ()
    calibrations: Mapping[str, Calibration] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()
    stability: Stability | None = None
    disagreements: Mapping[str, pl.DataFrame] | None = None
    dataset: Dataset | None = None
    pictures: Mapping[str, str] = field(default_factory=dict)
    shown: int = 5

    @property
    def title(self) -> str:
        return self.result.title

    def sections(self) -> Iterator[Section]:
        """Shares, thresholds, panels, then pairs."""
        result = self.result
        parts: list[Part] = [shares_chart([result, *self.beside]), shares_table([result, *self.beside])]
        if result.thresholds:
            parts += [*precision_recall_chart(self.calibrations), thresholds_table(result, self.calibrations)]
        if self.left_out:
            names = tuple(self.left_out[0].shares)
            rows: list[tuple[Cell, ...]] = [
                (f"{without.model} ({without.role})" if without.role else without.model,
                 Figure.percent(without.changed), _kappa(without.kappa),
                 *(Figure.percent(without.shares[name]) for name in names))
                for without in self.left_out
            ]  # fmt: skip
            header = ("without", "changed", "κ", *names)
            parts.append(Table(header, tuple(rows), "l" + "r" * (2 + len(names)), notes=(_LEFT_OUT,)))
        if (stability := self.stability) is not None:
            text = (
                f"Stability: {len(stability.panels)} random panels of {stability.size} of the {stability.models} "
                f"models; Cohen's κ between their levels is {_kappa(stability.mean)} on average, "
                f"from {_kappa(stability.lowest)} to {_kappa(stability.highest)}."
            )
            if undefined := len(stability.kappas) - len(stability.defined):
                text += f" {format_count(undefined, 'pair of panels')} without κ: both give every pair the same level."
            parts.append(Text.of(text))
        if self.disagreements is not None:
            labels = {model: rows[DIFFICULTY].to_list() for model, rows in self.disagreements.items()}
            levels = list(dict.fromkeys(level for row_levels in labels.values() for level in reversed(row_levels)))
            counts: tuple[tuple[Cell, ...], ...] = tuple(
                (model, len(row_levels), *map(row_levels.count, levels)) for model, row_levels in labels.items()
            )
            align = "l" + "r" * (len(levels) + 1)
            parts.append(Table(("only this model matches", "pairs", *levels), counts, align))
            parts += [self._cards(f"Only {model} matches:", rows) for model, rows in self.disagreements.items()]
        elif self.dataset is not None:
            heading = "Hardest pairs (fewest votes, then furthest below the thresholds):"
            parts.append(self._cards(heading, result.hardest(_MOST_PAIRS)))
        yield Section("", tuple(parts))

    def as_dict(self) -> dict[str, Any]:
        disagreements: Any = self.disagreements and {
            model: {
                "pairs": rows.height,
                "levels": dict(rows[DIFFICULTY].value_counts(sort=True).iter_rows()),
                "hardest": rows.head(self.shown),
            }
            for model, rows in self.disagreements.items()
        }
        facts = {name: getattr(self, name) for name in ("beside", "left_out", "stability")}
        content = {**self.result.as_dict(), "calibration": self.calibrations, **facts, "disagreements": disagreements}
        return json_form({**content, "hardest": self.result.hardest(self.shown)})

    def _cards(self, heading: str, rows: pl.DataFrame) -> Cards:
        """Pairs as cards: without a picture, the other captions say what is to be seen."""
        assert self.dataset is not None
        texts = dict(zip(self.dataset.caption_ids, self.dataset.texts, strict=True))
        captions = self.dataset.described.captions.group_by("image", maintain_order=True).agg("text")
        described: dict[str, list[str]] = dict(captions.iter_rows())
        cards = []
        for row in rows.head(_MOST_PAIRS).iter_rows(named=True):
            image, text = row["image"], texts.get(row["caption"], row["caption"])
            other_texts = [other for other in dict.fromkeys(described.get(image, ())) if other != text]
            verdicts = []
            for model in self.result.models:
                sign, against = ("✓", "≥") if row[f"vote[{model}]"] else ("✗", "<")
                threshold = self.result.thresholds.get(model, float("nan"))
                scored = f"{row[f'score[{model}]']:.4f} {against} {threshold:.4f}"
                verdicts.append(f"{sign} {model_label(model, self.result)}: {scored}")
            cards.append(
                PictureCard(
                    f"{row['votes']} of {row['models']} votes, {image}", (text,), image,
                    details=(
                        *(f"also: {other}" for other in other_texts[:_MOST_TEXTS] if image not in self.pictures),
                        f"{row[DIFFICULTY]}, caption {row['caption']}", *verdicts,
                    ),
                )
            )  # fmt: skip
        return Cards(heading, tuple(cards), self.pictures, most=self.shown)


def precision_recall_chart(calibrations: Mapping[str, Calibration]) -> Iterator[Scatter]:
    """A curve per model that was calibrated here, with its threshold marked; none where all thresholds were given."""
    curves = {model: calibration.curve for model, calibration in calibrations.items() if calibration.curve is not None}
    if not curves:
        return
    first = next(calibrations[model] for model in curves)
    yield Scatter(
        title="Precision and recall of matching",
        about=f"{first.dataset}: {format_count(first.matching, 'matching pair')}, {first.mismatches:,} mismatches; "
        "points: the threshold of highest F1",
        axis="recall, %", up="precision, %",
        clouds=tuple(
            Cloud(model, _points(curve, [curve.best]),
                  (f"{model}: threshold {curve.threshold:.4g}, F1 {Figure.percent(float(curve.f1[curve.best]))}",))
            for model, curve in curves.items()
        ),
        trends=tuple(Cloud(model, _points(curve)) for model, curve in curves.items()),
    )  # fmt: skip


def _points(curve: PrecisionRecall, rows: Sequence[int] | None = None) -> tuple[tuple[float, float], ...]:
    """Recall and precision in percent at these rows, or at some, evenly spread, with the best among them."""
    if rows is None:
        last = len(curve.thresholds) - 1
        spread = np.linspace(0, last, min(last + 1, _MOST_POINTS)).round().astype(int)
        rows = np.unique([curve.best, *spread]).tolist()
    return tuple(zip((100 * curve.recall[rows]).tolist(), (100 * curve.precision[rows]).tolist(), strict=True))


def _kappa(value: float) -> Figure | str:
    return Figure(value, digits=2) if isfinite(value) else "undefined"
