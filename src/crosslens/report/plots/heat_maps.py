"""Heat maps with the numbers in their cells: models × perturbations, and the atlas of confused concepts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import InputError
from crosslens.explanations import Overview, hypernym_path
from crosslens.metrics import format_count
from crosslens.report.html import folded_table
from crosslens.report.plots import style
from crosslens.report.text.failures import overview_sections, synset_label

MOST = 30
"""Concepts along each side of an atlas; the table has all."""
_COUNT_SCALE = [[0.0, "#FFFFFF"], [0.15, "#CFE3F1"], [0.5, "#56A0D3"], [1.0, "#083D77"]]
_BOTTOM = 150


def atlas_figure(
    atlas: pl.DataFrame, title: str, about: str, most: int = MOST, names: Mapping[str, str] | None = None
) -> Any:
    """A plotly figure of the most frequent concepts; colour and number say in how many failures."""
    if not atlas.height:
        raise InputError(
            "the atlas is empty: no failure has both a missing and an extra concept", fix="there is nothing to draw"
        )
    downs, acrosses = (_frequent(atlas, side, most) for side in ("expected", "shown"))
    by_name = {(row["expected"], row["shown"]): row for row in atlas.to_dicts()}
    cells = [[by_name.get((down, across)) for across in acrosses] for down in downs]
    drawn = _heat_map(
        [synset_label(synset, names) for synset in acrosses],
        [synset_label(synset, names) for synset in downs],
        [[np.sqrt(cell["count"]) if cell else 0.0 for cell in row] for row in cells],
        [[str(cell["count"]) if cell else "" for cell in row] for row in cells],
        [[_confusion_hover(cell, names) if cell else "" for cell in row] for row in cells],
        textfont={"size": 10}, colorscale=_COUNT_SCALE, showscale=False, xgap=1, ygap=1,
    )  # fmt: skip
    top, height = 104, 104 + 21 * len(downs) + _BOTTOM
    drawn.update_yaxes(ticklabelstandoff=6)
    drawn.update_xaxes(tickangle=-55, ticklabelstandoff=4)
    drawn.update_layout(
        **style.figure_layout(
            title, style.label(f"{about}; expected down, shown instead across"), height, font_size=12
        ),
        margin={"t": top, "r": 24, "b": 60, "l": 40},
    )
    return drawn


def write_atlas(overview: Overview, output: str | Path, *, overwrite: bool = False, most: int = MOST) -> Path:
    """A page with both atlases and every table of the overview, or an image of the atlas of all objects."""
    failures = format_count(overview.failures.height, "failure")
    facts = f"{overview.run} on {overview.dataset}, {failures}, concepts from {overview.source}"
    atlases = [(overview.atlas, "Confused concepts")]
    if style.figure_suffix(output) == style.HTML and overview.query_atlas.height:
        atlases.append((overview.query_atlas, "Query concepts, and what was retrieved instead"))
    return style.write_figures(
        output,
        f"Why {overview.run} fails",
        lambda: [atlas_figure(atlas, title, facts, most, overview.names) for atlas, title in atlases],
        lambda: _overview_tables(overview),
        overwrite=overwrite,
    )


def _heat_map(
    across: Sequence[str],
    down: Sequence[str],
    numbers: Sequence[Sequence[float | None]],
    texts: list[list[str]],
    hovers: list[list[str]],
    **look: Any,
) -> Any:
    objects = style.plotly_objects()
    cells = objects.Heatmap(
        z=numbers, x=list(map(style.axis_label, across)), y=list(map(style.axis_label, down)), text=texts,
        texttemplate="%{text}", hovertext=hovers, hoverinfo="text", **look,
    )  # fmt: skip
    drawn = objects.Figure(cells)
    drawn.update_yaxes(autorange="reversed", automargin=True, ticks="", showgrid=False)
    drawn.update_xaxes(automargin=True, ticks="", showgrid=False)
    return drawn


def _frequent(atlas: pl.DataFrame, side: str, most: int) -> list[str]:
    """By their path down WordNet's tree, so that related concepts are adjacent."""
    totals = atlas.group_by(side).agg(pl.col("count").sum()).sort(["count", side], descending=[True, False])
    return sorted(totals[side].head(most).to_list(), key=lambda synset: hypernym_path(synset)[::-1])


def _confusion_hover(cell: dict[str, Any], names: Mapping[str, str] | None) -> str:
    expected, shown = (style.label(synset_label(cell[side], names)) for side in ("expected", "shown"))
    share = f"{100 * cell['share_of_expected']:.0f}% of those that miss the first"
    lines = (
        f"<b>{expected}</b> → <b>{shown}</b>",
        f"{format_count(cell['count'], 'failure')}, {share}",
        f"lift {cell['lift']:.1f}, path similarity {cell['similarity']:.2f}",
        f"queries {style.label(', '.join(cell['examples']))}",
    )
    return "<br>".join(lines)


def _overview_tables(overview: Overview) -> list[str]:
    return [
        folded_table(
            section.title, section.grid.header, section.grid.rows, about=" ".join(section.notes), shown=number < 2
        )
        for number, section in enumerate(overview_sections(overview, shown=50))
    ] + [folded_table("Limits of these facts", ("",), [(note,) for note in overview.notes])]
