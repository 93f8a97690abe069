"""A leaderboard as a page of its own: a table per metric, the best in bold."""

from __future__ import annotations

from html import escape

from crosslens.metrics import format_figure, format_interval
from crosslens.pipeline import Leaderboard, Standing
from crosslens.report.html import html_page, raw_table
from crosslens.report.pages.pictures import DARK
from crosslens.report.text.results.leaderboard import ABSENT, explanations, is_alone, mark, metric_heading

_STYLE = (
    f"{DARK}"
    """
body { background: var(--paper); color: var(--ink); }
th, td { border-color: var(--line); }
.board { overflow-x: auto; }
.board:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
.board td { white-space: nowrap; font-variant-numeric: tabular-nums; }
.board small { color: var(--soft); }
"""
)


def leaderboard_page(board: Leaderboard, title: str = "Leaderboard") -> str:
    """The whole page; it needs no other file."""
    parts = []
    for metric in board.metrics:
        rows = [
            f'<tr><th scope="row">{escape(model)}</th>'
            + "".join(_cell(board, model, dataset, metric) for dataset in board.datasets)
            + "</tr>"
            for model in board.models
        ]
        table = raw_table(("model", *board.datasets), rows)
        heading = escape(metric_heading(metric))
        # What scrolls sideways must be reachable by the keyboard, and have a name.
        parts.append(
            f'<h2>{heading}</h2>\n<div class="board" tabindex="0" role="region" aria-label="{heading}">{table}</div>'
        )
    parts += [f"<p>{escape(sentence)}</p>" for sentence in explanations(board)]
    return html_page(title, "\n".join(parts), style=_STYLE)


def _cell(board: Leaderboard, model: str, dataset: str, metric: str) -> str:
    cell = board.cell(model, dataset, metric)
    if cell is None:
        return f"<td>{ABSENT}</td>"
    return f"<td>{_figure(cell, is_alone(board, dataset, metric))}</td>"


def _figure(cell: Standing, alone: bool) -> str:
    figure = escape(f"{format_figure(cell.metric, cell.mean)} {mark(cell.best, cell.significant, alone)}".rstrip())
    figure = f"<strong>{figure}</strong>" if cell.best and not alone else figure
    interval = format_interval(cell.metric, cell.low, cell.high)
    return f"{figure} <small>{escape(interval)}</small>" if interval else figure
