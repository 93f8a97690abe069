"""Labels to review in words: what remains of each run's failures, how often each reason, the first of the list."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from crosslens.analyze.label_quality_result import LabelQuality
from crosslens.analyze.label_quality_review import Reviewed
from crosslens.analyze.label_quality_signals import REASONS, VERDICTS
from crosslens.core.grid import PAGE_WIDTH, Grid, two_columns
from crosslens.metrics.figures import count

_INDENT = 6 * " "


def label_quality_text(found: LabelQuality, width: int | None = None, *, shown: int = 10) -> str:
    """Everything that a terminal shows."""
    width = width or PAGE_WIDTH
    parts = [_wrapped(f"{found.dataset.name}: {count(len(found), 'label')} to review", width)]
    if found.runs.height:
        parts += [failure_grid(found).text(width), _wrapped(_about_failures(found), width)]
    if len(found):
        reasons = found.reasons
        rows = [(f"{one}: {reasons[one]:,}", f"{words}.") for one, words in REASONS.items() if one in reasons]
        parts += [two_columns(rows, width), "\n".join(_first(found, width, shown))]
    parts += ["\n".join(_wrapped(f"note: {one}", width) for one in found.notes)] if found.notes else []
    return "\n\n".join(part for part in parts if part)


def reviewed_text(found: Reviewed) -> str:
    """What a review changed."""
    told = [f"{found.counts[one]:,} {one}" for one in (*VERDICTS, "undecided") if found.counts[one]]
    dataset = found.dataset
    return (
        f"{', '.join(told) or 'no verdicts'}: {count(len(dataset.image_ids), 'image')}, "
        f"{count(len(dataset.caption_ids), 'caption')}, {count(len(found.relevance.items), 'relevant pair')}"
    )


def failure_grid(found: LabelQuality) -> Grid:
    """Of each run, how many failures are annotation problems, and how many remain the model's."""
    rows = []
    for row in found.runs.iter_rows(named=True):
        cells = [f"{row[name]:,}" for name in ("failures", "words", "same_caption", "same_picture", "annotation")]
        rows.append((row["run"], *cells, _share(row["model"], row["failures"])))
    header = ("run", "failures", "words", "same caption", "same picture", "annotation", "model")
    return Grid(header, tuple(rows), "l" + "r" * 6)


def _about_failures(found: LabelQuality) -> str:
    return (
        f"words: less than {found.settings['threshold']:.3g} of what the query names is named elsewhere; same caption, "
        "same picture: the first place has it too; annotation: any of these; model: what remains."
    )


def _share(part: int, whole: int) -> str:
    return f"{part:,} ({100 * part / whole:.1f} %)" if whole else "–"


def _first(found: LabelQuality, width: int, shown: int) -> Iterator[str]:
    if shown:
        yield "The first:"
    for row in found.table.head(shown).iter_rows(named=True):
        head = f"{row['place']:>3}. image {row['image']}"
        head += f", caption {row['caption']}" if row["caption"] is not None else f" and image {row['suggested_image']}"
        yield from textwrap.wrap(f"{head}: {row['reason']} → {row['proposal']}", width, subsequent_indent=_INDENT)
        for line in _facts(row):
            yield from textwrap.wrap(line, width, initial_indent=_INDENT, subsequent_indent=_INDENT)


def _facts(row: dict[str, Any]) -> Iterator[str]:
    if row["text"]:
        yield f"“{' '.join(row['text'].split())}”"
    if row["evidence"]:
        yield row["evidence"]


def _wrapped(text: str, width: int) -> str:
    return "\n".join(textwrap.wrap(text, width))
