"""Figures, texts and tables: the parts that are read."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from crosslens.core.rendering import decimal

if TYPE_CHECKING:
    import polars as pl

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
    address: str = ""
    """Where pages show what it counts, from a cell of a table."""

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
        indices = (round(step * (len(self.rows) - 1) / (self.most - 1)) for step in range(self.most))
        return replace(self, rows=tuple(self.rows[index] for index in indices))

    @cached_property
    def lines(self) -> tuple[tuple[Cell, ...], ...]:
        """The rows as people read them: of several names, those that the row above has too are left out."""
        before: Sequence[Cell] = ()
        lines = []
        for row in self.rows:
            shared = next((n for n in range(self.names - 1) if row[: n + 1] != before[: n + 1]), self.names - 1)
            lines.append((*("",) * shared, *row[shared:]))
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
