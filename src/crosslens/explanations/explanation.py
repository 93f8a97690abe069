"""One query in full: what it mentions, what it retrieved, and how the two images differ, object by object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

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
from crosslens.explanations.concepts import METRICS
from crosslens.explanations.failures import DIRECTION_NAMES
from crosslens.explanations.lexicon import shortest_path, synset_word
from crosslens.explanations.mentions import OPEN, SATISFIED, VIOLATED, MentionCheck
from crosslens.explanations.objects import AnnotatedImage
from crosslens.storage import json_form

FORMAT = "crosslens/explanation"
VERSION = 1


class Claim(NamedTuple):
    """Something that a sentence states: of what (``right``, ``other``, ``words``, ``ranking``), what, and how much."""

    about: str
    kind: str
    name: str = ""
    value: Any = None


@dataclass(frozen=True)
class Sentence:
    """A sentence with all that it claims."""

    text: str
    claims: tuple[Claim, ...] = ()


class Competitor(NamedTuple):
    """One item of the top k; ``image`` is the item itself, or the image of a caption."""

    rank: int
    item: str
    image: str
    score: float | None
    right: bool
    text: str | None = None


class MentionComparison(NamedTuple):
    """One mention of the query (or of the caption that an image retrieved), checked against both images."""

    right: MentionCheck
    other: MentionCheck


@dataclass(frozen=True, eq=False)
class Explanation(Presented):
    """Everything about one query.

    ``right`` is the image that is relevant to the query (an image query is its own), ``other`` the top-1 image; of a
    query that succeeded, the first one that is not relevant, ``None`` where the top k has none. ``words`` are the
    mentions of the query, or of the other caption for an image query, ``spoken`` the text that contains them.
    ``gallery`` is how many items were ranked; None where a ready-made list tells only its own length.
    ``comparison`` has the keys of :func:`crosslens.concept_metrics`, ``informed`` those of its metrics over what the
    query mentions only.
    """

    run: str
    dataset: str
    direction: str
    source: str
    query: str
    query_text: str | None
    succeeded: bool
    rank: int | None
    gallery: int | None
    score: float | None
    truth_score: float | None
    margin: float | None
    margin_at_least: float | None
    right: AnnotatedImage
    other: AnnotatedImage | None
    other_item: str | None
    spoken: str | None
    competitors: tuple[Competitor, ...]
    words: tuple[MentionComparison, ...]
    comparison: Mapping[str, Any] = field(default_factory=dict)
    informed: Mapping[str, Any] = field(default_factory=dict)
    sentences: tuple[Sentence, ...] = ()
    notes: tuple[str, ...] = ()
    pictures: Mapping[str, str] = field(default_factory=dict)
    """The files of both images, where they are known."""

    @property
    def summary(self) -> str:
        """What went wrong, in a sentence or two."""
        return " ".join(sentence.text for sentence in self.sentences)

    @property
    def title(self) -> str:
        return f"Why: {self.query}, {self.run} on {self.dataset}"

    def sections(self) -> Iterator[Section]:
        return explanation_sections(self, self.pictures)

    def __repr__(self) -> str:
        return f"<Explanation of {self.query} ({self.direction}): {self.summary}>"

    @property
    def paths(self) -> list[dict[str, Any]]:
        """Every matched pair of concepts that only one image has, with the shortest path between them in WordNet."""
        names = ("missing", "extra", "similarity", "path", "common_hypernym")
        pairs = self.comparison.get("concept_pairs", ())
        return [dict(zip(names, (*pair, *shortest_path(*pair[:2])), strict=True)) for pair in pairs]

    @property
    def boxes(self) -> list[dict[str, Any]]:
        """Every matched pair of boxes: the objects' numbers in both images, areas, their ratio and difference."""
        names = ("synset", "right", "other", "area_right", "area_other", "ratio", "difference")
        return [
            dict(zip(names, (*pair[:5], pair[4] / pair[3], pair[5]), strict=True))
            for pair in self.comparison.get("box_pairs", ())
        ]

    def called(self, synset: str) -> str:
        """The name of a concept in these images."""
        objects = (*self.right.objects, *(self.other.objects if self.other is not None else ()))
        return next((item.name for item in objects if item.synset == synset), synset_word(synset))

    def as_dict(self) -> dict[str, Any]:
        """For JSON: every number and pair."""
        compared = self.comparison
        lists = {name: compared.get(name, []) for name in ("common", "missing", "extra", "attributes", "relations")}
        counts = {name: {"right": right, "other": other} for name, (right, other) in compared.get("counts", {}).items()}
        plain = (
            *("run", "dataset", "direction", "source", "query", "text", "succeeded", "rank", "gallery", "score"),
            *("truth_score", "margin", "margin_at_least", "other_item", "spoken"),
        )
        places = ("place", *Competitor._fields[1:])
        return json_form(
            {
                "format": FORMAT,
                "version": VERSION,
                **{name: getattr(self, "query_text" if name == "text" else name) for name in plain},
                "sentences": [
                    {"text": sentence.text, "claims": [claim._asdict() for claim in sentence.claims]}
                    for sentence in self.sentences
                ],
                "right": self.right,
                "other": self.other,
                "words": [{**right.word.as_dict(), "right": right, "other": other} for right, other in self.words],
                "metrics": {name: compared.get(name) for name in METRICS},
                "query_informed": {name: self.informed.get(name) for name in METRICS},
                **lists,
                "counts": counts,
                "concept_pairs": self.paths,
                "box_pairs": self.boxes,
                "competitors": [dict(zip(places, item, strict=True)) for item in self.competitors],
                "notes": self.notes,
            }
        )


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
        return f"Why: {self.run} on {self.dataset}"

    def sections(self) -> Iterator[Section]:
        for explained in self.explanations:
            yield from explanation_sections(explained, self.pictures)

    def as_dict(self) -> dict[str, Any]:
        return json_form({"explanations": self.explanations})


