"""Panels: agreement with human judgements (one per φ), and distributions of granularity (one per feature)."""

from __future__ import annotations

from math import ceil, isfinite
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.analyze import (
    ALL_PAIRS,
    BINARY,
    COEFFICIENT_LABELS,
    OUTSIDE_GROUND_TRUTH,
    SUBSET_TITLES,
    HumanAgreement,
)
from crosslens.core import UsageError, random_stream
from crosslens.report.html import folded_table
from crosslens.report.plots import style
from crosslens.statistics import Estimate

Array = np.ndarray[Any, Any]

_MOST_DOTS = 4000
_MEAN_STEPS, _FEWEST = 12, 8
_KINDS = ((True, "in the ground truth", style.COLOURS[1]), (False, "outside the ground truth", style.COLOURS[0]))
_STEPS = 28
"""Steps that a feature with many values is cut into."""
_FEW = 30
"""Whole numbers up to this are shown one by one."""
_SINGLE = 8
"""Up to so many whole numbers each has its label."""
_OUTER = 0.998
"""The share of values that is drawn: the few beyond would flatten everything else."""
_GRANULARITY = "How fine-grained the captions are"


def scatter_figure(agreement: HumanAgreement) -> Any:
    """A plotly figure: φ across, people's mean score up; dots are shaken a little, as many lie on one another.

    The line joins the mean scores of pairs outside the ground truth with about the same φ: where φ agrees with people,
    it rises.
    """
    names = [name for name in agreement.values if name != BINARY]
    if not names:
        raise UsageError("no φ to draw", fix="name one, such as cider")
    columns = min(2, len(names))
    rows = ceil(len(names) / columns)
    titles = [_panel_title(agreement, name) for name in names]
    drawn = style.panel_figure(titles, columns, horizontal_spacing=0.09, vertical_spacing=min(0.2, 0.24 / rows))
    objects = style.plotly_objects()
    dots, shaken = _sample(agreement), _shaken(agreement)
    for index, name in enumerate(names):
        at = {"row": index // columns + 1, "col": index % columns + 1}
        for inside, words, colour in _KINDS:
            chosen = dots & (agreement.truth == inside)
            if chosen.any():
                trace = _dots(objects, agreement.values[name][chosen], shaken[chosen], words, colour, first=index == 0)
                drawn.add_trace(trace, **at)
        drawn.add_trace(_means(objects, agreement, name, first=index == 0), **at)
        drawn.update_xaxes(
            title={"text": style.label(name), "standoff": 6, "font": {"size": 12, "color": style.SOFT}}, **at
        )
    style.style_panels(drawn)
    drawn.update_yaxes(title={"text": "people's score", "font": {"size": 12, "color": style.SOFT}}, col=1)
    pairs, shown = len(agreement.truth), int(dots.sum())
    subtitle = f"{pairs:,} judged pairs" + (f", {shown:,} of them drawn" if shown < pairs else "")
    top, inner, bottom = 108, rows * 330, 64
    drawn.update_layout(
        **style.figure_layout(_heading(agreement), subtitle, top + inner + bottom, font_size=12, title_top=30),
        margin={"t": top, "r": 30, "b": bottom, "l": 66},
        legend={"orientation": "h", "x": 0, "y": -46 / inner, "yanchor": "top", "itemsizing": "constant"},
    )
    return drawn


def write_scatter(agreement: HumanAgreement, output: str | Path, *, overwrite: bool = False) -> Path:
    """Draw the agreement into a file: a page (``.html``) that opens without a network, or a picture."""
    return style.write_figures(
        output,
        _heading(agreement),
        lambda: [scatter_figure(agreement)],
        lambda: [_coefficients(agreement, part) for part in agreement.subsets],
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


def _means(objects: Any, agreement: HumanAgreement, name: str, *, first: bool) -> Any:
    """The mean score over steps of φ outside the ground truth; a step with few pairs is skipped."""
    outside = ~agreement.truth if (~agreement.truth).any() else np.ones(len(agreement.truth), np.bool_)
    values, scores = agreement.values[name][outside], agreement.judgements.scores[outside]
    # A far outlier must not stretch the steps over everything else.
    edges = np.linspace(values.min(), np.quantile(values, 0.995), _MEAN_STEPS + 1)[1:-1]
    steps = np.searchsorted(edges, values, side="right")
    counts = np.bincount(steps, minlength=_MEAN_STEPS)
    there = counts >= min(_FEWEST, counts.max())
    across = np.bincount(steps, values, _MEAN_STEPS)[there] / counts[there]
    up = np.bincount(steps, scores, _MEAN_STEPS)[there] / counts[there]
    return objects.Scattergl(
        x=across,
        y=up,
        mode="lines+markers",
        name="mean score outside it",
        legendgroup="mean",
        showlegend=first,
        line={"color": style.INK, "width": 2},
        marker={"color": style.INK, "size": 7},
        hovertemplate="φ %{x:.3f}: mean score %{y:.2f}<extra></extra>",
    )


def _sample(agreement: HumanAgreement) -> Array:
    """Which pairs are drawn: all, or as many of each kind as a browser draws at once."""
    chosen = np.zeros(len(agreement.truth), np.bool_)
    for inside, words, _ in _KINDS:
        members = np.flatnonzero(agreement.truth == inside)
        if len(members) > _MOST_DOTS:
            members = random_stream(0, "dots", words).choice(members, _MOST_DOTS, replace=False)
        chosen[members] = True
    return chosen


def _shaken(agreement: HumanAgreement) -> Array:
    scores = agreement.judgements.scores
    steps = np.diff(np.unique(scores))
    room = min(float(np.median(steps)), float(np.ptp(scores)) / 12) if len(steps) else 0.0
    shaken: Array = scores + room * (random_stream(0, "shake").random(len(scores)) - 0.5) * 0.7
    return shaken


def _panel_title(agreement: HumanAgreement, name: str) -> str:
    parts = []
    for part, words in ((ALL_PAIRS, "all"), (OUTSIDE_GROUND_TRUTH, "outside")):
        estimate = agreement.figure(name, "pearson", part)
        if isfinite(estimate.mean):
            parts.append(f"{estimate.mean:.3f} {words}")
    return f"<b>{style.label(name)}</b>   Pearson {', '.join(parts) or '–'}"


def _heading(agreement: HumanAgreement) -> str:
    return f"Agreement with people: {agreement.judgements.source} on {agreement.dataset}"


def _coefficients(agreement: HumanAgreement, part: str) -> str:
    subset = agreement.subsets[part]
    rows = [
        (name, *(_cell(figures[statistic]) for statistic in COEFFICIENT_LABELS))
        for name, figures in subset.figures.items()
    ]
    summary = f"{SUBSET_TITLES[part]}: {subset.pairs:,} pairs of {subset.images:,} images"
    return folded_table(summary, ("φ", *COEFFICIENT_LABELS.values()), rows, shown=True)


def _cell(estimate: Estimate) -> str:
    if not isfinite(estimate.mean):
        return "–"
    return f"{estimate.mean:.3f}" + (f" [{estimate.low:.3f}, {estimate.high:.3f}]" if isfinite(estimate.low) else "")
