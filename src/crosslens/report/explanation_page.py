"""Explained queries as a page that stands alone: both pictures with their boxes, and every fact under them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from crosslens.core.grid import Grid
from crosslens.explain.local.explanation import Explanation
from crosslens.explain.words.pictures import Picture
from crosslens.explain.words.query_answers import OPEN, SATISFIED, VIOLATED
from crosslens.report.box_drawing import Drawn, colours, drawing, embedded
from crosslens.report.explanation import (
    DIRECTIONS,
    concepts,
    grids,
    names,
    pair_lines,
    picture_line,
    word_grid,
    words_title,
)

_MARKS = {SATISFIED: "✓", VIOLATED: "✗", OPEN: "?"}
_MOST_LINKS = 50


def explanation_page(explanations: Sequence[Explanation], title: str, files: Mapping[str, str] | None = None) -> str:
    """All of them on one page; ``files`` are the paths of pictures by image id."""
    files = files or {}
    drawn = {image: embedded(files.get(image)) for image in {picture.image for picture in _pictures(explanations)}}
    links = [f'<a href="#q{place}">{escape(one.query)}</a>' for place, one in enumerate(explanations)]
    nav = f'<nav aria-label="Queries">{" ".join(links[:_MOST_LINKS])}</nav>' if len(links) > 1 else ""
    parts = "\n".join(_article(place, one, drawn) for place, one in enumerate(explanations))
    return _PAGE.format(title=escape(title), style=_STYLE, nav=nav, parts=parts)


def _pictures(explanations: Sequence[Explanation]) -> list[Picture]:
    return [one for some in explanations for one in (some.right, some.other) if one is not None]


def _article(place: int, one: Explanation, drawn: Mapping[str, Drawn | None]) -> str:
    summary = "\n".join(f"<p>{escape(sentence.text)}</p>" for sentence in one.sentences)
    marked = _marked_text(one)
    asked = marked if one.text is not None else f"An image asks, and {_came(one)}: “{marked}”"
    parts = [
        f'<article id="q{place}">',
        f"<h2>{escape(one.query)} <small>{escape(DIRECTIONS.get(one.direction, one.direction))}</small></h2>",
        f'<p class="query" dir="auto">{asked}</p>{_key_of_marks(one)}',
        f'<div class="summary">{summary}</div>',
        _figures(one, drawn),
        _lists(one),
        _word_table(one),
        _pairs(one),
        *(_table(title, grid, shown=False) for title, grid in grids(one)),
        "".join(f'<p class="note">{escape(note)}</p>' for note in one.notes),
        "</article>",
    ]
    return "\n".join(part for part in parts if part)


def _marked_text(one: Explanation) -> str:
    """The words with what the checked picture says to each: a mark and a colour, never a colour alone."""
    text = one.spoken or one.text or ""
    checked = [verdict.right if one.direction == "i2t" else verdict.other for verdict in one.words]
    spans = sorted(
        {(a.word.start, a.word.end, a.verdict, a.why) for a in checked if a.word.kind != "relation"},
        key=lambda span: (span[0], -span[1]),
    )
    found, place = "", 0
    for start, end, verdict, why in spans:
        if start < place or end <= start:
            continue
        found += escape(text[place:start])
        mark = f"<sup aria-hidden='true'>{_MARKS[verdict]}</sup><span class='unseen'> ({verdict})</span>"
        found += f'<mark class="{verdict}" title="{escape(why)}">{escape(text[start:end])}{mark}</mark>'
        place = end
    return found + escape(text[place:])


def _came(one: Explanation) -> str:
    return "the first caption of another picture says" if one.succeeded else "the first caption says"


def _key_of_marks(one: Explanation) -> str:
    if not one.words:
        return ""
    checked = "the query picture" if one.direction == "i2t" else f"the {names(one)[1]} picture"
    return f'<p class="key">✓ {checked} has it, ✗ it has not, ? nobody can tell.</p>'


def _figures(one: Explanation, drawn: Mapping[str, Drawn | None]) -> str:
    order = [*one.comparison.get("common", ()), *one.comparison.get("missing", ()), *one.comparison.get("extra", ())]
    own = [thing.synset for thing in one.right.things if thing.synset is not None] if not order else []
    colour_of = colours(list(dict.fromkeys([*order, *own])))
    pairs = one.boxes
    sides = [("right", one.right), ("other", one.other)]
    titles = names(one)
    figures = []
    for (side, picture), title in zip(sides, titles, strict=True):
        if picture is None:
            continue
        numbers = {pair[side]: number for number, pair in enumerate(pairs, start=1)}
        caption = f"{title}: {picture_line(picture)}"
        image = drawing(picture, colour_of, numbers, drawn.get(picture.image), caption)
        quote = _captions(one, picture)
        below = f"<b>{escape(title)}</b> {escape(picture_line(picture))}{quote}"
        figures.append(f"<figure>{image}<figcaption>{below}</figcaption></figure>")
    key = "Boxes with the same number are matched; dashed boxes have no match. One colour per concept."
    note = f'<p class="key">{key}</p>' if any(thing.box for p in _pictures([one]) for thing in p.things) else ""
    return f'<div class="pair">{"".join(figures)}</div>{note}'


def _captions(one: Explanation, picture: Picture) -> str:
    said = one.spoken if one.direction == "i2t" and picture is one.other else None
    text = said or next((caption for caption in picture.captions if caption != one.text), None)
    return f'<q dir="auto">{escape(text)}</q>' if text else ""


def _lists(one: Explanation) -> str:
    if not one.comparison:
        return ""
    titles = names(one)
    rows = (
        ("In both", "common"),
        (f"Only in {titles[0]} (missing)", "missing"),
        (f"Only in {titles[1]} (extra)", "extra"),
    )
    items = "".join(
        f"<div><dt>{escape(label)}</dt><dd>{escape(concepts(one, one.comparison[key]))}</dd></div>"
        for label, key in rows
    )
    return f"<dl>{items}</dl>"


def _word_table(one: Explanation) -> str:
    return _table(words_title(one), word_grid(one), shown=True) if one.words else ""


def _pairs(one: Explanation) -> str:
    lines = "".join(f"<li>{escape(line)}</li>" for line in pair_lines(one))
    return (
        f"<details open><summary>Concepts matched across the difference</summary><ul>{lines}</ul></details>"
        if lines
        else ""
    )


def _table(title: str, grid: Grid, *, shown: bool) -> str:
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in grid.header)
    rows = "\n".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in grid.rows)
    table = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>"
    return f"<details{' open' if shown else ''}><summary>{escape(title)}</summary>\n{table}</details>"


_STYLE = """
body { margin: 0 auto; max-width: 1000px; padding: 16px; background: #fff; color: #222;
       font: 14px/1.5 Helvetica, Arial, "Liberation Sans", "DejaVu Sans", sans-serif; }
