"""How the agreement of φ with people is shown: coefficients in tables, φ against people's scores in charts."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from crosslens.core import Cell, Cloud, Figure, Part, Row, Scatter, Section, Table, Text, UsageError, random_stream
from crosslens.metrics import format_count
from crosslens.statistics import Estimate, JudgeAgreement

if TYPE_CHECKING:
    from crosslens.analyze.agreement.measure import AgreementSubset, HumanAgreement

Array = np.ndarray[Any, Any]

BINARY = "binary"
"""The φ of ordinary recall: 1 for a pair of the ground truth, 0 for any other."""
ALL_PAIRS, OUTSIDE_GROUND_TRUTH, NOT_A_REFERENCE = "all", "non-gt", "non-reference"
SUBSET_TITLES = {
    ALL_PAIRS: "All pairs",
    OUTSIDE_GROUND_TRUTH: "Outside the ground truth",
    NOT_A_REFERENCE: "Caption not among the references",
}
COEFFICIENT_LABELS = {
    "pearson": "Pearson",
    "spearman": "Spearman",
    "kendall-b": "Kendall τ-b",
    "kendall-c": "Kendall τ-c",
}
ONE_JUDGE, CEILING, OF_CEILING = "one judge", "ceiling", "of ceiling"
"""The rows below the φ that say how far people agree with each other."""
_KINDS = ((True, "in the ground truth"), (False, "outside the ground truth"))
_MOST_DOTS = 1500
_MEAN_STEPS, _FEWEST = 12, 8


def agreement_sections(result: HumanAgreement, kendall: str) -> Iterator[Section]:
    """A chart per φ, then the tables: φ down, coefficients across."""
    if kendall not in ("b", "c"):
        raise UsageError(f"Kendall's τ-{kendall}", fix="use 'b' or 'c'", option="kendall")
    shown = ("pearson", "spearman", f"kendall-{kendall}")
    parts: list[Part] = [_table(part, subset, shown, result.pooled) for part, subset in result.subsets.items()]
    notes = Text(tuple(_notes(result)), note=True)
    yield Section(f"{result.judgements.source} on {result.dataset}", (Row(tuple(_scatters(result))), *parts, notes))


def _table(part: str, subset: AgreementSubset, shown: tuple[str, ...], pooled: bool) -> Table:
    """Each φ, under it how much it is above the first that is not the ground truth itself; then people themselves."""
    size = format_count(subset.pairs, "pair") + (f", {format_count(subset.observations, 'score')}" if pooled else "")
    title = f"{SUBSET_TITLES[part]}: {size} of {format_count(subset.images, 'image')}"
    first = next((phi for phi in subset.figures if phi != BINARY), "")
    rows: list[tuple[Cell, ...]] = []
    for phi, coefficients in subset.figures.items():
        share = subset.of_ceiling(phi, pooled)
        beside = Figure(share, scale=100, digits=0, unit=" %") if isfinite(share) else None
        rows.append((phi, beside, *(_coefficient(coefficients[name]) for name in shown)))
        if (difference := subset.differences.get((phi, first))) is not None:
            cells = (_coefficient(difference[name], signed=True) for name in shown)
            rows.append((f"  − {first}", None, *cells))
    ceiling = Figure(None)
    if (judges := subset.judges) is not None:
        ceiling = Figure(judges.ceiling(pooled), digits=3)
        rows.append((ONE_JUDGE, None, *(Figure(judges.one_against_others[name], digits=3) for name in shown)))
        rows.append((CEILING, None, *(ceiling if name == "pearson" else Figure(None) for name in shown)))
    labels = tuple(COEFFICIENT_LABELS[name] for name in shown)
    if not ceiling.known:
        return Table(("φ", *labels), tuple((row[0], *row[2:]) for row in rows), title=title)
    ordered = tuple((row[0], row[2], row[1], *row[3:]) for row in rows)
    return Table(("φ", labels[0], OF_CEILING, *labels[1:]), ordered, title=title)


def _coefficient(estimate: Estimate, signed: bool = False) -> Figure:
    return Figure(estimate.mean, estimate.low, estimate.high, digits=3, signed=signed, short=True)


def _notes(result: HumanAgreement) -> Iterator[str]:
    yield "binary: 1 for a pair of the ground truth, 0 for any other; outside it, it says nothing (–)."
    yield f"In brackets: {100 * result.level:g}% intervals from resampling images."
    if any(len(subset.figures) > 2 for subset in result.subsets.values()):
        yield "−: the difference on the same pairs, with its own interval."
    if NOT_A_REFERENCE in result.subsets:
        yield "Not among the references: word for word, whichever image the caption was written for."
    if result.pooled:
        yield "Each judge's score is an observation of its own."
    if result.judges is not None:
        yield from _about_people(result.judges, result.pooled)
    if result.judgements.skipped:
        yield f"{format_count(result.judgements.skipped, 'row')} of images or captions not in the dataset left out."


def _about_people(judges: JudgeAgreement, pooled: bool) -> Iterator[str]:
    def number(value: float) -> str:
        return str(Figure(value, digits=3))

    kappa = judges.kappa
    scores = "single scores" if pooled else "the mean scores"
    yield (
        f"{ONE_JUDGE}: one judge against the mean of the pair's others. {CEILING}: Pearson between {scores} and scores "
        "without the judges' noise (the root of the reliability), which no φ is expected to exceed. "
        f"{OF_CEILING}: Pearson of a φ as a share of that."
    )
    kappas = (
        f"; Cohen's κ of two judges {number(kappa['none'])}, weighted linearly {number(kappa['linear'])}, "
        f"quadratically {number(kappa['quadratic'])}"
        if isfinite(kappa["none"])
        else ""
    )
    yield (
        f"People: {format_count(judges.judgements, 'score')} for {format_count(judges.pairs, 'pair')}; reliability of "
        f"their mean {number(judges.reliability)}, of one score {number(judges.single_reliability)}; "
        f"Krippendorff's α {number(judges.alpha)}{kappas}."
    )


def _scatters(result: HumanAgreement) -> Iterator[Scatter]:
    """Of each φ the judged pairs, and the mean score of pairs outside the ground truth with about the same φ.

    Where φ agrees with people, that line rises.
    """
    drawn = np.zeros(len(result.truth), np.bool_)
    for inside, words in _KINDS:
        members = np.flatnonzero(result.truth == inside)
        if len(members) > _MOST_DOTS:
            members = random_stream(0, "dots", words).choice(members, _MOST_DOTS, replace=False)
        drawn[members] = True
    scores, pairs = result.judgements.scores, len(result.truth)
    steps = np.diff(np.unique(scores))
    room = min(float(np.median(steps)), float(np.ptp(scores)) / 12) if len(steps) else 0.0
    fewer = f", {int(drawn.sum()):,} of them drawn" if not drawn.all() else ""
    for name, values in result.values.items():
        if name == BINARY:
            continue
        estimates = [
            f"{figure} {words}"
            for part, words in ((ALL_PAIRS, "all"), (OUTSIDE_GROUND_TRUTH, "outside"))
            if (figure := Figure(result.figure(name, "pearson", part).mean, digits=3)).known
        ]
        yield Scatter(
            title=name,
            about=f"Pearson {', '.join(estimates) or '–'}; {pairs:,} judged pairs{fewer}; line: mean score outside the "
            "ground truth",
            clouds=tuple(
                Cloud(words, tuple(zip(values[own].tolist(), scores[own].tolist(), strict=True)))
                for inside, words in _KINDS
                if (own := drawn & (result.truth == inside)).any()
            ),
            axis=name, up="people's score", trends=(Cloud("", _means(result, values)),), spread=0.35 * room,
        )  # fmt: skip


def _means(result: HumanAgreement, values: Array) -> tuple[tuple[float, float], ...]:
    """The mean score over steps of φ outside the ground truth; a step with few pairs is skipped."""
    outside = ~result.truth if (~result.truth).any() else np.ones(len(result.truth), np.bool_)
    values, scores = values[outside], result.judgements.scores[outside]
    # A far outlier must not stretch the steps over everything else.
    edges = np.linspace(values.min(), np.quantile(values, 0.995), _MEAN_STEPS + 1)[1:-1]
    steps = np.searchsorted(edges, values, side="right")
    counts = np.bincount(steps, minlength=_MEAN_STEPS)
    there = counts >= min(_FEWEST, counts.max())
    across, up = (np.bincount(steps, own, _MEAN_STEPS)[there] / counts[there] for own in (values, scores))
    return tuple(zip(across.tolist(), up.tolist(), strict=True))
