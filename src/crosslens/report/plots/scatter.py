"""Agreement with people as a picture: a panel per φ, a dot per judged pair, and what people said on average."""

from __future__ import annotations

from math import ceil, isfinite
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.analyze.agreement_result import ALL, BINARY, LABELS, OUTSIDE, TITLES, Agreement
from crosslens.core.errors import UsageError
from crosslens.core.seeds import stream
from crosslens.report.plots.paper import folded_table, suffix_of, write_figures
from crosslens.report.plots.style import COLOURS, FAINT, INK, SOFT, WIDTH, label, plotly_objects
from crosslens.statistics import Estimate

Array = np.ndarray[Any, Any]

_MOST_DOTS = 4000
_STEPS, _FEWEST = 12, 8
_COLUMNS, _PANEL, _TOP, _BOTTOM = 2, 330, 108, 64
_KINDS = ((True, "in the ground truth", COLOURS[1]), (False, "outside the ground truth", COLOURS[0]))


def scatter_figure(found: Agreement) -> Any:
    """A plotly figure: φ across, people's mean score up; dots are shaken a little, as many lie on one another.

    The line joins the mean scores of pairs outside the ground truth with about the same φ: where φ agrees with people,
    it rises.
    """
    names = [name for name in found.values if name != BINARY]
    if not names:
        raise UsageError("no φ to draw", fix="name one, such as cider")
    objects = plotly_objects()
    from plotly.subplots import make_subplots

    columns = min(_COLUMNS, len(names))
    rows = ceil(len(names) / columns)
    drawn = make_subplots(
        rows, columns, subplot_titles=[_title(found, name) for name in names],
        horizontal_spacing=0.09, vertical_spacing=min(0.2, 0.24 / rows),
    )  # fmt: skip
    dots, shaken = _sample(found), _shaken(found)
    for place, name in enumerate(names):
        at = {"row": place // columns + 1, "col": place % columns + 1}
        for inside, words, colour in _KINDS:
            chosen = dots & (found.truth == inside)
            if chosen.any():
                trace = _dots(objects, found.values[name][chosen], shaken[chosen], words, colour, first=place == 0)
                drawn.add_trace(trace, **at)
        drawn.add_trace(_means(objects, found, name, first=place == 0), **at)
        drawn.update_xaxes(title={"text": label(name), "standoff": 6, "font": {"size": 12, "color": SOFT}}, **at)
    return _dressed(drawn, found, rows, int(dots.sum()))


def write_scatter(found: Agreement, output: str | Path, *, overwrite: bool = False) -> Path:
    """Draw the agreement into a file: a page (``.html``) that opens without a network, or a picture."""
    output = Path(output)
    suffix_of(output)
    return write_figures(
        [scatter_figure(found)],
        output,
        _heading(found),
        lambda: [_table(found, part) for part in found.subsets],
        overwrite=overwrite,
    )


def _dots(objects: Any, across: Array, up: Array, words: str, colour: str, *, first: bool) -> Any:
    return objects.Scattergl(
        x=np.round(across, 4),
        y=np.round(up, 3),
        mode="markers",
        name=words,
        legendgroup=words,
        showlegend=first,
        marker={"color": colour, "size": 4, "opacity": 0.35},
        hoverinfo="skip",
    )


def _means(objects: Any, found: Agreement, name: str, *, first: bool) -> Any:
    """The mean score over steps of φ outside the ground truth; a step with a few pairs says nothing and is skipped."""
    outside = ~found.truth if (~found.truth).any() else np.ones(len(found.truth), np.bool_)
    values, scores = found.values[name][outside], found.judgements.scores[outside]
    # A far outlier must not stretch the steps over everything else.
    edges = np.linspace(values.min(), np.quantile(values, 0.995), _STEPS + 1)[1:-1]
    steps = np.searchsorted(edges, values, side="right")
    counts = np.bincount(steps, minlength=_STEPS)
    there = counts >= min(_FEWEST, counts.max())
    across = np.bincount(steps, values, _STEPS)[there] / counts[there]
    up = np.bincount(steps, scores, _STEPS)[there] / counts[there]
    return objects.Scattergl(
        x=across,
        y=up,
        mode="lines+markers",
        name="mean score outside it",
        legendgroup="mean",
        showlegend=first,
        line={"color": INK, "width": 2},
        marker={"color": INK, "size": 7},
        hovertemplate="φ %{x:.3f}: mean score %{y:.2f}<extra></extra>",
    )


def _sample(found: Agreement) -> Array:
    """Which pairs are drawn: all, or as many of each kind as a browser draws at once."""
    chosen = np.zeros(len(found.truth), np.bool_)
    for inside, words, _ in _KINDS:
        members = np.flatnonzero(found.truth == inside)
        if len(members) > _MOST_DOTS:
            members = stream(0, "dots", words).choice(members, _MOST_DOTS, replace=False)
        chosen[members] = True
    return chosen


def _shaken(found: Agreement) -> Array:
    scores = found.judgements.scores
    steps = np.diff(np.unique(scores))
    room = min(float(np.median(steps)), float(np.ptp(scores)) / 12) if len(steps) else 0.0
    shaken: Array = scores + room * (stream(0, "shake").random(len(scores)) - 0.5) * 0.7
    return shaken


def _title(found: Agreement, name: str) -> str:
    parts = []
    for part, words in ((ALL, "all"), (OUTSIDE, "outside")):
        one = found.figure(name, "pearson", part)
        if isfinite(one.mean):
            parts.append(f"{one.mean:.3f} {words}")
    return f"<b>{label(name)}</b>   Pearson {', '.join(parts) or '–'}"


def _dressed(drawn: Any, found: Agreement, rows: int, dots: int) -> Any:
    height = _TOP + rows * _PANEL + _BOTTOM
    pairs = len(found.truth)
    shown = f"{pairs:,} judged pairs" + (f", {dots:,} of them drawn" if dots < pairs else "")
    drawn.update_annotations(font={"size": 13, "color": INK})
    drawn.update_xaxes(gridcolor=FAINT, zeroline=False, linecolor=SOFT)
    drawn.update_yaxes(gridcolor=FAINT, zeroline=False, linecolor=SOFT)
    drawn.update_yaxes(title={"text": "people's score", "font": {"size": 12, "color": SOFT}}, col=1)
    drawn.update_layout(
        template="none",
        width=WIDTH,
        height=height,
        margin={"t": _TOP, "r": 30, "b": _BOTTOM, "l": 66},
        font={"family": "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif", "size": 12, "color": INK},
        title={
            "text": f"<b>{label(_heading(found))}</b>",
            "subtitle": {"text": shown, "font": {"size": 12.5, "color": SOFT}},
            "font": {"size": 18}, "x": 0, "xref": "container", "pad": {"l": 24}, "y": 1 - 30 / height,
            "yref": "container", "yanchor": "bottom",
        },
        legend={"orientation": "h", "x": 0, "y": -46 / (height - _TOP - _BOTTOM), "yanchor": "top",
                "itemsizing": "constant"},
    )  # fmt: skip
    return drawn


def _heading(found: Agreement) -> str:
    return f"Agreement with people: {found.judgements.source} on {found.dataset}"


def _table(found: Agreement, part: str) -> str:
    subset = found.subsets[part]
    rows = [(name, *(_cell(figures[one]) for one in LABELS)) for name, figures in subset.figures.items()]
    summary = f"{TITLES[part]}: {subset.pairs:,} pairs of {subset.images:,} images"
    return folded_table(summary, ("φ", *LABELS.values()), rows, shown=True)


def _cell(one: Estimate) -> str:
    if not isfinite(one.mean):
        return "–"
    return f"{one.mean:.3f}" + (f" [{one.low:.3f}, {one.high:.3f}]" if isfinite(one.low) else "")
