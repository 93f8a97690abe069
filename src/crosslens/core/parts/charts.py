"""Charts: figures with a place on a scale, each with the table of its numbers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

from crosslens.core.parts.tables import Cell, Figure, Table

_EDGE = Figure(None, digits=2, plain=True)


@dataclass(frozen=True)
class Series:
    """The figures of one line or one kind of bars."""

    name: str
    figures: tuple[Figure, ...]


@dataclass(frozen=True, kw_only=True)
class Chart(ABC):
    """What all charts have; ``about`` is what a reader has to know beside the title."""

    title: str
    about: str = ""

    @property
    @abstractmethod
    def table(self) -> Table:
        """The numbers behind the drawing."""


@dataclass(frozen=True, kw_only=True)
class Bars(Chart):
    """A bar per group and series, from 0, with its interval.

    ``mark`` is a figure per group, such as what guessing reaches; ``heading`` says what the groups are, ``limits`` are
    the ends of the axis (default: from the figures).
    """

    groups: tuple[str, ...]
    series: tuple[Series, ...]
    heading: str = "group"
    axis: str = ""
    limits: tuple[float, float] | None = None
    mark: Series | None = None

    @property
    def table(self) -> Table:
        series = (*self.series, *(() if self.mark is None else (self.mark,)))
        rows = tuple((group, *(line.figures[index] for line in series)) for index, group in enumerate(self.groups))
        return Table((self.heading, *(line.name for line in series)), rows, title=self.title)


@dataclass(frozen=True, kw_only=True)
class Shares(Chart):
    """A strip per group, divided among levels: ``counts[group][level]``."""

    groups: tuple[str, ...]
    levels: tuple[str, ...]
    counts: tuple[tuple[float, ...], ...]
    heading: str = ""
    noun: str = "queries"

    @property
    def table(self) -> Table:
        """A row per group; how many are in each level."""
        rows = tuple(
            (group, *(int(count) if float(count).is_integer() else Figure(count) for count in counts))
            for group, counts in zip(self.groups, self.counts, strict=True)
        )
        return Table((self.heading, *self.levels), rows, title=self.title)


@dataclass(frozen=True, kw_only=True)
class Lines(Chart):
    """A line per series through its figures at ``across``, with bands for their intervals.

    ``logarithmic``: equal steps across are equal factors. ``marked`` is the index of a point of the first series that
    gets a ring. ``measured`` says up to where a series was measured: beyond, it is extrapolated and drawn so. ``band``
    shades a part of the axis and says why.
    """

    across: tuple[float, ...]
    series: tuple[Series, ...]
    axis: str
    logarithmic: bool = False
    limits: tuple[float, float] | None = None
    marked: int | None = None
    measured: Mapping[str, float] = field(default_factory=dict)
    band: tuple[float, float, str] | None = None

    @property
    def table(self) -> Table:
        rows = tuple(
            (f"{x:,.10g}", *(self.words(curve, index) for curve in self.series)) for index, x in enumerate(self.across)
        )
        return Table(
            (self.axis, *(curve.name for curve in self.series)), rows, "r" * (1 + len(self.series)), title=self.title
        )

    def words(self, series: Series, index: int) -> Cell:
        """A figure; one beyond what was measured says so."""
        figure = series.figures[index]
        beyond = self.across[index] > self.measured.get(series.name, math.inf) and figure.known
        return f"{figure} extrapolated" if beyond else figure


Tone = Literal["", "good", "bad", "unsure"]
"""How a mark is coloured: as better, as worse, as neither, or ``unsure``, grey, where it may be either."""
TONE_SIGNS: Mapping[Tone, str] = {"good": "▲", "bad": "▼", "": "", "unsure": ""}
"""Of figures, where there is no colour."""


@dataclass(frozen=True)
class Interval:
    """A figure as a dot with its interval on a scale that others share.

    ``about`` stands under the name. ``change`` is written behind the figure, such as the difference from the one above.
    ``address`` leads to the queries that the figure counts.
    """

    figure: Figure
    name: str = ""
    about: str = ""
    change: Figure | None = None
    tone: Tone = ""
    address: str = ""


@dataclass(frozen=True, kw_only=True)
class Intervals(Chart):
    """Figures below each other on one scale; ``mark`` is a value that all of them are read against, such as 0.

    ``heading`` says what the rows are, ``limits`` are the ends of the scale (default: from the figures).
    """

    rows: tuple[Interval, ...]
    heading: str = ""
    axis: str = ""
    limits: tuple[float, float] | None = None
    mark: float | None = None

    @property
    def table(self) -> Table:
        """A row per figure, with what changed where something did."""
        changes = any(row.change is not None for row in self.rows)
        header = (self.heading, self.axis or "value", *(("change",) if changes else ()))
        rows = tuple(
            (", ".join(filter(None, (row.name, row.about))), row.figure, *((row.change,) if changes else ()))
            for row in self.rows
        )
        return Table(header, rows, "l" * len(header), title=self.title)


@dataclass(frozen=True)
class Multiple:
    """A row of small multiples: a cell per column, None where there is none; ``group`` is the heading it is under."""

    name: str
    cells: tuple[Interval | None, ...]
    group: str = ""


@dataclass(frozen=True, kw_only=True)
class SmallMultiples(Chart):
    """Rows of figures, with a column per run or gallery, all on one scale.

    ``means`` are drawn dashed through the columns, ``abouts`` stand under their names.
    """

    columns: tuple[str, ...]
    rows: tuple[Multiple, ...]
    means: tuple[Figure, ...] = ()
    abouts: tuple[str, ...] = ()
    axis: str = ""
    limits: tuple[float, float] | None = None

    @property
    def table(self) -> Table:
        """A row per group; figures that are coloured have a sign."""
        cells = (
            [None if cell is None else replace(cell.figure, mark=TONE_SIGNS[cell.tone]) for cell in row.cells]
            for row in self.rows
        )
        rows = tuple((row.group, row.name, *line) for row, line in zip(self.rows, cells, strict=True))
        return Table(("", "", *self.columns), rows, "l" * (2 + len(self.columns)), title=self.title, names=2)


@dataclass(frozen=True, kw_only=True)
class Heat(Chart):
    """A cell per row and column, its number in it and its colour by how large it is.

    ``worse``: None where larger is simply more; True where positive values are losses and negative ones gains, which
    have two colours; False for the reverse. A number whose interval includes 0 is then in brackets.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[Figure, ...], ...]
    heading: str = ""
    worse: bool | None = None

    @property
    def table(self) -> Table:
        rows: list[tuple[Cell, ...]] = [(name, *cells) for name, cells in zip(self.rows, self.cells, strict=True)]
        return Table((self.heading, *self.columns), tuple(rows), title=self.title)


