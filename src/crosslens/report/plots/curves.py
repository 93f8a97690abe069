"""Semantic recall against m: a colour per run, a solid line for the share, a dashed one for any hit."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import Any

from crosslens.core import Grid, MetricValues
from crosslens.metrics import format_count, format_figure, format_interval
from crosslens.pipeline import CURVE_FAMILIES, Curves
from crosslens.report.html import folded_table
from crosslens.report.plots import style
from crosslens.report.text.runs import DIRECTION_LABELS

_DASHES = {"SR": "solid", "SRhit": "dash"}
_WORDS = {"SR": "share of them retrieved", "SRhit": "any of them retrieved"}
_TOP, _BOTTOM, _HEIGHT = 92, 56, 540


def curve_title(curves: Curves) -> str:
    """What is shown: ``Semantic recall at 5 against m, text → image, outside the ground truth``."""
    where = ", outside the ground truth" if curves.non_gt else ""
    direction = DIRECTION_LABELS.get(curves.direction, curves.direction)
    return f"Semantic recall at {curves.k} against m, {direction}{where}"


def curve_facts(curves: Curves) -> str:
    """What a reader has to know beside the title."""
    figures = [values for families in curves.values.values() for family in families.values() for values in family]
    queries = sorted({values.n for values in figures})
    facts = [
        f"m images that the captions of the query's image vote for by {curves.phi} count as relevant"
        if curves.by_image
        else f"m items most similar by {curves.phi} count as relevant",
        curves.dataset,
        format_count(queries[-1], "caption query" if curves.direction == "t2i" else "image query"),
        f"bands: {100 * figures[0].level:g}% intervals over images" if isfinite(figures[0].low) else "",
    ]
    return " · ".join(fact for fact in facts if fact)


def curve_grid(curves: Curves, most: int | None = 12) -> Grid:
    """The figures as a table: a row per m (some of them, if there are many), two columns per run."""
    indices = list(range(len(curves.counts)))
    if most is not None and len(indices) > most:
        indices = sorted({round(step * (len(indices) - 1) / (most - 1)) for step in range(most)})
    header = ["m", *(f"{run} {family}" for run in curves.values for family in CURVE_FAMILIES)]
    rows = [
        (
            str(curves.counts[index]),
            *(_number(families[family][index]) for families in curves.values.values() for family in CURVE_FAMILIES),
        )
        for index in indices
    ]
    return Grid(tuple(header), tuple(rows), "r" * len(header))


def curve_figure(curves: Curves) -> Any:
    """A plotly figure: m across, the figures up, intervals as bands."""
    style.check_series_count(len(curves.values), "runs")
    objects = style.plotly_objects()
    drawn = objects.Figure()
    for index, (run, families) in enumerate(curves.values.items()):
        for family in CURVE_FAMILIES:
            ends = ([values.low for values in families[family]], [values.high for values in families[family]])
            band = style.interval_band(curves.counts, *ends, style.COLOURS[index])
            if band is not None:
                drawn.add_trace(band)
            drawn.add_trace(_line(objects, curves, run, family, style.COLOURS[index]))
    return _with_layout(drawn, curves)


def write_curves(curves: Curves, output: str | Path, *, overwrite: bool = False) -> Path:
    """Draw the curves into a file: a page (``.html``) that opens without a network, or an image."""
    return style.write_figures(
        output, curve_title(curves), lambda: [curve_figure(curves)], lambda: [_table(curves)], overwrite=overwrite
    )


def _line(objects: Any, curves: Curves, run: str, family: str, colour: str) -> Any:
    figures = curves.values[run][family]
    return objects.Scatter(
        x=list(curves.counts),
        y=[style.finite_or_none(values.mean) for values in figures],
        mode="lines+markers" if len(figures) < 3 else "lines",
        name=f"{style.label(run)}: {_WORDS[family]} ({family})",
        legendgroup=run,
        line={"color": colour, "width": 2.2, "dash": _DASHES[family]},
        hovertext=[
            f"<b>{style.label(run)}</b>, m = {m}<br>{family} {_number(values)}  "
            + format_interval(values.name, values.low, values.high)
            for m, values in zip(curves.counts, figures, strict=True)
        ],
        hoverinfo="text",
    )


def _with_layout(drawn: Any, curves: Curves) -> Any:
    height = _HEIGHT + 22 * len(curves.values)
    drawn.update_layout(
        **style.figure_layout(curve_title(curves), style.label(curve_facts(curves)), height),
        margin={"t": _TOP + 22 * len(curves.values), "r": 40, "b": _BOTTOM, "l": 70},
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "traceorder": "grouped"},
        xaxis={
            "title": {"text": "m, how many of the most similar items count", "font": {"size": 13, "color": style.SOFT},
                      "standoff": 8},
            "gridcolor": style.FAINT, "zeroline": False,
        },
        yaxis={"tickformat": ".0%", "gridcolor": style.FAINT, "rangemode": "tozero", "zerolinecolor": style.SOFT},
    )  # fmt: skip
    return drawn


def _table(curves: Curves) -> str:
    grid = curve_grid(curves, None)
    return folded_table("The numbers, in percent", grid.header, grid.rows)


def _number(values: MetricValues) -> str:
    return format_figure(values.name, values.mean)
