"""The drops of several studies in one table, for a terminal and for other programs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import polars as pl

from crosslens.core import PAGE_WIDTH, Grid, UnknownNameError, percent
from crosslens.metrics import format_figure, unit_sentence, with_intervals
from crosslens.pipeline import DropTable
from crosslens.report.export.files import Files
from crosslens.report.export.tables import grid_latex, grid_markdown
from crosslens.report.text.runs import difference_cells

TABLE_FORMATS = ("csv", "latex", "markdown")
_ABSENT = "–"
_NO_INTERVALS: dict[str, Any] = dict.fromkeys(("low", "high", "percent_low", "percent_high"), float("nan"))
PERCENT_SENTENCE = "percent of the figure before, which BRIT's Table 4 fits best."


def drop_grid(table: DropTable, *, intervals: bool = True) -> Grid:
    """A row per perturbation and a last one with their mean; per model or dataset, points and then percent."""
    filled = []
    for column in table.columns:
        cells = {name: table.cells[column, name] for name in table.perturbations if (column, name) in table.cells}
        shown = [cell if intervals else replace(cell, **_NO_INTERVALS) for cell in cells.values()]
        points = difference_cells((table.metric, cell.drop, cell.low, cell.high) for cell in shown)
        shares = percent_cells((cell.percent, cell.percent_low, cell.percent_high) for cell in shown)
        if cells:
            points.append(format_figure(table.metric, table.mean(column), signed=True))
            shares.append(percent(table.mean(column, "percent") / 100, signed=True))
        for texts in (points, shares):
            by_name = dict(zip((*cells, "mean"), texts, strict=False))
            filled.append([by_name.get(name, _ABSENT) for name in (*table.perturbations, "mean")])
    rows = tuple(zip((*table.perturbations, "mean"), *filled, strict=True))
    header = (title for column in table.columns for title in (column, f"{column}, %"))
    return Grid(("perturbation", *header), rows, "l" + ("l" if intervals else "r") * 2 * len(table.columns))


def percent_cells(figures: Iterable[tuple[float | None, float | None, float | None]]) -> list[str]:
    """One column of drops in percent, with intervals where there are any."""
    texts = [[percent(None if value is None else value / 100, signed=True) for value in row] for row in figures]
    return with_intervals(
        [figure for figure, _, _ in texts], [f"[{low}, {high}]" if low != _ABSENT else "" for _, low, high in texts]
    )


def drop_table_text(table: DropTable, width: int | None = PAGE_WIDTH) -> str:
    """The table, with intervals where they fit, and what the figures are."""
    grid = drop_grid(table)
    intervals = width is None or grid.width <= width
    grid = grid if intervals else drop_grid(table, intervals=False)
    models = {cell.models for cell in table.cells.values()} - {1}
    averaged = f"Means over {' or '.join(map(str, sorted(models)))} models. " if models else ""
    brackets = f"In brackets: {100 * table.level:g}% interval over images." if intervals else ""
    hidden = "" if intervals else "Intervals do not fit: see crosslens plot, or --json."
    unit = unit_sentence([table.metric]).rstrip(".")
    note = (
        f"Drop: before − after; above 0 is worse. {averaged}{unit}; in the columns with %, {PERCENT_SENTENCE} "
        f"{brackets}{hidden}"
    )
    return "\n\n".join([f"Drop of {table.metric}", grid.text(width), "\n".join(textwrap.wrap(note, PAGE_WIDTH))])


def render_drop_table(table: DropTable, to: str) -> Files:
    """The table in a format of :data:`TABLE_FORMATS`."""
    if to == "csv":
        return {"": pl.DataFrame(table.rows).write_csv()}
    if to == "latex":
        return {"": grid_latex(drop_grid(table))}
    if to == "markdown":
        return {"": grid_markdown(drop_grid(table))}
    raise UnknownNameError("export format of robustness studies", to, TABLE_FORMATS)
