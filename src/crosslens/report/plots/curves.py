"""Semantic recall against m as a picture: a colour per run, a line for the share, a dashed one for any hit."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import Any

from crosslens.core.errors import UsageError
from crosslens.core.grid import Grid
from crosslens.core.metric_values import MetricValues
from crosslens.metrics.figures import count, figure, interval
from crosslens.pipeline.curve import FAMILIES, Curves
from crosslens.report.plots.paper import folded_table, suffix_of, write_figures
from crosslens.report.plots.style import COLOURS, FAINT, INK, SOFT, WIDTH, label, plotly_objects
from crosslens.report.table import DIRECTION_LABELS

_DASHES = {"SR": "solid", "SRhit": "dash"}
_WORDS = {"SR": "share of them found", "SRhit": "any of them found"}
_TOP, _BOTTOM, _HEIGHT = 92, 56, 540


def curve_title(curves: Curves) -> str:
    """What is shown: ``Semantic recall at 5 against m, text → image, outside the ground truth``."""
    where = ", outside the ground truth" if curves.non_gt else ""
    direction = DIRECTION_LABELS.get(curves.direction, curves.direction)
    return f"Semantic recall at {curves.k} against m, {direction}{where}"


def curve_facts(curves: Curves) -> str:
    """What a reader has to know beside the title."""
    figures = [one for found in curves.values.values() for family in found.values() for one in family]
    queries = sorted({one.n for one in figures})
    facts = [
        f"m items most similar by {curves.phi} count as relevant",
        curves.dataset,
        count(queries[-1], "caption query" if curves.direction == "t2i" else "image query"),
        f"bands: {100 * figures[0].level:g}% intervals from resampling images" if isfinite(figures[0].low) else "",
    ]
    return " · ".join(fact for fact in facts if fact)


def curve_grid(curves: Curves, most: int | None = 12) -> Grid:
    """The figures as a table: a row per m (some of them, if there are many), two columns per run."""
    places = list(range(len(curves.counts)))
    if most is not None and len(places) > most:
        places = sorted({round(step * (len(places) - 1) / (most - 1)) for step in range(most)})
    header = ["m", *(f"{run} {family}" for run in curves.values for family in FAMILIES)]
    rows = [
        (
            str(curves.counts[place]),
            *(_number(found[family][place]) for found in curves.values.values() for family in FAMILIES),
        )
        for place in places
    ]
    return Grid(tuple(header), tuple(rows), "r" * len(header))


def curve_figure(curves: Curves) -> Any:
    """A plotly figure: m across, the figures up, intervals as bands."""
    if len(curves.values) > len(COLOURS):
        raise UsageError(f"{len(curves.values)} runs in one figure cannot be told apart", fix=f"draw {len(COLOURS)}")
    objects = plotly_objects()
    drawn = objects.Figure()
    for place, (run, found) in enumerate(curves.values.items()):
        for family in FAMILIES:
            band = _band(objects, curves, found[family], COLOURS[place])
            if band is not None:
                drawn.add_trace(band)
            drawn.add_trace(_line(objects, curves, run, family, COLOURS[place]))
    return _dressed(drawn, curves)


def write_curves(curves: Curves, output: str | Path, *, overwrite: bool = False) -> Path:
    """Draw the curves into a file: a page (``.html``) that opens without a network, or a picture."""
    output = Path(output)
    suffix_of(output)
    return write_figures(
        [curve_figure(curves)], output, curve_title(curves), lambda: [_table(curves)], overwrite=overwrite
    )


def _line(objects: Any, curves: Curves, run: str, family: str, colour: str) -> Any:
    figures = curves.values[run][family]
    return objects.Scatter(
        x=list(curves.counts),
        y=[_finite(one.mean) for one in figures],
        mode="lines+markers" if len(figures) < 3 else "lines",
        name=f"{label(run)}: {_WORDS[family]} ({family})",
        legendgroup=run,
        line={"color": colour, "width": 2.2, "dash": _DASHES[family]},
        hovertext=[
            f"<b>{label(run)}</b>, m = {m}<br>{family} {_number(one)}  {interval(one.name, one.low, one.high)}"
            for m, one in zip(curves.counts, figures, strict=True)
        ],
        hoverinfo="text",
    )


def _band(objects: Any, curves: Curves, figures: tuple[MetricValues, ...], colour: str) -> Any | None:
    if not all(isfinite(one.low) and isfinite(one.high) for one in figures):
        return None
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return objects.Scatter(
        x=[*curves.counts, *reversed(curves.counts)],
        y=[*(one.high for one in figures), *(one.low for one in reversed(figures))],
        mode="lines",
        line={"width": 0},
        fill="toself",
        fillcolor=f"rgba({red}, {green}, {blue}, 0.14)",
        showlegend=False,
        hoverinfo="skip",
    )


def _dressed(drawn: Any, curves: Curves) -> Any:
    height = _HEIGHT + 22 * len(curves.values)
    drawn.update_layout(
        template="none",
        width=WIDTH,
        height=height,
        margin={"t": _TOP + 22 * len(curves.values), "r": 40, "b": _BOTTOM, "l": 70},
        font={"family": "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif", "size": 13, "color": INK},
        title={
            "text": f"<b>{label(curve_title(curves))}</b>",
            "subtitle": {"text": label(curve_facts(curves)), "font": {"size": 12.5, "color": SOFT}},
            "font": {"size": 18}, "x": 0, "xref": "container", "pad": {"l": 24}, "y": 1 - 32 / height,
            "yref": "container", "yanchor": "bottom",
        },
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "traceorder": "grouped"},
        xaxis={
            "title": {"text": "m, how many of the most similar items count", "font": {"size": 13, "color": SOFT},
                      "standoff": 8},
            "gridcolor": FAINT, "zeroline": False,
        },
        yaxis={"tickformat": ".0%", "gridcolor": FAINT, "rangemode": "tozero", "zerolinecolor": SOFT},
        hoverlabel={"bgcolor": "white", "font": {"size": 12.5, "color": INK}, "align": "left"},
    )  # fmt: skip
    return drawn


def _table(curves: Curves) -> str:
    grid = curve_grid(curves, None)
    return folded_table("The numbers, in percent", grid.header, grid.rows)


def _number(one: MetricValues) -> str:
    return figure(one.name, one.mean)


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None
