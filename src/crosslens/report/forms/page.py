"""Sections as HTML: alone on a page, inside one, or in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from string import Template

from crosslens.core import (
    FORMS,
    Answers,
    Beside,
    Cards,
    Cell,
    Chart,
    Code,
    Composed,
    Diffs,
    EvidenceList,
    FactList,
    Figure,
    Folded,
    Intervals,
    Link,
    MarkedText,
    PairedBars,
    Part,
    PictureCard,
    QueryCards,
    Row,
    Section,
    SmallMultiples,
    Table,
    Text,
    cell_text,
    well_formed,
)
from crosslens.report.forms.boxes import draw_boxes
from crosslens.report.forms.cards import answers_html, certainty_html, evidence_html, query_cards_html, with_terms
from crosslens.report.forms.charts import draw
from crosslens.report.forms.pictures import EmbeddedImage, embed_image, embed_thumbnails
from crosslens.report.forms.scales import bars_html, intervals_html, multiples_html, small_interval
from crosslens.report.forms.theme import NOTEBOOK_STYLE, PAGE_STYLE, packaged_text

_FRAME = Template(packaged_text("page.html"))
_BUDGET = 8_000_000
"""Bytes that the pictures of a page may take."""
_MOST_ROWS = 500
"""Of the table behind a chart: the points of a larger scatter nobody reads."""
_MOST_DIFFS = 20
"""Of edited texts: what is more is folded."""
_SIGNS = {"yes": "✓", "no": "✗", "unknown": "?"}
_PERCENT = "\u00a0%"
"""The sign stays with its number at the end of a line."""


Drawn = Mapping[str, EmbeddedImage]
"""Pictures by the files that they are in; those of a server, which have addresses, by image."""


@FORMS.register("html")
def fragment(sections: Iterable[Section]) -> str:
    """For a notebook: the sections, and a style that keeps to them."""
    return well_formed(f'<style>{NOTEBOOK_STYLE}</style><div class="crosslens">{_body(list(sections))}</div>')


def section_page(title: str, sections: Iterable[Section]) -> str:
    """A page that needs no other file; where sections are about queries, it begins with links to them."""
    below = [replace(section, title="") if section.title == title else section for section in sections]
    targets = [(_target(number), section.query) for number, section in enumerate(below) if section.query]
    return html_page(title, (links(targets, "Queries") if len(targets) > 1 else "") + _body(below))


def html_page(title: str, body: str, *, script: str = "", heading: bool = True) -> str:
    """A whole page around a body that is HTML already."""
    name, script = escape(title), f"<script>{script}</script>\n" if script else ""
    inside = "\n".join(filter(None, (f"<h1>{name}</h1>" if heading else "", body)))
    return well_formed(_FRAME.substitute(title=name, style=PAGE_STYLE, script=script, body=inside))


def links(targets: Sequence[tuple[str, str]], label: str) -> str:
    """A navigation bar of ids on the page and their names."""
    anchors = "\n".join(f'<a href="#{escape(target)}">{escape(name)}</a>' for target, name in targets)
    return f'<nav class="links" aria-label="{escape(label)}">\n{anchors}\n</nav>\n'


def folded(summary: str, content: str) -> str:
    """Content that is HTML already, under a line to click on."""
    return f"<details><summary>{escape(summary)}</summary>\n{content}</details>"


def _target(number: int) -> str:
    return f"query-{number + 1}"


def _body(sections: Sequence[Section]) -> str:
    drawn = _drawn([part for section in sections for part in section.parts])
    return "\n".join(
        section_html(section, drawn, _target(number) if section.query else "")
        for number, section in enumerate(sections)
    )


def section_html(section: Section, drawn: Drawn | None = None, target: str = "") -> str:
    """A section with its heading, unless a chart of the same title opens it; ``drawn``: as of :func:`part_html`."""
    opening = section.parts[0] if section.parts else None
    headed = section.title and not (isinstance(opening, Chart) and opening.title == section.title)
    head = f"<h2>{escape(section.title)}</h2>\n" if headed else ""
    if section.certainty:
        head = f'<div class="claim">{head}{certainty_html(section.certainty, section.reason)}</div>'
    target = target or section.target
    anchor = f' id="{escape(target)}"' if target else ""
    return f"<section{anchor}>{head}{''.join(part_html(part, drawn) for part in section.parts)}</section>"


def part_html(part: Part, drawn: Drawn | None = None) -> str:
    """One part; ``drawn`` are the pictures of the whole page by their files, or by image where they are in none."""
    if isinstance(part, Text):
        return "".join(paragraph(sentence, "facts" if part.note else "", part.terms) for sentence in part.sentences)
    if isinstance(part, Code):
        return f"<pre><code>{escape(part.text)}</code></pre>"
    if isinstance(part, FactList):
        rows = "".join(
            f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td></tr>' for name, text in part.rows
        )
        head = f"<h4>{escape(part.title)}</h4>\n" if part.title else ""
        return f'<div class="block">{head}<div class="wide"><table><tbody>{rows}</tbody></table></div></div>'
    if isinstance(part, Table):
        # The first column names the rows; a frame scrolls where the table is wider than the page.
        label = part.title or f"Table of {len(part.rows)} rows"
        framed = f'<div class="wide" tabindex="0" role="group" aria-label="{escape(label)}">\n{_rows(part)}\n</div>'
        notes = "".join(paragraph(note, "facts") for note in part.notes)
        if part.folded or part.aside or part.overview is not part:
            return f'<div class="block">{folded(label, framed + notes)}</div>'
        head = f"<h4>{escape(part.title)}</h4>\n" if part.title else ""
        return f'<div class="block">{head}{framed}{notes}</div>'
    if isinstance(part, Row):
        return f'<div class="charts">{"".join(map(chart_html, part.charts))}</div>'
    if isinstance(part, Chart):
        return chart_html(part, drawn)
    if isinstance(part, Diffs):
        return _diffs(part)
    if isinstance(part, MarkedText):
        head = f"<h3>{escape(part.title)}</h3>" if part.title else ""
        key = paragraph(part.key, "facts") if part.key else ""
        return f'{head}<p class="query" dir="auto">{marked_html(part)}</p>{key}'
    if isinstance(part, Cards | Composed):
        return _with_pictures(part, _drawn([part]) if drawn is None else drawn)
    raise TypeError(f"no page form for a part of type {type(part).__name__}")


def _with_pictures(part: Cards | Composed, drawn: Drawn) -> str:
    """Cards, and parts that have others in them."""
    if isinstance(part, Answers):
        return answers_html(part)
    if isinstance(part, EvidenceList):
        return evidence_html(part)
    if isinstance(part, QueryCards):
        return query_cards_html(part, lambda card: picture_html(card, _picture(part.files, card.image, drawn)))
    if isinstance(part, Beside):
        columns = ("".join(part_html(inner, drawn) for inner in column) for column in part.columns)
        kind = "beside even" if part.even else "beside"
        return f'<div class="{kind}">{"".join(f"<div>{column}</div>" for column in columns)}</div>'
    if isinstance(part, Folded):
        inside = "".join(part_html(inner, drawn) for inner in part.parts)
        subtitle = f" <small>{escape(part.about)}</small>" if part.about else ""
        kind = "fold paper" if part.paper else "fold"
        anchor = f' id="{escape(part.target)}"' if part.target else ""
        is_open = " open" if part.open else ""
        return (
            f'<details class="{kind}"{is_open}><summary>{escape(part.title)}{subtitle}</summary>'
            f"<div{anchor}>{inside}</div></details>"
        )
    if isinstance(part, Composed):
        return "".join(part_html(inner, drawn) for inner in part.plain)
    keys = (part.pictures.get(card.image or "", card.image or "") for card in part.cards)
    listed = "".join(_card(card, drawn.get(key)) for card, key in zip(part.cards, keys, strict=True))
    head = f"<h4>{escape(part.title)}</h4>" if part.title else ""
    key = paragraph(part.key, "facts") if part.key else ""
    return f'<div class="block">{head}<div class="{"pair" if part.large else "hits"}">{listed}</div>{key}</div>'


def paragraph(text: str, kind: str = "", terms: Mapping[str, str] | None = None) -> str:
    """A paragraph of plain text, some of whose words have a meaning on tap."""
    return f"<p{_class(kind)}>{with_terms(escape(text.replace(' %', _PERCENT)), terms or {})}</p>"


def _rows(table: Table) -> str:
    sides = ["number" if side == "r" else "" for side in table.sides]
    head = "".join(
        f'<th scope="col"{_class(side)}>{escape(name)}</th>' for name, side in zip(table.header, sides, strict=True)
    )
    rows = []
    for number, row in enumerate(table.lines):
        cells = [f'<th scope="row"{_class(sides[0])}>{_cell(row[0])}</th>'] if row else []
        for column, cell in enumerate(row[1:], start=1):
            mark = "best" if (number, column) in table.best else ""
            bounded = "figure" if isinstance(cell, Figure) and cell.interval else ""
            drawn = small_interval(cell) if table.drawn and isinstance(cell, Figure) else ""
            cells.append(f"<td{_class(sides[column], mark, bounded)}>{drawn}{_cell(cell)}</td>")
        rows.append(f"<tr>{''.join(cells)}</tr>")
    body = "\n".join(rows)
    head = f"<thead><tr>{head}</tr></thead>\n" if any(table.header) else ""
    return f"<table>\n{head}<tbody>\n{body}\n</tbody>\n</table>"


def _cell(cell: Cell) -> str:
    interval = f' <span class="facts">{cell.interval}</span>' if isinstance(cell, Figure) and cell.interval else ""
    text = escape(cell.number if interval and isinstance(cell, Figure) else cell_text(cell))
    address = cell.address if isinstance(cell, Link | Figure) else ""
    return (f'<a href="{escape(address)}">{text}</a>' if address else text) + interval


def chart_html(chart: Chart, drawn: Drawn | None = None) -> str:
    """A chart, and the table behind it under a line to click on unless all of its numbers are written."""
    if isinstance(chart, Intervals | SmallMultiples | PairedBars):
        head = f"<figcaption>{escape(chart.title)}</figcaption>" if chart.title else ""
        note = paragraph(chart.about, "facts") if chart.about else ""
        return f'<figure class="chart-figure scales">{head}{_scales(chart, drawn)}{note}</figure>'
    drawing = draw(chart)
    rows = chart.table
    table = folded(f"Table: {chart.title}", f'<div class="wide">{_rows(rows)}</div>')
    table = table if len(rows.rows) <= _MOST_ROWS else ""
    svg, kind = drawing.svg, "chart-figure"
    if drawing.natural:
        kind += " natural"
        svg = f'<div class="chart-scroll" tabindex="0" role="group" aria-label="{escape(chart.title)}">{svg}</div>'
    note = paragraph(chart.about, "facts") if chart.about else ""
    return f'<figure class="{kind}"><figcaption>{escape(chart.title)}</figcaption>{note}\n{svg}\n{table}</figure>'


def _scales(chart: Intervals | SmallMultiples | PairedBars, drawn: Drawn | None) -> str:
    if isinstance(chart, Intervals):
        return intervals_html(chart)
    if isinstance(chart, SmallMultiples):
        rows = folded(f"Table: {chart.title}", f'<div class="wide">{_rows(chart.table)}</div>')
        return multiples_html(chart) + rows
    pictures = _drawn([chart]) if drawn is None else drawn
    return bars_html(
        chart,
        lambda image, title: picture_html(PictureCard(title), _picture(chart.files, image, pictures)),
        lambda row: "".join(part_html(part, pictures) for part in row.details),
    )


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
    note = paragraph(part.about, "facts") if part.about else ""
    return f'<div class="block">{head}{note}{tables[0]}{more}</div>' if rows else ""


def marked_html(text: MarkedText) -> str:
    """The words with their marks: a sign and a colour, never a colour alone."""
    marked = ""
    for words, mark, why in text.spans:
        sign = f"<sup aria-hidden='true'>{_SIGNS[mark]}</sup><span class='unseen'> ({mark})</span>" if mark else ""
        words = escape(words)
        marked += f'<mark class="{mark}" title="{escape(why)}">{words}{sign}</mark>' if mark else words
    return marked


def pictured(parts: Iterable[Part]) -> Iterator[tuple[str, bool]]:
    """The files of pictures in parts, in order, and whether they are shown large."""
    for part in parts:
        if isinstance(part, Cards | QueryCards):
            files = part.pictures if isinstance(part, Cards) else part.files
            cards = (
                part.cards if isinstance(part, Cards) else [picture for card in part.cards for picture in card.pictures]
            )
            yield from ((files[card.image], part.large) for card in cards if card.image and card.image in files)
        elif isinstance(part, PairedBars):
            for row in part.rows:
                yield from ((part.files[image], False) for image in row.pictures if image in part.files)
                yield from pictured(row.details)
        elif isinstance(part, Composed):
            yield from pictured(part.plain)


def _drawn(parts: Iterable[Part]) -> Drawn:
    """The pictures of parts by their files: large ones, and thumbnails that fit into the budget as often as shown."""
    files = list(pictured(parts))
    small = [file for file, large in files if not large]
    thumbnails = embed_thumbnails(dict(zip(small, small, strict=True)), _BUDGET * len(set(small)) // max(1, len(small)))
    large = {file: picture for file, is_large in files if is_large and (picture := embed_image(file)) is not None}
    return {**thumbnails, **large}


def _picture(files: Mapping[str, str], image: str | None, drawn: Drawn) -> EmbeddedImage | None:
    return drawn.get(files.get(image or "", image or ""))


def picture_html(card: PictureCard, picture: EmbeddedImage | None) -> str:
    """A picture with its boxes; nothing where there is none. One whose address is ``#…`` is elsewhere on the page."""
    if picture is None:
        return draw_boxes(card, None) if card.boxes else ""
    if picture.address.startswith("#"):
        used = f'<use href="{escape(picture.address)}" width="100%" height="100%"/>'
        if card.boxes:
            size = card.size or (picture.width, picture.height)
            return draw_boxes(replace(card, size=size), None, content=used)
        box = f'viewBox="0 0 {picture.width:g} {picture.height:g}"'
        role = f'role="img" aria-label="{escape(card.title)}"' if card.title else 'aria-hidden="true"'
        return f'<svg class="picture" {box} {role}>{used}</svg>'
    if card.boxes:
        return draw_boxes(card, picture)
    frame = f'width="{picture.width:g}" height="{picture.height:g}"'
    return f'<img src="{escape(picture.address)}" alt="{escape(card.title)}" {frame}>'


def _card(card: PictureCard, picture: EmbeddedImage | None) -> str:
    image = picture_html(card, picture)
    lines = "".join(f'<q dir="auto">{escape(line)}</q>' for line in card.lines)
    lines += "".join(f'<span class="facts" dir="auto">{escape(line)}</span>' for line in card.details)
    return f"<figure{_class(card.mark)}>{image}<figcaption>{escape(card.title)}{lines}</figcaption></figure>"


def _class(*names: str) -> str:
    given = " ".join(name for name in names if name)
    return f' class="{given}"' if given else ""
