"""Levels of difficulty as stacked bars, and the precision–recall curves behind the thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.analyze import Calibration, Difficulty, PrecisionRecall
from crosslens.core import Figure, UsageError, percent
from crosslens.metrics import format_count
from crosslens.report.html import folded_table
from crosslens.report.plots import style
from crosslens.report.text.difficulty import shares_grid

_BAR, _GAP, _TOP, _BOTTOM = 34, 18, 118, 56
_MOST_POINTS = 1500
"""Of a curve: more could not be told apart, and make large files."""


def shares_figure(results: Sequence[Difficulty]) -> Any:
    """A plotly figure: a bar per dataset, divided into the shares of the levels."""
    levels = list(dict.fromkeys(level for result in results for level in result.levels))
    objects = style.plotly_objects()
    drawn = objects.Figure()
    names = [f"{result.dataset} ({format_count(len(result), 'pair')})" for result in results]
    rows = [str(number) for number in range(len(results))]  # two datasets may have one name
    for level, colour in style.category_colours(levels, "levels").items():
        shares = [result.shares().get(level) for result in results]
        drawn.add_trace(
            objects.Bar(
                name=style.label(level),
                orientation="h",
                y=rows,
                x=[0.0 if share is None else share.mean for share in shares],
                text=["" if share is None or share.mean < 0.06 else f"{percent(share.mean)}%" for share in shares],
                textposition="inside",
                insidetextanchor="middle",
                textfont={"color": "white", "size": 13},
                marker={"color": colour},
                hovertext=[
                    f"<b>{style.label(name)}</b><br>{style.label(level)} "
                    + ("–" if share is None else str(Figure.percent(share.mean, share.low, share.high, unit="%")))
                    for name, share in zip(names, shares, strict=True)
                ],
                hoverinfo="text",
            )
        )
    height = _TOP + len(results) * (_BAR + _GAP) + _BOTTOM
    drawn.update_layout(
        **style.figure_layout("Difficulty of pairs", style.label(_panel_facts(results)), height),
        barmode="stack", bargap=_GAP / (_BAR + _GAP),
        margin={"t": _TOP, "r": 52, "b": _BOTTOM, "l": 30},
        legend={"orientation": "h", "x": 20 / style.WIDTH, "xref": "container", "y": 1 - (_TOP - 10) / height,
                "yref": "container", "yanchor": "bottom", "traceorder": "normal"},
        xaxis={"range": [0, 1], "tickformat": ".0%", "dtick": 0.2, "gridcolor": style.FAINT, "fixedrange": True},
        yaxis=style.category_axis(rows, names),
    )  # fmt: skip
    return drawn


def write_shares(results: Sequence[Difficulty], output: str | Path, *, overwrite: bool = False) -> Path:
    """Draw the shares into a file: a page (``.html``), or an image."""
    grid = shares_grid(results)
    return style.write_figures(
        output,
        "Difficulty of pairs",
        lambda: [shares_figure(results)],
        lambda: [folded_table("The numbers, in percent, with 95% intervals over images", grid.header, grid.rows)],
        overwrite=overwrite,
    )


def precision_recall_figure(calibrations: Mapping[str, Calibration]) -> Any:
    """A plotly figure: recall across, precision up, a line per model with its threshold marked."""
    curves = {model: calibration.curve for model, calibration in calibrations.items() if calibration.curve is not None}
    if not curves:
        raise UsageError(
            "no precision–recall curve: all thresholds were given",
            fix="calibrate on a dataset, with run folders, score matrices or self",
            option="pr_plot",
        )
    objects = style.plotly_objects()
    drawn = objects.Figure()
    for number, (model, curve) in enumerate(curves.items()):
        colour = style.COLOURS[number % len(style.COLOURS)]
        dash = style.DASHES[number // len(style.COLOURS) % len(style.DASHES)]
        for trace in _curve_traces(objects, model, curve, colour, dash):
            drawn.add_trace(trace)
    first = next(calibrations[model] for model in curves)
    facts = (
        f"{first.dataset}: {format_count(first.matching, 'matching pair')}, {first.mismatches:,} mismatches; "
        "circles: the threshold of highest F1"
    )
    top = _TOP + 22 * (len(curves) // 3)
    drawn.update_layout(
        **style.figure_layout("Precision and recall of matching", style.label(facts), 480 + top),
        margin={"t": top, "r": 40, "b": 60, "l": 70},
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        xaxis={"title": {"text": "recall", "font": {"size": 13, "color": style.SOFT}}, "range": [0, 1.01],
               "tickformat": ".0%", "gridcolor": style.FAINT, "zeroline": False},
        yaxis={"title": {"text": "precision", "font": {"size": 13, "color": style.SOFT}}, "range": [0, 1.02],
               "tickformat": ".0%", "gridcolor": style.FAINT, "zeroline": False},
    )  # fmt: skip
    return drawn


def write_precision_recall(
    calibrations: Mapping[str, Calibration], output: str | Path, *, overwrite: bool = False
) -> Path:
    """Draw the curves of all models that were calibrated into a file: a page (``.html``), or an image."""
    header = ("model", "threshold", "precision", "recall", "F1")
    rows = [
        (model, f"{chosen.threshold:.6g}", *(percent(value) for value in (chosen.precision, chosen.recall, chosen.f1)))
        for model, chosen in calibrations.items()
    ]
    return style.write_figures(
        output,
        "Precision and recall of matching",
        lambda: [precision_recall_figure(calibrations)],
        lambda: [folded_table("The thresholds", header, rows, shown=True)],
        overwrite=overwrite,
    )


def _curve_traces(objects: Any, model: str, curve: PrecisionRecall, colour: str, dash: str) -> list[Any]:
    best = curve.best
    count = len(curve.thresholds)
    kept = np.unique([best, *np.linspace(0, count - 1, min(count, _MOST_POINTS)).round().astype(int)])
    recall, precision = curve.recall, curve.precision
    line = objects.Scatter(
        name=style.label(model), legendgroup=model, mode="lines" if count > 1 else "markers",
        x=recall[kept].tolist(), y=precision[kept].tolist(), line={"color": colour, "width": 2.2, "dash": dash},
        customdata=curve.thresholds[kept].tolist(),
        hovertemplate=f"<b>{style.label(model)}</b><br>score ≥ %{{customdata:.4g}}<br>"
        "precision %{y:.1%}, recall %{x:.1%}<extra></extra>",
    )  # fmt: skip
    point = objects.Scatter(
        name=style.label(model), legendgroup=model, showlegend=False, mode="markers",
        x=[float(recall[best])], y=[float(precision[best])],
        marker={"color": "white", "size": 11, "line": {"color": colour, "width": 3}},
        hovertext=f"<b>{style.label(model)}</b><br>threshold {curve.threshold:.4g}<br>F1 {percent(curve.f1[best])}%",
        hoverinfo="text",
    )  # fmt: skip
    return [line, point]


def _panel_facts(results: Sequence[Difficulty]) -> str:
    sizes = sorted({len(result.panel) for result in results if result.panel})
    panel = f"votes of {' or '.join(map(str, sizes))} models" if sizes else "votes of a panel"
    mappings = dict.fromkeys(result.mapping for result in results if result.mapping)
    return f"share of pairs, {panel}; {'; '.join(mappings)}"
