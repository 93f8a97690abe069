"""The confusion atlas as a heat map: expected concepts down, shown ones across, related ones next to each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import InputError
from crosslens.explanations import Overview, hypernym_path
from crosslens.metrics import format_count
from crosslens.report.html import folded_table
from crosslens.report.plots.files import write_figures
from crosslens.report.plots.style import axis_label, figure_layout, label, plotly_objects
from crosslens.report.text.failures import overview_sections, synset_label

MOST = 30
"""Concepts along each side; the table has all."""
_SCALE = [[0.0, "#FFFFFF"], [0.15, "#CFE3F1"], [0.5, "#56A0D3"], [1.0, "#083D77"]]
_ROW, _TOP, _BOTTOM = 21, 104, 150


def atlas_figure(atlas: pl.DataFrame, title: str, about: str, most: int = MOST) -> Any:
    """A plotly figure of the most frequent concepts; colour and number say in how many failures."""
    if not atlas.height:
        raise InputError(
            "the atlas is empty: no failure has both a missing and an extra concept",
            fix="there is nothing to draw",
        )
    downs, acrosses = (_in_order(_frequent(atlas, side, most)) for side in ("expected", "shown"))
    cells = {(row["expected"], row["shown"]): row for row in atlas.to_dicts()}
    grid = [[cells.get((down, across)) for across in acrosses] for down in downs]
    objects = plotly_objects()
    drawn = objects.Figure(
        objects.Heatmap(
            z=[[np.sqrt(cell["count"]) if cell else 0.0 for cell in row] for row in grid],
            x=[axis_label(synset_label(synset)) for synset in acrosses],
            y=[axis_label(synset_label(synset)) for synset in downs],
            text=[[str(cell["count"]) if cell else "" for cell in row] for row in grid],
            texttemplate="%{text}",
            textfont={"size": 10},
            hovertext=[[_hover(cell) for cell in row] for row in grid],
            hoverinfo="text",
            colorscale=_SCALE,
            showscale=False,
            xgap=1,
            ygap=1,
        )
    )
    return _with_layout(drawn, title, about, len(downs))


def write_atlas(overview: Overview, output: str | Path, *, overwrite: bool = False, most: int = MOST) -> Path:
    """A page with both atlases and every table of the overview, or an image of the atlas of all objects."""
    output = Path(output)
    failures = format_count(overview.failures.height, "failure")
    facts = f"{overview.run} on {overview.dataset}, {failures}, concepts from {overview.source}"
    figures = [atlas_figure(overview.atlas, "Confused concepts", facts, most)]
    if output.suffix.lower() == ".html" and overview.query_atlas.height:
        figures.append(
            atlas_figure(overview.query_atlas, "Query concepts, and what was retrieved instead", facts, most)
        )
    return write_figures(figures, output, f"Why {overview.run} fails", lambda: _tables(overview), overwrite=overwrite)


def _frequent(atlas: pl.DataFrame, side: str, most: int) -> list[str]:
    totals = atlas.group_by(side).agg(pl.col("count").sum()).sort(["count", side], descending=[True, False])
    return totals[side].head(most).to_list()


def _in_order(synsets: list[str]) -> list[str]:
    """By their path down WordNet's tree, so that related concepts are adjacent."""
    return sorted(synsets, key=lambda synset: hypernym_path(synset)[::-1])


def _hover(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return ""
    return "<br>".join(
        (
            f"<b>{label(synset_label(cell['expected']))}</b> → <b>{label(synset_label(cell['shown']))}</b>",
            f"{format_count(cell['count'], 'failure')}, "
            f"{100 * cell['share_of_expected']:.0f}% of those that miss the first",
            f"lift {cell['lift']:.1f}, path similarity {cell['similarity']:.2f}",
            f"queries {label(', '.join(cell['examples']))}",
        )
    )


def _tables(overview: Overview) -> list[str]:
    return [
        folded_table(
            section.title, section.grid.header, section.grid.rows, about=" ".join(section.notes), shown=number < 2
        )
        for number, section in enumerate(overview_sections(overview, shown=50))
    ] + [folded_table("Limits of these facts", ("",), [(note,) for note in overview.notes])]


def _with_layout(drawn: Any, title: str, about: str, rows: int) -> Any:
    height = _TOP + _ROW * rows + _BOTTOM
    drawn.update_yaxes(autorange="reversed", automargin=True, ticks="", showgrid=False, ticklabelstandoff=6)
    drawn.update_xaxes(automargin=True, ticks="", showgrid=False, tickangle=-55, ticklabelstandoff=4)
    drawn.update_layout(
        **figure_layout(title, label(f"{about}; expected down, shown instead across"), height, font_size=12),
        margin={"t": _TOP, "r": 24, "b": 60, "l": 40},
    )  # fmt: skip
    return drawn
