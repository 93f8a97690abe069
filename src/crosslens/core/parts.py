"""What a result is shown by: figures, tables, charts, cards and texts.

Parts are values and render nothing. A result yields them as sections, beside the code that computes it; the forms in
``report/forms/`` turn them into a terminal's text, a page, a drawing, LaTeX, Markdown or CSV.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from crosslens.core.errors import UsageError
from crosslens.core.registry import Registry
from crosslens.core.rendering import decimal

if TYPE_CHECKING:
    import polars as pl

    from crosslens.core.findings import Observation

ABSENT = "–"
"""What stands for a value that is not there."""


@dataclass(frozen=True)
class Figure:
    """A number with its interval, and how both are written: ``58.3 [56.9, 59.7]``.

    ``scale`` is what the value is multiplied with, ``unit`` stands behind the number. A number that is rounded to zero
    has no sign. ``plain`` leaves out decimals that are all zero, as ranks do; ``short``, the zero before the point of
    the interval's ends, as coefficients do.
    """

    value: float | None
    low: float = math.nan
    high: float = math.nan
    scale: float = 1.0
    digits: int = 2
    unit: str = ""
    signed: bool = False
    plain: bool = False
    floored: bool = False
    """Written as below the smallest number of so many digits (``<0.0001``), where it would be rounded to zero."""
    mark: str = ""
    """What stands behind number and interval: a star, which a note explains."""
    short: bool = False

    @classmethod
    def p(cls, value: float | None, permutations: int = 10_000) -> Figure:
        """A p-value with as many decimals as the smallest that the test can give: more would claim too much."""
        return cls(value, digits=max(3, len(str(permutations)) - 1), floored=True)

    @classmethod
    def percent(
        cls, value: float | None, low: float = math.nan, high: float = math.nan, *, signed: bool = False, unit: str = ""
    ) -> Figure:
        """A share in percent, with one decimal."""
        return cls(value, low, high, scale=100.0, digits=1, unit=unit, signed=signed)

    @classmethod
    def share(
        cls, value: float | None, low: float | None = None, high: float | None = None, unit: str = " %"
    ) -> Figure:
        """A share in percent as a sentence has it: a decimal or two where a whole number would say little."""
        size = abs(value or 0.0)
        digits = 2 if 0 < size < 0.001 else 1 if 0 < size < 0.1 or 0.99 < size < 1 else 0
        low, high = (math.nan if end is None else end for end in (low, high))
        return cls(value, low, high, scale=100.0, digits=digits, unit=unit)

    def of_row(self, row: Mapping[str, Any] | None, value: str = "mean", ends: str = "") -> Figure:
        """The figure in a row of a table or of JSON, where None is no number, written as this one.

        The interval is in the columns ``low`` and ``high``, ``ends`` before their names.
        """
        number, *bounds = ((row or {}).get(name) for name in (value, f"{ends}low", f"{ends}high"))
        low, high = (math.nan if end is None else float(end) for end in bounds)
        return replace(self, value=number, low=low, high=high)

    def write(self, value: float | None) -> str:
        """Another number as this figure writes its own: a tick of an axis, an end of the interval."""
        if value is None or not math.isfinite(value):
            return ABSENT
        number = decimal(self.scale * value, self.digits, signed=self.signed)
        if self.floored and not float(number.replace(",", "")):
            return f"<{10.0**-self.digits:.{self.digits}f}{self.unit}"
        if self.plain and self.digits:
            number = number.removesuffix("." + "0" * self.digits)
        return number + self.unit

    @property
    def known(self) -> bool:
        return self.value is not None and math.isfinite(self.value)

    @property
    def bounded(self) -> bool:
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def number(self) -> str:
        """The value alone."""
        return self.write(self.value)

    @property
    def equation(self) -> str:
        """The value behind the letter of a sentence: ``= 0.002``, ``< 0.0001``."""
        return f"< {self.number[1:]}" if self.number.startswith("<") else f"= {self.number}"

    @property
    def interval(self) -> str:
        """``[56.9, 59.7]``, or nothing, and the mark; the unit is said once, behind the value."""
        if not (self.known and self.bounded):
            return self.mark
        low, high = (self.write(end).removesuffix(self.unit) for end in (self.low, self.high))
        ends = f"[{low}, {high}]"
        ends = re.sub(r"\b0\.", ".", ends) if self.short else ends
        return f"{ends} {self.mark}".rstrip()

    def __str__(self) -> str:
        return f"{self.number} {self.interval}".rstrip()


class Link(str):
    """A text that leads to another page, of this address, on pages."""

    address: str

    def __new__(cls, text: str, address: str) -> Link:
        link = super().__new__(cls, text)
        link.address = address
        return link


Cell = str | int | Figure | None


def cell_text(cell: Cell) -> str:
    """A cell as it is written; an empty one for None."""
    return "" if cell is None else f"{cell:,}" if isinstance(cell, int) else str(cell)


@dataclass(frozen=True)
class Text:
    """Sentences, each beginning a line of its own. ``note``: what a reader may skip.

    ``terms`` are words of the sentences with what they mean, which pages show on tap.
    """

    sentences: tuple[str, ...]
    note: bool = False
    terms: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, *sentences: str, note: bool = False) -> Text:
        """Those of the sentences that are not empty."""
        return cls(tuple(sentence for sentence in sentences if sentence), note)


@dataclass(frozen=True)
class Code:
    """Lines to be copied: commands, or a file."""

    text: str


@dataclass(frozen=True)
class FactList:
    """Names, and what is said of each beside it."""

    rows: tuple[tuple[str, str], ...]
    title: str = ""


@dataclass(frozen=True)
class Table:
    """Cells in rows and columns. ``align`` has one letter per column, ``l`` or ``r``; by default numbers are right.

    The first ``names`` columns name a row. ``best`` are rows and columns of cells that are marked. A table that is
    ``folded`` is on pages under a line to click on, and neither in a terminal nor in LaTeX. Of more than ``most`` rows
    a terminal shows so many, evenly spread, and pages fold the table. ``notes`` say what its columns mean.
    ``narrow`` is what a terminal shows where the table is wider than it, such as the same without intervals; ``cut``
    shortens long texts to its width. With ``drawn``, pages draw shares with their intervals beside the numbers.
    A table that stands ``aside``, such as one behind cards that show the same, is
    folded on pages, and a terminal shows it.
    """

    header: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]
    align: str = ""
    title: str = ""
    notes: tuple[str, ...] = ()
    best: frozenset[tuple[int, int]] = frozenset()
    folded: bool = False
    most: int | None = None
    names: int = 1
    narrow: Table | None = None
    cut: bool = False
    aside: bool = False
    drawn: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", tuple(map(tuple, self.rows)))

    @property
    def overview(self) -> Table:
        """At most ``most`` of its rows, the first and the last among them."""
        if self.most is None or len(self.rows) <= self.most:
            return self
        kept = (round(step * (len(self.rows) - 1) / (self.most - 1)) for step in range(self.most))
        return replace(self, rows=tuple(self.rows[index] for index in kept))

    @cached_property
    def lines(self) -> tuple[tuple[Cell, ...], ...]:
        """The rows as people read them: of several names, those that the row above has too are left out."""
        before: Sequence[Cell] = ()
        lines = []
        for row in self.rows:
            kept = next((n for n in range(self.names - 1) if row[: n + 1] != before[: n + 1]), self.names - 1)
            lines.append((*("",) * kept, *row[kept:]))
            before = row
        return tuple(lines)

    @cached_property
    def sides(self) -> str:
        """The alignment of every column."""
        if self.align:
            return self.align
        columns = [[row[index] for row in self.rows] for index in range(len(self.header))]
        return "".join("l" if not cells or any(isinstance(cell, str) for cell in cells) else "r" for cells in columns)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The values as they are, unrounded: a figure with an interval is three columns."""
        import polars as pl

        names: list[str] = []  # that differ: an empty one is ``name`` or ``column 3``, a repeated one gets its number
        for number, text in enumerate(self.header, start=1):
            name = text or ("name" if number == 1 else f"column {number}")
            names.append(name if name not in names else f"{name} ({number})")
        columns: dict[str, list[Any]] = {}
        for index, name in enumerate(names):
            cells = [row[index] for row in self.rows]
            figures = [cell if isinstance(cell, Figure) else None for cell in cells]
            columns[name] = [cell.value if isinstance(cell, Figure) else cell for cell in cells]
            if any(figure is not None and figure.bounded for figure in figures):
                for end in ("low", "high"):
                    columns[f"{name} {end}"] = [None if figure is None else getattr(figure, end) for figure in figures]
        return pl.DataFrame(columns, strict=False).with_columns(pl.selectors.float().fill_nan(None))


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
        rows = tuple((group, *(own.figures[index] for own in series)) for index, group in enumerate(self.groups))
        return Table((self.heading, *(own.name for own in series)), rows, title=self.title)


