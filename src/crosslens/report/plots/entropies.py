"""Histograms of dis(t): how well the captions of each dataset single out an image."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.analyze import DatasetDiscriminability, DiscriminabilityComparison
from crosslens.report.html import folded_table
from crosslens.report.plots import style

_BINS = 40
_TITLE = "How well captions single out an image"


def entropy_figure(comparison: DiscriminabilityComparison) -> Any:
    """A plotly figure: dis(t) across, from 0 to ln k, the share of captions up; the band of η is shaded."""
    style.check_series_count(len(comparison.sets), "datasets")
    drawn = style.plotly_objects().Figure()
    first = comparison.sets[0]
    largest, (low, high) = math.log(first.check.k), first.band
    drawn.add_vrect(x0=low, x1=high, fillcolor=style.FAINT, opacity=0.45, line_width=0, layer="below")
    drawn.add_annotation(
        x=(low + high) / 2, y=1, yref="paper", yanchor="bottom", text=f"kept at η = {first.eta:g}", showarrow=False,
        font={"color": style.SOFT, "size": 12},
    )  # fmt: skip
    for number, captions in enumerate(comparison.sets):
        drawn.add_trace(_line(captions, largest, number))
        drawn.add_vline(x=captions["dis"], line={"color": style.COLOURS[number], "width": 1, "dash": "dot"})
    axis = {"gridcolor": style.FAINT, "zeroline": False, "linecolor": style.SOFT}
    drawn.update_xaxes(
        **axis,
        range=[0, largest * 1.01],
        title={"text": f"dis(t) in nats; ln {first.check.k} = {largest:.2f}", "font": {"size": 13}},
    )
    drawn.update_yaxes(**axis, tickformat=".0%", rangemode="tozero", title={"text": "captions", "font": {"size": 13}})
    temperatures = ", ".join(dict.fromkeys(f"{captions.check.temperature:.3g}" for captions in comparison.sets))
    subtitle = f"over the {first.check.k} most similar other images, temperature {temperatures}; dotted: the mean"
    drawn.update_layout(
        **style.figure_layout(_TITLE, subtitle, 470),
        margin={"t": 104, "r": 30, "b": 92, "l": 70},
        showlegend=len(comparison.sets) > 1,
        legend={"orientation": "h", "x": 0, "y": -0.2, "yanchor": "top"},
    )
    return drawn


def _line(captions: DatasetDiscriminability, largest: float, number: int) -> Any:
    edges = np.linspace(0, largest, _BINS + 1)
    values = np.clip(captions.of("dis"), 0, largest)
    shares = np.histogram(values, edges)[0] / max(1, len(values))
    name = style.label(captions.name)
    return style.plotly_objects().Scatter(
        x=np.round((edges[1:] + edges[:-1]) / 2, 4),
        y=np.round(shares, 5),
        mode="lines",
        name=name,
        line={"color": style.COLOURS[number], "width": 2, "dash": style.DASHES[number], "shape": "hvh"},
        hovertemplate=f"{name}: %{{x:.2f}} nats, %{{y:.1%}}<extra></extra>",
    )


def write_entropies(comparison: DiscriminabilityComparison, output: str | Path, *, overwrite: bool = False) -> Path:
    """Draw the histograms into a file: a page (``.html``) that opens without a network, or an image."""
    return style.write_figures(
        output, _TITLE, lambda: [entropy_figure(comparison)], lambda: _tables(comparison), overwrite=overwrite
    )


def _tables(comparison: DiscriminabilityComparison) -> list[str]:
    rows = []
    for captions in comparison.sets:
        for feature, mean in comparison.means[captions.name].items():
            bounds = f"[{mean.low:.3f}, {mean.high:.3f}]" if np.isfinite(mean.low) else ""
            rows.append((captions.name, feature, f"{mean.mean:.3f}", bounds))
    tables = [folded_table("The numbers", ("captions", "feature", "mean", "interval"), rows)]
    for captions in comparison.sets:
        for least, title in ((True, "least discriminable"), (False, "most discriminable")):
            extremes = captions.extremes(20, least=least).select("caption", "text", "dis").iter_rows()
            cells = [(caption, text, f"{value:.3f}") for caption, text, value in extremes]
            tables.append(folded_table(f"{captions.name}: {title}", ("caption", "text", "dis"), cells))
    return tables
