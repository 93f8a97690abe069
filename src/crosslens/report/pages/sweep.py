"""The page of a sweep: learning curves, the table, its notes, and every training."""

from __future__ import annotations

from html import escape
from urllib.parse import quote

from crosslens.metrics import format_figure
from crosslens.report.html import folded, html_page, html_table, raw_table
from crosslens.report.plots import style
from crosslens.report.plots.learning_curves import sweep_figures
from crosslens.report.text.training.sweeps import failure_lines, sweep_grid, sweep_notes, sweep_title
from crosslens.train import Sweep


def sweep_page(sweep: Sweep) -> str:
    """One page that needs no other file."""
    style.plotly_objects()
    from plotly.offline import get_plotlyjs

    grid = sweep_grid(sweep)
    failures = "".join(f"<li>{escape(line)}</li>" for line in failure_lines(sweep))
    body = [
        f"<p>{escape(sweep_title(sweep))}.</p>",
        f'<ul class="failures">{failures}</ul>' if failures else "",
        *(style.figure_html(drawn, number) for number, drawn in enumerate(sweep_figures(sweep), start=1)),
        f'<h2>Table</h2>\n<div class="wide">{html_table(grid.header, grid.rows)}</div>',
        *(f"<p>{escape(note)}</p>" for note in sweep_notes(sweep)),
        f'<div class="wide">{folded("Every training, with its curves", _trainings(sweep))}</div>',
    ]
    title = f"Sweep of {sweep.plan.name}"
    return html_page(title, "\n".join(filter(None, body)), style=_STYLE, script=get_plotlyjs())


def _trainings(sweep: Sweep) -> str:
    """A table of all trainings; a folder leads to the page of its curves."""
    varied, rows = list(sweep.plan.varied), []
    for training in sweep.as_dict()["trainings"]:
        test, validation = training["test"] or {}, training["validation"] or {}
        cells = [training["settings"][name] for name in varied]
        cells += [str(training["seed"]), ", ".join(format_figure(name, value) for name, value in validation.items())]
        cells += [format_figure(name, test[name]) if name in test else "–" for name in sweep.metrics]
        folder = escape(training["folder"])
        last = f'<a href="{quote(training["folder"])}/curves.html">{folder}</a>'
        shown = [*map(escape, cells), last if training["failure"] is None else escape(training["failure"])]
        rows.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in shown)}</tr>")
    header = [*varied, "seed", "validation", *(f"test {name}" for name in sweep.metrics), "folder, or failure"]
    return raw_table(header, rows)


_STYLE = """
body { max-width: 1000px; }
figure { margin: 16px 0; overflow-x: auto; }
.wide { overflow-x: auto; }
.failures { border-left: 4px solid #D55E00; padding-left: 28px; }
table { font-variant-numeric: tabular-nums; }
th, td { white-space: nowrap; }
"""
