"""Annotations: missing positives, labels to review, and how far φ agrees with people, as text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from math import isfinite
from typing import Any

import numpy as np
import polars as pl

from crosslens.analyze import (
    BINARY,
    COEFFICIENT_LABELS,
    NOT_A_REFERENCE,
    REASONS,
    SUBSET_TITLES,
    VERDICTS,
    AgreementSubset,
    HumanAgreement,
    LabelQuality,
    MissingPositives,
    ReviewedLabels,
    ThresholdCount,
)
from crosslens.core import PAGE_WIDTH, RENDERERS, Grid, UsageError, decimal, two_columns
from crosslens.metrics import format_count
from crosslens.statistics import Estimate, JudgeAgreement

_SHOWN, _EXAMINED = 5, 100
_INDENT = 8 * " "
ONE_JUDGE, CEILING, OF_CEILING = "one judge", "ceiling", "of ceiling"
"""The rows below the φ that say how far people agree with each other."""


@RENDERERS.register("MissingPositives")
def missing_positives_text(result: MissingPositives, width: int | None = None) -> str:
    """A summary, the counts at several thresholds, and the first pairs."""
    width = width or PAGE_WIDTH
    others = len(result.dataset.image_ids) * len(result.dataset.caption_ids) - len(result.truth.relevant().items)
    head = (
        f"{result.phi} on {result.dataset.name}: "
        f"{format_count(result.levels[0].pairs, 'pair')} outside the ground truth "
        f"of {others:,} reach φ ≥ {result.threshold:.4g}"
    )
    parts = ["\n".join(textwrap.wrap(head, width)), _levels_grid(result).text(width)]
    parts.append("\n".join(line for note in _notes(result) for line in textwrap.wrap(note, width)))
    if len(result):
        parts.append(_first_pairs(result, width))
    return "\n\n".join(part for part in parts if part)


def _levels_grid(result: MissingPositives) -> Grid:
    header = ["φ at least", "annotated pairs", "missing positives"]
    rows = [[f"{level.threshold:.4g}", _share(result, level), f"{level.pairs:,}"] for level in result.levels]
    rows[0][0] += " ←"
    if result.verification is not None:
        header += ["precision", "recall"]
        for row, point in zip(rows, result.verification.points, strict=True):
            row += [_percent(point.precision), _percent(point.recall)]
    order = np.argsort([-level.threshold for level in result.levels], kind="stable")
    return Grid(tuple(header), tuple(tuple(rows[row]) for row in order), "l" + "r" * (len(header) - 1))


def _share(result: MissingPositives, level: ThresholdCount) -> str:
    """How many annotated pairs reach a threshold."""
    if not len(result.annotated):
        return "–"
    return f"{100 * float(np.mean(result.annotated >= np.float32(level.threshold))):.0f} %"


def _notes(result: MissingPositives) -> list[str]:
    notes = ["← the threshold. Annotated pairs: how many captions, each against the others of its image, reach it."]
    if result.left_out:
        notes.append(
            f"Kept: the {len(result):,} highest; {format_count(result.left_out, 'pair')} more reach the threshold."
        )
    if (verified := result.verification) is not None:
        notes.append(
            f"Measured on the {verified.pairs:,} pairs of queries that people judged, {verified.positives:,} of them "
            f"verified: precision {_with_interval(verified.precision)}, recall {_with_interval(verified.recall)}, "
            f"average precision {_percent(verified.average_precision)} (guessing: {_percent(verified.chance)}). A pair "
            f"that nobody looked at counts as wrong: precision is a lower bound."
        )
    return notes


def _first_pairs(result: MissingPositives, width: int) -> str:
    lines = ["The first:"]
    table = result.table.head(_EXAMINED).with_columns(pl.col("text", "image_caption").str.replace_all(r"\s+", " "))
    table = table.unique(("image", pl.col("text").str.to_lowercase()), keep="first", maintain_order=True)
    for image, phi, text, own in table.head(_SHOWN).select("image", "phi", "text", "image_caption").iter_rows():
        lines += textwrap.wrap(
            f"{phi:.4g}  image {image}, “{own}”:", width, initial_indent="  ", subsequent_indent=_INDENT
        )
        lines += textwrap.wrap(f"“{text}”", width, initial_indent=_INDENT, subsequent_indent=_INDENT)
    return "\n".join(lines)


def _percent(value: float) -> str:
    if not isfinite(value):
        return "–"
    return f"{100 * value:.1f} %" if value >= 0.001 or value == 0 else f"{100 * value:.2g} %"


def _with_interval(estimate: Estimate) -> str:
    bounds = f" [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]" if isfinite(estimate.low) else ""
    return f"{_percent(estimate.mean)}{bounds}"


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
        lines += _about_people(result.judges, result.pooled)
    if result.judgements.skipped:
        lines.append(
            f"{format_count(result.judgements.skipped, 'row')} of images or captions not in the dataset left out."
        )
    return "\n".join(part for line in lines for part in textwrap.wrap(line, width))


def _about_people(judges: JudgeAgreement, pooled: bool) -> list[str]:
    kappa = judges.kappa
    scores = "single scores" if pooled else "the mean scores"
    kappas = (
        f"; Cohen's κ of two judges {_number(kappa['none'])}, weighted linearly {_number(kappa['linear'])}, "
        f"quadratically {_number(kappa['quadratic'])}"
        if isfinite(kappa["none"])
        else ""
    )
    return [
        f"{ONE_JUDGE}: one judge against the mean of the pair's others. {CEILING}: Pearson between {scores} and scores "
        "without the judges' noise (the root of the reliability), which no φ is expected to exceed. "
        f"{OF_CEILING}: Pearson of a φ as a share of that.",
        f"People: {format_count(judges.judgements, 'score')} for {format_count(judges.pairs, 'pair')}; reliability of "
        f"their mean {_number(judges.reliability)}, of one score {_number(judges.single_reliability)}; "
        f"Krippendorff's α {_number(judges.alpha)}{kappas}.",
    ]


def _section(part: str, subset: AgreementSubset, shown: tuple[str, ...], pooled: bool, width: int | None) -> str:
    size = format_count(subset.pairs, "pair") + (f", {format_count(subset.observations, 'score')}" if pooled else "")
    head = f"{SUBSET_TITLES[part]}: {size} of {format_count(subset.images, 'image')}"
    header = ("φ", *(COEFFICIENT_LABELS[name] for name in shown))
    rows, align = _rows(subset, shown, pooled), "llll"
    if subset.judges is not None and isfinite(subset.judges.ceiling(pooled)):
        shares = {phi: share for phi in subset.figures if isfinite(share := subset.of_ceiling(phi, pooled))}
        beside = [f"{100 * shares[row[0]]:.0f} %" if row[0] in shares else "" for row in rows]
        rows = tuple((*row[:2], share, *row[2:]) for row, share in zip(rows, beside, strict=True))
        header, align = (*header[:2], OF_CEILING, *header[2:]), "llrll"
    return f"{head}\n\n{Grid(header, rows, align).text(width)}"


def _rows(subset: AgreementSubset, shown: tuple[str, ...], pooled: bool) -> tuple[tuple[str, ...], ...]:
    """Each φ, under it how much it is above the first that is not the ground truth itself; then people themselves."""
    rows = []
    first = next((phi for phi in subset.figures if phi != BINARY), None)
    for phi, coefficients in subset.figures.items():
        rows.append((phi, *(_cell(coefficients[name]) for name in shown)))
        if (difference := subset.differences.get((phi, first or ""))) is not None:
            rows.append((f"  − {first}", *(_cell(difference[name], signed=True) for name in shown)))
    if (judges := subset.judges) is not None:
        rows.append((ONE_JUDGE, *(_number(judges.one_against_others[name]) for name in shown)))
        ceiling = _number(judges.ceiling(pooled))
        rows.append((CEILING, *(ceiling if name == "pearson" else "–" for name in shown)))
    return tuple(rows)


def _cell(estimate: Estimate, signed: bool = False) -> str:
    low, mean, high = estimate.low, estimate.mean, estimate.high
    if not isfinite(mean):
        return "–"
    bounds = f" [{_short(low)}, {_short(high)}]" if isfinite(low) and isfinite(high) else ""
    return f"{decimal(mean, 3, signed=signed)}{bounds}"


def _number(value: float) -> str:
    return f"{value:.3f}" if isfinite(value) else "–"


def _short(value: float) -> str:
    """Three digits without the zero before the point, which every coefficient has."""
    text = f"{round(value, 3) + 0.0:.3f}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


_LABEL_INDENT = 6 * " "


@RENDERERS.register("LabelQuality")
def label_quality_text(result: LabelQuality, width: int | None = None, *, shown: int = 10) -> str:
    """Everything that a terminal shows."""
    width = width or PAGE_WIDTH
    parts = [_wrapped(f"{result.dataset.name}: {format_count(result.suspects, 'suspect label')} to review", width)]
    if result.runs.height:
        parts += [failure_grid(result).text(width), _wrapped(_about_failures(result), width)]
    if len(result):
        reasons = result.reasons
        rows = [
            (f"{reason}: {reasons[reason]:,}", f"{words}.") for reason, words in REASONS.items() if reason in reasons
        ]
        parts += [two_columns(rows, width), "\n".join(_first(result, width, shown))]
    if missed := len(result) - result.suspects:
        text = (
            f"Last in the list, and not suspect: {format_count(missed, 'caption')} that every run ranks far down, or "
            "below an image that has all that the caption names."
        )
        parts.append(_wrapped(text, width))
    parts += ["\n".join(_wrapped(f"note: {note}", width) for note in result.notes)] if result.notes else []
    return "\n\n".join(part for part in parts if part)


@RENDERERS.register("ReviewedLabels")
def reviewed_text(result: ReviewedLabels, width: int | None = None) -> str:
    """What a review changed."""
    counts = [f"{result.counts[verdict]:,} {verdict}" for verdict in (*VERDICTS, "undecided") if result.counts[verdict]]
    dataset = result.dataset
    return (
        f"{', '.join(counts) or 'no verdicts'}: {format_count(len(dataset.image_ids), 'image')}, "
        f"{format_count(len(dataset.caption_ids), 'caption')}, "
        f"{format_count(len(result.relevance.items), 'relevant pair')}"
    )


def failure_grid(result: LabelQuality) -> Grid:
    """Of each run, how many failures are annotation problems, and how many remain the model's."""
    rows = []
    for row in result.runs.iter_rows(named=True):
        cells = [f"{row[name]:,}" for name in ("failures", "words", "same_caption", "same_picture", "annotation")]
        rows.append((row["run"], *cells, _part_of(row["model"], row["failures"])))
    header = ("run", "failures", "words", "same caption", "same picture", "annotation", "model")
    return Grid(header, tuple(rows), "l" + "r" * 6)


