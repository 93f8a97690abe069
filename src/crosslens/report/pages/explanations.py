"""A page of explained queries: both pictures with their boxes, and every fact under them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from crosslens.explanations import OPEN, SATISFIED, VIOLATED, AnnotatedImage, Explanation
from crosslens.report.html import folded, folded_table, html_page, links
from crosslens.report.pages.box_drawing import EmbeddedImage, concept_colours, draw_boxes, embed_image
from crosslens.report.text.explanations import (
    DIRECTION_NAMES,
    concept_list,
    explanation_grids,
    pair_lines,
    picture_line,
    picture_names,
    word_grid,
    words_title,
)

_MARKS = {SATISFIED: "✓", VIOLATED: "✗", OPEN: "?"}
_MAX_LINKS = 50


def explanation_page(explanations: Sequence[Explanation], title: str, files: Mapping[str, str] | None = None) -> str:
    """All of them on explained page; ``files`` are the paths of pictures by image id."""
    files = files or {}
    drawn = {image: embed_image(files.get(image)) for image in {picture.image for picture in _pictures(explanations)}}
    targets = [(f"q{number}", explained.query) for number, explained in enumerate(explanations)]
    articles = [
        _article(target, explained, drawn) for (target, _), explained in zip(targets, explanations, strict=True)
    ]
    navigation = [links(targets[:_MAX_LINKS], "Queries")] if len(targets) > 1 else []
    return html_page(title, "\n".join([*navigation, *articles]), style=_STYLE)


def _pictures(explanations: Sequence[Explanation]) -> list[AnnotatedImage]:
    both = (picture for explained in explanations for picture in (explained.right, explained.other))
    return [picture for picture in both if picture is not None]


def _article(target: str, explained: Explanation, drawn: Mapping[str, EmbeddedImage | None]) -> str:
    summary = "\n".join(f"<p>{escape(sentence.text)}</p>" for sentence in explained.sentences)
    marked = _marked_text(explained)
    query_text = (
        marked if explained.text is not None else f"An image is the query, and {_caption_source(explained)}: “{marked}”"
    )
    direction = escape(DIRECTION_NAMES.get(explained.direction, explained.direction))
    parts = [
        f'<article id="{target}">',
        f"<h2>{escape(explained.query)} <small>{direction}</small></h2>",
        f'<p class="query" dir="auto">{query_text}</p>{_key_of_marks(explained)}',
        f'<div class="summary">{summary}</div>',
        _figures(explained, drawn),
        _lists(explained),
        folded_table(words_title(explained), word_grid(explained).header, word_grid(explained).rows, shown=True)
        if explained.words
        else "",
        _pairs(explained),
        *(folded_table(title, grid.header, grid.rows) for title, grid in explanation_grids(explained)),
        "".join(f'<p class="note">{escape(note)}</p>' for note in explained.notes),
        "</article>",
    ]
    return "\n".join(part for part in parts if part)


def _marked_text(explained: Explanation) -> str:
    """The words, each marked by whether the checked picture has it: a sign and a colour, never a colour alone."""
    text = explained.spoken or explained.text or ""
    checked = [verdict.right if explained.direction == "i2t" else verdict.other for verdict in explained.words]
    spans = sorted(
        {
            (check.word.start, check.word.end, check.verdict, check.why)
            for check in checked
            if check.word.kind != "relation"
        },
        key=lambda span: (span[0], -span[1]),
    )
    marked, position = "", 0
    for start, end, verdict, why in spans:
        if start < position or end <= start:
            continue
        marked += escape(text[position:start])
        mark = f"<sup aria-hidden='true'>{_MARKS[verdict]}</sup><span class='unseen'> ({verdict})</span>"
        marked += f'<mark class="{verdict}" title="{escape(why)}">{escape(text[start:end])}{mark}</mark>'
        position = end
    return marked + escape(text[position:])


def _caption_source(explained: Explanation) -> str:
    return "the first caption of another picture says" if explained.succeeded else "the first caption says"


def _key_of_marks(explained: Explanation) -> str:
    if not explained.words:
        return ""
    checked = "the query picture" if explained.direction == "i2t" else f"the {picture_names(explained)[1]} picture"
    return f'<p class="key">✓ {checked} has it, ✗ it does not, ? unknown.</p>'


def _figures(explained: Explanation, drawn: Mapping[str, EmbeddedImage | None]) -> str:
    order = [
        *explained.comparison.get("common", ()),
        *explained.comparison.get("missing", ()),
        *explained.comparison.get("extra", ()),
    ]
    own = [obj.synset for obj in explained.right.objects if obj.synset is not None] if not order else []
    colour_of = concept_colours(list(dict.fromkeys([*order, *own])))
    pairs = explained.boxes
    sides = [("right", explained.right), ("other", explained.other)]
    titles = picture_names(explained)
    figures = []
    for (side, picture), title in zip(sides, titles, strict=True):
        if picture is None:
            continue
        numbers = {pair[side]: number for number, pair in enumerate(pairs, start=1)}
        caption = f"{title}: {picture_line(picture)}"
        image = draw_boxes(picture, colour_of, numbers, drawn.get(picture.image), caption)
        quote = _captions(explained, picture)
        below = f"<b>{escape(title)}</b> {escape(picture_line(picture))}{quote}"
        figures.append(f"<figure>{image}<figcaption>{below}</figcaption></figure>")
    key = "Boxes with the same number are matched; dashed boxes have no match. One colour per concept."
    note = f'<p class="key">{key}</p>' if any(obj.box for p in _pictures([explained]) for obj in p.objects) else ""
    return f'<div class="pair">{"".join(figures)}</div>{note}'


def _captions(explained: Explanation, picture: AnnotatedImage) -> str:
    spoken = explained.spoken if explained.direction == "i2t" and picture is explained.other else None
    text = spoken or next((caption for caption in picture.captions if caption != explained.text), None)
    return f'<q dir="auto">{escape(text)}</q>' if text else ""


def _lists(explained: Explanation) -> str:
    if not explained.comparison:
        return ""
    titles = picture_names(explained)
    rows = (
        ("In both", "common"),
        (f"Only in {titles[0]} (missing)", "missing"),
        (f"Only in {titles[1]} (extra)", "extra"),
    )
    items = "".join(
        f"<div><dt>{escape(label)}</dt><dd>{escape(concept_list(explained, explained.comparison[key]))}</dd></div>"
        for label, key in rows
    )
    return f"<dl>{items}</dl>"


def _pairs(explained: Explanation) -> str:
    lines = "".join(f"<li>{escape(line)}</li>" for line in pair_lines(explained))
    return folded("Concepts matched across the difference", f"<ul>{lines}</ul>", shown=True) if lines else ""


_STYLE = """
body { max-width: 1000px; }
h2 { font-size: 18px; } h2 small { color: #555; font-weight: normal; }
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
details { margin: 8px 0; overflow-x: auto; } summary { font-weight: bold; }
table { margin-top: 4px; }
ul { margin: 4px 0; padding-left: 20px; } li { overflow-wrap: anywhere; }
"""
