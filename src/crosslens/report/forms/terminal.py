"""Sections as a terminal's text: blocks with a blank line between them, the same in a pipe and in a notebook."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

from crosslens.core import (
    FORMS,
    PAGE_WIDTH,
    Cards,
    Code,
    Diffs,
    FactList,
    Figure,
    Grid,
    Histogram,
    Intervals,
    MarkedText,
    PairedBars,
    Part,
    Section,
    SmallMultiples,
    Table,
    Text,
    cell_text,
    flat,
    printable,
    printable_line,
    two_columns,
)

_RED, _GREEN, _PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[0m"
_BAR = 40
"""How long the longest bar of text is."""
_MOST_LETTERS = 300
"""Of a line of a card."""
_LEAST_LETTERS = 24
"""Of a text in a table that is cut."""


@FORMS.register("terminal")
def terminal(sections: Iterable[Section], width: int | None = None, *, colour: bool = False) -> str:
    """Texts and tables; charts are for pages, and what they show is in tables as well.

    Tables take up to ``width`` columns (None: as many as they need), texts at most 80; edited texts are not wrapped, so
    that they can be compared and copied. Everything is made printable, edits before they are coloured: no text may
    move the cursor.
    """
    blocks: list[str] = []
    for section in sections:
        blocks.append(printable(_wrapped(section.title, min(width or PAGE_WIDTH, PAGE_WIDTH))))
        for part in flat(section.parts, folded=False):
            if isinstance(part, Diffs):
                blocks += _diffs(part, width or PAGE_WIDTH, colour=colour)
            else:
                blocks += map(printable, _blocks(part, width))
    return "\n\n".join(block for block in blocks if block)


def _blocks(part: Part, width: int | None) -> Iterator[str]:
    wrapped = min(width or PAGE_WIDTH, PAGE_WIDTH)
    if isinstance(part, Text):
        yield "\n".join(_wrapped(sentence, wrapped) for sentence in part.sentences)
    elif isinstance(part, Code):
        yield part.text
    elif isinstance(part, MarkedText):
        yield _wrapped(part.text, wrapped)
    elif isinstance(part, FactList):
        title = f"{_wrapped(part.title, wrapped)}\n" if part.title else ""
        yield title + two_columns(part.rows, wrapped, 2 if title else 0)
    elif isinstance(part, Table) and not part.folded:
        while part.narrow is not None and width is not None and text_grid(part.overview).width > width:
            part = part.narrow
        title = f"{_wrapped(part.title, wrapped)}\n" if part.title else ""
        grid = text_grid(part.overview)
        if part.cut and width is not None:  # texts beside the first column in one line each, of equal room
            names = max(len(row[0]) for row in (grid.header, *grid.rows))
            room = max(_LEAST_LETTERS, (width - names) // (len(grid.header) - 1) - 3)
            rows = [
                (row[0], *(cell if len(cell) <= room else cell[: room - 1].rstrip() + "…" for cell in row[1:]))
                for row in grid.rows
            ]
            grid = replace(grid, rows=tuple(rows))
        yield title + grid.text(width).lstrip("\n")
        yield "\n".join(_wrapped(note, wrapped) for note in part.notes)
    elif isinstance(part, Histogram) and part.printed:
        most = max(*part.counts, 1)
        bars = tuple(
            (name, f"{count:,g}", "█" * math.ceil(_BAR * count / most))
            for name, count in zip(part.marked_names, part.counts, strict=True)
        )
        grid = Grid((part.axis, part.noun, ""), bars, "lrl")
        yield f"{_wrapped(part.title, wrapped)}\n{grid.text(width)}"
    elif isinstance(part, Intervals | SmallMultiples | PairedBars):
        yield from _blocks(part.table, width)
        yield _wrapped(part.about, wrapped)
    elif isinstance(part, Cards) and (cards := part.cards[: part.most]):
        lines = [_wrapped(part.title, wrapped)]
        for card in cards:
            lines += textwrap.wrap(card.title, wrapped, initial_indent="  ", subsequent_indent="  ")
            for text in card.lines:
                line = " ".join(text.split())
                line = line if len(line) <= _MOST_LETTERS else line[: _MOST_LETTERS - 1] + "…"
                lines += textwrap.wrap(line, wrapped, initial_indent=4 * " ", subsequent_indent=8 * " ")
        yield "\n".join(lines)


def _diffs(part: Diffs, width: int, *, colour: bool) -> Iterator[str]:
    diffs = part.diffs[: part.most]
    head = ((part.title, ""), (part.about, "  ")) if diffs else ()
    wrapped = partial(textwrap.wrap, width=width, subsequent_indent="  ", break_on_hyphens=False)
    yield "\n".join(line for text, indent in head for line in wrapped(printable_line(text), initial_indent=indent))
    for diff in diffs:
        # The text as it was and as it is; what differs in colour, or else in brackets.
        lines = [printable_line(f"{diff.name}: {diff.about}")] if diff.about else []
        if diff.edited:
            for side, (sign, tone) in enumerate((("-", _RED), ("+", _GREEN))):
                before, after = (tone, _PLAIN) if colour else ("[", "]")
                spans = [(printable_line(span[side]), span[0] != span[1]) for span in diff.spans]
                marked = (f"{before}{text}{after}" if text and changed else text for text, changed in spans)
                lines.append(f"  {sign} {''.join(marked)}")
        else:
            lines.append(f"    {printable_line(''.join(span[0] for span in diff.spans))}")
        yield "\n".join([*lines, *(f"    {printable_line(fact)}" for fact in diff.facts)])
    yield part.rest if len(part.diffs) > len(diffs) else ""


def text_grid(table: Table) -> Grid:
    """A table of texts: figures of a column with their numbers under each other, intervals beside them."""
    columns, sides = [], ""
    for index, side in enumerate(table.sides):
        cells = [row[index] for row in table.lines]
        if any(isinstance(cell, Figure) and cell.interval for cell in cells):
            parts = [
                (cell.number, cell.interval) if isinstance(cell, Figure) else (cell_text(cell), "") for cell in cells
            ]
            room = max(len(number) for number, _ in parts)
            columns.append([f"{number:>{room}}  {interval}".rstrip() for number, interval in parts])
            sides += "l"
        else:
            columns.append([cell_text(cell) for cell in cells])
            sides += side
    return Grid(table.header, tuple(zip(*columns, strict=True)) if table.rows else (), sides, table.names)


def _wrapped(text: str, width: int) -> str:
    return "\n".join(textwrap.wrap(text, width, break_on_hyphens=False)) if len(text) > width else text
