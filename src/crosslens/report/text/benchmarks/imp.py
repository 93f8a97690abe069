"""A build of an IMP benchmark as text: what each stage left, the spread of the images, agreement, what to do next."""

from __future__ import annotations

from textwrap import fill

from crosslens.build import Imp, agreement_line, dropped_captions, next_step
from crosslens.core import PAGE_WIDTH, RENDERERS, Grid, two_columns


@RENDERERS.register("Imp")
def imp_text(imp: Imp, width: int | None = PAGE_WIDTH) -> str:
    """The counts of all stages, then whatever is known so far."""
    columns = width or PAGE_WIDTH
    counts = Grid(("stage", ""), tuple((name, f"{count:,}") for name, count in imp.counts.items()), "lr")
    parts = [counts.text(width), spread_grid(imp).text(width)]
    dropped = dropped_captions(imp)
    if dropped:
        text = ", ".join(f"{reason} {count:,}" for reason, count in dropped.items())
        parts.append(two_columns([("captions dropped", text)], columns))
    if imp.agreement is not None:
        parts.append(two_columns([("annotators", agreement_line(imp))], columns))
    if imp.waiting:
        sheets = [(name, f"{judged:,} of {needed:,} verdicts") for name, (judged, needed) in imp.waiting.items()]
        parts += [two_columns(sheets, columns), fill(next_step(imp), columns)]
    return "\n\n".join(parts)


def spread_grid(imp: Imp) -> Grid:
    """How far apart the sampled images are, for each way of sampling."""
    header = ("sampled in", "nearest, mean", "least", "coverage, mean", "most")
    rows = [
        (spread.space, *(f"{value:.4f}" for value in (
            spread.nearest_mean, spread.nearest_min, spread.covered_mean, spread.covered_max)))
        for spread in imp.spreads
    ]  # fmt: skip
    return Grid(header, tuple(rows), "lrrrr")
