"""Filter loss as text: what a similarity threshold throws away, by level."""

from __future__ import annotations

import textwrap

from crosslens.analyze import FilterLoss
from crosslens.core import PAGE_WIDTH, RENDERERS, Figure, Grid, percent
from crosslens.metrics import format_count


def filter_loss_grid(result: FilterLoss) -> Grid:
    """A row per threshold, a column per level with its interval."""
    levels = result.levels
    known = result.web_pairs > 0
    rows = []
    for part in result.table.partition_by("threshold", maintain_order=True):
        cells = [str(Figure.percent(row["lost"], row["low"], row["high"])) for row in part.to_dicts()]
        keeps = [percent(part["keeps"][0])] if known else []
        rows.append((f"{part['threshold'][0]:.4g}", *keeps, *cells))
    header = ("threshold", *(["web kept"] if known else []), *levels)
    return Grid(header, tuple(rows), "r" + "r" * known + "l" * len(levels))


@RENDERERS.register("FilterLoss")
def filter_loss_text(result: FilterLoss, width: int | None = None) -> str:
    """The table and what its numbers are."""
    counts = dict(result.table.select("level", "pairs").unique(maintain_order=True).iter_rows())
    pairs = ", ".join(f"{level} {count:,}" for level, count in counts.items())
    notes = [
        f"Percent of pairs of {result.dataset} that {result.model} scores below the threshold, with "
        f"{100 * result.level:g}% intervals over images. Pairs: {pairs}."
    ]
    if result.web_pairs:
        notes.append(f"web kept: percent of {format_count(result.web_pairs, 'web pair')} that reach the threshold.")
    lines = ["\n".join(textwrap.wrap(note, width or PAGE_WIDTH)) for note in notes]
    return "\n\n".join([filter_loss_grid(result).text(width), "\n".join(lines)])