@dataclass(frozen=True, kw_only=True)
class Gauge(Chart):
    """One figure on its axis, with its interval; ``limits`` are the ends of the axis (default: from the figure)."""

    figure: Figure
    limits: tuple[float, float] | None = None

    @property
    def table(self) -> Table:
        """The value and the ends of its interval."""
        ends = (
            replace(self.figure, value=end, low=math.nan, high=math.nan) for end in (self.figure.low, self.figure.high)
        )
        value = replace(self.figure, low=math.nan, high=math.nan)
        return Table(("value", "low", "high"), ((value, *ends),), "rrr", title=self.title)


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
            (f"{x:,.10g}", *(self.words(own, index) for own in self.series)) for index, x in enumerate(self.across)
        )
        return Table(
            (self.axis, *(own.name for own in self.series)), rows, "r" * (1 + len(self.series)), title=self.title
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


@dataclass(frozen=True)
class PairedBar:
    """How often each of the levels of :class:`PairedBars` occurred in one kind of pairs, or of queries.

    ``figure`` is written behind the bar and its interval drawn on it, on the bar's scale: a share of the whole.
    ``about`` stands under the name, ``changed`` are words that differ, ``pictures`` images that are shown small.
    ``details`` are folded under the bar; ``addresses`` lead to the queries of each level.
    """

    name: str
    counts: tuple[int, ...]
    figure: Figure | None = None
    about: str = ""
    changed: tuple[str, ...] = ()
    pictures: tuple[str, ...] = ()
    details: tuple[Part, ...] = ()
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PairedBars(Chart):
    """Bars of equal length, divided among what can happen to two that belong together.

    ``levels`` are both right, the same picture for both, swapped; or only A, only B, both, neither: names and tones.
    ``chance`` is where the first level would end by guessing. ``heading`` says what the rows are.
    """

    levels: tuple[tuple[str, Tone], ...]
    rows: tuple[PairedBar, ...]
    chance: float | None = None
    chance_words: str = "by chance"
    heading: str = ""
    measure: str = ""
    """What the figure behind a bar is."""
    noun: str = "pairs"
    files: Mapping[str, str] = field(default_factory=dict)
    """Files of the images that rows name."""

    @property
    def table(self) -> Table:
        figures = any(row.figure is not None for row in self.rows)
        header = (self.heading, *(name for name, _ in self.levels), *((self.measure or "share",) if figures else ()))
        rows = tuple(
            (" · ".join(filter(None, (row.name, " ⇄ ".join(row.changed)))), *row.counts,
             *((row.figure,) if figures else ()))
            for row in self.rows
        )  # fmt: skip
        return Table(header, rows, title=self.title)


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
    unit: Figure = Figure(None, digits=2, plain=True)
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
class PictureBox:
    """A frame around something in a picture: left, top, width and height in the picture's pixels.

    A ``number`` is shared with the box that it is matched with in another picture. Boxes of one ``colour``, counted
    from 0, belong together; None is grey. ``about`` is said under the pointer.
    """

    place: tuple[float, float, float, float]
    name: str
    about: str = ""
    number: int | None = None
    colour: int | None = None


@dataclass(frozen=True)
class PictureCard:
    """A picture or none, with its heading and lines of text, ``details`` on pages alone; ``mark`` may say nothing.

    ``boxes`` are in pixels of a picture of this ``size`` (default: that of the file).
    """

    title: str
    lines: tuple[str, ...] = ()
    image: str | None = None
    mark: Literal["", "right", "wrong"] = ""
    details: tuple[str, ...] = ()
    boxes: tuple[PictureBox, ...] = ()
    size: tuple[float, float] | None = None


@dataclass(frozen=True)
class Cards:
    """Cards under one heading; a terminal shows the first ``most`` of them. ``key`` says what is drawn on pages."""

    title: str
    cards: tuple[PictureCard, ...]
    pictures: Mapping[str, str] = field(default_factory=dict)
    """Files of the images that cards name."""
    most: int | None = None
    large: bool = False
    key: str = ""


@dataclass(frozen=True)
class MarkedText:
    """A quoted text, some of whose words have something: stretches of text, a mark, and why it has it.

    ``after`` follows the quote; ``key`` says on pages what the marks mean.
    """

    title: str
    spans: tuple[tuple[str, Literal["", "yes", "no", "unknown"], str], ...]
    after: str = ""
    key: str = ""

    @property
    def text(self) -> str:
        """As people read it without marks."""
        quoted = f"“{''.join(text for text, _, _ in self.spans)}”"
        return f"{self.title}: {quoted} {self.after}".rstrip()


@dataclass(frozen=True)
class TextDiff:
    """A text before and after an edit: stretches from left to right, the same twice where it was left alone.

    ``name`` is whose text it is, ``about`` what happened to it, ``facts`` are details.
    """

    name: str
    spans: tuple[tuple[str, str], ...]
    about: str = ""
    facts: tuple[str, ...] = ()

    @property
    def edited(self) -> bool:
        return any(before != after for before, after in self.spans)


@dataclass(frozen=True)
class Diffs:
    """Edited texts; a terminal shows the first ``most`` of them and ``rest``, pages fold what are more than a few."""

    diffs: tuple[TextDiff, ...]
    title: str = ""
    about: str = ""
    most: int | None = None
    rest: str = ""


@dataclass(frozen=True)
class Row:
    """Charts beside each other where there is room."""

    charts: tuple[Chart, ...]


class Composed(ABC):
    """A part that forms without one of their own for it show as other parts."""

    @property
    @abstractmethod
    def plain(self) -> tuple[Part, ...]:
        """The parts that say the same."""


@dataclass(frozen=True)
class AnsweredQuestion:
    """A question and what answers it, how sure that is and why; ``address`` leads to the evidence called ``link``."""

    question: str
    text: str
    certainty: str = ""
    reason: str = ""
    address: str = ""
    link: str = ""


@dataclass(frozen=True)
class Answers(Composed):
    """Questions with their answers, a line each."""

    answers: tuple[AnsweredQuestion, ...]

    @property
    def plain(self) -> tuple[Part, ...]:
        rows = ((own.question, f"{own.text} ({own.certainty})" if own.certainty else own.text) for own in self.answers)
        return (FactList(tuple(rows)),)


@dataclass(frozen=True)
class QueryCard:
    """A query with the pictures that were asked for and shown instead; ``query`` is its id.

    ``asked`` is its text, or empty where pictures ask. ``lines`` say what is wrong, ``facts`` are soft, such as group
    and id. ``values`` has its value of every facet. ``address`` leads to all about it.
    """

    query: str
    asked: str
    pictures: tuple[PictureCard, ...]
    lines: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    address: str = ""


@dataclass(frozen=True)
class FacetValue:
    """A value of a facet, how many queries have it, and their figure; ``address`` is the page that shows those alone.

    One that is ``chosen`` is what the page shows now.
    """

    name: str
    count: int
    figure: Figure | None = None
    address: str = ""
    chosen: bool = False


@dataclass(frozen=True)
class Facet:
    """What queries are told apart by, and its values."""

    name: str
    choices: tuple[FacetValue, ...]


@dataclass(frozen=True)
class QueryCards(Composed):
    """Cards of queries under facets that narrow them.

    Pages show the first ``most``, and the others under a line to click on; a terminal shows the first ``printed``.
    ``files`` are those of the images that cards name. ``large`` cards fill the width that they have.
    """

    cards: tuple[QueryCard, ...]
    title: str = ""
    facets: tuple[Facet, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    most: int | None = None
    printed: int = 3
    large: bool = False

    @property
    def plain(self) -> tuple[Part, ...]:
        """Of facets a table, of queries cards of text."""
        rows = [
            (facet.name, choice.name, choice.count, *([choice.figure] if self._figures else []))
            for facet in self.facets
            for choice in facet.choices
        ]
        header = ("facet", "value", "queries", *(["figure"] if self._figures else []))
        table = Table(header, rows, "llrl"[: len(header)], names=2)
        cards = tuple(
            PictureCard(
                f"{card.query}: {card.asked}".removesuffix(": "),
                (*(" ".join((picture.title, *picture.lines)) for picture in card.pictures), *card.lines),
                details=card.facts,
            )
            for card in self.cards
        )
        return (*([table] if rows else []), Cards(self.title, cards, most=self.printed))

    @property
    def _figures(self) -> bool:
        return any(choice.figure is not None for facet in self.facets for choice in facet.choices)


@dataclass(frozen=True)
class EvidenceList(Composed):
    """The queries behind a figure: ids, and what each says. An address ``#target`` leads here and opens it."""

    target: str
    title: str
    entries: tuple[tuple[str, str], ...]
    addresses: tuple[str, ...] = ()
    """Of a page about each."""

    @property
    def plain(self) -> tuple[Part, ...]:
        return (Folded(self.title, (FactList(self.entries),)),)


@dataclass(frozen=True)
class Folded(Composed):
    """Parts under a line to click on; ``about`` says what is in them. A terminal leaves them out.

    One that is ``open`` from the start can be closed; printing opens others where ``paper`` says so.
    """

    title: str
    parts: tuple[Part, ...]
    about: str = ""
    open: bool = False
    paper: bool = False
    target: str = ""

    @property
    def plain(self) -> tuple[Part, ...]:
        return self.parts


@dataclass(frozen=True)
class Beside(Composed):
    """Parts in columns where there is room, the first the widest."""

    columns: tuple[tuple[Part, ...], ...]

    @property
    def plain(self) -> tuple[Part, ...]:
        return tuple(part for column in self.columns for part in column)


def flat(parts: Iterable[Part], *, folded: bool = True) -> Iterator[Part]:
    """Parts with what they are composed of in their place; without ``folded``, what is folded is left out."""
    for part in parts:
        if isinstance(part, Composed):
            if folded or not isinstance(part, Folded) or part.open:
                yield from flat(part.plain, folded=folded)
        else:
            yield part


Part = Text | Code | FactList | Table | Chart | Cards | MarkedText | Diffs | Row | Composed


@dataclass(frozen=True)
class Section:
    """Parts under a heading; without a title they follow what is above.

    ``query`` is the id of the query that all of it is about: a page with several begins with links to them, and CSV has
    a column of them. ``certainty`` is how sure the title is, where it claims something, and ``reason`` why. ``target``
    is its place in the page's address.
    """

    title: str
    parts: tuple[Part, ...]
    query: str = ""
    certainty: str = ""
    reason: str = ""
    target: str = ""

    @property
    def tables(self) -> list[Table]:
        """Its tables in order, and those of charts that are text beside drawings."""
        scales = (Intervals, SmallMultiples, PairedBars)
        parts = (part.table if isinstance(part, scales) else part for part in flat(self.parts))
        return [part for part in parts if isinstance(part, Table)]

    @property
    def charts(self) -> list[Chart]:
        """Its charts in order, those of rows as well."""
        nested = [part.charts if isinstance(part, Row) else (part,) for part in flat(self.parts)]
        return [part for parts in nested for part in parts if isinstance(part, Chart)]


_NUMBERS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def stored_part(value: Any) -> Any:
    """A section or part, and all that is in it, as JSON can hold it; :func:`restored_part` reads it."""
    if isinstance(value, Link):
        return {"part": "Link", "text": str(value), "address": value.address}
    if is_dataclass(value) and not isinstance(value, type):
        content = {
            entry.name: stored_part(getattr(value, entry.name))
            for entry in fields(value)
            if getattr(value, entry.name) is not entry.default
        }
        return {"part": type(value).__name__, **content}
    if isinstance(value, frozenset):
        return {"part": "frozenset", "of": [stored_part(entry) for entry in sorted(value)]}
    if isinstance(value, Mapping):
        return {"part": "mapping", "of": [[key, stored_part(entry)] for key, entry in value.items()]}
    if isinstance(value, (tuple, list)):
        return [stored_part(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"part": "number", "of": str(value)}
    return value if value is None or isinstance(value, (str, bool, int, float)) else value.item()


def restored_part(stored: Any) -> Any:
    """What :func:`stored_part` was given; content that is no part raises KeyError or TypeError."""
    if isinstance(stored, list):
        return tuple(map(restored_part, stored))
    if not isinstance(stored, Mapping):
        return stored
    name, content = stored["part"], {key: value for key, value in stored.items() if key != "part"}
    if name == "Link":
        return Link(**content)
    if name == "number":
        return _NUMBERS[content["of"]]
    if name == "frozenset":
        return frozenset(restored_part(content["of"]))
    if name == "mapping":
        return dict(restored_part(content["of"]))
    return _STORED[name](**{key: restored_part(value) for key, value in content.items()})


_STORED: Mapping[str, type] = {
    kind.__name__: kind
    for kind in (
        Section, Figure, Text, Code, FactList, Table, Series, Bars, Gauge, Shares, Lines, Heat, Histogram, Cloud,
        Scatter,
        PictureBox, PictureCard, Cards, MarkedText, TextDiff, Diffs, Row, Interval, Intervals, Multiple, SmallMultiples,
        PairedBar, PairedBars, AnsweredQuestion, Answers, QueryCard, QueryCards, FacetValue, Facet, EvidenceList,
        Folded, Beside,
    )
}  # fmt: skip

PICTURES = (".svg", ".png", ".pdf")
ENDINGS = (".html", *PICTURES, ".csv", ".tex", ".md", ".json", ".txt")
"""Of the files that a result can be written to."""

FORMS: Registry[Callable[..., Any]] = Registry("form", "forms", ("crosslens.report.forms",))
"""Name of a form → a function that turns sections into it: ``terminal``, ``html``, ``chart``, ``content``, ``file``."""


SECTIONS: Registry[Callable[..., Iterable[Section]]] = Registry(
    "result", "sections", ("crosslens.pipeline.run_sections",)
)
"""Class name → how it is shown, for results of this package, whose figures only others can read."""


class Presented(ABC):
    """A result that is shown by its sections: printed, in a notebook, and in files of every form."""

    def sections(self) -> Iterable[Section]:
        """What is shown, in order."""
        return SECTIONS[type(self).__name__].value(self)

    def findings(self) -> Iterable[Observation]:
        """What was looked at and what was seen, for the kinds of findings that the result is about."""
        return ()

    @property
    @abstractmethod
    def title(self) -> str:
        """The heading of a page that shows the result alone."""

    @abstractmethod
    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""

    def text(self, width: int | None = None, *, colour: bool = False) -> str:
        """As a terminal shows it; ``width``: the most columns tables may take, or None for as many as they need."""
        text: str = FORMS["terminal"].value(self.sections(), width, colour=colour)
        return text

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        html: str = FORMS["html"].value(self.sections())
        return html

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """In IPython, and wherever a notebook is shown without HTML."""
        printer.text(str(self))

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        # Of the nearest class that has either, IPython takes this or __repr__: a dataclass has one of its own.
        cls._repr_pretty_ = Presented._repr_pretty_  # type: ignore[method-assign]

    @cached_property
    def table(self) -> pl.DataFrame:
        """The first table, its values unrounded. A dataclass may have a field of this name: ``table: … = field()``."""
        return next(table for section in self.sections() for table in section.tables).frame

    def to_pandas(self) -> Any:
        """The first table as a data frame of pandas."""
        return self.table.to_pandas()

    def chart(self, number: int = 0) -> Any:
        """A chart as a drawing: ``.svg`` is its markup, ``.save("x.png")`` writes it; notebooks show it."""
        charts = [chart for section in self.sections() for chart in section.charts]
        if not 0 <= number < len(charts):
            raise UsageError(f"chart {number} of a result with {len(charts)}", fix="charts are numbered from 0")
        return FORMS["chart"].value(charts[number])

    def content(self, ending: str) -> bytes:
        """The bytes of a file with this ending."""
        written: bytes = FORMS["content"].value(self, ending)
        return written

    def save(self, file: str | Path, *, overwrite: bool = False) -> Path:
        """Write the result; the ending decides: .html .svg .png .pdf .csv .tex .md .json .txt."""
        written: Path = FORMS["file"].value(self, file, overwrite=overwrite)
        return written
