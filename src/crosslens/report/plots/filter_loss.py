"""Filter loss as curves: the share of valid captions below a threshold, a line per level."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crosslens.analyze import ALL_LEVELS, FilterLoss
from crosslens.report.html import folded_table
from crosslens.report.plots import style
from crosslens.report.text.filter_loss import filter_loss_grid

_TITLE = "Valid captions that a similarity filter throws away"


def filter_loss_figure(result: FilterLoss) -> Any:
    """A plotly figure: the threshold across, the share below it up; the table's thresholds are marked."""
    objects = style.plotly_objects()
    drawn = objects.Figure()
    levels = [level for level in result.levels if level != ALL_LEVELS]
    looks = {ALL_LEVELS: (style.INK, "dash")} | {
        level: (colour, "solid") for level, colour in style.category_colours(levels, "levels").items()
    }
    for level, (colour, dash) in looks.items():
        part = result.curve.filter(result.curve["level"] == level)
        if part.height:
            drawn.add_trace(
                objects.Scatter(
                    name=style.label(level), mode="lines", x=part["threshold"].to_list(), y=part["lost"].to_list(),
                    line={"color": colour, "width": 2.2, "dash": dash},
                    hovertemplate=f"<b>{style.label(level)}</b><br>below %{{x:.4g}}: %{{y:.1%}}<extra></extra>",
                )
            )  # fmt: skip
    for threshold in result.table["threshold"].unique().sort():
        drawn.add_vline(x=threshold, line={"color": style.SOFT, "width": 1, "dash": "dot"},
                        annotation={"text": f"{threshold:.3g}", "font": {"size": 11, "color": style.SOFT}})  # fmt: skip
    subtitle = f"{result.dataset}, scores of {result.model}; dotted: the thresholds of the table"
    drawn.update_layout(
        **style.figure_layout(_TITLE, style.label(subtitle), 560),
        margin={"t": 110, "r": 40, "b": 60, "l": 70},
        legend={"orientation": "h", "x": 0, "y": 1.04, "yanchor": "bottom"},
        xaxis={"title": {"text": "threshold", "font": {"size": 13, "color": style.SOFT}}, "gridcolor": style.FAINT,
               "zeroline": False},
        yaxis={"tickformat": ".0%", "range": [0, 1.01], "gridcolor": style.FAINT, "zeroline": False},
    )  # fmt: skip
    return drawn


def write_filter_loss(result: FilterLoss, output: str | Path, *, overwrite: bool = False) -> Path:
    """Draw the curves into a file: a page (``.html``), or an image."""
    grid = filter_loss_grid(result)
    return style.write_figures(
        output,
        _TITLE,
        lambda: [filter_loss_figure(result)],
        lambda: [folded_table("The numbers, in percent", grid.header, grid.rows, shown=True)],
        overwrite=overwrite,
    )