nav a { margin-right: 12px; display: inline-block; }
h1 { font-size: 22px; } h2 { margin: 28px 0 4px; font-size: 18px; } h2 small { color: #555; font-weight: normal; }
article { border-top: 1px solid #ccc; }
article:first-of-type { border-top: 0; }
.query { font-size: 17px; margin: 6px 0; }
.summary { border-left: 4px solid #1a4fa0; padding: 2px 12px; margin: 10px 0; background: #f4f7fb; }
.summary p { margin: 6px 0; font-size: 15px; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(280px, 1fr)); gap: 16px; align-items: start; }
figure { margin: 0; } figcaption { margin-top: 4px; } figcaption q { display: block; color: #555; font-style: italic; }
svg { width: 100%; max-height: 70vh; display: block; }
svg .frame { fill: #f1f1f1; stroke: #bbb; }
svg .box { fill: none; stroke-width: 2.5; vector-effect: non-scaling-stroke; }
svg text { fill: #fff; font-family: Helvetica, Arial, "Liberation Sans", "DejaVu Sans", sans-serif; }
svg text.empty { fill: #666; text-anchor: middle; }
.key, .note { color: #555; }
mark { padding: 0 2px; border-radius: 2px; }
mark.satisfied { background: #dff3e2; color: #0d4d1e; }
mark.violated { background: #fbe3e0; color: #8f1d14; text-decoration: underline; }
mark.open { background: #eee; color: #444; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(220px, 1fr)); gap: 8px 16px; margin: 12px 0; }
dl div { min-width: 0; } dt { font-weight: bold; } dd { margin: 0; overflow-wrap: anywhere; }
details { margin: 8px 0; overflow-x: auto; } summary { cursor: pointer; font-weight: bold; }
table { border-collapse: collapse; margin-top: 4px; }
th, td { padding: 3px 16px 3px 0; text-align: left; vertical-align: top; border-bottom: 1px solid #e3e3e3; }
ul { margin: 4px 0; padding-left: 20px; } li { overflow-wrap: anywhere; }
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
<main>
<h1>{title}</h1>
{nav}
{parts}
</main>
</body>
</html>
"""
