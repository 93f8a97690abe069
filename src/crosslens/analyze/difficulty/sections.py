"""How difficulty is shown: the share of each level, the thresholds, what depends on the panel, and pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from crosslens.analyze.difficulty.levels import DIFFICULTY
from crosslens.core import (
    Cards,
    Cell,
    Cloud,
    Dataset,
    Figure,
    Part,
    PictureCard,
    Presented,
    Scatter,
    Section,
    Shares,
    Table,
    Text,
)
from crosslens.metrics import format_count

if TYPE_CHECKING:
    import polars as pl

    from crosslens.analyze.difficulty.assignment import Difficulty
    from crosslens.analyze.difficulty.calibration import Calibration
    from crosslens.analyze.difficulty.stability import LeftOut, Stability
    from crosslens.analyze.difficulty.threshold import PrecisionRecall

_MOST_PAIRS = 60
"""On a page, of the hardest and of those of each model."""
_MOST_TEXTS = 4
"""Captions that stand for a picture."""
_MOST_POINTS = 300
"""Of a curve: more could not be told apart."""
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
        """The heading of the page."""
        return f"Difficulty of pairs: {self.result.dataset}"

    def sections(self, **options: Any) -> Iterator[Section]:
        """Shares, thresholds, panels, then pairs."""
        result = self.result
        parts: list[Part] = [shares_chart([result, *self.beside]), _shares_table([result, *self.beside])]
        if result.thresholds:
            parts += [*precision_recall_chart(self.calibrations), _thresholds_table(result, self.calibrations)]
        if self.left_out:
            parts.append(_left_out_table(self.left_out))
        if self.stability is not None:
            parts.append(Text.of(stability_line(self.stability)))
        if self.disagreements is not None:
            parts.append(_disagreements_table(self.disagreements))
            parts += [self._cards(f"Only {model} matches:", rows) for model, rows in self.disagreements.items()]
        elif self.dataset is not None:
            heading = "Hardest pairs (fewest votes, then furthest below the thresholds):"
            parts.append(self._cards(heading, result.hardest(_MOST_PAIRS)))
        yield Section("", tuple(parts))

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            **self.result.as_dict(),
            "calibration": {name: chosen.as_dict() for name, chosen in self.calibrations.items()},
            "beside": [other.as_dict() for other in self.beside],
            "left_out": [own.as_dict() for own in self.left_out],
            "stability": None if self.stability is None else self.stability.as_dict(),
            "disagreements": self.disagreements
            and {
                model: {
                    "pairs": rows.height,
                    "levels": dict(rows[DIFFICULTY].value_counts(sort=True).iter_rows()),
                    "hardest": rows.head(self.shown).to_dicts(),
                }
                for model, rows in self.disagreements.items()
            },
            "hardest": self.result.hardest(self.shown).to_dicts(),
        }

    def _cards(self, heading: str, rows: pl.DataFrame) -> Cards:
        """Pairs as cards: without a picture, the other captions say what is to be seen."""
        assert self.dataset is not None
        texts = dict(zip(self.dataset.caption_ids, self.dataset.texts, strict=True))
        described = self.dataset.described.captions.group_by("image", maintain_order=True).agg("text")
        told: dict[str, list[str]] = dict(described.iter_rows())
        cards = []
        for row in rows.head(_MOST_PAIRS).iter_rows(named=True):
            image, text = row["image"], texts.get(row["caption"], row["caption"])
            others = [other for other in dict.fromkeys(told.get(image, ())) if other != text]
            cards.append(
                PictureCard(
                    f"{row['votes']} of {row['models']} votes, {image}", (text,), image,
                    details=(
                        *(f"also: {other}" for other in others[:_MOST_TEXTS] if image not in self.pictures),
                        f"{row[DIFFICULTY]}, caption {row['caption']}", *_verdicts(row, self.result),
                    ),
                )
            )  # fmt: skip
        return Cards(heading, tuple(cards), self.pictures, most=self.shown)


def _verdicts(row: Mapping[str, Any], result: Difficulty) -> Iterator[str]:
    """What every model made of a pair."""
    for model in result.models:
        matches, threshold = row[f"vote[{model}]"], result.thresholds.get(model, float("nan"))
        sign, against = ("✓", "≥") if matches else ("✗", "<")
        yield f"{sign} {_named(model, result)}: {row[f'score[{model}]']:.4f} {against} {threshold:.4f}"


def _named(model: str, result: Difficulty) -> str:
    return f"{model} (tie-breaker)" if model == result.tie_breaker else model


def shares_chart(results: Sequence[Difficulty]) -> Shares:
    """A strip per dataset, divided among the levels."""
    levels = tuple(dict.fromkeys(level for result in results for level in result.levels))
    sizes = sorted({len(result.panel) for result in results if result.panel})
    panel = f"votes of {' or '.join(map(str, sizes))} models" if sizes else "votes of a panel"
    mappings = dict.fromkeys(result.mapping for result in results if result.mapping)
    counts = [result.counts() for result in results]
    return Shares(
        title="Difficulty of pairs", about=f"share of pairs, {panel}; {'; '.join(mappings)}".rstrip("; "),
        groups=tuple(f"{result.dataset} ({format_count(len(result), 'pair')})" for result in results), levels=levels,
        counts=tuple(tuple(own.get(level, 0) for level in levels) for own in counts), heading="dataset", noun="pairs",
    )  # fmt: skip


def precision_recall_chart(calibrations: Mapping[str, Calibration]) -> Iterator[Scatter]:
    """A curve per model that was calibrated here, with its threshold marked; none where all thresholds were given."""
    curves = {model: own.curve for model, own in calibrations.items() if own.curve is not None}
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


def _shares_table(results: Sequence[Difficulty]) -> Table:
    """A row per dataset, a column per level with its interval."""
    levels = list(dict.fromkeys(level for result in results for level in result.levels))
    rows: list[tuple[Cell, ...]] = []
    for result in results:
        shares = result.shares()
        known = [shares.get(level) for level in levels]
        cells = (None if own is None else Figure.percent(own.mean, own.low, own.high) for own in known)
        rows.append((result.dataset, len(result), *cells))
    first = results[0]
    voters = format_count(len(first.panel), "model") if first.panel else "a panel"
    votes = f" Votes of {voters}: {first.mapping}." if first.mapping else ""
    return Table(
        ("dataset", "pairs", *levels), tuple(rows), "lr" + "l" * len(levels),
        notes=(f"In percent of pairs, with 95% intervals over images.{votes}",),
    )  # fmt: skip


def _thresholds_table(result: Difficulty, calibrations: Mapping[str, Calibration]) -> Table:
    """A row per model: its threshold, what that reached on the calibration set, and how many pairs match here."""
    rows: list[tuple[Cell, ...]] = []
    for model, threshold in result.thresholds.items():
        own = calibrations.get(model)
        reached = (None, None, None) if own is None else (own.precision, own.recall, own.f1)
        matches = float(np.mean(result.matches(model))) if len(result) else None
        rows.append((_named(model, result), Figure(threshold, digits=4), *map(Figure.percent, (*reached, matches))))
    notes = ["matches: the share of pairs here that reach the threshold."]
    origins: dict[str, list[str]] = {}
    for model, calibration in calibrations.items():
        origins.setdefault(_origin(calibration), []).append(model)
    for origin, models in origins.items():
        whose = "Thresholds" if len(origins) == 1 else f"Threshold of {', '.join(models)}"
        datasets = dict.fromkeys(name for model in models if (name := calibrations[model].dataset))
        notes.append(f"{whose} {origin}{' on ' if datasets else ''}{', '.join(datasets)}.")
    if result.tie_breaker is not None:
        notes.append(f"{result.tie_breaker} is asked where the panel disagrees; its vote is added to the panel's.")
    header = ("model", "threshold", "precision", "recall", "F1", "matches")
    return Table(header, tuple(rows), "lrrrrr", notes=tuple(notes))


def _origin(calibration: Calibration) -> str:
    if not calibration.dataset:
        return "given as numbers"
    kind = f"in batches of {calibration.batch_size}" if calibration.batch_size else "of all images and captions"
    return (
        f"of highest F1 between {format_count(calibration.matching, 'matching pair')} and "
        f"{calibration.mismatches:,} mismatches {kind}"
    )


def _left_out_table(left_out: Sequence[LeftOut]) -> Table:
    """A row per model: what its absence does to the levels."""
    levels = tuple(left_out[0].shares)
    rows: list[tuple[Cell, ...]] = [
        (f"{own.model} ({own.role})" if own.role else own.model, Figure.percent(own.changed), _kappa(own.kappa),
         *(Figure.percent(own.shares[level]) for level in levels))
        for own in left_out
    ]  # fmt: skip
    align = "l" + "r" * (2 + len(levels))
    return Table(("without", "changed", "κ", *levels), tuple(rows), align, notes=(_LEFT_OUT,))


def _disagreements_table(disagreements: Mapping[str, pl.DataFrame]) -> Table:
    """How many pairs only the one model matches, and only the other, by level."""
    labels = {model: rows[DIFFICULTY].to_list() for model, rows in disagreements.items()}
    levels = list(dict.fromkeys(level for own in labels.values() for level in reversed(own)))
    rows: list[tuple[Cell, ...]] = [(model, len(own), *map(own.count, levels)) for model, own in labels.items()]
    return Table(("only this model matches", "pairs", *levels), tuple(rows), "l" + "r" * (len(levels) + 1))


def stability_line(stability: Stability) -> str:
    """κ between the panels, in a sentence."""
    undefined = len(stability.kappas) - len(stability.defined)
    text = (
        f"Stability: {len(stability.panels)} random panels of {stability.size} of the {stability.models} models; "
        f"Cohen's κ between their levels is {_kappa(stability.mean)} on average, "
        f"from {_kappa(stability.lowest)} to {_kappa(stability.highest)}."
    )
    if undefined:
        text += f" {format_count(undefined, 'pair of panels')} without κ: both give every pair the same level."
    return text


def _kappa(value: float) -> Figure | str:
    return Figure(value, digits=2) if isfinite(value) else "undefined"
