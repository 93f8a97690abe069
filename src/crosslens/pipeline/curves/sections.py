"""How curves are shown: semantic recall against m, metrics against the size of the gallery."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING

from crosslens.core import DIRECTION_LABELS, Cell, Figure, Lines, MetricValues, Section, Series, Table, Text, split_name
from crosslens.metrics import bounds_of, facts_of, format_count, metric_figure, unit_sentence

if TYPE_CHECKING:
    from crosslens.pipeline.curves.results import GalleryCurves, GalleryPoint, Lead, OrderChange
    from crosslens.pipeline.curves.semantic import Curves

CURVE_FAMILIES = ("SR", "SRhit")
_WORDS = {"SR": "share of them retrieved", "SRhit": "any of them retrieved"}
_MOST_COUNTS, _MOST_SIZES = 12, 20
"""Rows of the tables on a terminal."""
_STAR = "*"


def curve_title(curves: Curves) -> str:
    """What is shown: ``Semantic recall at 5 against m, text → image, outside the ground truth``."""
    where = ", outside the ground truth" if curves.non_gt else ""
    direction = DIRECTION_LABELS.get(curves.direction, curves.direction)
    return f"Semantic recall at {curves.k} against m, {direction}{where}"


def curve_sections(curves: Curves) -> Iterator[Section]:
    """Two lines per run, intervals as bands; a row per m."""
    columns = [(run, family, families[family]) for run, families in curves.values.items() for family in CURVE_FAMILIES]
    figures = [values for *_, own in columns for values in own]
    facts = [
        f"m images that the captions of the query's image vote for by {curves.phi} count as relevant"
        if curves.by_image
        else f"m items most similar by {curves.phi} count as relevant",
        curves.dataset,
        format_count(
            max(values.n for values in figures), "caption query" if curves.direction == "t2i" else "image query"
        ),
        f"bands: {100 * figures[0].level:g}% intervals over images" if isfinite(figures[0].low) else "",
    ]
    about = " · ".join(fact for fact in facts if fact)
    lines = Lines(
        title=curve_title(curves), about=about, across=tuple(map(float, curves.counts)),
        series=tuple(
            Series(f"{run}: {_WORDS[family]} ({family})", tuple(map(_bounded, own))) for run, family, own in columns
        ),
        axis="m, how many of the most similar items count",
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = [
        (str(m), *(metric_figure(own[index].name, own[index].mean) for *_, own in columns))
        for index, m in enumerate(curves.counts)
    ]
    table = Table(
        ("m", *(f"{run} {family}" for run, family, _ in columns)), tuple(rows), "r" * (1 + len(columns)),
        most=_MOST_COUNTS,
    )  # fmt: skip
    yield Section(curve_title(curves), (lines, table, Text.of(f"In percent. {about}.")))


def _bounded(values: MetricValues) -> Figure:
    return metric_figure(values.name, values.mean, values.low, values.high)


def gallery_sections(curves: GalleryCurves) -> Iterator[Section]:
    """Lines and a table per metric, then which runs change places."""
    for metric in curves.metrics:
        direction, name = split_name(metric)
        title = f"{name} against the size of the gallery, {DIRECTION_LABELS.get(direction, direction)}"
        yield Section(title, (_gallery_lines(curves, metric, title), _gallery_table(curves, metric)))
    facts = [
        unit_sentence(curves.metrics),
        "Expected over all sub-galleries of a size that hold the query's relevant items, from the exact ranks; "
        f"{100 * curves.level:g}% intervals over images.",
    ]
    if curves.notes:
        facts.append(f"Beyond a run's own gallery ({_STAR}) figures are extrapolated from its ranks, not measured.")
    changes = [order_sentence(change, curves.correction) for change in curves.order_changes]
    if len(curves.points) > 1 and not changes:
        changes = ["No two runs change places."]
    yield Section("", (Text.of(*facts, *curves.notes[1:], *changes),))


def _gallery_lines(curves: GalleryCurves, metric: str, title: str) -> Lines:
    direction = split_name(metric)[0]
    measured = {run: float(sizes[direction]) for run, sizes in curves.galleries.items()}
    about = f"{100 * curves.level:g}% intervals over images; items ranked: "
    about += ", ".join(f"{run} {size:,.0f}" for run, size in measured.items())
    about += "; dotted, hollow points: extrapolated" if curves.notes else ""
    series = []
    for run, own in curves.points.items():
        by_size = {point.size: metric_figure(metric, point.mean, point.low, point.high) for point in own[metric]}
        series.append(Series(run, tuple(by_size.get(size, metric_figure(metric, None)) for size in curves.sizes)))
    return Lines(
        title=title, across=tuple(map(float, curves.sizes)), series=tuple(series), axis="items in the gallery",
        about=about,
        logarithmic=True, limits=(0.0, 1.0) if bounds_of(metric) == (0, 1) else None, measured=measured,
    )  # fmt: skip


def _gallery_table(curves: GalleryCurves, metric: str) -> Table:
    """A row per size, a column per run; a star marks extrapolated figures."""

    def cell(point: GalleryPoint | None) -> Cell:
        if point is None:
            return None
        figure = metric_figure(metric, point.mean, point.low, point.high)
        return replace(figure, mark=_STAR) if point.extrapolated else figure

    columns = [{point.size: point for point in own[metric]} for own in curves.points.values()]
    rows = tuple((f"{size:,}", *(cell(own.get(size)) for own in columns)) for size in curves.sizes)
    return Table(("items", *curves.points), rows, "r" * (1 + len(columns)), most=_MOST_SIZES)


def order_sentence(change: OrderChange, correction: str) -> str:
    """Which runs change places where, and whether that is more than chance."""
    parts = ", ".join(_lead_words(change, lead) for lead in change.leads)
    sizes = " and ".join(f"{size:,}" for size in change.changes_at)
    if change.tested:
        chance = "each lead is more than chance" if change.significant() else "not every lead is more than chance"
        chance += "" if correction == "none" else f" (paired tests, corrected: {correction})"
    else:
        chance = "not tested"
    return f"{change.metric}: {' and '.join(change.runs)} change places at {sizes} items: {parts}; {chance}."


def _lead_words(change: OrderChange, lead: Lead) -> str:
    unit = " points" if facts_of(change.metric).unit == "share" else ""
    p_value = "" if lead.adjusted_p is None else f", p = {lead.adjusted_p:.2g}"
    return f"{lead.leader} leads by {metric_figure(change.metric, lead.difference)}{unit} at {lead.size:,}{p_value}"