def explanation_sections(explained: Explanation, pictures: Mapping[str, str]) -> Iterator[Section]:
    """One query in full."""
    heading = f"{explained.query} ({DIRECTION_NAMES.get(explained.direction, explained.direction)})"
    by_image = explained.direction == "i2t"
    parts: list[Part] = [] if by_image else [marked_words(explained, heading)]
    parts += [Text.of(explained.summary), picture_cards(explained, pictures)]
    if by_image and explained.spoken is not None:
        parts.append(marked_words(explained, "The caption", f"({explained.other_item})"))
    if explained.words:  # each word, what it asks for, and whether either picture has it
        verdicts: list[tuple[Cell, ...]] = []
        for right, other in explained.words:
            word = right.word
            content = word.kind if word.kind == "object" else f"{word.kind} of {word.noun}"
            if word.kind == "relation":
                content = f"{word.noun} {word.value} {word.other}"
            signs = (_MARKS[side.verdict].replace("unknown", "?") for side in (right, other))
            why = _short(right.why if by_image else other.why, _LONGEST_CELL)
            verdicts.append((_short(word.text, 14), _short(content, 20), *signs, why))
        title = "Words of the caption" if by_image else "Words of the query"
        parts.append(Table(("word", "asks", *_short_names(explained), "why"), verdicts, title=title))
    if explained.comparison:
        rows = []
        for kind in ("common", "missing", "extra"):
            names = (f"{explained.called(synset)} ({synset})" for synset in explained.comparison.get(kind, ()))
            rows.append((kind, ", ".join(names) or "–"))
        parts.append(FactList(tuple(rows), "Concepts"))
    pairs = []
    for pair in explained.paths:  # the common hypernym in brackets
        steps = (f"[{step}]" if step == pair["common_hypernym"] else step for step in pair["path"])
        ends = f"{explained.called(pair['missing'])} – {explained.called(pair['extra'])}"
        pairs.append((ends, f"{pair['similarity']:.4f}, {' → '.join(steps) or 'no path'}"))
    if pairs:
        parts.append(FactList(tuple(pairs), "Concepts matched across the difference"))
    parts += [table for table in _tables(explained) if table.rows]
    parts.append(Text.of(*(f"Note: {note}" for note in explained.notes), note=True))
    yield Section(f"{heading}: an image query for its captions" if by_image else "", tuple(parts), explained.query)


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
    annotated = [obj.synset for obj in explained.right.objects if obj.synset is not None]
    colours = {synset: number for number, synset in enumerate(dict.fromkeys(concepts or annotated))}
    cards = []
    sides = zip(("right", "other"), (explained.right, explained.other), picture_names(explained), strict=True)
    for side, picture, title in sides:
        if picture is None:
            continue
        numbers = {pair[side]: number for number, pair in enumerate(explained.boxes, start=1)}
        boxes = []
        for index, obj in enumerate(picture.objects):
            if obj.box is not None:
                number = numbers.get(index)
                label = " ".join((*obj.attributes, obj.name)) + (" (a crowd)" if obj.crowd else "")
                label += "" if number is None else f", number {number}"
                boxes.append(PictureBox(obj.box, obj.name, label, number, colours.get(obj.synset or "")))
        counts = Counter(obj.name for obj in picture.objects)
        content = ", ".join(f"{number} × {name}" if number > 1 else name for name, number in counts.items())
        spoken = explained.spoken if explained.direction == "i2t" and side == "other" else None
        first_caption = next((caption for caption in picture.captions if caption != explained.query_text), None)
        quote = tuple(f"“{caption}”" for caption in (spoken or first_caption,) if caption)
        size = (picture.width, picture.height) if picture.width and picture.height else None
        heading = f"{title}: {picture.image} ({content or 'no objects'})"
        cards.append(PictureCard(heading, image=picture.image, details=quote, boxes=tuple(boxes), size=size))
    key = "Boxes with the same number are matched; dashed boxes have no match. One colour per concept."
    boxed = any(card.boxes for card in cards)
    return Cards("Pictures", tuple(cards), pictures, large=True, key=key if boxed else "")


