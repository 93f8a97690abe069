"""Polysemy drawn: two curves per dataset with their intervals, densities of similarities, maps of clusters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np

from crosslens.analyze import (
    CAPTION_DISTANCE,
    CO_CAPTION_QUANTITIES,
    IMAGE_SIMILARITY,
    CaptionDiversity,
    Polysemy,
    PolysemyClusters,
    kernel_density,
)
from crosslens.build import FEWEST, CaptionMap
from crosslens.core import random_stream
from crosslens.metrics import format_count
from crosslens.report.html import folded_table
from crosslens.report.plots import style
from crosslens.report.text.polysemy import CURVE_TITLES, cell, diversity_grid, polysemy_grid

_CURVES, _DENSITIES = "Polysemy", "Densities of similarity"
_PANELS = {IMAGE_SIMILARITY: "image similarity (cosine)", CAPTION_DISTANCE: "caption distance (radians)"}
_UNITS = {name: "CIDEr" if name.endswith("cider") else "F" if name.endswith("words") else "cosine"
          for name in CO_CAPTION_QUANTITIES}  # fmt: skip
"""What the similarities are measured in."""
_MOST_POINTS = 5_000
_LETTERS = 110
"""Letters of a caption that the map shows."""
_ROWS = 40
"""Rows of a density's table."""


def write_polysemy(results: Sequence[Polysemy], output: str | Path, *, overwrite: bool = False) -> Path:
    """Draw the curves into a file: a page (``.html``) that opens without a network, or an image."""

    def tables() -> list[str]:
        grids = [(title, polysemy_grid(results, name, None)) for name, title in CURVE_TITLES.items()]
        return [folded_table(title, grid.header, grid.rows) for title, grid in grids]

    return style.write_figures(output, _CURVES, lambda: [polysemy_figure(results)], tables, overwrite=overwrite)


def polysemy_figure(results: Sequence[Polysemy]) -> Any:
    """A plotly figure of two panels: R across, a line per dataset, intervals as bands."""
    style.check_series_count(len(results), "datasets")
    drawn = style.panel_figure(list(_PANELS.values()), 2, horizontal_spacing=0.1)
    for column, name in enumerate(_PANELS, start=1):
        for index, result in enumerate(results):
            estimates, colour = result.estimates[name], style.COLOURS[index]
            band = style.interval_band(
                result.sizes, [value.low for value in estimates], [value.high for value in estimates], colour
            )
            for trace in (band, _curve(result, name, index)):
                if trace is not None:
                    drawn.add_trace(trace, row=1, col=column)
    style.style_panels(drawn)
    drawn.update_xaxes(title=_axis_title("R, nearest images"), rangemode="tozero")
    sizes = ", ".join(
        f"{style.label(result.name)} {format_count(len(result.image_ids), 'image')}" for result in results
    )
    subtitle = f"high on both sides: similar images with distant captions · bands: intervals over images · {sizes}"
    return _with_layout(drawn, _CURVES, subtitle, 400, len(results))


def _curve(result: Polysemy, name: str, index: int) -> Any:
    estimates = result.estimates[name]
    return style.plotly_objects().Scatter(
        x=list(result.sizes),
        y=[style.finite_or_none(value.mean) for value in estimates],
        mode="lines+markers" if len(estimates) <= 20 else "lines",
        name=style.label(result.name),
        legendgroup=str(index),
        showlegend=name == IMAGE_SIMILARITY,
        line={"color": style.COLOURS[index], "width": 2.2, "dash": style.DASHES[index]},
        marker={"symbol": style.SYMBOLS[index], "size": 6},
        hovertext=[
            f"<b>{style.label(result.name)}</b>, R = {size}<br>{_PANELS[name]} {cell(value)}"
            for size, value in zip(result.sizes, estimates, strict=True)
        ],
        hoverinfo="text",
    )


def write_densities(results: Sequence[CaptionDiversity], output: str | Path, *, overwrite: bool = False) -> Path:
    """Draw the densities into a file, with their numbers in tables below."""

    def tables() -> list[str]:
        grid = diversity_grid(results)
        return [
            folded_table("Means over images", grid.header, grid.rows, shown=True),
            folded_table("The densities", ("similarity of", "dataset", "value", "density"), _density_rows(results)),
        ]

    return style.write_figures(output, _DENSITIES, lambda: [density_figure(results)], tables, overwrite=overwrite)


