"""Agreement with human judgements: a panel per φ, a dot per judged pair, and the mean score along φ."""

from __future__ import annotations

from math import ceil, isfinite
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.analyze import ALL_PAIRS, BINARY, COEFFICIENT_LABELS, OUTSIDE_GROUND_TRUTH, SUBSET_TITLES, HumanAgreement
from crosslens.core import UsageError, random_stream
from crosslens.report.html import folded_table
from crosslens.report.plots.files import figure_suffix, write_figures
from crosslens.report.plots.style import COLOURS, FAINT, INK, SOFT, figure_layout, label, plotly_objects
from crosslens.statistics import Estimate

Array = np.ndarray[Any, Any]

_MOST_DOTS = 4000
_STEPS, _FEWEST = 12, 8
_COLUMNS, _PANEL, _TOP, _BOTTOM = 2, 330, 108, 64
_KINDS = ((True, "in the ground truth", COLOURS[1]), (False, "outside the ground truth", COLOURS[0]))


def scatter_figure(agreement: HumanAgreement) -> Any:
    """A plotly figure: φ across, people's mean score up; dots are shaken a little, as many lie on one another.

    The line joins the mean scores of pairs outside the ground truth with about the same φ: where φ agrees with people,
    it rises.
    """
    names = [name for name in agreement.values if name != BINARY]
    if not names:
        raise UsageError("no φ to draw", fix="name one, such as cider")
    objects = plotly_objects()
    from plotly.subplots import make_subplots

    columns = min(_COLUMNS, len(names))
    rows = ceil(len(names) / columns)
    drawn = make_subplots(
        rows, columns, subplot_titles=[_title(agreement, name) for name in names],
        horizontal_spacing=0.09, vertical_spacing=min(0.2, 0.24 / rows),
    )  # fmt: skip
    dots, shaken = _sample(agreement), _shaken(agreement)
    for index, name in enumerate(names):
        at = {"row": index // columns + 1, "col": index % columns + 1}
        for inside, words, colour in _KINDS:
            chosen = dots & (agreement.truth == inside)
            if chosen.any():
                trace = _dots(objects, agreement.values[name][chosen], shaken[chosen], words, colour, first=index == 0)
                drawn.add_trace(trace, **at)
        drawn.add_trace(_means(objects, agreement, name, first=index == 0), **at)
        drawn.update_xaxes(title={"text": label(name), "standoff": 6, "font": {"size": 12, "color": SOFT}}, **at)
    return _with_layout(drawn, agreement, rows, int(dots.sum()))


def write_scatter(agreement: HumanAgreement, output: str | Path, *, overwrite: bool = False) -> Path:
    """Draw the agreement into a file: a page (``.html``) that opens without a network, or a picture."""
    output = Path(output)
    figure_suffix(output)
    return write_figures(
        [scatter_figure(agreement)],
        output,
        _heading(agreement),
        lambda: [_table(agreement, part) for part in agreement.subsets],
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


def _title(agreement: HumanAgreement, name: str) -> str:
    parts = []
    for part, words in ((ALL_PAIRS, "all"), (OUTSIDE_GROUND_TRUTH, "outside")):
        estimate = agreement.figure(name, "pearson", part)
        if isfinite(estimate.mean):
            parts.append(f"{estimate.mean:.3f} {words}")
    return f"<b>{label(name)}</b>   Pearson {', '.join(parts) or '–'}"


def _with_layout(drawn: Any, agreement: HumanAgreement, rows: int, dots: int) -> Any:
    height = _TOP + rows * _PANEL + _BOTTOM
    pairs = len(agreement.truth)
    shown = f"{pairs:,} judged pairs" + (f", {dots:,} of them drawn" if dots < pairs else "")
    drawn.update_annotations(font={"size": 13, "color": INK})
    drawn.update_xaxes(gridcolor=FAINT, zeroline=False, linecolor=SOFT)
    drawn.update_yaxes(gridcolor=FAINT, zeroline=False, linecolor=SOFT)
    drawn.update_yaxes(title={"text": "people's score", "font": {"size": 12, "color": SOFT}}, col=1)
    drawn.update_layout(
        **figure_layout(_heading(agreement), shown, height, font_size=12, title_top=30),
        margin={"t": _TOP, "r": 30, "b": _BOTTOM, "l": 66},
        legend={"orientation": "h", "x": 0, "y": -46 / (height - _TOP - _BOTTOM), "yanchor": "top",
                "itemsizing": "constant"},
    )  # fmt: skip
    return drawn


def _heading(agreement: HumanAgreement) -> str:
    return f"Agreement with people: {agreement.judgements.source} on {agreement.dataset}"


def _table(agreement: HumanAgreement, part: str) -> str:
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
