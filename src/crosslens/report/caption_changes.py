"""Captions before and after a perturbation, the changed characters marked: for a terminal, and as a page."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from itertools import islice
from typing import Any, NamedTuple

from crosslens.core.grid import PAGE_WIDTH, Grid
from crosslens.perturb.edit import Perturbed

_RED, _GREEN, _DIM, _BOLD, _PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[2m", "\x1b[1m", "\x1b[0m"


class Piece(NamedTuple):
    """A stretch of a caption; where ``before`` and ``after`` are the same it was left alone."""

    before: str
    after: str


@dataclass(frozen=True)
class Changes:
    """Some captions, by id, under one perturbation; ``counts`` are those of all captions."""

    name: str
    summary: str
    captions: Mapping[str, Perturbed]
    counts: Mapping[str, Any]

    def first(self, most: int) -> Changes:
        """The first captions alone."""
        return replace(self, captions=dict(islice(self.captions.items(), most)))

    def changed_first(self, most: int) -> Changes:
        """Changed captions where there are enough; what is short of them, unchanged ones with their reasons."""
        order = set(sorted(self.captions, key=lambda id: not self.captions[id].applied)[:most])
        return replace(self, captions={id: one for id, one in self.captions.items() if id in order})

    def as_dict(self) -> list[dict[str, Any]]:
        """The captions for programs."""
        return [
            {"caption": id, **one._asdict(), "edits": [edit._asdict() for edit in one.edits]}
            for id, one in self.captions.items()
        ]


def pieces(perturbed: Perturbed) -> Iterator[Piece]:
    """The caption from left to right: what stayed, what was changed, what stayed, …"""
    place = 0
    for edit in perturbed.edits:
        if edit.start > place:
            kept = perturbed.original[place : edit.start]
            yield Piece(kept, kept)
        yield Piece(edit.before, edit.after)
        place = edit.end
    if place < len(perturbed.original):
        rest = perturbed.original[place:]
        yield Piece(rest, rest)


def share_of(counts: Mapping[str, Any]) -> str:
    """``24,812 of 25,000 captions changed (99.2%)``, and why not the others."""
    text = f"{counts['applied']:,} of {counts['captions']:,} captions changed ({counts['applied_share']:.1%})"
    reasons = "; ".join(f"{reason} ({number:,})" for reason, number in counts["reasons"].items())
    return f"{text}; the others: {reasons}" if reasons else text


def counts_grid(facts: Mapping[str, Mapping[str, Any]]) -> Grid:
    """How many captions (or pictures) each perturbation changed, and the main reason why not all."""
    rows = []
    for name, one in facts.items():
        if one.get("kind") == "image":
            rows.append((name, f"{one['images']:,} pictures", "", ""))
            continue
        reason = next(iter(one["reasons"]), "")
        rows.append((name, f"{one['applied']:,}", f"{one['applied_share']:.1%}", reason))
    return Grid(("perturbation", "changed", "share", "if not, mostly"), tuple(rows), "lrrl")


def changes_text(changes: Changes, width: int | None = None, *, colour: bool = False) -> str:
    """Two lines per caption, as it was and as it is; changed characters in colour, or else in brackets.

    Captions are not wrapped, so that they can be copied, and the two lines compared.
    """
    wrapped = partial(textwrap.wrap, width=width or PAGE_WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    head = "\n".join(wrapped(f"{changes.name}: {changes.summary}"))
    if colour:
        head = head.replace(changes.name, f"{_BOLD}{changes.name}{_PLAIN}", 1)
    lines = [head, *wrapped(share_of(changes.counts), initial_indent="  ")]
    for one in changes.captions.values():
        lines.append("")
        if not one.applied:
            lines += [f"    {_printable(one.original)}", _toned(f"    unchanged: {one.reason}", _DIM, colour)]
            continue
        lines += diff_lines(one, colour=colour)
    return "\n".join(lines)


def diff_lines(one: Perturbed, *, colour: bool = False) -> tuple[str, str]:
    """The caption as it was and as it is; changed characters in colour, or else in brackets."""
    parts = list(pieces(one))
    before = "".join(_marked(part.before, part, _RED, colour) for part in parts)
    return f"  - {before}", "  + " + "".join(_marked(part.after, part, _GREEN, colour) for part in parts)


def diff_html(one: Perturbed) -> str:
    """The caption with what went struck out and what came underlined."""
    return "".join(map(_change, pieces(one)))


def _marked(text: str, part: Piece, tone: str, colour: bool) -> str:
    shown = _printable(text)
    if part.before == part.after or not text:
        return shown
    return _toned(shown, tone, colour) if colour else f"[{shown}]"


def _toned(text: str, tone: str, colour: bool) -> str:
    return f"{tone}{text}{_PLAIN}" if colour else text


def _printable(text: str) -> str:
    """A caption must not move the cursor: line breaks and other controls are spelled out."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text)


