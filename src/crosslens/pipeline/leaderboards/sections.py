"""How a leaderboard is shown: models down, datasets or metrics across, the best and what is as good as it marked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING

from crosslens.core import ABSENT, DIRECTION_LABELS, Bars, Cell, Figure, Row, Section, Series, Table, split_name
from crosslens.metrics import bounds_of, facts_of, metric_figure, unit_of, unit_sentence
from crosslens.statistics import significance_sentence

if TYPE_CHECKING:
    from crosslens.pipeline.leaderboards.results import Leaderboard

BEST, AS_GOOD, UNTESTED = "*", "=", "?"


def board_sections(board: Leaderboard) -> Iterator[Section]:
    """A table per metric, or one of all metrics where there is one dataset; the last says what marks mean."""
    titles = {name: _metric_heading(name) for name in board.metrics}
    charts = Row(tuple(_bars(board, name, title) for name, title in titles.items()))
    if len(board.datasets) == 1:
        columns = {_with_arrow(name, name): (board.datasets[0], name) for name in board.metrics}
        tables = [board_table(board, columns, board.datasets[0])]
    else:
        tables = [
            board_table(
                board, {dataset: (dataset, name) for dataset in board.datasets}, title, noted=name == board.metrics[-1]
            )
            for name, title in titles.items()
        ]
    yield Section("", (*tables, charts))


def _metric_heading(name: str) -> str:
    direction, metric = split_name(name)
    return f"{_with_arrow(name, metric)}, {DIRECTION_LABELS.get(direction, direction)}"


def _bars(board: Leaderboard, name: str, title: str) -> Bars:
    share = unit_of(name) == "share"
    series = tuple(
        Series(dataset, tuple(_figure(board, model, dataset, name) for model in board.models))
        for dataset in board.datasets
    )
    bounded = any(figure.bounded for own in series for figure in own.figures)
    return Bars(
        title=title, about=f"{100 * board.level:g}% intervals over images" if bounded else "", groups=board.models,
        series=series, heading="model", axis="%" if share else "", limits=bounds_of(name) if share else None,
    )  # fmt: skip


def board_table(board: Leaderboard, columns: Mapping[str, tuple[str, str]], title: str, *, noted: bool = True) -> Table:
    """A row per model, a column per dataset and metric; without intervals where they do not fit."""
    keys = list(columns.values())
    best = frozenset(
        (row, column)
        for row, model in enumerate(board.models)
        for column, key in enumerate(keys, start=1)
        if _mark(board, model, *key) == BEST
    )

    def table(*, intervals: bool) -> Table:
        rows: tuple[tuple[Cell, ...], ...] = tuple(
            (model, *(_figure(board, model, *key, intervals=intervals) for key in keys)) for model in board.models
        )
        notes = tuple(board_notes(board, intervals=intervals)) if noted else ()
        align = "l" * (1 + len(keys))  # marks behind the figures would push numbers on the right out of line
        return Table(("model", *columns), rows, align, title=title, notes=notes, best=best)

    return replace(table(intervals=True), narrow=table(intervals=False))


def _figure(board: Leaderboard, model: str, dataset: str, metric: str, *, intervals: bool = True) -> Figure:
    cell = board.cell(model, dataset, metric)
    if cell is None:
        return metric_figure(metric, None)
    figure = metric_figure(metric, cell.mean, *((cell.low, cell.high) if intervals else ()))
    return replace(figure, mark=_mark(board, model, dataset, metric))


def _mark(board: Leaderboard, model: str, dataset: str, metric: str) -> str:
    """``*`` for the best, ``=`` where the difference to it may be chance, ``?`` where it was not tested."""
    cell = board.cell(model, dataset, metric)
    if cell is None or sum((other, dataset, metric) in board.cells for other in board.models) == 1:
        return ""  # nothing to be better than
    return BEST if cell.best else UNTESTED if cell.significant is None else "" if cell.significant else AS_GOOD


def board_notes(board: Leaderboard, *, intervals: bool = True) -> Iterator[str]:
    """Everything that a reader of the tables has to know, as sentences."""
    cells = board.cells.values()
    if board.tested or any(not cell.best and cell.significant is None for cell in cells):
        yield (
            f"{BEST}: the best on a dataset. {AS_GOOD}: the difference to it may be chance "
            f"(p ≥ {1 - board.level:.2g}); {UNTESTED}: not tested; without a mark: significantly worse."
        )
    if board.tested:
        test = "paired permutation test over images against the best"
        yield significance_sentence(test, board.permutations, board.correction, board.tests)
        if board.tests > sum(cell.significant is not None for cell in cells):
            yield "All pairs of models are tests, since the best was chosen among all."
    if any(isfinite(cell.low) and isfinite(cell.high) for cell in cells):
        yield (
            f"In brackets: {100 * board.level:g}% intervals over images."
            if intervals
            else "Intervals do not fit: see --json, or fewer metrics."
        )
    yield unit_sentence(board.metrics)
    if any(not facts_of(name).higher_is_better for name in board.metrics):
        yield "↓: lower is better."
    if len(board.cells) < len(board.models) * len(board.datasets) * len(board.metrics):
        yield f"{ABSENT}: not evaluated."
    yield from board.notes


def _with_arrow(name: str, shown: str) -> str:
    return shown if facts_of(name).higher_is_better else f"{shown} ↓"
