"""How an explained query is shown: what went wrong, both pictures with their boxes, then every fact behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from crosslens.core import (
    Cards,
    Cell,
    FactList,
    Figure,
    MarkedText,
    Part,
    PictureBox,
    PictureCard,
    Presented,
    Section,
    Table,
    Text,
)
from crosslens.explanations.words.checks import OPEN, SATISFIED, VIOLATED

if TYPE_CHECKING:
    from crosslens.explanations.local.explanation import Explanation
    from crosslens.explanations.words.images import AnnotatedImage, ImageObject

DIRECTION_NAMES = {"t2i": "text → image", "t2t": "text → image by its captions", "i2t": "image → text"}
_MARKS: Mapping[str, Literal["yes", "no", "unknown"]] = {SATISFIED: "yes", VIOLATED: "no", OPEN: "unknown"}
_LONGEST_CELL = 27


@dataclass(frozen=True, eq=False)
class ExplainedQueries(Presented):
    """Several queries of one run, explained below each other; ``pictures`` are files of images."""

    run: str
    dataset: str
    explanations: tuple[Explanation, ...]
    pictures: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The heading of a page."""
        return f"Why: {self.run} on {self.dataset}"

    def sections(self, **options: Any) -> Iterator[Section]:
        """Query by query."""
        for explained in self.explanations:
            yield from explanation_sections(explained, self.pictures)

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {"explanations": [explained.as_dict() for explained in self.explanations]}


def explanation_sections(explained: Explanation, pictures: Mapping[str, str]) -> Iterator[Section]:
    """One query in full."""
    asked = f"{explained.query} ({DIRECTION_NAMES.get(explained.direction, explained.direction)})"
    by_image = explained.direction == "i2t"
    parts: list[Part] = [] if by_image else [marked_words(explained, asked)]
    parts += [Text.of(explained.summary), picture_cards(explained, pictures)]
    if by_image and explained.spoken is not None:
        parts.append(marked_words(explained, "The caption", f"({explained.other_item})"))
    if explained.words:
        parts.append(_word_table(explained))
    if explained.comparison:
        kinds = ("common", "missing", "extra")
        rows = ((kind, _concept_list(explained, explained.comparison.get(kind, ()))) for kind in kinds)
        parts.append(FactList(tuple(rows), "Concepts"))
    if pairs := tuple(_pair_rows(explained)):
        parts.append(FactList(pairs, "Concepts matched across the difference"))
    parts += [table for table in _tables(explained) if table.rows]
    parts.append(Text.of(*(f"Note: {note}" for note in explained.notes), note=True))
    yield Section(f"{asked}: an image query for its captions" if by_image else "", tuple(parts), explained.query)


def picture_names(explained: Explanation) -> tuple[str, str]:
    """What the two pictures are called."""
    if explained.direction == "i2t":
        return "query picture", f"{'next' if explained.succeeded else 'retrieved'} caption’s picture"
    return "right", "next" if explained.succeeded else "retrieved"


def marked_words(explained: Explanation, title: str = "", after: str = "") -> MarkedText:
    """The words of the query, or of the caption, each marked by whether the checked picture has it."""
    text = explained.spoken or explained.query_text or ""
    by_image = explained.direction == "i2t"
    checks = (verdict.right if by_image else verdict.other for verdict in explained.words)
    places = {
        (check.word.start, check.word.end, _MARKS[check.verdict], check.why)
        for check in checks
        if check.word.kind != "relation"
    }
    spans: list[tuple[str, Literal["", "yes", "no", "unknown"], str]] = []
    done = 0
    for start, end, mark, why in sorted(places, key=lambda place: (place[0], -place[1])):
        if done <= start < end:
            spans += [(text[done:start], "", ""), (text[start:end], mark, why)]
            done = end
    spans = [span for span in (*spans, (text[done:], "", "")) if span[0]]
    checked = "the query picture" if by_image else f"the {picture_names(explained)[1]} picture"
    key = f"✓ {checked} has it, ✗ it does not, ? unknown." if explained.words else ""
    return MarkedText(title, tuple(spans), after, key)


def picture_cards(explained: Explanation, pictures: Mapping[str, str]) -> Cards:
    """Both pictures with the boxes of their objects; a concept has one colour, matched boxes have one number."""
    concepts = [synset for kind in ("common", "missing", "extra") for synset in explained.comparison.get(kind, ())]
    own = [obj.synset for obj in explained.right.objects if obj.synset is not None]
    colours = {synset: number for number, synset in enumerate(dict.fromkeys(concepts or own))}
    cards = []
    pairs = explained.boxes
    sides = zip(("right", "other"), (explained.right, explained.other), picture_names(explained), strict=True)
    for side, picture, title in sides:
        if picture is not None:
            numbers = {pair[side]: number for number, pair in enumerate(pairs, start=1)}
            cards.append(_picture_card(explained, picture, title, numbers, colours))
    key = "Boxes with the same number are matched; dashed boxes have no match. One colour per concept."
    boxed = any(card.boxes for card in cards)
    return Cards("Pictures", tuple(cards), pictures, large=True, key=key if boxed else "")


