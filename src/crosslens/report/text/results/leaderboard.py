"""Leaderboards as text: models down, datasets across, the best and what is as good as it marked."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from crosslens.core import DIRECTION_LABELS, PAGE_WIDTH, RENDERERS, Grid, split_name
from crosslens.metrics import facts_of, format_figure, format_interval, unit_sentence, with_intervals
from crosslens.pipeline import Leaderboard, Standing, significance_sentence

ABSENT = "–"
BEST, AS_GOOD, UNTESTED = "*", "=", "?"


@RENDERERS.register("Leaderboard")
def leaderboard_text(board: Leaderboard, width: int | None = PAGE_WIDTH) -> str:
    """A table per metric, or one table of all metrics where there is one dataset, and what its marks mean."""
    full = board_grids(board)
    intervals = width is None or all(grid.width <= width for grid in full.values())
    grids = full if intervals else board_grids(board, intervals=False)
    parts = [f"{title}\n{grid.text(width)}" for title, grid in grids.items()]
    notes = [line for note in explanations(board, intervals=intervals) for line in textwrap.wrap(note, PAGE_WIDTH)]
    return "\n\n".join([*parts, "\n".join(notes)])


def board_grids(board: Leaderboard, *, intervals: bool = True) -> dict[str, Grid]:
    """The tables by their titles: a row per model."""
    if len(board.datasets) == 1:
        columns = {metric_title(name): (board.datasets[0], name) for name in board.metrics}
        return {board.datasets[0]: _grid(board, columns, intervals=intervals)}
    return {
        metric_heading(name): _grid(
            board, {dataset: (dataset, name) for dataset in board.datasets}, intervals=intervals
        )
        for name in board.metrics
    }


def metric_title(name: str) -> str:
    """The name of a metric at the head of a column; an arrow where lower is better."""
    return name + ("" if facts_of(name).higher_is_better else " ↓")


def metric_heading(name: str) -> str:
    """The name of a metric above a table."""
    direction, metric = split_name(name)
    arrow = "" if facts_of(name).higher_is_better else " ↓"
    return f"{metric}{arrow}, {DIRECTION_LABELS.get(direction, direction)}"


def mark(best: bool, significant: bool | None, alone: bool = False) -> str:
    """``*`` for the best, ``=`` where the difference to it may be chance, ``?`` where it was not tested."""
    if best:
        return "" if alone else BEST
    return UNTESTED if significant is None else "" if significant else AS_GOOD


def marks_sentence(level: float) -> str:
    """What the marks mean, in every form of a leaderboard."""
    return (
        f"{BEST}: the best on a dataset. {AS_GOOD}: the difference to it may be chance (p ≥ {1 - level:.2g}); "
        f"{UNTESTED}: not tested; without a mark: significantly worse."
    )


def is_alone(board: Leaderboard, dataset: str, metric: str) -> bool:
    """Whether a column has one figure only: nothing to be better than."""
    return sum((model, dataset, metric) in board.cells for model in board.models) == 1


def _grid(board: Leaderboard, columns: Mapping[str, tuple[str, str]], *, intervals: bool) -> Grid:
    filled = []
    for dataset, metric in columns.values():
        alone = is_alone(board, dataset, metric)
        cells = [board.cell(model, dataset, metric) for model in board.models]
        figures = [f"{ABSENT}  " if cell is None else _figure(cell, alone) for cell in cells]
        ends = ["" if cell is None else format_interval(metric, cell.low, cell.high) for cell in cells]
        filled.append(with_intervals(figures, ends if intervals else [""] * len(ends)))
    rows = tuple(zip(board.models, *filled, strict=True))
    return Grid(("model", *columns), rows, "l" * (1 + len(columns)))


def _figure(cell: Standing, alone: bool) -> str:
    # Two characters for the mark in every row, so that the numbers stay under each other.
    return f"{format_figure(cell.metric, cell.mean)} {mark(cell.best, cell.significant, alone) or ' '}"


def _legend(board: Leaderboard) -> list[str]:
    """What the marks mean and how differences were tested, as sentences."""
    untested = any(mark(cell.best, cell.significant) == UNTESTED for cell in board.cells.values())
    sentences = [marks_sentence(board.level)] if board.tested or untested else []
    if board.tested:
        test = "paired permutation test over images against the best"
        sentences.append(significance_sentence(test, board.permutations, board.correction, board.tests))
        if board.tests > sum(cell.significant is not None for cell in board.cells.values()):
            sentences.append("All pairs of models are tests, since the best was chosen among all.")
    return sentences


def explanations(board: Leaderboard, *, intervals: bool = True) -> list[str]:
    """Everything that a reader of the tables has to know, as sentences."""
    bounded = any(format_interval(cell.metric, cell.low, cell.high) for cell in board.cells.values())
    sentences = _legend(board)
    if bounded and intervals:
        sentences.append(f"In brackets: {100 * board.level:g}% intervals over images.")
    elif bounded:
        sentences.append("Intervals do not fit: see --json, or fewer metrics.")
    sentences.append(unit_sentence(board.metrics))
    if any(not facts_of(name).higher_is_better for name in board.metrics):
        sentences.append("↓: lower is better.")
    if len(board.cells) < len(board.models) * len(board.datasets) * len(board.metrics):
        sentences.append(f"{ABSENT}: not evaluated.")
    return [*sentences, *board.notes]
