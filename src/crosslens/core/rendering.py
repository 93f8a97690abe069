"""Numbers, tables and notes as plain text: the same on a terminal, in a pipe and in a notebook.

Text from elsewhere is made harmless to print: captions, names, file names and answers of servers may hold escape
sequences that move the cursor, hide text, set the clipboard or reverse the direction of writing. What would steer a
terminal is spelled out instead. Line feeds and tabs stay; :func:`printable_line` spells them out, too.
"""

from __future__ import annotations

import math
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from itertools import zip_longest

from crosslens.core.addresses import without_secrets

Notify = Callable[[str], None]

_CONTROLS = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # C0 without tab, LF and CR; DEL; C1, whose \x9b is ESC [
_DIRECTIONS = "\u202a-\u202e\u2066-\u2069"  # overrides, embeddings and isolates
_SEPARATORS = "\u2028\u2029"  # line breaks to some programs and not to others
_SURROGATES = "\ud800-\udfff"  # halves of characters: no encoding can write them
_STEERING = re.compile(rf"\r(?!\n)|[{_CONTROLS}{_DIRECTIONS}{_SEPARATORS}{_SURROGATES}]")
_NOT_IN_A_LINE = re.compile(rf"[\t\n\r{_CONTROLS}{_DIRECTIONS}{_SEPARATORS}{_SURROGATES}]")
_NOT_IN_XML = re.compile(rf"[\x00-\x08\x0b\x0c\x0e-\x1f{_SURROGATES}\ufffe\uffff]")

_MARKUP = re.compile(
    r"[\\`*~$|{]"
    r"|(?<![^\W_])_|_(?![^\W_])"  # between letters it is one of them
    r"|<(?=[A-Za-z/!?])|&(?=#?\w+;)"
    r"|^\[|\](?=\s*[(\[:])"  # a box to tick; a link, or the address of one
    r"|^[-+](?=[-\s]|$)|^\d{1,9}(?=[.)](?:\s|$))|^>|(?<!\S)#"  # items of lists, quotes, headings
)
_ENTITIES = {"<": "&lt;", "&": "&amp;"}


def printable(text: str) -> str:
    r"""The text with everything that steers a terminal written as Python writes it: ``\x1b``, ``\u202e``."""
    return _STEERING.sub(_spelled_out, text)


def printable_line(text: str) -> str:
    """The text as one line: a name or a cell must not begin a line of its own."""
    return _NOT_IN_A_LINE.sub(_spelled_out, text)


def printable_json(text: str) -> str:
    """JSON with the same content, in which those characters are escaped as JSON escapes them."""
    return _STEERING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def well_formed(text: str) -> str:
    """The text with U+FFFD for every character that no XML file may contain, and no other page should."""
    return _NOT_IN_XML.sub("\ufffd", text)


def markdown_text(text: str) -> str:
    """The text as Markdown that shows it, on one line: nothing in it is markup, a link or HTML.

    ``<`` and ``&`` become entities, as not every program takes a backslash before them.
    """

    def literal(match: re.Match[str]) -> str:
        mark = match[0]
        return f"{mark}\\" if mark.isdecimal() else _ENTITIES.get(mark, f"\\{mark}")

    return _MARKUP.sub(literal, " ".join(well_formed(text).split()))


_LONGEST_FACT = 4
"""Words in which merged notes may differ: ``3 of 10``."""


def merged_notes(notes: Iterable[tuple[str, str]]) -> list[str]:
    """Notes, each with its subject (a direction, a metric, a run), as few sentences as say the same.

    Equal notes name all their subjects. In one for several that differ in numbers, ids or other quoted names, every
    subject stands behind what is true of it: ``in 3 (i2t) and 5 (t2i) of 10 lists …``.
    """
    alike: dict[tuple[str, ...], dict[str, list[str]]] = {}
    for subject, note in notes:
        words = re.findall(r"'[^']*'\S*|\S+", note)
        pattern = tuple("" if word.startswith("'") or re.search(r"\d", word) else word for word in words)
        alike.setdefault(pattern, {})[subject] = words
    merged = []
    for texts in alike.values():
        words = next(iter(texts.values()))
        differ = [n for n in range(len(words)) if len({text[n] for text in texts.values()}) > 1]
        if not differ:
            merged.append(f"{_listed(list(texts))}: {' '.join(words)}")
            continue
        start, end = differ[0], differ[-1] + 1
        if end - start > _LONGEST_FACT:
            merged += [f"{subject}: {' '.join(text)}" for subject, text in texts.items()]
            continue
        facts = [f"{' '.join(text[start:end])} ({subject})" for subject, text in texts.items()]
        merged.append(" ".join([*words[:start], _listed(facts), *words[end:]]))
    return merged


