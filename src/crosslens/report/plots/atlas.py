"""The confusion atlas as a heat map: what was expected down, what was shown across, like things beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.core.errors import InputError
from crosslens.explain.overview.kinds import way_up
from crosslens.explain.overview.overview import Overview
from crosslens.metrics.figures import count
from crosslens.report.overview import named, overview_sections
from crosslens.report.plots.paper import folded_table, write_figures
from crosslens.report.plots.style import INK, SOFT, WIDTH, label, plotly_objects, tick

MOST = 30
"""Concepts along each side; the table has all."""
_SCALE = [[0.0, "#FFFFFF"], [0.15, "#CFE3F1"], [0.5, "#56A0D3"], [1.0, "#083D77"]]
_ROW, _TOP, _BOTTOM = 21, 104, 150


def atlas_figure(atlas: pl.DataFrame, title: str, about: str, most: int = MOST) -> Any:
    """A plotly figure of the most frequent concepts; colour and number say in how many failures."""
    if not atlas.height:
        raise InputError(
            "the atlas is empty: no failure has a concept that is missing and one that stands in its place",
            fix="there is nothing to draw",
        )
    downs, acrosses = (_in_order(_frequent(atlas, side, most)) for side in ("expected", "shown"))
    cells = {(row["expected"], row["shown"]): row for row in atlas.to_dicts()}
    grid = [[cells.get((down, across)) for across in acrosses] for down in downs]
    objects = plotly_objects()
    drawn = objects.Figure(
        objects.Heatmap(
            z=[[np.sqrt(one["count"]) if one else 0.0 for one in row] for row in grid],
            x=[tick(named(one)) for one in acrosses],
            y=[tick(named(one)) for one in downs],
            text=[[str(one["count"]) if one else "" for one in row] for row in grid],
            texttemplate="%{text}",
            textfont={"size": 10},
            hovertext=[[_hover(one) for one in row] for row in grid],
            hoverinfo="text",
            colorscale=_SCALE,
            showscale=False,
            xgap=1,
            ygap=1,
        )
    )
    return _dressed(drawn, title, about, len(downs))


def write_atlas(found: Overview, output: str | Path, *, overwrite: bool = False, most: int = MOST) -> Path:
    """A page with both atlases and every table of the overview, or a picture of the atlas of all objects."""
    output = Path(output)
    facts = f"{found.run} on {found.dataset}, {count(found.failures.height, 'failure')}, concepts from {found.source}"
    figures = [atlas_figure(found.atlas, "What is taken for what", facts, most)]
    if output.suffix.lower() == ".html" and found.query_atlas.height:
        figures.append(atlas_figure(found.query_atlas, "Asked for, and shown instead", facts, most))
    return write_figures(figures, output, f"Why {found.run} fails", lambda: _tables(found), overwrite=overwrite)


def _frequent(atlas: pl.DataFrame, side: str, most: int) -> list[str]:
    totals = atlas.group_by(side).agg(pl.col("count").sum()).sort(["count", side], descending=[True, False])
    return totals[side].head(most).to_list()


def _in_order(synsets: list[str]) -> list[str]:
    """By their way down WordNet's tree, so that like things stand together."""
    return sorted(synsets, key=lambda one: way_up(one)[::-1])


def _hover(one: dict[str, Any] | None) -> str:
    if one is None:
        return ""
    return "<br>".join(
        (
            f"<b>{label(named(one['expected']))}</b> → <b>{label(named(one['shown']))}</b>",
            f"{count(one['count'], 'failure')}, {100 * one['share_of_expected']:.0f}% of those that lack the first",
            f"lift {one['lift']:.1f}, path similarity {one['similarity']:.2f}",
            f"queries {label(', '.join(one['examples']))}",
        )
    )


def _tables(found: Overview) -> list[str]:
    return [
        folded_table(one.title, one.grid.header, one.grid.rows, about=" ".join(one.notes), shown=place < 2)
        for place, one in enumerate(overview_sections(found, shown=50))
    ] + [folded_table("What the facts cannot see", ("",), [(note,) for note in found.notes])]


def _dressed(drawn: Any, title: str, about: str, rows: int) -> Any:
    height = _TOP + _ROW * rows + _BOTTOM
    drawn.update_yaxes(autorange="reversed", automargin=True, ticks="", showgrid=False, ticklabelstandoff=6)
    drawn.update_xaxes(automargin=True, ticks="", showgrid=False, tickangle=-55, ticklabelstandoff=4)
    drawn.update_layout(
        template="none",
        width=WIDTH,
        height=height,
        margin={"t": _TOP, "r": 24, "b": 60, "l": 40},
        font={"family": "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif", "size": 12, "color": INK},
        title={
            "text": f"<b>{label(title)}</b>",
            "subtitle": {"text": label(f"{about}; expected down, shown instead across"),
                         "font": {"size": 12.5, "color": SOFT}},
            "font": {"size": 18}, "x": 0, "xref": "container", "pad": {"l": 24}, "y": 1 - 32 / height,
            "yref": "container", "yanchor": "bottom",
        },
        hoverlabel={"bgcolor": "white", "font": {"size": 12.5, "color": INK}, "align": "left"},
    )  # fmt: skip
    return drawn