def _picture_card(
    explained: Explanation, picture: AnnotatedImage, title: str, numbers: Mapping[int, int], colours: Mapping[str, int]
) -> PictureCard:
    counts: dict[str, int] = {}
    for obj in picture.objects:
        counts[obj.name] = counts.get(obj.name, 0) + 1
    what = ", ".join(f"{number} × {name}" if number > 1 else name for name, number in counts.items())
    other = next((caption for caption in picture.captions if caption != explained.query_text), None)
    spoken = explained.spoken if explained.direction == "i2t" and picture is explained.other else None
    size = (picture.width, picture.height) if picture.width and picture.height else None
    boxes = tuple(
        PictureBox(
            obj.box, obj.name, _about(obj, numbers.get(index)), numbers.get(index), colours.get(obj.synset or "")
        )
        for index, obj in enumerate(picture.objects)
        if obj.box is not None
    )
    quote = tuple(f"“{caption}”" for caption in (spoken or other,) if caption)
    heading = f"{title}: {picture.image} ({what or 'no objects'})"
    return PictureCard(heading, image=picture.image, details=quote, boxes=boxes, size=size)


def _about(obj: ImageObject, number: int | None) -> str:
    about = " ".join((*obj.attributes, obj.name)) + (" (a crowd)" if obj.crowd else "")
    return about if number is None else f"{about}, number {number}"


def _word_table(explained: Explanation) -> Table:
    """Each word, what it asks for, and whether either picture has it."""
    rows = []
    by_image = explained.direction == "i2t"
    for verdict in explained.words:
        word = verdict.right.word
        about = "" if word.kind == "object" else f" of {word.noun}"
        content = f"{word.kind}{about}" if word.kind != "relation" else f"{word.noun} {word.value} {word.other}"
        why = verdict.right.why if by_image else verdict.other.why
        signs = (_MARKS[side.verdict].replace("unknown", "?") for side in (verdict.right, verdict.other))
        rows.append((_short(word.text, 14), _short(content, 20), *signs, _short(why, _LONGEST_CELL)))
    title = "Words of the caption" if by_image else "Words of the query"
    return Table(("word", "asks", *_short_names(explained), "why"), tuple(rows), "lllll", title=title)


def _short_names(explained: Explanation) -> tuple[str, str]:
    return ("query", "other") if explained.direction == "i2t" else picture_names(explained)


def _concept_list(explained: Explanation, synsets: Sequence[str]) -> str:
    """Synsets with what they are called here."""
    return ", ".join(f"{explained.called(synset)} ({synset})" for synset in synsets) or "–"


def _pair_rows(explained: Explanation) -> Iterator[tuple[str, str]]:
    """Each matched pair with its similarity and its way through WordNet, the common hypernym in brackets."""
    for pair in explained.paths:
        steps = (f"[{step}]" if step == pair["common_hypernym"] else step for step in pair["path"])
        names = f"{explained.called(pair['missing'])} – {explained.called(pair['extra'])}"
        yield names, f"{pair['similarity']:.4f}, {' → '.join(steps) or 'no path'}"


def _tables(explained: Explanation) -> Iterator[Table]:
    """The tables of numbers; some have no rows."""
    both, compared = _short_names(explained), explained.comparison

    def table(title: str, header: tuple[str, ...], rows: Iterator[tuple[Cell, ...]], align: str) -> Table:
        return Table(header, tuple(rows), align, title=title, aside=True)

    yield table(
        "How many", ("concept", *both),
        ((explained.called(name), mine, other) for name, (mine, other) in compared.get("counts", {}).items()), "lrr",
    )  # fmt: skip
    yield table(
        "Boxes, matched by area", ("no.", "concept", *both, "ratio", "difference"),
        ((number, explained.called(pair["synset"]), _share(pair["area_right"]), _share(pair["area_other"]),
          Figure(pair["ratio"]), Figure(pair["difference"]))
         for number, pair in enumerate(explained.boxes, start=1)), "rlrrrr",
    )  # fmt: skip
    yield table(
        "Attributes of matched objects", ("concept", "family", *both, "agreement"),
        ((explained.called(row["synset"]), row["family"], ", ".join(row["values"][0]), ", ".join(row["values"][1]),
          Figure(row["agreement"]))
         for row in compared.get("attributes", ())), "llllr",
    )  # fmt: skip
    yield table(
        "Spatial relations", ("first to second", *both, "agreement"),
        ((_short(", ".join(map(explained.called, row["synsets"][:2])), 24), _positions(row["ground_truth"]),
          _positions(row["retrieved"]), Figure(row["agreement"]))
         for row in compared.get("relations", ())), "lllr",
    )  # fmt: skip
    captions = ("caption",) if explained.direction == "i2t" else ()
    yield table("The list", ("rank", "item", "score", "", *captions), _places(explained), "rlrl" + "l" * len(captions))
    metrics = explained.as_dict()["metrics"] if compared else ()
    yield table(
        "Metrics", ("metric", "all concepts", "mentioned"),
        ((name, _value(compared[name]), _value(explained.informed.get(name))) for name in metrics), "lrr",
    )  # fmt: skip


def _places(explained: Explanation) -> Iterator[tuple[Cell, ...]]:
    """The first places, and the right one where it comes later."""
    captions = explained.direction == "i2t"
    for at in explained.competitors:
        caption = (_short(at.text or "", 32),) if captions else ()
        yield (f"{at.rank}", at.item, Figure(at.score, digits=4), "right" if at.right else "", *caption)
    if explained.competitors and explained.rank is not None and not any(at.right for at in explained.competitors):
        item = "its best caption" if captions else explained.right.image
        score = Figure(explained.truth_score, digits=4)
        yield (f"{explained.rank}", item, score, "right", *(("",) if captions else ()))


def _share(area: float) -> str:
    return f"{100 * area:.1f}%" if area <= 1 else f"{area:,.0f} px"


def _positions(shares: dict[str, float]) -> str:
    largest = sorted(shares.items(), key=lambda entry: -entry[1])
    return _short(", ".join(name if share == 1 else f"{name} {share:.0%}" for name, share in largest), 20)


def _value(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