def changes_page(groups: Sequence[Changes], title: str) -> str:
    """A page that stands alone: one part per perturbation, removed characters struck out and new ones underlined."""
    links = "\n".join(f'<a href="#{escape(one.name)}">{escape(one.name)}</a>' for one in groups)
    parts = "\n".join(map(_part, groups))
    return page(title, parts, links)


def page(title: str, parts: str, links: str = "") -> str:
    """A page that needs nothing else, around parts that are HTML already."""
    return _PAGE.format(title=escape(title), style=_STYLE, links=links, parts=parts)


def _part(changes: Changes) -> str:
    rows = "\n".join(_row(id, one) for id, one in changes.captions.items())
    shown, captions = len(changes.captions), changes.counts["captions"]
    few = f"<p>The first {shown:,} captions of {captions:,}.</p>\n" if shown < captions else ""
    name = escape(changes.name)
    return (
        f'<section id="{name}">\n<h2>{name}</h2>\n<p>{escape(changes.summary)}<br>{escape(share_of(changes.counts))}'
        f"</p>\n{few}<table>\n<thead><tr><th>caption</th><th>change</th></tr></thead>\n<tbody>\n{rows}\n</tbody>\n"
        "</table>\n</section>"
    )


def _row(id: str, one: Perturbed) -> str:
    if one.applied:
        text = diff_html(one)
    else:
        text = f'{escape(one.original)} <span class="why">unchanged: {escape(one.reason)}</span>'
    return f'<tr><td>{escape(id)}</td><td dir="auto">{text}</td></tr>'


def _change(part: Piece) -> str:
    if part.before == part.after:
        return escape(part.before)
    gone = f"<del>{escape(part.before)}</del>" if part.before else ""
    new = f"<ins>{escape(part.after)}</ins>" if part.after else ""
    return gone + new


_STYLE = """
body { margin: 0 auto; max-width: 900px; padding: 16px; background: #fff; color: #222;
       font: 14px/1.5 Helvetica, Arial, "Liberation Sans", "DejaVu Sans", sans-serif; }
nav a { margin-right: 12px; display: inline-block; }
h2 { margin: 28px 0 4px; font-size: 17px; }
p { margin: 0 0 8px; color: #555; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: 3px 14px 3px 0; text-align: left; vertical-align: top; border-bottom: 1px solid #e3e3e3; }
td:first-child { color: #666; white-space: nowrap; max-width: 220px; overflow: hidden; text-overflow: ellipsis; }
td + td { white-space: pre-wrap; overflow-wrap: anywhere; width: 100%; }
table.figures { width: auto; margin: 16px 0; }
.figures td + td { width: auto; white-space: nowrap; overflow-wrap: normal; }
del { background: #fbe3e0; color: #8f1d14; }
ins { background: #dff3e2; color: #0d5c23; }
.why { color: #666; font-style: italic; }
"""
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>{title}</h1>
<nav>
{links}
</nav>
{parts}
</body>
</html>
"""
