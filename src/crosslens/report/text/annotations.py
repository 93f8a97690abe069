"""Labels to review as text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from crosslens.analyze import (
    REASONS,
    VERDICTS,
    LabelQuality,
    ReviewedLabels,
)
from crosslens.core import PAGE_WIDTH, RENDERERS, Grid, two_columns
from crosslens.metrics import format_count

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
