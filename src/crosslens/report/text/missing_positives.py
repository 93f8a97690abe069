"""Missing positives as text: a summary, counts at several thresholds, and the first pairs."""

from __future__ import annotations

import textwrap
from math import isfinite

import numpy as np
import polars as pl

from crosslens.analyze import MissingPositives, ThresholdCount
from crosslens.core import PAGE_WIDTH, RENDERERS, Grid
from crosslens.metrics import format_count
from crosslens.statistics import Estimate

_SHOWN, _EXAMINED = 5, 100
_INDENT = 8 * " "


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
