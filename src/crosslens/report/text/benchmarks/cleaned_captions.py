"""Cleaned captions as text: how many are dropped and repaired, by reason, with an example of each."""

from __future__ import annotations

import polars as pl

from crosslens.build import CleanedCaptions
from crosslens.core import PAGE_WIDTH, RENDERERS, Grid, printable_line
from crosslens.metrics import format_count

_NARROWEST = 20


@RENDERERS.register("CleanedCaptions")
def cleaned_captions_text(result: CleanedCaptions, width: int | None = None) -> str:
    """The counts, then a table of reasons and one of repairs."""
    kept = int(result.table["kept"].sum())
    changed = result.table.filter(pl.col("kept") & (pl.col("text") != pl.col("cleaned"))).height
    parts = [f"{format_count(result.table.height, 'caption')}: {kept:,} kept, {changed:,} of them repaired"]
    if result.reasons.height:
        parts.append(_counts("dropped because", result.reasons, result.table.height, width))
    if result.repairs.height:
        parts.append(_counts("repaired", result.repairs, result.table.height, width))
    return "\n\n".join(parts)


def _counts(title: str, table: pl.DataFrame, total: int, width: int | None) -> str:
    rows = [(name, f"{count:,}", f"{count / total:.1%}", example) for name, count, example in table.iter_rows()]
    header = (title, "captions", "share", "for example")
    used = Grid(header[:3], tuple(row[:3] for row in rows), "lrr").width + 3
    room = max((width or PAGE_WIDTH) - used, _NARROWEST)
    return Grid(header, tuple((*row[:3], _shortened(row[3], room)) for row in rows), "lrrl").text(width)


def _shortened(text: str, room: int) -> str:
    text = printable_line(text)
    return text if len(text) <= room else text[: room - 1] + "…"
