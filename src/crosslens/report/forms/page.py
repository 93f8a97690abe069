"""Sections as HTML: alone on a page, inside one, or in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from html import escape

from crosslens.core import (
    FORMS,
    Cards,
    Cell,
    Chart,
    Diffs,
    FactList,
    Figure,
    Link,
    Part,
    PictureCard,
    Row,
    Section,
    Table,
    Text,
    cell_text,
)
from crosslens.report.charts.theme import CHART_STYLE, THEME_STYLE
from crosslens.report.document.style import STYLE
from crosslens.report.forms.charts import draw
from crosslens.report.html import folded, html_page
from crosslens.report.pages.pictures import EmbeddedImage, embed_thumbnails

_BUDGET = 8_000_000
"""Bytes that the pictures of a page may take."""
_MOST_ROWS = 500
"""Of the table behind a chart: the points of a larger scatter nobody reads."""
_MOST_DIFFS = 20
"""Of edited texts: what is more is folded."""
_PERCENT = "\u00a0%"
"""The sign stays with its number at the end of a line."""


Drawn = Mapping[str, EmbeddedImage]
"""Pictures by the files that they are in."""


@FORMS.register("html")
def fragment(sections: Iterable[Section]) -> str:
    """For a notebook: the style of pages, which keeps to this element, and the sections."""
    style = f"<style>{THEME_STYLE}{CHART_STYLE}{NOTEBOOK_STYLE}</style>"
    return f'{style}<div class="crosslens">{_body(list(sections))}</div>'


def section_page(title: str, sections: Iterable[Section]) -> str:
    """A page that needs no other file."""
    below = [replace(section, title="") if section.title == title else section for section in sections]
    return html_page(title, _body(below), style=THEME_STYLE + CHART_STYLE + STYLE)


def _body(sections: Sequence[Section]) -> str:
    drawn = _drawn([part for section in sections for part in section.parts if isinstance(part, Cards)])
    return "\n".join(section_html(section, drawn) for section in sections)


def section_html(section: Section, drawn: Drawn | None = None) -> str:
    """A section with its heading, unless a chart of the same title opens it."""
    opening = section.parts[0] if section.parts else None
    headed = section.title and not (isinstance(opening, Chart) and opening.title == section.title)
    head = f"<h2>{escape(section.title)}</h2>\n" if headed else ""
    return f"<section>{head}{''.join(part_html(part, drawn) for part in section.parts)}</section>"


def part_html(part: Part, drawn: Drawn | None = None) -> str:
    """One part; ``drawn`` are the pictures of the whole page, where they are known."""
    if isinstance(part, Text):
        return "".join(paragraph(sentence, "facts" if part.note else "") for sentence in part.sentences)
    if isinstance(part, FactList):
        rows = "".join(
            f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td></tr>' for name, text in part.rows
        )
        head = f"<h4>{escape(part.title)}</h4>\n" if part.title else ""
        return f'<div class="block">{head}<div class="wide"><table><tbody>{rows}</tbody></table></div></div>'
    if isinstance(part, Table):
        return table_html(part)
    if isinstance(part, Row):
        return f'<div class="charts">{"".join(map(chart_html, part.charts))}</div>'
    if isinstance(part, Chart):
        return chart_html(part)
    if isinstance(part, Diffs):
        return _diffs(part)
    return cards_html(part, _drawn([part]) if drawn is None else drawn)


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph of plain text."""
    return f"<p{_class(kind)}>{escape(text.replace(' %', _PERCENT))}</p>"


def table_html(table: Table) -> str:
    """A table whose first column names its rows, in a frame that scrolls where it is wider than the page."""
    label = table.title or f"Table of {len(table.rows)} rows"
    framed = f'<div class="wide" tabindex="0" role="group" aria-label="{escape(label)}">\n{_rows(table)}\n</div>'
    notes = "".join(paragraph(note, "facts") for note in table.notes)
    if table.folded or table.behind or table.overview is not table:
        return f'<div class="block">{folded(label, framed + notes)}</div>'
    head = f"<h4>{escape(table.title)}</h4>\n" if table.title else ""
    return f'<div class="block">{head}{framed}{notes}</div>'


def _rows(table: Table) -> str:
    sides = ["number" if side == "r" else "" for side in table.sides]
    head = "".join(
        f'<th scope="col"{_class(side)}>{escape(name)}</th>' for name, side in zip(table.header, sides, strict=True)
    )
    rows = []
    for number, row in enumerate(table.lines):
        cells = [f'<th scope="row"{_class(sides[0])}>{escape(cell_text(row[0]))}</th>'] if row else []
        for column, cell in enumerate(row[1:], start=1):
            mark = "best" if (number, column) in table.best else ""
            bounded = "figure" if isinstance(cell, Figure) and cell.interval else ""
            cells.append(f"<td{_class(sides[column], mark, bounded)}>{_cell(cell)}</td>")
        rows.append(f"<tr>{''.join(cells)}</tr>")
    body = "\n".join(rows)
    head = f"<thead><tr>{head}</tr></thead>\n" if any(table.header) else ""
    return f"<table>\n{head}<tbody>\n{body}\n</tbody>\n</table>"


