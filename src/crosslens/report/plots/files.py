"""Charts by group as figures, and figures as files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crosslens.core.errors import UnknownNameError
from crosslens.metrics.figures import figure, interval
from crosslens.report.plots.bars import bar_figure
from crosslens.report.plots.chart import Chart
from crosslens.report.plots.paper import PAGE, folded_table, suffix_of, write_figures
from crosslens.report.plots.radar import fits_radar, radar_figure

KINDS = ("bar", "radar", "both")

_DRAW = {"bar": bar_figure, "radar": radar_figure}


def draw(chart: Chart, kind: str = "both") -> list[Any]:
    """The plotly figures of a chart: bars, a radar chart, or both (only bars, where a radar would show nothing)."""
    if kind not in KINDS:
        raise UnknownNameError("kind of figure", kind, KINDS)
    if kind == "both":
        return [bar_figure(chart)] if fits_radar(chart) else [bar_figure(chart), radar_figure(chart)]
    return [_DRAW[kind](chart)]


def write_plot(
    charts: Chart | Sequence[Chart], output: str | Path, kind: str | None = None, *, overwrite: bool = False
) -> Path:
    """Draw charts into a file, by its suffix: a page (``.html``) with all of them, or a picture of one.

    ``kind`` is ``bar``, ``radar`` or ``both`` (the default of a page; of a picture, ``bar``). A page holds all it needs
    and opens without a network. A different file that stands there is kept unless ``overwrite``.
    """
    charts = [charts] if isinstance(charts, Chart) else list(charts)
    output = Path(output)
    kind = kind or ("both" if suffix_of(output) == PAGE else "bar")
    figures = [one for chart in charts for one in draw(chart, kind)]
    title = charts[0].title if len(charts) == 1 else f"{charts[0].title} and {len(charts) - 1} more"
    return write_figures(figures, output, title, lambda: [_table(chart) for chart in charts], overwrite=overwrite)


def _table(chart: Chart) -> str:
    rows = []
    for group in chart.groups:
        for series in chart.series:
            if (one := series.groups.get(group)) is not None:
                numbers = figure(one.name, one.mean), interval(one.name, one.low, one.high), f"{one.n:,}"
                rows.append((group, series.name, *numbers))
    header = (chart.column, "run", "figure", "interval", "queries")
    return folded_table(f"The numbers: {chart.title}", header, rows, about=" · ".join(chart.facts))
