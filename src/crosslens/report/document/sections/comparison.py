"""Runs against each other: paired tests, and the leaderboard of an audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from crosslens.core import Grid
from crosslens.metrics import format_figure, unit_sentence
from crosslens.pipeline import CORRECTION_WORDS, Leaderboard, board_table
from crosslens.report.document.context import ReportContext
from crosslens.report.document.parts import Content, ReportSection, notes, table_of
from crosslens.report.forms.page import paragraph
from crosslens.report.text.comparison import p_value
from crosslens.report.text.runs import difference_cells

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
        results = comparison.results
        differences = difference_cells((entry.metric, entry.difference, entry.low, entry.high) for entry in results)
        rows = tuple(
            (
                entry.other, entry.baseline, entry.metric, format_figure(entry.metric, entry.other_mean),
                format_figure(entry.metric, entry.baseline_mean), difference,
                p_value(entry.adjusted_p, comparison.permutations), f"{entry.wins:,} : {entry.losses:,}",
            )
            for entry, difference in zip(results, differences, strict=True)
        )  # fmt: skip
        header = ("run A", "run B", "metric", "A", "B", "A − B", "p", "A better : B better")
        correction = CORRECTION_WORDS.get(comparison.correction, comparison.correction)
        about = (
            f"Paired permutation test over images, two-sided, {comparison.permutations:,} permutations; "
            f"p {correction}. {unit_sentence(entry.metric for entry in results)}"
        )
        title = f"Runs compared{f' on {dataset}' if dataset else ''}"
        parts += [table_of(title, Grid(header, rows, "lllrrlrr")), paragraph(about, "facts"), notes(comparison.notes)]
    return [part for part in parts if part]
