"""A sweep as figures: a metric against the share of training data, or the combinations beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from crosslens.metrics import facts_of, format_count, format_figure, format_interval, unit_of
from crosslens.report.html import folded_table
from crosslens.report.plots import style
from crosslens.report.text.training.sweeps import sweep_grid
from crosslens.train import Sweep, SweepFigure, SweepRow

FRACTION = "fraction"
_APART = 1.02
"""Factor between neighbouring lines across, so that their intervals do not lie on each other."""


def sweep_figures(sweep: Sweep) -> list[Any]:
    """A figure per metric: learning curves where the share of data varies, otherwise a row per combination."""
    draw = learning_curves if FRACTION in sweep.plan.varied else _rows_figure
    return [draw(sweep, name) for name in sweep.metrics]


def figure_title(sweep: Sweep, name: str) -> str:
    """What a figure of a metric shows."""
    return f"{_metric(name)} against training data" if FRACTION in sweep.plan.varied else f"{_metric(name)} by setting"


def learning_curves(sweep: Sweep, name: str) -> Any:
    """The share of the training images across (logarithmic), the metric up, a line per combination of the rest."""
    objects = style.plotly_objects()
    lines = _lines(sweep)
    drawn = objects.Figure()
    for number, (label, rows) in enumerate(lines.items()):
        points = [(row, row.test[name]) for row in rows if name in row.test]
        apart = _APART ** (number - (len(lines) - 1) / 2)
        drawn.add_trace(
            objects.Scatter(
                x=[row.combination.recipe.settings.fraction * apart for row, _ in points],
                y=[_shown(name, figure.mean.mean) for _, figure in points],
                error_y=_bars(name, [figure for _, figure in points], _look(number)["color"]),
                mode="lines+markers", name=style.label(label), line={**_look(number), "width": 2.2},
                marker={"size": 8, "symbol": style.SYMBOLS[number % len(style.SYMBOLS)]},
                hovertext=[_hover(name, row, figure) for row, figure in points], hoverinfo="text",
            )
        )  # fmt: skip
    shares = sorted({row.combination.recipe.settings.fraction for row in sweep.rows})
    height = 520 + 20 * len(lines)
    drawn.update_layout(
        **style.figure_layout(figure_title(sweep, name), style.label(_subtitle(sweep)), height),
        margin={"t": 96 + 20 * len(lines), "r": 40, "b": 60, "l": 76}, showlegend=True,
        legend={"orientation": "v", "x": 0, "y": 1.02, "yanchor": "bottom"},
        xaxis={"type": "log", "tickmode": "array", "tickvals": shares, "ticktext": [f"{100 * s:g} %" for s in shares],
               "title": {"text": "share of the training images", "font": {"size": 13, "color": style.SOFT}},
               "gridcolor": style.FAINT, "zeroline": False},
        yaxis={"title": {"text": _metric(name), "font": {"size": 13, "color": style.SOFT}},
               "gridcolor": style.FAINT, "zeroline": False},
    )  # fmt: skip
    return drawn


def _rows_figure(sweep: Sweep, name: str) -> Any:
    objects = style.plotly_objects()
    rows = [row for row in sweep.rows if name in row.test]
    labels = [_label(sweep, row, sweep.plan.varied) for row in rows]
    bars = _bars(name, [row.test[name] for row in rows], style.INK)
    drawn = objects.Figure(
        objects.Scatter(
            x=[_shown(name, row.test[name].mean.mean) for row in rows], y=labels, error_x=bars, mode="markers",
            marker={"size": 10, "color": style.COLOURS[0]},
            hovertext=[_hover(name, row, row.test[name]) for row in rows], hoverinfo="text",
        )
    )  # fmt: skip
    drawn.update_layout(
        **style.figure_layout(figure_title(sweep, name), style.label(_subtitle(sweep)), 190 + 34 * len(rows)),
        margin={"t": 84, "r": 40, "b": 60, "l": 40}, yaxis=style.category_axis(labels, labels),
        xaxis={"title": {"text": _metric(name), "font": {"size": 13, "color": style.SOFT}},
               "gridcolor": style.FAINT, "zeroline": False},
    )  # fmt: skip
    return drawn


def write_learning_curves(sweep: Sweep, output: str | Path, *, overwrite: bool = False) -> Path:
    """Draw the figures into a file: a page (``.html``), or an image where there is one metric."""
    grid = sweep_grid(sweep)
    title = f"Sweep of {sweep.plan.name}"
    return style.write_figures(
        output, title, lambda: sweep_figures(sweep), lambda: [folded_table("The numbers", grid.header, grid.rows)],
        overwrite=overwrite,
    )  # fmt: skip


def _lines(sweep: Sweep) -> dict[str, list[SweepRow]]:
    """The rows by their settings other than the share of data, in the order of shares."""
    others = [name for name in sweep.plan.varied if name != FRACTION]
    lines: dict[str, list[SweepRow]] = {}
    for row in sorted(sweep.rows, key=lambda row: row.combination.recipe.settings.fraction):
        lines.setdefault(_label(sweep, row, others), []).append(row)
    order = list(dict.fromkeys(_label(sweep, row, others) for row in sweep.rows))
    return {label: lines[label] for label in order}


def _label(sweep: Sweep, row: SweepRow, names: Sequence[str]) -> str:
    return ", ".join(row.combination.values[name] for name in names) or sweep.plan.name


def _look(number: int) -> dict[str, str]:
    """A colour, and for the lines after the last colour another dash."""
    turn, colour = divmod(number, len(style.COLOURS))
    return {"color": style.COLOURS[colour], "dash": style.DASHES[turn % len(style.DASHES)]}


def _shown(name: str, value: float) -> float | None:
    return style.finite_or_none(100 * value if unit_of(name) == "share" else value)


def _bars(name: str, figures: Sequence[SweepFigure], colour: str) -> dict[str, Any]:
    """The intervals around the means; those that are not known have no length."""
    factor = 100 if unit_of(name) == "share" else 1
    reach = [factor * (figure.mean.high - figure.mean.mean) for figure in figures]
    return {"type": "data", "array": [value if isfinite(value) else 0 for value in reach], "color": colour,
            "thickness": 1.4, "width": 3.5}  # fmt: skip


def _metric(name: str) -> str:
    unit = " (%)" if unit_of(name) == "share" else ""
    return f"Test {name}{unit}" + ("" if facts_of(name).higher_is_better else ", lower is better")


def _subtitle(sweep: Sweep) -> str:
    level = f"{100 * sweep.level:g}%"
    return (
        f"{sweep.plan.name} · means over {format_count(len(sweep.plan.seeds), 'seed')}, {level} t intervals over seeds"
    )


def _hover(name: str, row: SweepRow, figure: SweepFigure) -> str:
    interval = format_interval(name, *figure.mean.interval)
    label = style.label(row.combination.label)
    return f"<b>{label}</b><br>{name} {format_figure(name, figure.mean.mean)}  {interval}<br>{len(figure.values)} seeds"
