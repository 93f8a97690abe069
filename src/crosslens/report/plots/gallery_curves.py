"""Metrics against the size of the gallery: a chart and a table per metric, and which runs change places."""

from __future__ import annotations

from html import escape
from math import nan
from pathlib import Path

from crosslens.core import ConflictError, Grid, UsageError, split_name
from crosslens.metrics import bounds_of, facts_of, format_figure, format_interval
from crosslens.pipeline import GalleryCurves, GalleryPoint, Lead, OrderChange
from crosslens.report.charts.drawing import ChartHtml, Point
from crosslens.report.charts.lines import line_chart
from crosslens.report.charts.theme import CHART_STYLE, THEME_STYLE
from crosslens.report.export.files import write_changed
from crosslens.report.html import html_page
from crosslens.report.text.runs import DIRECTION_LABELS

_SUFFIXES = (".html", ".svg")
_MARK = " *"
_DOTTED = "dotted, hollow points"
_SHOWN = 20
"""Sizes that the table on a terminal has."""


def gallery_title(metric: str) -> str:
    """``Hit@1 against the size of the gallery, text → image``."""
    direction, name = split_name(metric)
    return f"{name} against the size of the gallery, {DIRECTION_LABELS.get(direction, direction)}"


def gallery_grid(curves: GalleryCurves, metric: str, most: int | None = _SHOWN) -> Grid:
    """A row per size (some of them, if there are many), a column per run; a star marks extrapolated figures."""
    sizes = list(curves.sizes)
    if most is not None and len(sizes) > most:
        sizes = [sizes[round(step * (len(sizes) - 1) / (most - 1))] for step in range(most)]
    columns = [{point.size: point for point in own[metric]} for own in curves.points.values()]
    rows = tuple((f"{size:,}", *(_cell(metric, own.get(size)) for own in columns)) for size in sizes)
    return Grid(("items", *curves.points), rows, "r" * (1 + len(columns)))


def gallery_facts(curves: GalleryCurves, mark: str = _MARK.strip()) -> list[str]:
    """What a reader has to know beside the figures; ``mark`` is how extrapolated ones are marked."""
    facts = [
        "Expected over all sub-galleries of a size that hold the query's relevant items, from the exact ranks; "
        f"{100 * curves.level:g}% intervals over images."
    ]
    if curves.notes:
        facts.append(f"Beyond a run's own gallery ({mark}) figures are extrapolated from its ranks, not measured.")
    return [*facts, *curves.notes[1:]]


def order_sentences(curves: GalleryCurves) -> list[str]:
    """Which runs change places, and whether that is more than chance."""
    return [_order_sentence(change, curves.correction) for change in curves.order_changes]


def gallery_chart(curves: GalleryCurves, metric: str) -> ChartHtml:
    """A line per run with bands for the intervals; extrapolated parts are dotted."""
    series = {}
    for run, own in curves.points.items():
        by_size = {point.size: Point(point.mean, point.low, point.high) for point in own[metric]}
        series[run] = [by_size.get(size, Point(nan)) for size in curves.sizes]
    direction = split_name(metric)[0]
    measured = {run: float(sizes[direction]) for run, sizes in curves.galleries.items()}
    bounds = bounds_of(metric)
    return line_chart(
        gallery_title(metric), curves.sizes, series, axis="items in the gallery",
        number=lambda value: format_figure(metric, value), logarithmic=True,
        limits=bounds if bounds == (0, 1) else None, measured=measured,
        about=" ".join(gallery_facts(curves, _DOTTED)),
    )  # fmt: skip


def write_gallery_curves(curves: GalleryCurves, output: str | Path, *, overwrite: bool = False) -> Path:
    """A page (``.html``) with a chart per metric and their tables, or the drawing of the only metric (``.svg``)."""
    path = Path(output)
    suffix = gallery_curve_suffix(path)
    if path.is_dir():
        raise ConflictError(f"{path} is a folder", fix="name a file")
    charts = [gallery_chart(curves, metric) for metric in curves.metrics]
    if suffix == ".svg" and len(charts) > 1:
        raise UsageError(f"{len(charts)} charts do not fit into one .svg file", fix="name one metric, or write .html")
    content = charts[0].file() if suffix == ".svg" else _page(curves, charts)
    write_changed({path: content.encode()}, overwrite)
    return path


def gallery_curve_suffix(output: str | Path) -> str:
    """The suffix of the file's name; raises unless curves over the gallery can be written in that format."""
    suffix = Path(output).suffix.lower()
    if suffix not in _SUFFIXES:
        problem = f"{output}: unknown format {suffix or '(no suffix)'} for curves over the gallery"
        raise UsageError(problem, fix=f"end the name in {' or '.join(_SUFFIXES)}")
    return suffix


def _page(curves: GalleryCurves, charts: list[ChartHtml]) -> str:
    changes = "".join(f"<li>{escape(sentence)}</li>" for sentence in order_sentences(curves))
    galleries = ", ".join(
        f"{run} {' and '.join(f'{size:,} ({direction})' for direction, size in sizes.items())}"
        for run, sizes in curves.galleries.items()
    )
    body = [
        *(f"<p>{escape(fact)}</p>" for fact in gallery_facts(curves, _DOTTED)),
        f"<p>Items ranked: {escape(galleries)}.</p>",
        f"<h2>Runs that change places</h2>\n<ul>{changes}</ul>" if changes else "",
        f'<div class="charts">{"".join(charts)}</div>',
    ]
    style = THEME_STYLE + _STYLE + CHART_STYLE
    return html_page("Metrics against the size of the gallery", "\n".join(filter(None, body)), style=style)


def _cell(metric: str, point: GalleryPoint | None) -> str:
    if point is None:
        return ""
    figure = format_figure(metric, point.mean)
    interval = format_interval(metric, point.low, point.high)
    return f"{figure} {interval}".rstrip() + (_MARK if point.extrapolated else "")


def _order_sentence(change: OrderChange, correction: str) -> str:
    parts = ", ".join(_lead_words(change, lead) for lead in change.leads)
    sizes = " and ".join(f"{size:,}" for size in change.changes_at)
    if change.tested:
        chance = "each lead is more than chance" if change.significant() else "not every lead is more than chance"
        chance += "" if correction == "none" else f" (paired tests, corrected: {correction})"
    else:
        chance = "not tested"
    return f"{change.metric}: {' and '.join(change.runs)} change places at {sizes} items: {parts}; {chance}."


def _lead_words(change: OrderChange, lead: Lead) -> str:
    difference = format_figure(change.metric, lead.difference)
    unit = " points" if facts_of(change.metric).unit == "share" else ""
    p_value = "" if lead.adjusted_p is None else f", p = {lead.adjusted_p:.2g}"
    return f"{lead.leader} leads by {difference}{unit} at {lead.size:,}{p_value}"


_STYLE = """
body { max-width: 1000px; background: var(--paper); color: var(--ink); font-family: system-ui, sans-serif; }
.charts { display: flex; flex-wrap: wrap; gap: 16px 32px; }
.chart-figure { flex: 1 1 400px; max-width: 480px; }
.wide { overflow-x: auto; }
th, td { border-color: var(--line); font-variant-numeric: tabular-nums; }
.number { text-align: right; } .figure { white-space: nowrap; }
summary { color: var(--soft); }
"""