def _about_failures(result: LabelQuality) -> str:
    threshold = f"{result.settings['threshold']:.3g}"
    return (
        f"words: less than {threshold} of what the query names is named elsewhere; same caption, "
        "same picture: the first place has it too; annotation: any of these; model: what remains."
    )


def _part_of(part: int, whole: int) -> str:
    return f"{part:,} ({100 * part / whole:.1f} %)" if whole else "–"


def _first(result: LabelQuality, width: int, shown: int) -> Iterator[str]:
    if shown and result.suspects:
        yield "The first:"
    for row in result.table.head(min(shown, result.suspects)).iter_rows(named=True):
        head = f"{row['place']:>3}. image {row['image']}"
        head += f", caption {row['caption']}" if row["caption"] is not None else f" and image {row['suggested_image']}"
        yield from textwrap.wrap(f"{head}: {row['reason']} → {row['proposal']}", width, subsequent_indent=_LABEL_INDENT)
        for line in _facts(row):
            yield from textwrap.wrap(line, width, initial_indent=_LABEL_INDENT, subsequent_indent=_LABEL_INDENT)


def _facts(row: dict[str, Any]) -> Iterator[str]:
    if row["text"]:
        yield f"“{' '.join(row['text'].split())}”"
    if row["evidence"]:
        yield row["evidence"]


def _wrapped(text: str, width: int) -> str:
    return "\n".join(textwrap.wrap(text, width))
