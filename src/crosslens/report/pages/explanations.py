"""A page of explained queries: both pictures with the boxes of their objects, and every fact under them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import cycle
from typing import NamedTuple

from crosslens.explanations import OPEN, SATISFIED, VIOLATED, AnnotatedImage, Explanation, ImageObject
from crosslens.report.html import folded, folded_table, html_page, links
from crosslens.report.pages.pictures import EmbeddedImage, embed_image
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

PALETTE = (
    "#0b6e99", "#b3541e", "#2e7d32", "#8e24aa", "#c2185b", "#5d4037", "#00796b", "#1a4fa0", "#8a5a00", "#455a64",
    "#ad1457", "#33691e",
)  # fmt: skip
"""Dark enough for white letters on them."""
_PLAIN_SIZE = (400.0, 300.0)
_MOST_LABELS = 14
_LETTER = 0.56  # of a letter's height: how wide it is
_MOST_STEPS = 4
"""How many label heights a label may be away from the edge of its box."""


def draw_boxes(
    picture: AnnotatedImage,
    colour_of: Mapping[str, str],
    numbers: Mapping[int, int],
    drawn: EmbeddedImage | None,
    title: str,
    *,
    content: str | None = None,
) -> str:
    """The picture with a box around every object that has one; without a picture, boxes in a frame of its proportions.

    ``numbers`` maps an object's index to the number that it shares with its match; boxes without are dashed.
    ``content`` is markup that shows the picture below boxes, for a page that has it elsewhere. Nothing where there is
    neither a picture nor a box.
    """
    boxed = [(index, obj) for index, obj in enumerate(picture.objects) if obj.box is not None]
    if not boxed and drawn is None:
        return ""
    # Boxes are in the pixels that the dataset states; a photo alone has the shape of its file.
    width, height = (drawn.width, drawn.height) if drawn and not boxed else _size(picture, drawn)
    size = f'width="{width:g}" height="{height:g}"'
    image = f'<image href="{escape(drawn.address)}" {size} preserveAspectRatio="none"/>' if drawn else content
    shown = image or f'<rect class="frame" {size}/>'
    every = len(boxed) <= _MOST_LABELS
    order = sorted(boxed, key=lambda indexed: -(indexed[1].area or 0.0))
    first = {obj.name: index for index, obj in reversed(boxed)}
    parts = [_box(obj, _colour(obj, colour_of), numbers.get(index)) for index, obj in order]
    labelled = [(index, obj) for index, obj in order if every or first[obj.name] == index]
    texts = [f"{numbers[index]} {obj.name}" if index in numbers else obj.name for index, obj in labelled]
    labels = label_positions(texts, [obj.box for _, obj in labelled if obj.box is not None], (width, height))
    parts += [  # above all boxes
        _label(position, text, _colour(obj, colour_of))
        for position, text, (_, obj) in zip(labels, texts, labelled, strict=True)
        if position is not None
    ]
    about = f'viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(title)}"'
    return "\n".join([f"<svg {about}>", shown, *parts, "</svg>"])


def _size(picture: AnnotatedImage, drawn: EmbeddedImage | None) -> tuple[float, float]:
    """As the dataset has it, as the file has it, or large enough for every box."""
    if picture.width and picture.height:
        return picture.width, picture.height
    if drawn is not None:
        return drawn.width, drawn.height
    boxes = [obj.box for obj in picture.objects if obj.box is not None]
    if not boxes:
        return _PLAIN_SIZE
    return max(1.0, *(box[0] + box[2] for box in boxes)), max(1.0, *(box[1] + box[3] for box in boxes))


def _colour(obj: ImageObject, colour_of: Mapping[str, str]) -> str:
    return colour_of.get(obj.synset or "", "#444444")


def _box(obj: ImageObject, colour: str, number: int | None) -> str:
    assert obj.box is not None
    x, y, wide, high = obj.box
    dash = "" if number is not None else ' stroke-dasharray="5 4"'
    about = " ".join((*obj.attributes, obj.name)) + (" (a crowd)" if obj.crowd else "")
    whole = f"{about}, number {number}" if number is not None else about
    rectangle = f'<rect class="box" x="{x:g}" y="{y:g}" width="{wide:g}" height="{high:g}" stroke="{colour}"{dash}/>'
    return f"<g><title>{escape(whole)}</title>{rectangle}</g>"


class LabelPosition(NamedTuple):
    """Where a label is drawn: its upper left corner, how long it is, and the height of its letters."""

    x: float
    y: float
    long: float
    letter: float

    @property
    def high(self) -> float:
        """With room above and below the letters."""
        return self.letter * 1.25

    def overlaps(self, other: LabelPosition) -> bool:
        """Whether one of the two would hide a part of the other."""
        across = self.x < other.x + other.long and other.x < self.x + self.long
        return across and self.y < other.y + other.high and other.y < self.y + self.high


def label_positions(
    texts: Sequence[str], boxes: Sequence[tuple[float, float, float, float]], size: tuple[float, float]
) -> list[LabelPosition | None]:
    """Where labels go so that none covers another: at the upper edge of the box, else as near to it as there is room.

    None where there is no room above or below: the box then has its name only under the pointer.
    """
    taken: list[LabelPosition] = []
    positions: list[LabelPosition | None] = []
    for text, (x, y, wide, _) in zip(texts, boxes, strict=True):
        letter = max(size) / 30
        long = letter * _LETTER * len(text) + letter * 0.5
        high = letter * 1.25
        lefts = [max(0.0, min(left, size[0] - long)) for left in (x, x + wide - long)]
        steps = sorted(range(-_MOST_STEPS, _MOST_STEPS + 1), key=lambda step: (abs(step), step < 0))
        tops = [max(0.0, min(y + (step - 1) * high, size[1] - high)) for step in steps]
        candidates = (LabelPosition(left, top, long, letter) for top in tops for left in lefts)
        free = next((position for position in candidates if not any(map(position.overlaps, taken))), None)
        taken += [] if free is None else [free]
        positions.append(free)
    return positions


def _label(position: LabelPosition, text: str, colour: str) -> str:
    x, y, long, letter = position
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{long:.1f}" height="{position.high:.1f}" fill="{colour}"/>'
        f'<text x="{x + letter * 0.25:.1f}" y="{y + letter * 0.95:.1f}" font-size="{letter:.1f}">{escape(text)}</text>'
    )


_MARKS = {SATISFIED: "✓", VIOLATED: "✗", OPEN: "?"}
_MAX_LINKS = 50


def explanation_page(explanations: Sequence[Explanation], title: str, files: Mapping[str, str] | None = None) -> str:
    """All of them on explained page; ``files`` are the paths of pictures by image id."""
    files = files or {}
    drawn = {image: embed_image(files.get(image)) for image in {picture.image for picture in _pictures(explanations)}}
    targets = [(f"q{number}", explained.query) for number, explained in enumerate(explanations)]
    articles = [
        explanation_article(explained, drawn, target)
        for (target, _), explained in zip(targets, explanations, strict=True)
    ]
    navigation = [links(targets[:_MAX_LINKS], "Queries")] if len(targets) > 1 else []
    return html_page(title, "\n".join([*navigation, *articles]), style=_STYLE)


def _pictures(explanations: Sequence[Explanation]) -> list[AnnotatedImage]:
    both = (picture for explained in explanations for picture in (explained.right, explained.other))
    return [picture for picture in both if picture is not None]


def explanation_article(
    explained: Explanation, drawn: Mapping[str, EmbeddedImage | None], target: str = "explanation"
) -> str:
    """One explanation as a part of a page; ``drawn`` are the pictures by image id, ``target`` is its id on the page."""
    summary = "\n".join(f"<p>{escape(sentence.text)}</p>" for sentence in explained.sentences)
    marked = marked_text(explained)
    source = "the first caption of another picture says" if explained.succeeded else "the first caption says"
    query_text = marked if explained.text is not None else f"An image is the query, and {source}: “{marked}”"
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


def marked_text(explained: Explanation) -> str:
    """The words, each marked by whether the checked picture has it: a sign and a colour, never a colour alone."""
    text = explained.spoken or explained.text or ""
    checked = [verdict.right if explained.direction == "i2t" else verdict.other for verdict in explained.words]
    words = [check for check in checked if check.word.kind != "relation"]
    spans = {(check.word.start, check.word.end, check.verdict, check.why) for check in words}
    marked, position = "", 0
    for start, end, verdict, why in sorted(spans, key=lambda span: (span[0], -span[1])):
        if start < position or end <= start:
            continue
        marked += escape(text[position:start])
        mark = f"<sup aria-hidden='true'>{_MARKS[verdict]}</sup><span class='unseen'> ({verdict})</span>"
        marked += f'<mark class="{verdict}" title="{escape(why)}">{escape(text[start:end])}{mark}</mark>'
        position = end
    return marked + escape(text[position:])


def _key_of_marks(explained: Explanation) -> str:
    if not explained.words:
        return ""
    checked = "the query picture" if explained.direction == "i2t" else f"the {picture_names(explained)[1]} picture"
    return f'<p class="key">✓ {checked} has it, ✗ it does not, ? unknown.</p>'


def concept_colours(explained: Explanation) -> dict[str, str]:
    """A colour per concept, the same in both pictures."""
    order = [synset for key in ("common", "missing", "extra") for synset in explained.comparison.get(key, ())]
    own = [obj.synset for obj in explained.right.objects if obj.synset is not None] if not order else []
    return dict(zip(dict.fromkeys([*order, *own]), cycle(PALETTE), strict=False))


def _figures(explained: Explanation, drawn: Mapping[str, EmbeddedImage | None]) -> str:
    colour_of = concept_colours(explained)
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
