"""Levels of difficulty as text: the share of each, the thresholds behind the votes, and how stable they are."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from math import isfinite

import numpy as np

from crosslens.analyze import Calibration, Difficulty, Stability
from crosslens.core import PAGE_WIDTH, RENDERERS, Grid, percent
from crosslens.metrics import format_count
from crosslens.report.text.hard_negatives import interval_text

_MOST_CAPTION = 300


@RENDERERS.register("Difficulty")
def difficulty_text(
    result: Difficulty,
    width: int | None = None,
    *,
    beside: Sequence[Difficulty] = (),
    calibrations: Mapping[str, Calibration] | None = None,
    stability: Stability | None = None,
    texts: Mapping[str, str] | None = None,
    shown: int = 0,
) -> str:
    """The share of each level, of other datasets ``beside`` it too, and the thresholds.

    ``texts`` are captions by their id, for the hardest ``shown`` pairs.
    """
    parts = [shares_grid([result, *beside]).text(width), _wrapped(_shares_note(result), width)]
    if result.thresholds:
        parts.append(thresholds_grid(result, calibrations or {}).text(width))
        parts.append("\n".join(_wrapped(note, width) for note in _threshold_notes(result, calibrations or {})))
    if stability is not None:
        parts.append(_wrapped(stability_line(stability), width))
    if shown and texts is not None:
        parts.append(_hardest(result, texts, shown, width))
    return "\n\n".join(part for part in parts if part)


def shares_grid(results: Sequence[Difficulty]) -> Grid:
    """A row per dataset, a column per level with its interval."""
    levels = list(dict.fromkeys(level for result in results for level in result.levels))
    rows = []
    for result in results:
        shares = result.shares()
        cells = [
            f"{percent(shares[level].mean)} {interval_text(shares[level].low, shares[level].high)}".rstrip()
            if level in shares
            else ""
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
        matches = float(np.mean(result.scores(model) >= threshold)) if len(result) else float("nan")
        rows.append((name, f"{threshold:.4f}", *reached, percent(matches)))
    return Grid(("model", "threshold", "precision", "recall", "F1", "matches"), tuple(rows), "lrrrrr")


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


def _hardest(result: Difficulty, texts: Mapping[str, str], shown: int, width: int | None) -> str:
    lines = ["Hardest pairs (fewest votes, then furthest below the thresholds):"]
    for row in result.hardest(shown).iter_rows(named=True):
        lines.append(f"  {row['votes']} of {row['models']} votes, {row['image']}")
        text = " ".join(texts.get(row["caption"], row["caption"]).split())
        text = text if len(text) <= _MOST_CAPTION else text[: _MOST_CAPTION - 1] + "…"
        lines += textwrap.wrap(text, width or PAGE_WIDTH, initial_indent=4 * " ", subsequent_indent=4 * " ")
    return "\n".join(lines)


def _wrapped(text: str, width: int | None) -> str:
    return "\n".join(textwrap.wrap(text, width or PAGE_WIDTH))
