"""Numbers and tables as plain text: the same on a terminal, in a pipe and in a notebook."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from crosslens.core.safety.terminal import printable_line


def decimal(value: float, digits: int, *, signed: bool = False) -> str:
    """A number with so many decimals, ``signed`` for a difference; one that rounds to zero has no sign."""
    number = round(value, digits) + 0.0  # -0.0 becomes 0.0
    return f"{number:{'+' if signed and number else ''}{'' if digits else ','}.{digits}f}"


def percent(value: float | None, *, signed: bool = False, unit: str = "") -> str:
    """A share in percent, ``58.3``, and the ``unit`` behind it; a dash where there is no value."""
    if value is None or not math.isfinite(value):
        return "–"
    return f"{decimal(100 * value, 1, signed=signed)}{unit}"


PAGE_WIDTH = 80
"""The default width of text, in columns."""

_GAP = "   "
_NARROWEST = 30
_PERCENT = "\N{NO-BREAK SPACE}%"


@dataclass(frozen=True)
class Grid:
    """Text in rows and columns. ``align`` has one letter per column: ``l`` or ``r``; the first ``names`` name rows."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    align: str
    names: int = 1

    @property
    def width(self) -> int:
        """How wide the table is with all columns side by side."""
        sizes = _sizes(self._lines())
        return sum(sizes) + len(_GAP) * (len(sizes) - 1)

    def text(self, width: int | None = None) -> str:
        """Columns padded to their widest cell; those past ``width`` continue in a further block below."""
        lines = self._lines()
        sizes = _sizes(lines)
        return "\n\n".join(self._block(lines, columns, sizes) for columns in _fit(sizes, width, self.names))

    def _lines(self) -> list[list[str]]:
        """Header and rows as they are printed: a cell is one line, whatever is in it."""
        return [list(map(printable_line, row)) for row in (self.header, *self.rows)]

    def _block(self, lines: Sequence[Sequence[str]], columns: Sequence[int], sizes: Sequence[int]) -> str:
        layout = [(c, ">" if self.align[c] == "r" else "<", sizes[c]) for c in columns]
        return "\n".join(_GAP.join(f"{row[c]:{side}{size}}" for c, side, size in layout).rstrip() for row in lines)


def _sizes(lines: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*lines, strict=True)]


def two_columns(rows: Sequence[tuple[str, str]], width: int = PAGE_WIDTH, indent: int = 0) -> str:
    """Names on the left, their text beside them, wrapped to ``width``."""
    rows = [(printable_line(name), text) for name, text in rows]
    left = max((len(name) for name, _ in rows), default=0) + indent + len(_GAP)
    lines = []
    for name, text in rows:
        # A number stays on one line with its percent sign.
        text = text.replace(" %", _PERCENT)
        first, *more = textwrap.wrap(text, max(_NARROWEST, width - left), break_on_hyphens=False) or [""]
        lines.append(f"{' ' * indent + name:<{left}}{first}".rstrip())
        lines += [" " * left + line for line in more]
    return "\n".join(lines).replace(_PERCENT, " %")


def _fit(sizes: Sequence[int], width: int | None, names: int) -> list[list[int]]:
    """Which columns are in which block; the first ``names`` columns open every block."""
    blocks = [list(range(names))]
    opening = used = sum(sizes[:names]) + len(_GAP) * (names - 1)
    for column in range(names, len(sizes)):
        needed = len(_GAP) + sizes[column]
        if width is not None and len(blocks[-1]) > names and used + needed > width:
            blocks.append(list(range(names)))
            used = opening
        blocks[-1].append(column)
        used += needed
    return blocks
