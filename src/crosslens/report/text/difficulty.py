"""Levels of difficulty as text: the share of each, the thresholds behind the votes, and how stable they are."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from math import isfinite

import numpy as np
import polars as pl

from crosslens.analyze import DIFFICULTY, Calibration, Difficulty, LeftOut, Stability
from crosslens.core import PAGE_WIDTH, RENDERERS, Figure, Grid, percent
from crosslens.metrics import format_count

_MOST_CAPTION = 300
_LEFT_OUT_NOTE = (
    "In percent of pairs: those whose level changes without the model, and the levels then; κ is against the whole "
    "panel's levels. The strongest model matches the most pairs here, the weakest the fewest."
)


@RENDERERS.register("Difficulty")
def difficulty_text(
    result: Difficulty,
    width: int | None = None,
    *,
    beside: Sequence[Difficulty] = (),
    calibrations: Mapping[str, Calibration] | None = None,
    stability: Stability | None = None,
    left_out: Sequence[LeftOut] = (),
    texts: Mapping[str, str] | None = None,
    disagreements: Mapping[str, pl.DataFrame] | None = None,
    shown: int = 0,
) -> str:
    """The share of each level, of other datasets ``beside`` it too, the thresholds, and what depends on the panel.

    ``texts`` are captions by their id, for the ``shown`` hardest pairs, or of ``disagreements`` for as many that only
    one of two models matches.
    """
    parts = [shares_grid([result, *beside]).text(width), _wrapped(_shares_note(result), width)]
    if result.thresholds:
        parts.append(thresholds_grid(result, calibrations or {}).text(width))
        parts.append("\n".join(_wrapped(note, width) for note in _threshold_notes(result, calibrations or {})))
    if left_out:
        parts += [left_out_grid(left_out).text(width), _wrapped(_LEFT_OUT_NOTE, width)]
    if stability is not None:
        parts.append(_wrapped(stability_line(stability), width))
    if disagreements is not None:
        parts.append(disagreements_grid(disagreements).text(width))
        parts += [
            _pairs(f"Only {model} matches:", rows, texts or {}, shown, width)
            for model, rows in disagreements.items()
            if shown and rows.height
        ]
    elif shown and texts is not None:
        heading = "Hardest pairs (fewest votes, then furthest below the thresholds):"
        parts.append(_pairs(heading, result.hardest(shown), texts, shown, width))
    return "\n\n".join(part for part in parts if part)


def shares_grid(results: Sequence[Difficulty]) -> Grid:
    """A row per dataset, a column per level with its interval."""
    levels = list(dict.fromkeys(level for result in results for level in result.levels))
    rows = []
    for result in results:
        shares = result.shares()
        cells = [
            str(Figure.percent(shares[level].mean, shares[level].low, shares[level].high)) if level in shares else ""
            for level in levels
        ]
        rows.append((result.dataset, f"{len(result):,}", *cells))
    return Grid(("dataset", "pairs", *levels), tuple(rows), "lr" + "l" * len(levels))


def thresholds_grid(result: Difficulty, calibrations: Mapping[str, Calibration]) -> Grid:
    """A row per model: its threshold, what that reached on the calibration set, and how many pairs match here."""
    rows = []
    for model, threshold in result.thresholds.items():
        name = f"{model} (tie-breaker)" if model == result.tie_breaker else model
        calibration = calibrations.get(model, Calibration(threshold))
        reached = [percent(value) for value in (calibration.precision, calibration.recall, calibration.f1)]
        matches = float(np.mean(result.matches(model))) if len(result) else float("nan")
        rows.append((name, f"{threshold:.4f}", *reached, percent(matches)))
    return Grid(("model", "threshold", "precision", "recall", "F1", "matches"), tuple(rows), "lrrrrr")


def left_out_grid(left_out: Sequence[LeftOut]) -> Grid:
    """A row per model: what its absence does to the levels."""
    levels = tuple(left_out[0].shares)
    rows = tuple(
        (f"{own.model} ({own.role})" if own.role else own.model, percent(own.changed), _kappa(own.kappa),
         *(percent(own.shares[level]) for level in levels))
        for own in left_out
    )  # fmt: skip
    return Grid(("without", "changed", "κ", *levels), rows, "l" + "r" * (2 + len(levels)))


def disagreements_grid(disagreements: Mapping[str, pl.DataFrame]) -> Grid:
    """How many pairs only the one model matches, and only the other, by level."""
    labels = {model: rows[DIFFICULTY].to_list() for model, rows in disagreements.items()}
    levels = list(dict.fromkeys(level for own in labels.values() for level in reversed(own)))
    rows = tuple(
        (model, f"{len(own):,}", *(f"{own.count(level):,}" for level in levels)) for model, own in labels.items()
    )
    return Grid(("only this model matches", "pairs", *levels), rows, "l" + "r" * (len(levels) + 1))


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


def _kappa(value: float) -> str:
    return f"{value:.2f}" if isfinite(value) else "undefined"


def _shares_note(result: Difficulty) -> str:
    voters = format_count(len(result.panel), "model") if result.panel else "a panel"
    votes = f" Votes of {voters}: {result.mapping}." if result.mapping else ""
    return f"In percent of pairs, with 95% intervals over images.{votes}"


def _threshold_notes(result: Difficulty, calibrations: Mapping[str, Calibration]) -> list[str]:
    notes = ["matches: the share of pairs here that reach the threshold."]
    groups: dict[str, list[str]] = {}
    for model, calibration in calibrations.items():
        groups.setdefault(_origin(calibration), []).append(model)
    for origin, models in groups.items():
        whose = "Thresholds" if len(groups) == 1 else f"Threshold of {', '.join(models)}"
        datasets = dict.fromkeys(name for model in models if (name := calibrations[model].dataset))
        notes.append(f"{whose} {origin}{' on ' if datasets else ''}{', '.join(datasets)}.")
    if result.tie_breaker is not None:
        notes.append(f"{result.tie_breaker} is asked where the panel disagrees; its vote is added to the panel's.")
    return notes


def _origin(calibration: Calibration) -> str:
    if not calibration.dataset:
        return "given as numbers"
    kind = f"in batches of {calibration.batch_size}" if calibration.batch_size else "of all images and captions"
    return (
        f"of highest F1 between {format_count(calibration.matching, 'matching pair')} and "
        f"{calibration.mismatches:,} mismatches {kind}"
    )


def _pairs(heading: str, rows: pl.DataFrame, texts: Mapping[str, str], shown: int, width: int | None) -> str:
    lines = [heading]
    for row in rows.head(shown).iter_rows(named=True):
        lines.append(f"  {row['votes']} of {row['models']} votes, {row['image']}")
        text = " ".join(texts.get(row["caption"], row["caption"]).split())
        text = text if len(text) <= _MOST_CAPTION else text[: _MOST_CAPTION - 1] + "…"
        lines += textwrap.wrap(text, width or PAGE_WIDTH, initial_indent=4 * " ", subsequent_indent=4 * " ")
    return "\n".join(lines)


def _wrapped(text: str, width: int | None) -> str:
    return "\n".join(textwrap.wrap(text, width or PAGE_WIDTH))