def _short_names(explained: Explanation) -> tuple[str, str]:
    return ("query", "other") if explained.direction == "i2t" else picture_names(explained)


def _tables(explained: Explanation) -> Iterator[Table]:
    """The tables of numbers; some have no rows."""
    names, compared, called = _short_names(explained), explained.comparison, explained.called
    by_image = explained.direction == "i2t"

    def area(value: float) -> str:
        return f"{100 * value:.1f}%" if value <= 1 else f"{value:,.0f} px"

    counts = [(called(name), mine, other) for name, (mine, other) in compared.get("counts", {}).items()]
    boxes = []
    for number, pair in enumerate(explained.boxes, start=1):
        areas = (area(pair["area_right"]), area(pair["area_other"]))
        boxes.append((number, called(pair["synset"]), *areas, Figure(pair["ratio"]), Figure(pair["difference"])))
    attributes = [
        (called(row["synset"]), row["family"], *map(", ".join, row["values"]), Figure(row["agreement"]))
        for row in compared.get("attributes", ())
    ]
    relations: list[tuple[Cell, ...]] = []
    for row in compared.get("relations", ()):
        concepts = _short(", ".join(map(called, row["synsets"][:2])), 24)
        positions = []
        for side in ("ground_truth", "retrieved"):
            shares = sorted(row[side].items(), key=lambda entry: -entry[1])
            words = (name if share == 1 else f"{name} {share:.0%}" for name, share in shares)
            positions.append(_short(", ".join(words), 20))
        relations.append((concepts, *positions, Figure(row["agreement"])))
    places = []
    for at in explained.competitors:
        caption = (_short(at.text or "", 32),) if by_image else ()
        places.append((f"{at.rank}", at.item, Figure(at.score, digits=4), "right" if at.right else "", *caption))
    if places and explained.rank is not None and not any(at.right for at in explained.competitors):
        item = "its best caption" if by_image else explained.right.image
        score = Figure(explained.truth_score, digits=4)
        places.append((f"{explained.rank}", item, score, "right", *(("",) if by_image else ())))
    metrics = []
    for name in METRICS if compared else ():
        values = (compared[name], explained.informed.get(name))
        metrics.append((name, *("–" if value is None else f"{value:.4g}" for value in values)))
    captions = ("caption",) if by_image else ()
    tables: Iterable[tuple[str, tuple[str, ...], Sequence[tuple[Cell, ...]], str]] = (
        ("How many", ("concept", *names), counts, "lrr"),
        ("Boxes, matched by area", ("no.", "concept", *names, "ratio", "difference"), boxes, "rlrrrr"),
        ("Attributes of matched objects", ("concept", "family", *names, "agreement"), attributes, "llllr"),
        ("Spatial relations", ("first to second", *names, "agreement"), relations, "lllr"),
        ("The list", ("rank", "item", "score", "", *captions), places, "rlrl" + "l" * len(captions)),
        ("Metrics", ("metric", "all concepts", "mentioned"), metrics, "lrr"),
    )
    for title, header, rows, align in tables:
        yield Table(header, rows, align, title=title, aside=True)


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
