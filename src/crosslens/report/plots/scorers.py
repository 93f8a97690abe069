"""Two scorers as figures: distributions by category, one against the other, and Bland–Altman."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from crosslens.analyze import TOTAL, ScorerComparison
from crosslens.core import random_stream
from crosslens.metrics import format_count
from crosslens.report.html import folded_table
from crosslens.report.plots import style
from crosslens.report.text.panels.scorers import SCALE_WORDS, agreement_grid, correlations_grid, distributions_grid
from crosslens.statistics import rescaled

Array = np.ndarray[Any, Any]

_MOST_DOTS = 4000
_TOP, _PANEL, _BOTTOM = 118, 330, 92


def scorers_figure(result: ScorerComparison, scale: str = "rank") -> Any:
    """Four panels: both distributions by category, the scatter, and Bland–Altman on ``scale``."""
    names = result.categories or (TOTAL,)
    objects = style.plotly_objects()
    from plotly.subplots import make_subplots

    titles = [result.first, result.second, "One against the other", f"Bland–Altman, {SCALE_WORDS[scale]}"]
    drawn = make_subplots(2, 2, subplot_titles=[style.label(title) for title in titles], horizontal_spacing=0.1,
                          vertical_spacing=0.15)  # fmt: skip
    labels = np.array(result.table["category"].to_list() if result.categories else [TOTAL] * len(result), object)
    dots = _sample(len(result))
    first, second = result.scores(result.first), result.scores(result.second)
    scaled = rescaled(first, scale), rescaled(second, scale)
    for name, colour in style.category_colours(names, "categories").items():
        own = labels == name
        look = {"name": style.label(name), "legendgroup": name}
        for column, values in enumerate((first, second), start=1):
            drawn.add_trace(_violin(objects, values[own], colour, **look), row=1, col=column)
        shown = own & dots
        scatter = _dots(objects, first[shown], second[shown], colour, showlegend=True, **look)
        drawn.add_trace(scatter, row=2, col=1)
        means, gaps = (scaled[0] + scaled[1])[shown] / 2, (scaled[1] - scaled[0])[shown]
        drawn.add_trace(_dots(objects, means, gaps, colour, showlegend=False, **look), row=2, col=2)
    agreement = result.agreement[scale]
    for estimate, dash in ((agreement.mean, "solid"), (agreement.lower, "dash"), (agreement.upper, "dash")):
        text = {"annotation_text": f"{estimate.mean:.2f}", "annotation_font_size": 11} if dash == "dash" else {}
        drawn.add_hline(y=estimate.mean, line={"color": style.INK, "width": 1.4, "dash": dash}, row=2, col=2, **text)
    return _with_layout(drawn, result, int(dots.sum()))


def write_scorers_plot(
    result: ScorerComparison, output: str | Path, *, scale: str = "rank", overwrite: bool = False
) -> Path:
    """Draw into a file: a page (``.html``) with the numbers below, or a picture."""
    grids = {
        "Scores": distributions_grid(result),
        "Correlation": correlations_grid(result),
        "Bland–Altman": agreement_grid(result),
    }
    return style.write_figures(
        output,
        _heading(result),
        lambda: [scorers_figure(result, scale)],
        lambda: [folded_table(title, grid.header, grid.rows) for title, grid in grids.items()],
        overwrite=overwrite,
    )


def _heading(result: ScorerComparison) -> str:
    return f"{result.first} and {result.second}"


def _violin(objects: Any, values: Array, colour: str, **look: Any) -> Any:
    return objects.Violin(
        x=[look["name"]] * len(values), y=np.round(values, 5), box={"visible": True, "width": 0.16},
        points=False, spanmode="hard", scalemode="width", line={"color": colour, "width": 1.3},
        fillcolor=style.translucent(colour, 0.3), showlegend=False, hoveron="violins", **look,
    )  # fmt: skip


def _dots(objects: Any, across: Array, up: Array, colour: str, **look: Any) -> Any:
    return objects.Scattergl(
        x=np.round(across, 5), y=np.round(up, 5), mode="markers", hoverinfo="skip",
        marker={"color": colour, "size": 5, "opacity": 0.45}, **look,
    )  # fmt: skip


def _sample(pairs: int) -> Array:
    """Which pairs are drawn as dots: all, or some by a fixed draw."""
    chosen = np.zeros(pairs, np.bool_)
    chosen[random_stream(0, "dots").permutation(pairs)[:_MOST_DOTS]] = True
    return chosen


def _with_layout(drawn: Any, result: ScorerComparison, shown: int) -> Any:
    height = _TOP + 2 * _PANEL + _BOTTOM
    drawn.update_annotations(font={"size": 13, "color": style.INK})
    drawn.update_xaxes(gridcolor=style.FAINT, zeroline=False, linecolor=style.SOFT)
    drawn.update_yaxes(gridcolor=style.FAINT, zeroline=False, linecolor=style.SOFT)
    small = {"size": 12, "color": style.SOFT}
    titles = {
        "xaxis3": result.first,
        "yaxis3": result.second,
        "xaxis4": "mean of the two",
        "yaxis4": f"{result.second} − {result.first}",
    }
    drawn.update_layout(
        {axis: {"title": {"text": style.label(text), "font": small, "standoff": 6}} for axis, text in titles.items()}
    )
    fewer = f", {shown:,} of them drawn" if shown < len(result) else ""
    subtitle = f"{format_count(len(result), 'pair')}{fewer}; dashed: limits of agreement, mean ± 1.96 sd"
    drawn.update_layout(
        **style.figure_layout(_heading(result), style.label(subtitle), height, font_size=12, title_top=30),
        margin={"t": _TOP, "r": 40, "b": _BOTTOM, "l": 66},
        showlegend=bool(result.categories),
        legend={"orientation": "h", "x": 0, "y": -58 / (2 * _PANEL), "yanchor": "top", "itemsizing": "constant"},
    )
    return drawn