def _listed(names: Sequence[str]) -> str:
    return " and ".join([*([", ".join(names[:-1])] if len(names) > 1 else []), names[-1]])


def to_stderr(text: str) -> None:
    """Print a note for the person at the terminal."""
    print(printable(without_secrets(text)), file=sys.stderr)


def _spelled_out(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def decimal(value: float, digits: int, *, signed: bool = False) -> str:
    """A number with so many decimals, ``signed`` for a difference; one that rounds to zero has no sign.

    A half is rounded away from zero, and what sums of floats differ by is no reason to round down: 23.75 − 20 and the
    mean of such differences are both ``+3.8``, and ``-3.8`` the other way round.
    """
    if not abs(value) < _INEXACT:
        number: float | Decimal = round(value, digits) + 0.0  # -0.0 becomes 0.0
    else:
        number = Decimal(f"{value:.12g}").quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP) + 0
    return f"{number:{'+' if signed and number else ''}{'' if digits else ','}.{digits}f}"


def percent(value: float | None, *, signed: bool = False, unit: str = "") -> str:
    """A share in percent, ``58.3``, and the ``unit`` behind it; a dash where there is no value."""
    if value is None or not math.isfinite(value):
        return "–"
    return f"{decimal(100 * value, 1, signed=signed)}{unit}"


_INEXACT = 1e9
"""Larger numbers, of which 12 digits would not be all before the point, are rounded as they are."""
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
        groups = [list(range(self.names))]  # of columns, a block each; the names of the rows open every block
        opening = used = sum(sizes[: self.names]) + len(_GAP) * (self.names - 1)
        for column in range(self.names, len(sizes)):
            needed = len(_GAP) + sizes[column]
            if width is not None and len(groups[-1]) > self.names and used + needed > width:
                groups.append(list(range(self.names)))
                used = opening
            groups[-1].append(column)
            used += needed
        blocks = []
        for columns in groups:
            layout = [(c, ">" if self.align[c] == "r" else "<", sizes[c]) for c in columns]
            rows = (_GAP.join(f"{row[c]:{side}{size}}" for c, side, size in layout).rstrip() for row in lines)
            blocks.append("\n".join(rows))
        return "\n\n".join(blocks)

    def _lines(self) -> list[list[str]]:
        """Header and rows as they are printed: a cell is one line, whatever is in it."""
        return [list(map(printable_line, row)) for row in (self.header, *self.rows)]


def _sizes(lines: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*lines, strict=True)]


def two_columns(rows: Sequence[tuple[str, str]], width: int = PAGE_WIDTH, indent: int = 0) -> str:
    """Names on the left, their text beside them, wrapped to ``width``; below a name that takes more than half of it."""
    rows = [(printable_line(name), text) for name, text in rows]
    margin = max((len(name) for name, _ in rows if len(name) <= width // 2), default=0) + indent + len(_GAP)
    lines = []
    for name, text in rows:
        # A number stays on one line with its percent sign.
        text = text.replace(" %", _PERCENT)
        beside = textwrap.wrap(text, max(_NARROWEST, width - margin), break_on_hyphens=False)
        names = [name]
        if len(name) > width // 2:
            names = textwrap.wrap(name, width - indent, break_on_hyphens=False)
            beside = [""] * len(names) + beside
        for title, line in zip_longest(names, beside, fillvalue=""):
            lines.append(f"{' ' * indent + title if title else '':<{margin}}{line}".rstrip())
    return "\n".join(lines).replace(_PERCENT, " %")
