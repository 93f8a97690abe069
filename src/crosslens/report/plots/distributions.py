"""Distributions of granularity: a panel per feature, a line per caption set."""

from __future__ import annotations

from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.analyze import FEATURES, Granularity, GranularityComparison
from crosslens.metrics import format_count
from crosslens.report.html import folded_table
from crosslens.report.plots.files import figure_suffix, write_figures
from crosslens.report.plots.style import (
    COLOURS,
    DASHES,
    FAINT,
    INK,
    SOFT,
    check_series_count,
    figure_layout,
    label,
    plotly_objects,
)

Array = np.ndarray[Any, Any]

_COLUMNS, _PANEL, _TOP, _BOTTOM = 3, 210, 128, 40
_STEPS = 28
"""Steps that a feature with many values is cut into."""
_FEW = 30
"""Whole numbers up to this are shown one by one."""
_SINGLE = 8
"""Up to so many whole numbers each has its label."""
_OUTER = 0.998
"""The share of values that is drawn: the few beyond would flatten everything else."""
_TITLE = "How fine-grained the captions are"


def distribution_figure(comparison: GranularityComparison) -> Any:
    """A plotly figure: the value across, the share of captions up; a dotted line stands at each set's mean."""
    check_series_count(len(comparison.sets), "caption sets")
    objects = plotly_objects()
    from plotly.subplots import make_subplots

    rows = ceil(len(FEATURES) / _COLUMNS)
    drawn = make_subplots(
        rows, _COLUMNS, subplot_titles=list(FEATURES.values()), horizontal_spacing=0.07, vertical_spacing=0.3 / rows
    )
    for index, feature in enumerate(FEATURES):
        at = {"row": index // _COLUMNS + 1, "col": index % _COLUMNS + 1}
        edges = _edges([granularity.of(feature) for granularity in comparison.sets])
        for number, granularity in enumerate(comparison.sets):
            drawn.add_trace(_line(objects, granularity, feature, edges, number, first=index == 0), **at)
            drawn.update_xaxes(dtick=1 if len(edges) <= _SINGLE else None, **at)
            drawn.add_vline(x=granularity[feature], line={"color": COLOURS[number], "width": 1, "dash": "dot"}, **at)
    return _with_layout(drawn, comparison, rows)


def write_distributions(comparison: GranularityComparison, output: str | Path, *, overwrite: bool = False) -> Path:
    """Draw the distributions into a file: a page (``.html``) that opens without a network, or an image."""
    output = Path(output)
    figure_suffix(output)
    return write_figures(
        [distribution_figure(comparison)], output, _TITLE, lambda: [_table(comparison)], overwrite=overwrite
    )  # fmt: skip


def _edges(values: list[Array]) -> Array:
    """The bounds of the steps: around whole numbers where there are few, else equal parts of what there is."""
    together = np.concatenate([array[~np.isnan(array)] for array in values])
    if not len(together):
        return np.array([-0.5, 0.5])
    low, high = np.quantile(together, [1 - _OUTER, _OUTER])
    if (together == np.round(together)).all():
        low, high = np.floor(low), np.ceil(high)
        step = max(1, ceil((high - low + 1) / _FEW))
        return np.arange(low, high + step + 1, step)[: ceil((high - low + 1) / step) + 1] - 0.5
    return np.linspace(low, high if high > low else low + 1, _STEPS + 1)


def _line(objects: Any, granularity: Granularity, feature: str, edges: Array, number: int, *, first: bool) -> Any:
    values = granularity.of(feature)
    values = values[~np.isnan(values)]
    shares = np.histogram(values, edges)[0] / max(1, len(values))
    return objects.Scatter(
        x=np.round((edges[1:] + edges[:-1]) / 2, 4),
        y=np.round(shares, 5),
        mode="lines+markers" if len(shares) < 12 else "lines",
        name=label(granularity.name),
        legendgroup=granularity.name,
        showlegend=first,
        line={"color": COLOURS[number], "width": 2, "dash": DASHES[number], "shape": "linear"},
        marker={"size": 5},
        hovertemplate=f"{label(granularity.name)}: %{{x:.3~g}} %{{y:.1%}}<extra></extra>",
    )


def _with_layout(drawn: Any, comparison: GranularityComparison, rows: int) -> Any:
    height = _TOP + rows * _PANEL + _BOTTOM
    subtitle = f"the share of captions with each value; dotted: the mean; {_sizes(comparison)}"
    drawn.update_annotations(font={"size": 13, "color": INK})
    drawn.update_xaxes(gridcolor=FAINT, zeroline=False, linecolor=SOFT)
    drawn.update_yaxes(gridcolor=FAINT, zeroline=False, linecolor=SOFT, tickformat=".0%", rangemode="tozero")
    drawn.update_layout(
        **figure_layout(_TITLE, subtitle, height, font_size=12, title_top=30),
        margin={"t": _TOP, "r": 30, "b": _BOTTOM, "l": 50},
        showlegend=len(comparison.sets) > 1,
        legend={"orientation": "h", "x": 0, "y": 1 + 34 / (height - _TOP - _BOTTOM), "yanchor": "bottom"},
    )  # fmt: skip
    return drawn


def _sizes(comparison: GranularityComparison) -> str:
    """How many captions there are, in few words: the subtitle has one line, however many sets there are."""
    sizes = sorted({len(granularity.caption_ids) for granularity in comparison.sets})
    each = " each" if len(comparison.sets) > 1 else ""
    return (
        f"{sizes[0]:,} to {sizes[-1]:,} captions each"
        if len(sizes) > 1
        else f"{format_count(sizes[0], 'caption')}{each}"
    )


def _table(comparison: GranularityComparison) -> str:
    rows = []
    for feature, words in FEATURES.items():
        for granularity in comparison.sets:
            mean, change = (
                comparison.means[granularity.name][feature],
                comparison.changes.get(granularity.name, {}).get(feature),
            )
            bounds = f"[{mean.low:.3f}, {mean.high:.3f}]" if np.isfinite(mean.low) else ""
            moved = f"{100 * change.relative:+.1f} %" if change is not None and np.isfinite(change.relative) else ""
            rows.append((words, granularity.name, f"{mean.mean:.3f}", bounds, moved))
    return folded_table("The numbers", ("feature", "captions", "mean", "interval", "change"), rows)