@dataclass(frozen=True, kw_only=True)
class Histogram(Chart):
    """``counts[i]`` values lie from ``edges[i]`` up to ``edges[i + 1]``; the last interval includes its end.

    With ``whole``, the values are whole numbers and interval i holds ``edges[i]`` alone. ``unit`` writes an edge.
    ``band`` shades a part of the axis and says why. One that is ``printed`` is bars of text on a terminal.
    """

    edges: tuple[float, ...]
    counts: tuple[float, ...]
    axis: str
    unit: Figure = _EDGE
    noun: str = "queries"
    whole: bool = False
    band: tuple[float, float, str] | None = None
    printed: bool = False

    @property
    def names(self) -> list[str]:
        """What each interval is called."""
        write = self.unit.write
        return [write(low) if self.whole else f"{write(low)} to {write(high)}" for low, high in pairwise(self.edges)]

    @property
    def marked_names(self) -> list[str]:
        """The names of one that is printed, with · behind those whose middle lies in the band."""
        low, high = (math.inf, -math.inf) if self.band is None or not self.printed else self.band[:2]
        inside = (low <= (start + end) / 2 <= high for start, end in pairwise(self.edges))
        return [f"{name} ·" if marked else name for name, marked in zip(self.names, inside, strict=True)]

    @property
    def table(self) -> Table:
        rows = tuple((name, f"{count:,g}") for name, count in zip(self.marked_names, self.counts, strict=True))
        return Table((self.axis, self.noun), rows, "lr", title=self.title)


@dataclass(frozen=True)
class Cloud:
    """The points of one kind in a scatter, and what each says under the pointer; a ``rest`` is grey behind others."""

    name: str
    points: tuple[tuple[float, float], ...]
    labels: tuple[str, ...] = ()
    look: Literal["", "rest", "ring"] = ""


@dataclass(frozen=True, kw_only=True)
class Scatter(Chart):
    """Points by two values; each of ``trends`` joins its points by a line. ``bare`` axes have no numbers.

    A trend called as a cloud has its colour. Points that lie on one another are drawn up to ``spread`` above or below.
    """

    clouds: tuple[Cloud, ...]
    axis: str
    up: str
    trends: tuple[Cloud, ...] = ()
    spread: float = 0.0
    bare: bool = False

    @property
    def table(self) -> Table:
        rows: list[tuple[Cell, ...]] = [
            (cloud.name, Figure(x, digits=4), Figure(y, digits=4), cloud.labels[index] if cloud.labels else "")
            for cloud in self.clouds
            for index, (x, y) in enumerate(cloud.points)
        ]
        return Table(("", self.axis, self.up, "label"), tuple(rows), "lrrl", title=self.title, folded=True)


@dataclass(frozen=True)
class Row:
    """Charts beside each other where there is room."""

    charts: tuple[Chart, ...]
