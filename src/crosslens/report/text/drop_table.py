"""The drops of several studies in one table, for a terminal and for other programs."""

from __future__ import annotations

import textwrap

import polars as pl

from crosslens.core import PAGE_WIDTH, Grid, UnknownNameError
from crosslens.metrics import format_figure, unit_sentence
from crosslens.pipeline import DropTable
from crosslens.report.export.files import Files
from crosslens.report.export.tables import grid_latex, grid_markdown
from crosslens.report.text.runs import difference_cells

TABLE_FORMATS = ("csv", "latex", "markdown")
_ABSENT = "–"


def drop_grid(table: DropTable, *, intervals: bool = True) -> Grid:
    """A row per perturbation and a last one with their mean, a column per model or dataset."""
    filled = []
    for column in table.columns:
        cells = [table.cells.get((column, name)) for name in table.perturbations]
        present = [cell for cell in cells if cell is not None]
        shown = iter(
            difference_cells((table.metric, cell.drop, cell.low, cell.high) for cell in present)
            if intervals
            else [format_figure(table.metric, cell.drop, signed=True) for cell in present]
        )
        mean = format_figure(table.metric, table.mean(column), signed=True) if present else _ABSENT
        filled.append([*(_ABSENT if cell is None else next(shown) for cell in cells), mean])
    rows = tuple(zip((*table.perturbations, "mean"), *filled, strict=True))
    return Grid(("perturbation", *table.columns), rows, "l" + ("l" if intervals else "r") * len(table.columns))


def drop_table_text(table: DropTable, width: int | None = PAGE_WIDTH) -> str:
    """The table, with intervals where they fit, and what the figures are."""
    grid = drop_grid(table)
    intervals = width is None or grid.width <= width
    grid = grid if intervals else drop_grid(table, intervals=False)
    models = {cell.models for cell in table.cells.values()} - {1}
    averaged = f"Means over {' or '.join(map(str, sorted(models)))} models. " if models else ""
    brackets = f"In brackets: {100 * table.level:g}% interval over images." if intervals else ""
    hidden = "" if intervals else "Intervals do not fit: see crosslens plot, or --json."
    note = f"Drop: before − after; above 0 is worse. {averaged}{unit_sentence([table.metric])} {brackets}{hidden}"
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
