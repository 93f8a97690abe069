"""Two scorers as text: their distributions, how they agree, and where they disagree most."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from math import isfinite
from typing import Any

from crosslens.analyze import COEFFICIENT_LABELS, TOTAL, ScorerComparison
from crosslens.core import PAGE_WIDTH, RENDERERS, Grid
from crosslens.metrics import format_count, with_intervals
from crosslens.statistics import Estimate

SCALE_WORDS: Mapping[str, str] = {
    "raw": "scores as they are",
    "z": "standardised",
    "rank": "rank, from 0 to 1",
    "range": "range, from 0 to 1",
}


@RENDERERS.register("ScorerComparison")
def scorers_text(result: ScorerComparison, width: int | None = PAGE_WIDTH, *, most: int = 5) -> str:
    """Distributions, correlations, Bland–Altman figures, and the largest disagreements."""
    room = width or PAGE_WIDTH
    head = f"{result.first} and {result.second}: {format_count(len(result), 'pair')} of {result.dataset}"
    left_out = [f"{format_count(result.left_out, 'pair')} without a score of both left out."] if result.left_out else []
    parts = [
        "\n".join(line for text in (head, *left_out) for line in textwrap.wrap(text, room)),
        f"Scores{f' by {result.column}' if result.column else ''}\n{distributions_grid(result).text(width)}",
        f"Correlation\n{correlations_grid(result).text(width)}",
        f"Bland–Altman: {result.second} − {result.first}\n{agreement_grid(result).text(width)}",
        "\n".join(line for note in _notes(result) for line in textwrap.wrap(note, room)),
    ]
    if most:
        parts.append(_disagreements(result, most, room))
    return "\n\n".join(parts)


def distributions_grid(result: ScorerComparison) -> Grid:
    """A row per scorer and category."""
    header = ("scorer", result.column or "pairs of", "pairs", "mean", "sd", "25%", "median", "75%")
    rows = []
    before = ""
    for row in result.distributions.iter_rows(named=True):
        names = ("mean", "sd", "lower_quartile", "median", "upper_quartile")
        figures = tuple(_number(row[name]) for name in names)
        rows.append(("" if row["scorer"] == before else row["scorer"], row["category"], f"{row['pairs']:,}", *figures))
        before = row["scorer"]
    return Grid(header, tuple(rows), "llrrrrrr")


def correlations_grid(result: ScorerComparison) -> Grid:
    """A row per coefficient, over all pairs and within each category."""
    parts = list(result.correlations)
    names = [name for name in COEFFICIENT_LABELS if name in result.correlations[TOTAL]]
    # With intervals of every category the table would be too wide: those are in the files.
    columns = [_estimates([result.correlations[part][name] for name in names], part == TOTAL) for part in parts]
    rows = tuple(zip((COEFFICIENT_LABELS[name] for name in names), *columns, strict=True))
    return Grid(("", *parts), rows, "ll" + "r" * (len(parts) - 1))


def agreement_grid(result: ScorerComparison) -> Grid:
    """A row per scale: the mean difference, its spread, and the limits of agreement."""
    figures = list(result.agreement.values())
    columns = [_estimates([getattr(figure, name) for figure in figures], True) for name in ("mean", "lower", "upper")]
    rows = zip(map(SCALE_WORDS.__getitem__, result.agreement), *columns, strict=True)
    return Grid(("scale", "mean difference", "lower limit", "upper limit"), tuple(rows), "llll")


def _estimates(figures: list[Estimate], intervals: bool) -> list[str]:
    bounds = [
        f"[{_number(figure.low)}, {_number(figure.high)}]" if intervals and isfinite(figure.low) else ""
        for figure in figures
    ]
    return with_intervals([_number(figure.mean) for figure in figures], bounds)


def _number(value: float | None) -> str:
    """Three digits that count: scores may be of any size."""
    if value is None or not isfinite(value):
        return "–"
    rounded = round(value, 3) + 0.0
    return f"{rounded:.3f}" if abs(rounded) < 100 else f"{value:.1f}"


def _notes(result: ScorerComparison) -> list[str]:
    notes = [
        "Limits of agreement: mean ± 1.96 standard deviations of the differences. Standardised and ranked scores have "
        "the same mean by construction: there the limits alone say how far the two agree."
    ]
    if isfinite(result.agreement["raw"].mean.low):
        notes.append(f"In brackets: {100 * result.level:g}% intervals over images.")
    return notes


def _disagreements(result: ScorerComparison, most: int, width: int) -> str:
    lines = ["Largest disagreements, by rank"]
    for row in result.disagreements(most).iter_rows(named=True):
        lines += textwrap.wrap(f"“{row['text']}”", width, initial_indent="  ", subsequent_indent="  ")
        lines += textwrap.wrap(disagreement_facts(result, row), width, initial_indent="    ", subsequent_indent="    ")
    return "\n".join(lines)


def disagreement_facts(result: ScorerComparison, row: Mapping[str, Any]) -> str:
    """What both say of a pair, and which of them ranks it higher."""
    scores = ", ".join(f"{name} {_number(row[f'score[{name}]'])}" for name in (result.first, result.second))
    higher = result.second if row["rank_difference"] > 0 else result.first
    gap = f"{higher} ranks it {100 * abs(row['rank_difference']):.0f} points higher"
    category = f", {row['category']}" if "category" in row else ""
    return f"{scores}; {gap}; image {row['image']}{category}"
