"""Heat maps with the numbers in their cells: models × perturbations, and the atlas of confused concepts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import InputError, percent, split_name
from crosslens.explanations import Overview, hypernym_path
from crosslens.metrics import format_count, format_figure, format_interval
from crosslens.pipeline import Drop, DropTable, Robustness, drop_table
from crosslens.report.html import folded_table
from crosslens.report.plots import style
from crosslens.report.text.drop_table import drop_grid, model_tests_grid, model_tests_sentence, percent_cells
from crosslens.report.text.failures import overview_sections, synset_label
from crosslens.report.text.robustness import study_summary, table_sections

MOST = 30
"""Concepts along each side of an atlas; the table has all."""
_DROP_SCALE = [[0.0, "#0072B2"], [0.5, "#FFFFFF"], [1.0, "#D55E00"]]
"""Better in blue, worse in orange, white where nothing changed: readable by the colour-blind."""
_COUNT_SCALE = [[0.0, "#FFFFFF"], [0.15, "#CFE3F1"], [0.5, "#56A0D3"], [1.0, "#083D77"]]
_UNDER = ("models", "drops", "applied", "seeds", "metrics", "changes", "groups", "overlap", "words")
"""The tables under the figure of a page."""
_BOTTOM = 150


def heat_map_figure(table: DropTable, about: str = "") -> Any:
    """A plotly figure: a row per perturbation, a column per model or dataset, the drop as colour and number."""
    names = (*table.perturbations, "mean")
    found = {**table.cells, **{(column, "mean"): mean for column, mean in table.means.items()}}
    cells = [[found.get((column, name)) for column in table.columns] for name in names]
    # Percent as colour: a model that starts low has few points to lose, and is not robust for that.
    numbers = [[float("nan") if cell is None else cell.percent for cell in row] for row in cells]
    largest = max((abs(drop) for row in numbers for drop in row if isfinite(drop)), default=1.0) or 1.0
    starts = [
        f"{column} ({format_figure(table.metric, table.means[column].before)} before)"
        if column in table.means
        else column
        for column in table.columns
    ]
    drawn = _heat_map(
        starts, names, [[drop if isfinite(drop) else 0.0 if cell else None for drop, cell in zip(*both, strict=True)]
                        for both in zip(numbers, cells, strict=True)],
        [["" if cell is None else _drop_text(table.metric, cell) for cell in row] for row in cells],
        [["" if cell is None else _drop_hover(table.metric, f"<b>{style.label(name)}</b>, {style.label(column)}", cell)
          for column, cell in zip(table.columns, row, strict=True)]
         for name, row in zip(names, cells, strict=True)],
        colorscale=_DROP_SCALE, zmin=-largest, zmax=largest, xgap=2, ygap=2,
        colorbar={"title": {"text": "drop, % of before", "side": "right"}, "thickness": 12, "outlinewidth": 0},
    )  # fmt: skip
    top, height = 96, 96 + 30 * len(names) + _BOTTOM
    drawn.update_xaxes(side="bottom")
    drawn.update_layout(
        **style.figure_layout(_title(table.metric), style.label(about), height),
        margin={"t": top, "r": 30, "b": 60, "l": 40},
    )
    return drawn


def write_heat_map(
    study: Robustness, output: str | Path, *, metric: str | None = None, overwrite: bool = False
) -> Path:
    """Draw the heat map into a file: a page (``.html``) with the tables under it, or a picture."""
    table = drop_table({"": study}, metric or study.headline)
    figures, tables = (lambda: [heat_map_figure(table, study_summary(study))]), (lambda: _study_tables(study))
    return style.write_figures(output, _title(table.metric), figures, tables, overwrite=overwrite)


def write_drop_map(table: DropTable, output: str | Path, *, overwrite: bool = False) -> Path:
    """The same of several studies: a page with the table under it, or a picture."""
    grids = {_title(table.metric): (drop_grid(table), "")}
    if table.tests:
        grids["Do models differ?"] = model_tests_grid(table), model_tests_sentence(table)
    return style.write_figures(
        output,
        _title(table.metric),
        lambda: [heat_map_figure(table, _about_table(table))],
        lambda: [
            folded_table(title, grid.header, grid.rows, about=about, shown=True)
            for title, (grid, about) in grids.items()
        ],
        overwrite=overwrite,
    )


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


def _drop_text(metric: str, cell: Drop) -> str:
    share = f" ({percent(cell.percent / 100, signed=True)} %)" if isfinite(cell.percent) else ""
    return f"{format_figure(metric, cell.drop, signed=True)}{share}"


def _drop_hover(metric: str, title: str, cell: Drop) -> str:
    bounds = format_interval(metric, cell.low, cell.high, signed=True)
    facts = [f"applied to {100 * cell.applied_share:.1f}% of the captions"] * isfinite(cell.applied_share)
    facts += [f"corrected p {cell.adjusted_p:.4f}"] * isfinite(cell.adjusted_p)
    facts += [f"mean over {cell.models} models"] * (cell.models > 1)
    lines = (
        title,
        f"{style.label(metric)}: {format_figure(metric, cell.before)} → {format_figure(metric, cell.after)}",
        f"drop {format_figure(metric, cell.drop, signed=True)}  {bounds}",
        f"in percent {' '.join(percent_cells([(cell.percent, cell.percent_low, cell.percent_high)]))}",
        "; ".join(facts),
    )
    return "<br>".join(filter(None, lines))


def _about_table(table: DropTable) -> str:
    models = max((cell.models for cell in table.cells.values()), default=1)
    averaged = f", mean over up to {models} models" if models > 1 else ""
    return f"{format_count(len(table.perturbations), 'perturbation')}{averaged}"


def _title(metric: str) -> str:
    return f"Drop of {metric}" if split_name(metric)[1] != metric or "Rsum" in metric else f"Drop of {metric} (both)"


def _study_tables(study: Robustness) -> list[str]:
    return [
        folded_table(
            ": ".join(filter(None, (section.title, above))), grid.header, grid.rows, about=" ".join(section.notes)
        )
        for section in table_sections(study, _UNDER)
        for above, grid in section.grids
    ]


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
