"""One explained query as text: what went wrong, then every fact behind it, in 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from crosslens.core.grid import PAGE_WIDTH, Grid
from crosslens.explain.local.explanation import Explanation
from crosslens.explain.words.pictures import Picture
from crosslens.explain.words.query_answers import OPEN, SATISFIED, VIOLATED

SIGNS = {SATISFIED: "yes", VIOLATED: "no", OPEN: "?"}
"""How a verdict is shown."""
DIRECTIONS = {"t2i": "text → image", "t2t": "text → image by its captions", "i2t": "image → text"}
_LONGEST_CELL = 27


def explanation_text(one: Explanation, width: int | None = None) -> str:
    """One query in full."""
    columns = min(width or PAGE_WIDTH, 100)
    parts = [*_wrapped(heading(one), columns), *_wrapped(str(one), columns)]
    parts += [f"\n{title}\n{body}" for title, body in _sections(one, columns)]
    parts += ["", *(line for note in one.notes for line in _wrapped(f"Note: {note}", columns))] if one.notes else []
    return "\n".join(parts)


def heading(one: Explanation) -> str:
    """The query, and what it asked."""
    asked = f"“{one.text}”" if one.text is not None else "an image asks for its captions"
    return f"{one.query} ({DIRECTIONS.get(one.direction, one.direction)}): {asked}"


def names(one: Explanation) -> tuple[str, str]:
    """What the two pictures are called in tables."""
    if one.direction == "i2t":
        return "query picture", f"{'next' if one.succeeded else 'retrieved'} caption’s picture"
    return "right", "next" if one.succeeded else "retrieved"


def _sections(one: Explanation, width: int) -> Iterator[tuple[str, str]]:
    yield "Pictures", _paragraphs(_pictures(one), width)
    if one.spoken is not None and one.direction == "i2t":
        yield "The caption", _paragraphs([f"“{one.spoken}” ({one.other_item})"], width)
    if one.words:
        yield words_title(one), word_grid(one).text(width)
    if one.comparison:
        yield "Concepts", _paragraphs(concept_lines(one), width)
    if pairs := pair_lines(one):
        yield "Concepts matched across the difference", _paragraphs(pairs, width)
    for title, grid in grids(one):
        yield title, grid.text(width)


def _pictures(one: Explanation) -> list[str]:
    titles = names(one)
    lines = [f"{titles[0]}: {picture_line(one.right)}"]
    return [*lines, f"{titles[1]}: {picture_line(one.other)}"] if one.other is not None else lines


def picture_line(picture: Picture) -> str:
    """The id, and the objects by name with their numbers."""
    found: dict[str, int] = {}
    for thing in picture.things:
        found[thing.name] = found.get(thing.name, 0) + 1
    what = ", ".join(f"{number} × {name}" if number > 1 else name for name, number in found.items())
    return f"{picture.image} ({what or 'no objects'})"


def words_title(one: Explanation) -> str:
    """Whose words they are."""
    return "Words of the caption" if one.direction == "i2t" else "Words of the query"


def word_grid(one: Explanation) -> Grid:
    """Each word, what it asks for, and whether either picture has it."""
    rows = []
    for verdict in one.words:
        word = verdict.right.word
        about = "" if word.kind == "object" else f" of {word.thing}" if word.kind != "relation" else ""
        asked = f"{word.kind}{about}" if word.kind != "relation" else f"{word.thing} {word.value} {word.other}"
        why = verdict.right.why if one.direction == "i2t" else verdict.other.why
        signs = (SIGNS[verdict.right.verdict], SIGNS[verdict.other.verdict])
        rows.append((_short(word.text, 14), _short(asked, 20), *signs, _short(why, _LONGEST_CELL)))
    return Grid(("word", "asks", *_short_names(one), "why"), tuple(rows), "lllll")


def _short_names(one: Explanation) -> tuple[str, str]:
    return ("query", "other") if one.direction == "i2t" else names(one)


def concept_lines(one: Explanation) -> list[str]:
    """What both pictures have, and what only one has."""
    titles = ("common", "missing", "extra")
    return [f"{title}: {concepts(one, one.comparison.get(title, ()))}" for title in titles]


def concepts(one: Explanation, synsets: Sequence[str]) -> str:
    """Synsets with what they are called here."""
    return ", ".join(f"{one.called(synset)} ({synset})" for synset in synsets) or "–"


def pair_lines(one: Explanation) -> list[str]:
    """Each matched pair with its similarity and its way through WordNet."""
    return [
        f"{one.called(pair['missing'])} – {one.called(pair['extra'])}: {pair['similarity']:.4f}, "
        + (" → ".join(path_words(pair["path"], pair["common_hypernym"])) or "no path")
        for pair in one.paths
    ]


def path_words(path: Sequence[str], top: str | None) -> list[str]:
    """The synsets of a path; the common hypernym in brackets."""
    return [f"[{step}]" if step == top else step for step in path]


def grids(one: Explanation) -> list[tuple[str, Grid]]:
    """The tables of numbers, those without content left out."""
    found = [
        ("How many", _counts(one)),
        ("Boxes, matched by area", _boxes(one)),
        ("Attributes of matched objects", _attributes(one)),
        ("How they stand to each other", _relations(one)),
        ("The list", competitor_grid(one)),
        ("Metrics", metric_grid(one)),
    ]
    return [(title, grid) for title, grid in found if grid.rows]


def _counts(one: Explanation) -> Grid:
    rows = [(one.called(name), f"{mine}", f"{two}") for name, (mine, two) in one.comparison.get("counts", {}).items()]
    return Grid(("concept", *_short_names(one)), tuple(rows), "lrr")


def _boxes(one: Explanation) -> Grid:
    rows = [
        (f"{number}", one.called(pair["synset"]), _share(pair["area_right"]), _share(pair["area_other"]),
         f"{pair['ratio']:.2f}", f"{pair['difference']:.2f}")
        for number, pair in enumerate(one.boxes, start=1)
    ]  # fmt: skip
    return Grid(("no.", "concept", *_short_names(one), "ratio", "difference"), tuple(rows), "rlrrrr")


def _attributes(one: Explanation) -> Grid:
    rows = [
        (one.called(row["synset"]), row["family"], ", ".join(row["values"][0]), ", ".join(row["values"][1]),
         f"{row['agreement']:.2f}")
        for row in one.comparison.get("attributes", ())
    ]  # fmt: skip
    return Grid(("concept", "family", *_short_names(one), "agreement"), tuple(rows), "llllr")


def _relations(one: Explanation) -> Grid:
    rows = [
        (_short(f"{one.called(row['synsets'][0])}, {one.called(row['synsets'][1])}", 24), _stands(row["ground_truth"]),
         _stands(row["retrieved"]), f"{row['agreement']:.2f}")
        for row in one.comparison.get("relations", ())
    ]  # fmt: skip
    return Grid(("the first to the second", *_short_names(one), "agreement"), tuple(rows), "lllr")


def competitor_grid(one: Explanation) -> Grid:
    """The first places, and the right one where it comes later."""
    captions = one.direction == "i2t"
    rows = [
        (f"{at.place}", at.item, _score(at.score), "right" if at.right else "", *([at.text or ""] if captions else []))
        for at in one.competitors
    ]
    if one.competitors and one.rank is not None and not any(at.right for at in one.competitors):
        item = "its best caption" if captions else one.right.image
        rows.append((f"{one.rank}", item, _score(one.truth_score), "right", *([""] if captions else [])))
    rows = [(*row[:4], *(_short(cell, 32) for cell in row[4:])) for row in rows]
    last = ("caption",) if captions else ()
    return Grid(("place", "item", "score", "", *last), tuple(rows), "rlrl" + "l" * len(last))


def _score(score: float | None) -> str:
    return "–" if score is None else f"{score:.4f}"


def metric_grid(one: Explanation) -> Grid:
    """Every concept metric; over all concepts, and over those that the words mention."""
    rows = [
        (name, _value(one.comparison[name]), _value(one.informed.get(name)) if one.informed else "–")
        for name in one.as_dict()["metrics"]
        if one.comparison
    ]
    return Grid(("metric", "all concepts", "mentioned"), tuple(rows), "lrr")


def _share(area: float) -> str:
    return f"{100 * area:.1f}%" if area <= 1 else f"{area:,.0f} px"


def _stands(shares: dict[str, float]) -> str:
    largest = sorted(shares.items(), key=lambda one: -one[1])
    return _short(", ".join(name if share == 1 else f"{name} {share:.0%}" for name, share in largest), 20)


def _value(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width) or [""]


def _paragraphs(lines: Sequence[str], width: int) -> str:
    return "\n".join(textwrap.fill(line, width, initial_indent="  ", subsequent_indent="    ") for line in lines)
