"""The drops of several studies in one table, for a terminal and for other programs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import polars as pl

from crosslens.core import PAGE_WIDTH, Grid, UnknownNameError, percent
from crosslens.metrics import format_count, format_figure, unit_sentence, with_intervals
from crosslens.pipeline import DropTable
from crosslens.report.export.files import Files
from crosslens.report.export.tables import grid_latex, grid_markdown
from crosslens.report.text.comparison import p_value, significance_sentence
from crosslens.report.text.runs import difference_cells

TABLE_FORMATS = ("csv", "latex", "markdown")
_ABSENT = "–"
_NO_INTERVALS: dict[str, Any] = dict.fromkeys(("low", "high", "percent_low", "percent_high"), float("nan"))
PERCENT_SENTENCE = "percent of the figure before, which BRIT's Table 4 fits best."


def drop_grid(table: DropTable, *, intervals: bool = True) -> Grid:
    """The figure before, a row per perturbation and their mean; per model or dataset, points and then percent."""
    filled = []
    for column in table.columns:
        cells = {name: table.cells[column, name] for name in table.perturbations if (column, name) in table.cells}
        if column in table.means:
            cells["mean"] = table.means[column]
        shown = [cell if intervals else replace(cell, **_NO_INTERVALS) for cell in cells.values()]
        points = difference_cells((table.metric, cell.drop, cell.low, cell.high) for cell in shown)
        shares = percent_cells((cell.percent, cell.percent_low, cell.percent_high) for cell in shown)
        before = format_figure(table.metric, table.means[column].before) if cells else _ABSENT
        for texts, first in ((points, before), (shares, "")):
            by_name = dict(zip(cells, texts, strict=True))
            filled.append([first, *(by_name.get(name, _ABSENT) for name in (*table.perturbations, "mean"))])
    rows = tuple(zip(("before", *table.perturbations, "mean"), *filled, strict=True))
    header = (title for column in table.columns for title in (column, f"{column}, %"))
    return Grid(("perturbation", *header), rows, "l" + ("l" if intervals else "r") * 2 * len(table.columns))


def model_tests_grid(table: DropTable) -> Grid:
    """A row per pair of columns that were tested: the difference of their mean drops, in points and in percent."""
    tests, least = table.tests, table.permutations
    columns = (
        [f"{test.first} − {test.second}" for test in tests],
        difference_cells((table.metric, test.points, test.low, test.high) for test in tests),
        [p_value(test.adjusted_p, least) for test in tests],
        percent_cells((test.percent, test.percent_low, test.percent_high) for test in tests),
        [p_value(test.percent_adjusted_p, least) for test in tests],
    )
    header = ("difference of the mean drops", "points", "p", "percent", "p")
    return Grid(header, tuple(zip(*columns, strict=True)), "llrlr")


def model_tests_sentence(table: DropTable) -> str:
    """How models were tested."""
    names = {test.perturbations for test in table.tests}
    number = format_count(names.pop(), "perturbation") if len(names) == 1 else "the perturbations that both have"
    test = f"paired permutation test over images of the mean drop over {number}"
    return (
        "Above 0: the first model loses more. A model that starts low has fewer points to lose: compare percent. "
        + significance_sentence(test, table.permutations, table.correction, 2 * len(table.tests))
    )


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
    parts = [f"Drop of {table.metric}", grid.text(width), "\n".join(textwrap.wrap(note, PAGE_WIDTH))]
    if table.tests:
        told = "\n".join(textwrap.wrap(model_tests_sentence(table), PAGE_WIDTH))
        parts += ["Do models differ?", model_tests_grid(table).text(width), told]
    return "\n\n".join(parts)


def render_drop_table(table: DropTable, to: str) -> Files:
    """The table in a format of :data:`TABLE_FORMATS`."""
    if to == "csv":
        return {"": pl.DataFrame(table.rows).write_csv()}
    grids = [drop_grid(table), *([model_tests_grid(table)] if table.tests else [])]
    if to == "latex":
        about = "".join(f"% {line}\n" for line in textwrap.wrap(model_tests_sentence(table))) if table.tests else ""
        return {"": "\n".join(map(grid_latex, grids)) + about}
    if to == "markdown":
        return {
            "": "\n".join([*map(grid_markdown, grids), *([model_tests_sentence(table) + "\n"] if table.tests else [])])
        }
    raise UnknownNameError("export format of robustness studies", to, TABLE_FORMATS)
