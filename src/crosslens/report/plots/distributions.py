"""Granularity as a picture: a panel per feature, and in it a line per set of captions, how many have which value."""

from __future__ import annotations

from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.analyze.granularity import Granularity
from crosslens.analyze.granularity_comparison import GranularityComparison
from crosslens.analyze.granularity_features import FEATURES
from crosslens.core.errors import UsageError
from crosslens.metrics.figures import count
from crosslens.report.plots.paper import folded_table, suffix_of, write_figures
from crosslens.report.plots.style import COLOURS, DASHES, FAINT, INK, SOFT, WIDTH, label, plotly_objects

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


def distribution_figure(found: GranularityComparison) -> Any:
    """A plotly figure: the value across, the share of captions up; a dotted line stands at each set's mean."""
    if len(found.sets) > len(COLOURS):
        raise UsageError(f"{len(found.sets)} sets in one figure cannot be told apart", fix=f"draw up to {len(COLOURS)}")
    objects = plotly_objects()
    from plotly.subplots import make_subplots

    rows = ceil(len(FEATURES) / _COLUMNS)
    drawn = make_subplots(
        rows, _COLUMNS, subplot_titles=list(FEATURES.values()), horizontal_spacing=0.07, vertical_spacing=0.3 / rows
    )
    for place, feature in enumerate(FEATURES):
        at = {"row": place // _COLUMNS + 1, "col": place % _COLUMNS + 1}
        edges = _edges([one.of(feature) for one in found.sets])
        for number, one in enumerate(found.sets):
            drawn.add_trace(_line(objects, one, feature, edges, number, first=place == 0), **at)
            drawn.update_xaxes(dtick=1 if len(edges) <= _SINGLE else None, **at)
            drawn.add_vline(x=one[feature], line={"color": COLOURS[number], "width": 1, "dash": "dot"}, **at)
    return _dressed(drawn, found, rows)


def write_distributions(found: GranularityComparison, output: str | Path, *, overwrite: bool = False) -> Path:
    """Draw the distributions into a file: a page (``.html``) that opens without a network, or a picture."""
    output = Path(output)
    suffix_of(output)
    return write_figures(
        [distribution_figure(found)], output, _TITLE, lambda: [_table(found)], overwrite=overwrite
    )  # fmt: skip


def _edges(values: list[Array]) -> Array:
    """The bounds of the steps: around whole numbers where there are few, else equal parts of what there is."""
    together = np.concatenate([one[~np.isnan(one)] for one in values])
    if not len(together):
        return np.array([-0.5, 0.5])
    low, high = np.quantile(together, [1 - _OUTER, _OUTER])
    if (together == np.round(together)).all():
        low, high = np.floor(low), np.ceil(high)
        step = max(1, ceil((high - low + 1) / _FEW))
        return np.arange(low, high + step + 1, step)[: ceil((high - low + 1) / step) + 1] - 0.5
    return np.linspace(low, high if high > low else low + 1, _STEPS + 1)


def _line(objects: Any, one: Granularity, feature: str, edges: Array, number: int, *, first: bool) -> Any:
    values = one.of(feature)
    values = values[~np.isnan(values)]
    shares = np.histogram(values, edges)[0] / max(1, len(values))
    return objects.Scatter(
        x=np.round((edges[1:] + edges[:-1]) / 2, 4),
        y=np.round(shares, 5),
        mode="lines+markers" if len(shares) < 12 else "lines",
        name=label(one.name),
        legendgroup=one.name,
        showlegend=first,
        line={"color": COLOURS[number], "width": 2, "dash": DASHES[number], "shape": "linear"},
        marker={"size": 5},
        hovertemplate=f"{label(one.name)}: %{{x:.3~g}} %{{y:.1%}}<extra></extra>",
    )


def _dressed(drawn: Any, found: GranularityComparison, rows: int) -> Any:
    height = _TOP + rows * _PANEL + _BOTTOM
    drawn.update_annotations(font={"size": 13, "color": INK})
    drawn.update_xaxes(gridcolor=FAINT, zeroline=False, linecolor=SOFT)
    drawn.update_yaxes(gridcolor=FAINT, zeroline=False, linecolor=SOFT, tickformat=".0%", rangemode="tozero")
    drawn.update_layout(
        template="none",
        width=WIDTH,
        height=height,
        margin={"t": _TOP, "r": 30, "b": _BOTTOM, "l": 50},
        font={"family": "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif", "size": 12, "color": INK},
        title={
            "text": f"<b>{_TITLE}</b>",
            "subtitle": {"text": f"the share of captions with each value; dotted: the mean; {_sizes(found)}",
                         "font": {"size": 12.5, "color": SOFT}},
            "font": {"size": 18}, "x": 0, "xref": "container", "pad": {"l": 24}, "y": 1 - 30 / height,
            "yref": "container", "yanchor": "bottom",
        },
        showlegend=len(found.sets) > 1,
        legend={"orientation": "h", "x": 0, "y": 1 + 34 / (height - _TOP - _BOTTOM), "yanchor": "bottom"},
        hoverlabel={"bgcolor": "white", "font": {"size": 12.5, "color": INK}, "align": "left"},
    )  # fmt: skip
    return drawn


def _sizes(found: GranularityComparison) -> str:
    """How many captions there are, in few words: the subtitle has one line, however many sets there are."""
    sizes = sorted({len(one.caption_ids) for one in found.sets})
    each = " each" if len(found.sets) > 1 else ""
    return f"{sizes[0]:,} to {sizes[-1]:,} captions each" if len(sizes) > 1 else f"{count(sizes[0], 'caption')}{each}"


def _table(found: GranularityComparison) -> str:
    rows = []
    for feature, words in FEATURES.items():
        for one in found.sets:
            mean, change = found.means[one.name][feature], found.changes.get(one.name, {}).get(feature)
            bounds = f"[{mean.low:.3f}, {mean.high:.3f}]" if np.isfinite(mean.low) else ""
            moved = f"{100 * change.relative:+.1f} %" if change is not None and np.isfinite(change.relative) else ""
            rows.append((words, one.name, f"{mean.mean:.3f}", bounds, moved))
    return folded_table("The numbers", ("feature", "captions", "mean", "interval", "change"), rows)
