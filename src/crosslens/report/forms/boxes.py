"""Pictures with boxes around what is in them, and names that do not cover each other."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from crosslens.core import PictureBox, PictureCard
from crosslens.report.forms.pictures import EmbeddedImage

PALETTE = (
    "#0b6e99", "#b3541e", "#2e7d32", "#8e24aa", "#c2185b", "#5d4037", "#00796b", "#1a4fa0", "#8a5a00", "#455a64",
    "#ad1457", "#33691e",
)  # fmt: skip
"""Dark enough for white letters on them."""
_MOST_LABELS = 14
_LETTER = 0.56  # of a letter's height: how wide it is
_MOST_STEPS = 4
"""How many label heights a label may be away from the edge of its box."""


def draw_boxes(card: PictureCard, drawn: EmbeddedImage | None, *, content: str = "") -> str:
    """The picture with its boxes; without a picture, boxes in a frame of its proportions.

    ``content`` is markup that shows the picture below boxes, for a page that has it elsewhere. Boxes without a number
    are dashed.
    """
    places = [box.place for box in card.boxes]
    ends = (max(1.0, *(x + wide for x, _, wide, _ in places)), max(1.0, *(y + high for _, y, _, high in places)))
    width, height = card.size or ((drawn.width, drawn.height) if drawn else ends)
    size = f'width="{width:g}" height="{height:g}"'
    image = f'<image href="{escape(drawn.address)}" {size} preserveAspectRatio="none"/>' if drawn else content
    background = image or f'<rect class="frame" {size} fill="currentColor" fill-opacity="0.07"/>'
    order = sorted(card.boxes, key=lambda box: -box.place[2] * box.place[3])
    first = {box.name: box for box in reversed(card.boxes)}
    labelled = [box for box in order if len(order) <= _MOST_LABELS or first[box.name] is box]
    texts = [box.name if box.number is None else f"{box.number} {box.name}" for box in labelled]
    labels = label_positions(texts, [box.place for box in labelled], (width, height))
    parts = []
    for box in order:
        x, y, wide, high = box.place
        dash = "" if box.number is not None else ' stroke-dasharray="5 4"'
        line = f'fill="none" stroke="{_colour(box)}" stroke-width="2.5" vector-effect="non-scaling-stroke"{dash}'
        rectangle = f'<rect class="box" x="{x:g}" y="{y:g}" width="{wide:g}" height="{high:g}" {line}/>'
        parts.append(f"<g><title>{escape(box.about)}</title>{rectangle}</g>")
    parts += [  # above all boxes
        _label(position, text, _colour(box))
        for position, text, box in zip(labels, texts, labelled, strict=True)
        if position is not None
    ]
    frame = f'viewBox="0 0 {width:g} {height:g}" preserveAspectRatio="xMinYMin"'
    role = f'role="img" aria-label="{escape(card.title)}"'
    return "\n".join([f"<svg {frame} {role}>", background, *parts, "</svg>"])


def _colour(box: PictureBox) -> str:
    return "#444444" if box.colour is None else PALETTE[box.colour % len(PALETTE)]


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
        f'<text x="{x + letter * 0.25:.1f}" y="{y + letter * 0.95:.1f}" font-size="{letter:.1f}" fill="#fff" '
        f'font-family="system-ui, Arial, sans-serif">{escape(text)}</text>'
    )
