"""Runs against each other: paired tests, and the leaderboard of an audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from crosslens.core import Figure, Table
from crosslens.metrics import metric_figure, unit_sentence
from crosslens.pipeline import Leaderboard, board_table, difference_figure
from crosslens.report.document.context import ReportContext
from crosslens.report.document.parts import Content, ReportSection, notes
from crosslens.statistics import significance_sentence

_MOST_COLUMNS = 8
_FIRST = ("t2i/Hit@1", "i2t/Hit@1", "t2i/Hit@5", "i2t/Hit@5", "t2i/Hit@10", "i2t/Hit@10", "Rsum")


def leaderboard(context: ReportContext) -> ReportSection | None:
    """The leaderboard that an audit computed; without one, the runs of each dataset compared in pairs."""
    stored = [_board(result.payload) for result in context.inputs.stage("leaderboard")]
    parts = [part for board in stored for part in board] or list(_pairs(context))
    return ReportSection("leaderboard", "Leaderboard", tuple(parts)) if parts else None


def _board(payload: Mapping[str, Any]) -> list[Content]:
    board = Leaderboard.from_dict(payload)
    room = max(1, _MOST_COLUMNS // len(board.datasets))
    chosen = ([name for name in _FIRST if name in board.metrics] or list(board.metrics))[:room]
    several = len(board.datasets) > 1
    columns = {
        f"{dataset}: {name}" if several else name: (dataset, name) for dataset in board.datasets for name in chosen
    }
    shown = replace(board, metrics=tuple(chosen), notes=())
    return [board_table(shown, columns, "Models and datasets"), notes(board.notes)]


def _pairs(context: ReportContext) -> list[Content]:
    parts: list[Content] = []
    for dataset, comparison in context.comparisons.items():
        rows = tuple(
            (
                entry.other,
                entry.baseline,
                entry.metric,
                metric_figure(entry.metric, entry.other_mean),
                metric_figure(entry.metric, entry.baseline_mean),
                difference_figure(entry),
                Figure.p(entry.adjusted_p, comparison.permutations),
                f"{entry.wins:,} : {entry.losses:,}",
            )
            for entry in comparison.results
        )
        header = ("run A", "run B", "metric", "A", "B", "A − B", "p", "A better : B better")
        test = "paired permutation test over images"
        about = (
            significance_sentence(test, comparison.permutations, comparison.correction, len(rows)),
            unit_sentence(entry.metric for entry in comparison.results),
        )
        title = f"Runs compared{f' on {dataset}' if dataset else ''}"
        parts += [Table(header, rows, "lllrrlrr", title=title, notes=about), notes(comparison.notes)]
    return [part for part in parts if part]
