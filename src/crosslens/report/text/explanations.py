"""One explained query as text: what went wrong, then every fact behind it, in 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from crosslens.core import PAGE_WIDTH, Grid
from crosslens.explanations import OPEN, SATISFIED, VIOLATED, AnnotatedImage, Explanation

VERDICT_LABELS = {SATISFIED: "yes", VIOLATED: "no", OPEN: "?"}
"""How a verdict is shown."""
DIRECTION_NAMES = {"t2i": "text → image", "t2t": "text → image by its captions", "i2t": "image → text"}
_LONGEST_CELL = 27


def explanation_text(explained: Explanation, width: int | None = None) -> str:
    """One query in full."""
    columns = min(width or PAGE_WIDTH, 100)
    parts = [*_wrapped(heading(explained), columns), *_wrapped(str(explained), columns)]
    parts += [f"\n{title}\n{body}" for title, body in _sections(explained, columns)]
    if explained.notes:
        parts += ["", *(line for note in explained.notes for line in _wrapped(f"Note: {note}", columns))]
    return "\n".join(parts)


def heading(explained: Explanation) -> str:
    """The query, and what it asked."""
    query_text = f"“{explained.text}”" if explained.text is not None else "an image query for its captions"
    return f"{explained.query} ({DIRECTION_NAMES.get(explained.direction, explained.direction)}): {query_text}"


def picture_names(explained: Explanation) -> tuple[str, str]:
    """What the two pictures are called in tables."""
    if explained.direction == "i2t":
        return "query picture", f"{'next' if explained.succeeded else 'retrieved'} caption’s picture"
    return "right", "next" if explained.succeeded else "retrieved"


def _sections(explained: Explanation, width: int) -> Iterator[tuple[str, str]]:
    yield "Pictures", _paragraphs(_pictures(explained), width)
    if explained.spoken is not None and explained.direction == "i2t":
        yield "The caption", _paragraphs([f"“{explained.spoken}” ({explained.other_item})"], width)
    if explained.words:
        yield words_title(explained), word_grid(explained).text(width)
    if explained.comparison:
        yield "Concepts", _paragraphs(concept_lines(explained), width)
    if pairs := pair_lines(explained):
        yield "Concepts matched across the difference", _paragraphs(pairs, width)
    for title, grid in explanation_grids(explained):
        yield title, grid.text(width)


def _pictures(explained: Explanation) -> list[str]:
    titles = picture_names(explained)
    lines = [f"{titles[0]}: {picture_line(explained.right)}"]
    return [*lines, f"{titles[1]}: {picture_line(explained.other)}"] if explained.other is not None else lines


def picture_line(picture: AnnotatedImage) -> str:
    """The id, and the objects by name with their numbers."""
    counts: dict[str, int] = {}
    for obj in picture.objects:
        counts[obj.name] = counts.get(obj.name, 0) + 1
    what = ", ".join(f"{number} × {name}" if number > 1 else name for name, number in counts.items())
    return f"{picture.image} ({what or 'no objects'})"


def words_title(explained: Explanation) -> str:
    """Whose words they are."""
    return "Words of the caption" if explained.direction == "i2t" else "Words of the query"


def word_grid(explained: Explanation) -> Grid:
    """Each word, what it asks for, and whether either picture has it."""
    rows = []
    for verdict in explained.words:
        word = verdict.right.word
        about = "" if word.kind == "object" else f" of {word.noun}" if word.kind != "relation" else ""
        content = f"{word.kind}{about}" if word.kind != "relation" else f"{word.noun} {word.value} {word.other}"
        why = verdict.right.why if explained.direction == "i2t" else verdict.other.why
        signs = (VERDICT_LABELS[verdict.right.verdict], VERDICT_LABELS[verdict.other.verdict])
        rows.append((_short(word.text, 14), _short(content, 20), *signs, _short(why, _LONGEST_CELL)))
    return Grid(("word", "asks", *_short_names(explained), "why"), tuple(rows), "lllll")


def _short_names(explained: Explanation) -> tuple[str, str]:
    return ("query", "other") if explained.direction == "i2t" else picture_names(explained)


def concept_lines(explained: Explanation) -> list[str]:
    """What both pictures have, and what only one has."""
    titles = ("common", "missing", "extra")
    return [f"{title}: {concept_list(explained, explained.comparison.get(title, ()))}" for title in titles]


def concept_list(explained: Explanation, synsets: Sequence[str]) -> str:
    """Synsets with what they are called here."""
    return ", ".join(f"{explained.called(synset)} ({synset})" for synset in synsets) or "–"


def pair_lines(explained: Explanation) -> list[str]:
    """Each matched pair with its similarity and its way through WordNet, the common hypernym in brackets."""
    return [
        f"{explained.called(pair['missing'])} – {explained.called(pair['extra'])}: {pair['similarity']:.4f}, "
        + (" → ".join(f"[{step}]" if step == pair["common_hypernym"] else step for step in pair["path"]) or "no path")
        for pair in explained.paths
    ]


def explanation_grids(explained: Explanation) -> list[tuple[str, Grid]]:
    """The tables of numbers, those without content left out."""
    tables = [
        ("How many", _counts(explained)),
        ("Boxes, matched by area", _boxes(explained)),
        ("Attributes of matched objects", _attributes(explained)),
        ("Spatial relations", _relations(explained)),
        ("The list", competitor_grid(explained)),
        ("Metrics", metric_grid(explained)),
    ]
    return [(title, grid) for title, grid in tables if grid.rows]


def _counts(explained: Explanation) -> Grid:
    rows = [
        (explained.called(name), f"{mine}", f"{other}")
        for name, (mine, other) in explained.comparison.get("counts", {}).items()
    ]
    return Grid(("concept", *_short_names(explained)), tuple(rows), "lrr")


def _boxes(explained: Explanation) -> Grid:
    rows = [
        (f"{number}", explained.called(pair["synset"]), _share(pair["area_right"]), _share(pair["area_other"]),
         f"{pair['ratio']:.2f}", f"{pair['difference']:.2f}")
        for number, pair in enumerate(explained.boxes, start=1)
    ]  # fmt: skip
    return Grid(("no.", "concept", *_short_names(explained), "ratio", "difference"), tuple(rows), "rlrrrr")


def _attributes(explained: Explanation) -> Grid:
    rows = [
        (explained.called(row["synset"]), row["family"], ", ".join(row["values"][0]), ", ".join(row["values"][1]),
         f"{row['agreement']:.2f}")
        for row in explained.comparison.get("attributes", ())
    ]  # fmt: skip
    return Grid(("concept", "family", *_short_names(explained), "agreement"), tuple(rows), "llllr")


def _relations(explained: Explanation) -> Grid:
    rows = [
        (_short(", ".join(map(explained.called, row["synsets"][:2])), 24), _positions(row["ground_truth"]),
         _positions(row["retrieved"]), f"{row['agreement']:.2f}")
        for row in explained.comparison.get("relations", ())
    ]  # fmt: skip
    return Grid(("first to second", *_short_names(explained), "agreement"), tuple(rows), "lllr")


def competitor_grid(explained: Explanation) -> Grid:
    """The first places, and the right one where it comes later."""
    captions = explained.direction == "i2t"
    rows = [
        (f"{at.rank}", at.item, _score(at.score), "right" if at.right else "", *([at.text or ""] if captions else []))
        for at in explained.competitors
    ]
    if explained.competitors and explained.rank is not None and not any(at.right for at in explained.competitors):
        item = "its best caption" if captions else explained.right.image
        rows.append((f"{explained.rank}", item, _score(explained.truth_score), "right", *([""] if captions else [])))
    rows = [(*row[:4], *(_short(cell, 32) for cell in row[4:])) for row in rows]
    last = ("caption",) if captions else ()
    return Grid(("rank", "item", "score", "", *last), tuple(rows), "rlrl" + "l" * len(last))


def _score(score: float | None) -> str:
    return "–" if score is None else f"{score:.4f}"


def metric_grid(explained: Explanation) -> Grid:
    """Every concept metric; over all concepts, and over those that the words mention."""
    rows = [
        (name, _value(explained.comparison[name]), _value(explained.informed.get(name)) if explained.informed else "–")
        for name in explained.as_dict()["metrics"]
        if explained.comparison
    ]
    return Grid(("metric", "all concepts", "mentioned"), tuple(rows), "lrr")


def _share(area: float) -> str:
    return f"{100 * area:.1f}%" if area <= 1 else f"{area:,.0f} px"


def _positions(shares: dict[str, float]) -> str:
    largest = sorted(shares.items(), key=lambda entry: -entry[1])
    return _short(", ".join(name if share == 1 else f"{name} {share:.0%}" for name, share in largest), 20)


def _value(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width) or [""]


def _paragraphs(lines: Sequence[str], width: int) -> str:
    return "\n".join(textwrap.fill(line, width, initial_indent="  ", subsequent_indent="    ") for line in lines)
