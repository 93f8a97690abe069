"""Figures from runs: how well each group of queries does, one run or several, with intervals.

``chart`` decides what is shown, ``bar_figure`` and ``radar_figure`` draw it with plotly, ``write_plot`` puts it into a
file.
"""

from __future__ import annotations

from crosslens.report.plots.bars import bar_figure
from crosslens.report.plots.chart import Chart, Series, chart
from crosslens.report.plots.files import KINDS, draw, write_plot
from crosslens.report.plots.paper import SUFFIXES
from crosslens.report.plots.radar import radar_figure

__all__ = ["KINDS", "SUFFIXES", "Chart", "Series", "bar_figure", "chart", "draw", "radar_figure", "write_plot"]
