"""Agreement with people as text: tables with φ down and coefficients across, and what they mean."""

from __future__ import annotations

import textwrap
from math import isfinite

from crosslens.analyze import (
    BINARY,
    COEFFICIENT_LABELS,
    NOT_A_REFERENCE,
    SUBSET_TITLES,
    AgreementSubset,
    HumanAgreement,
)
from crosslens.core import PAGE_WIDTH, RENDERERS, Grid, UsageError
from crosslens.metrics import format_count
from crosslens.statistics import Estimate


@RENDERERS.register("HumanAgreement")
def agreement_text(result: HumanAgreement, width: int | None = None, kendall: str = "b") -> str:
    """The tables: φ down, coefficients across."""
    if kendall not in ("b", "c"):
        raise UsageError(f"Kendall's τ-{kendall}", fix="use 'b' or 'c'", option="kendall")
    shown = ("pearson", "spearman", f"kendall-{kendall}")
    parts = [f"{result.judgements.source} on {result.dataset}"]
    parts += [_section(part, subset, shown, result.pooled, width) for part, subset in result.subsets.items()]
    return "\n\n".join([*parts, _explanation(result, width or PAGE_WIDTH)])


def _explanation(result: HumanAgreement, width: int) -> str:
    lines = [
        "binary: 1 for a pair of the ground truth, 0 for any other; outside it, it says nothing (–).",
        f"In brackets: {100 * result.level:g}% intervals from resampling images.",
    ]
    if any(len(subset.figures) > 2 for subset in result.subsets.values()):
        lines.append("−: the difference on the same pairs, with its own interval.")
    if NOT_A_REFERENCE in result.subsets:
        lines.append("Not among the references: word for word, whichever image the caption was written for.")
    if result.pooled:
        lines.append("Each judge's score is an observation of its own.")
    if result.judges is not None:
        single = result.judges.one_against_others
        lines.append(
            f"People: {format_count(result.judges.judgements, 'score')} for "
            f"{format_count(result.judges.pairs, 'pair')}; "
            f"one judge against the mean of the others: Pearson {_number(single['pearson'])}, "
            f"Spearman {_number(single['spearman'])}; Krippendorff's α {_number(result.judges.alpha)}."
        )
    if result.judgements.skipped:
        lines.append(
            f"{format_count(result.judgements.skipped, 'row')} of images or captions not in the dataset left out."
        )
    return "\n".join(part for line in lines for part in textwrap.wrap(line, width))


def _section(part: str, subset: AgreementSubset, shown: tuple[str, ...], pooled: bool, width: int | None) -> str:
    size = format_count(subset.pairs, "pair") + (f", {format_count(subset.observations, 'score')}" if pooled else "")
    head = f"{SUBSET_TITLES[part]}: {size} of {format_count(subset.images, 'image')}"
    header = ("φ", *(COEFFICIENT_LABELS[name] for name in shown))
    return f"{head}\n\n{Grid(header, _rows(subset, shown), 'l' * 4).text(width)}"


def _rows(subset: AgreementSubset, shown: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Each φ, and under it how much it is above the first that is not the ground truth itself."""
    rows = []
    first = next((phi for phi in subset.figures if phi != BINARY), None)
    for phi, coefficients in subset.figures.items():
        rows.append((phi, *(_cell(coefficients[name]) for name in shown)))
        if (difference := subset.differences.get((phi, first or ""))) is not None:
            rows.append((f"  − {first}", *(_cell(difference[name], signed=True) for name in shown)))
    return tuple(rows)


def _cell(estimate: Estimate, signed: bool = False) -> str:
    low, mean, high = estimate.low, estimate.mean, estimate.high
    if not isfinite(mean):
        return "–"
    bounds = f" [{_short(low)}, {_short(high)}]" if isfinite(low) and isfinite(high) else ""
    return f"{round(mean, 3) + 0.0:{'+' if signed else ''}.3f}{bounds}"


def _number(value: float) -> str:
    return f"{value:.3f}" if isfinite(value) else "–"


def _short(value: float) -> str:
    """Three digits without the zero before the point, which every coefficient has."""
    text = f"{round(value, 3) + 0.0:.3f}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text