def _cell(cell: Cell) -> str:
    if isinstance(cell, Figure) and cell.interval:
        return f'{escape(cell.number)} <span class="facts">{cell.interval}</span>'
    text = escape(cell_text(cell))
    return f'<a href="{escape(cell.address)}">{text}</a>' if isinstance(cell, Link) else text


def chart_html(chart: Chart) -> str:
    """A chart, and the table behind it under a line to click on."""
    drawing = draw(chart)
    rows = chart.table
    table = folded(f"Table: {chart.title}", f'<div class="wide">{_rows(rows)}</div>')
    table = table if len(rows.rows) <= _MOST_ROWS else ""
    svg, kind = drawing.svg, "chart-figure"
    if drawing.natural:
        kind += " natural"
        svg = f'<div class="chart-scroll" tabindex="0" role="group" aria-label="{escape(chart.title)}">{svg}</div>'
    about = paragraph(chart.about, "facts") if chart.about else ""
    return f'<figure class="{kind}"><figcaption>{escape(chart.title)}</figcaption>{about}\n{svg}\n{table}</figure>'


def _diffs(part: Diffs) -> str:
    """Texts with what was removed struck out and what was inserted underlined."""
    rows = []
    for diff in part.diffs:
        text = "".join(
            escape(before)
            if before == after
            else "".join(f"<{tag}>{escape(text)}</{tag}>" for tag, text in (("del", before), ("ins", after)) if text)
            for before, after in diff.spans
        )
        facts = "".join(f'<span class="facts">{escape(fact)}</span>' for fact in (diff.about, *diff.facts) if fact)
        rows.append(f'<tr><th scope="row">{escape(diff.name)}</th><td dir="auto">{text}{facts}</td></tr>')
    tables = [
        f'<table class="diffs"><tbody>\n{listed}\n</tbody></table>'
        for listed in ("\n".join(rows[:_MOST_DIFFS]), "\n".join(rows[_MOST_DIFFS:]))
    ]
    more = folded(f"{len(rows) - _MOST_DIFFS:,} more", tables[1]) if len(rows) > _MOST_DIFFS else ""
    head = f"<h3>{escape(part.title)}</h3>" if part.title else ""
    about = paragraph(part.about, "facts") if part.about else ""
    return f'<div class="block">{head}{about}{tables[0]}{more}</div>' if rows else ""


def _drawn(parts: Sequence[Cards]) -> Drawn:
    """The pictures of cards by their files: all of them, each as often as it is shown, fit into the budget."""
    shown = (cards.pictures.get(card.image or "") for cards in parts for card in cards.cards)
    files = [file for file in shown if file is not None]
    distinct = {file: file for file in files}
    return embed_thumbnails(distinct, _BUDGET * len(distinct) // max(1, len(files)))


def cards_html(cards: Cards, drawn: Drawn) -> str:
    """Pictures with their texts; a card without a picture has its texts alone."""
    listed = "".join(_card(card, drawn.get(cards.pictures.get(card.image or "", ""))) for card in cards.cards)
    head = f"<h4>{escape(cards.title)}</h4>" if cards.title else ""
    return f'<div class="block">{head}<div class="hits">{listed}</div></div>'


def _card(card: PictureCard, picture: EmbeddedImage | None) -> str:
    shown = ""
    if picture is not None:
        size = f'width="{picture.width:g}" height="{picture.height:g}"'
        shown = f'<img src="{picture.address}" alt="{escape(card.title)}" {size}>'
    lines = "".join(f'<q dir="auto">{escape(line)}</q>' for line in card.lines)
    lines += "".join(f'<span class="facts" dir="auto">{escape(line)}</span>' for line in card.details)
    return f"<figure{_class(card.mark)}>{shown}<figcaption>{escape(card.title)}{lines}</figcaption></figure>"


def _class(*names: str) -> str:
    given = " ".join(name for name in names if name)
    return f' class="{given}"' if given else ""


NOTEBOOK_STYLE = """
.crosslens table { border-collapse: collapse; }
.crosslens th, .crosslens td { padding: 2px 12px 2px 0; text-align: left; vertical-align: top; }
.crosslens th.number, .crosslens td.number { text-align: right; } .crosslens .facts { color: var(--soft); }
.crosslens td.best { font-weight: 700; } .crosslens .wide { overflow-x: auto; }
.crosslens .hits { display: grid; grid-template-columns: repeat(auto-fill, minmax(160px, 1fr)); gap: 10px; }
.crosslens .hits img { max-width: 100%; height: auto; }
.crosslens .hits .facts, .crosslens .diffs .facts { display: block; font-size: 12px; }
"""
"""A few rules that keep to this element: a notebook has a style of its own."""