def density_figure(results: Sequence[CaptionDiversity]) -> Any:
    """A plotly figure: a panel per quantity, a line per dataset, a dotted line at each mean."""
    style.check_series_count(len(results), "datasets")
    names = _drawn_quantities(results)
    rows = -(-len(names) // 2)
    drawn = style.panel_figure(
        [CO_CAPTION_QUANTITIES[name] for name in names], 2, horizontal_spacing=0.08, vertical_spacing=0.3 / rows
    )
    labelled: set[int] = set()
    for panel, name in enumerate(names):
        at = {"row": panel // 2 + 1, "col": panel % 2 + 1}
        for index, result in enumerate(results):
            density = kernel_density(result.pairs[name].values) if name in result.pairs else None
            if density is None:
                continue
            line = {"color": style.COLOURS[index], "width": 2.2, "dash": style.DASHES[index]}
            drawn.add_trace(
                style.plotly_objects().Scatter(
                    x=density.at, y=density.density, mode="lines", line=line, name=style.label(result.name),
                    legendgroup=str(index), showlegend=index not in labelled, hoverinfo="x+name",
                ),
                **at,
            )  # fmt: skip
            labelled.add(index)
            mean = result.estimates[name].mean
            drawn.add_vline(x=mean, line={"color": style.COLOURS[index], "width": 1, "dash": "dot"}, **at)
    style.style_panels(drawn)
    axis = {"showline": True, "linecolor": style.SOFT, "ticks": "outside", "tickcolor": style.SOFT}
    drawn.update_yaxes(title=_axis_title("density (pairs per unit)"), rangemode="tozero", showticklabels=True, **axis)
    for panel, name in enumerate(names):
        drawn.update_xaxes(title=_axis_title(_UNITS[name]), **axis, row=panel // 2 + 1, col=panel % 2 + 1)
    subtitle = "density over pairs; dotted: the mean over images; further left: more diverse captions"
    return _with_layout(drawn, _DENSITIES, subtitle, 250 * rows, len(results))


def _axis_title(text: str) -> dict[str, Any]:
    return {"text": text, "font": {"size": 12, "color": style.SOFT}, "standoff": 6}


def _drawn_quantities(results: Sequence[CaptionDiversity]) -> list[str]:
    return [
        name for name in CO_CAPTION_QUANTITIES
        if any(name in result.pairs and not np.isnan(result.pairs[name].values).all() for result in results)
    ]  # fmt: skip


def _density_rows(results: Sequence[CaptionDiversity]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name in _drawn_quantities(results):
        for result in results:
            density = kernel_density(result.pairs[name].values) if name in result.pairs else None
            if density is not None:
                step = max(1, len(density.at) // _ROWS)
                pairs = zip(density.at[::step], density.density[::step], strict=True)
                rows += [(CO_CAPTION_QUANTITIES[name], result.name, f"{at:.3f}", f"{value:.3f}") for at, value in pairs]
    return rows


def cluster_map(result: PolysemyClusters, named: int) -> Any:
    """A plotly figure of UMAP's map: the first clusters in colours, the others in blue grey, noise faint."""
    rows = _sample(result)
    labels = result.labels[rows]
    named = min(named, len(style.COLOURS), len(result.clusters))
    groups = [
        ("in no cluster", labels == 0, "#D0D0D0", "circle"),
        ("other clusters", labels > named, "#9DB0BF", "circle"),
    ]
    groups += [
        (f"cluster {number}", labels == number, style.COLOURS[number - 1], style.SYMBOLS[number - 1])
        for number in range(1, named + 1)
    ]
    drawn = style.plotly_objects().Figure()
    for name, chosen, colour, symbol in groups:
        if chosen.any():
            drawn.add_trace(_points(result, rows[chosen], name, colour, symbol))
    drawn.update_layout(
        template="none", autosize=True, height=460, margin={"t": 10, "r": 10, "b": 10, "l": 10}, hovermode="closest",
        legend={"orientation": "h", "x": 0, "y": -0.02, "yanchor": "top"},
        font={"family": style.FONT, "size": 12.5, "color": style.INK},
        xaxis={"visible": False}, yaxis={"visible": False, "scaleanchor": "x"},
    )  # fmt: skip
    return drawn


def write_caption_map(mapped: CaptionMap, output: str | Path, *, overwrite: bool = False) -> Path:
    """Draw the map of an image's captions into a file, with all captions in a table below."""

    def tables() -> list[str]:
        order = np.lexsort((~mapped.chosen, mapped.clusters))
        rows = [
            (str(mapped.clusters[row] + 1), "yes" if mapped.chosen[row] else "", mapped.texts[row]) for row in order
        ]
        return [folded_table("All captions", ("cluster", "chosen", "caption"), rows)]

    title = f"Captions of {mapped.image}"
    return style.write_figures(output, title, lambda: [caption_map(mapped)], tables, overwrite=overwrite)


def caption_map(mapped: CaptionMap) -> Any:
    """A plotly figure: a colour and a symbol per K-means cluster, the chosen captions in rings with their texts."""
    drawn, objects = style.plotly_objects().Figure(), style.plotly_objects()
    across, up = mapped.points.round(3).T
    for cluster in range(int(mapped.clusters.max()) + 1):
        rows = np.flatnonzero(mapped.clusters == cluster)
        look = {"color": style.COLOURS[cluster % len(style.COLOURS)], "size": 9}
        drawn.add_trace(
            objects.Scatter(
                x=across[rows], y=up[rows], mode="markers", name=f"cluster {cluster + 1} ({len(rows)})",
                marker={**look, "symbol": style.SYMBOLS[cluster % len(style.SYMBOLS)], "opacity": 0.8},
                hovertext=[style.label(mapped.texts[row]) for row in rows], hoverinfo="text",
            )
        )  # fmt: skip
    chosen = np.flatnonzero(mapped.chosen)
    drawn.add_trace(
        objects.Scatter(
            x=across[chosen], y=up[chosen], mode="markers+text", name="chosen", hoverinfo="skip",
            marker={"color": style.INK, "symbol": "circle-open", "size": 18, "line": {"width": 2}},
            text=[f"<b>{number}</b>" for number in range(1, len(chosen) + 1)], textposition="middle right",
            textfont={"size": 14, "color": style.INK},
        )
    )  # fmt: skip
    texts = "<br>".join(
        f"<b>{number}</b>  {style.label(shorten(mapped.texts[row], _LETTERS, placeholder='…'))}"
        for number, row in enumerate(chosen, 1)
    )
    where = "UMAP map" if len(mapped.texts) >= FEWEST else "first two principal axes"
    subtitle = f"{len(mapped.texts)} good captions, {where}; {len(chosen)} chosen by {mapped.diverse}, in rings"
    top, inner, bottom = 108, 420, 60 + 20 * len(chosen)
    drawn.update_layout(
        **style.figure_layout(f"Captions of {mapped.image}", subtitle, top + inner + bottom, title_top=30),
        margin={"t": top, "r": 30, "b": bottom, "l": 30}, hovermode="closest",
        legend={"orientation": "h", "x": 0, "y": 1.01, "yanchor": "bottom", "itemsizing": "constant"},
        xaxis={"visible": False}, yaxis={"visible": False, "scaleanchor": "x"},
    )  # fmt: skip
    drawn.add_annotation(
        text=texts, x=0, y=-0.03, xref="paper", yref="paper", xanchor="left", yanchor="top", align="left",
        showarrow=False, font={"size": 13},
    )  # fmt: skip
    return drawn


def _points(result: PolysemyClusters, rows: Any, name: str, colour: str, symbol: str) -> Any:
    return style.plotly_objects().Scatter(
        x=result.map[rows, 0].round(3),
        y=result.map[rows, 1].round(3),
        mode="markers",
        name=name,
        marker={"color": colour, "symbol": symbol, "size": 6, "opacity": 0.8},
        hovertext=[
            f"{style.label(result.image_ids[row])}<br>"
            + (f"cluster {result.labels[row]}" if result.labels[row] else "in no cluster")
            for row in rows
        ],
        hoverinfo="text",
    )


def _sample(result: PolysemyClusters) -> Any:
    """The rows that are drawn: all, or a sample of them, since a page must stay small."""
    every = np.arange(len(result.labels))
    if len(every) <= _MOST_POINTS:
        return every
    return np.sort(random_stream(0, "points of the map").choice(every, _MOST_POINTS, replace=False))


def _with_layout(drawn: Any, title: str, subtitle: str, inner: int, series: int) -> Any:
    top, bottom = 128, 56
    drawn.update_layout(
        **style.figure_layout(title, subtitle, top + inner + bottom, font_size=12, title_top=30),
        margin={"t": top, "r": 30, "b": bottom, "l": 60},
        showlegend=series > 1,
        legend={"orientation": "h", "x": 0, "y": 1 + 34 / inner, "yanchor": "bottom"},
    )
    return drawn
