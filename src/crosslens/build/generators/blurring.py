"""Descriptions made vaguer: modifiers, numbers and clauses are left out, and wider words take the place of names."""

from __future__ import annotations

import re
from collections.abc import Sequence

from crosslens.build.generators.contents import Contents
from crosslens.build.generators.edits import Edit, apply, tidy
from crosslens.build.generators.phrases import SIZES, Reader, reader_of
from crosslens.build.generators.vocabulary import NARROW, RIDDLE, colour_words, plural

_QUALITIES = (
    *SIZES, "young", "old", "white", "dark", "bright", "colorful", "colourful", "beautiful", "pretty", "cute", "nice",
    "modern", "vintage", "antique", "wooden", "metal", "busy", "empty", "crowded", "cluttered", "shiny", "fluffy",
    "brightly colored", "light", "long", "short", "tan", "gold", "silver", "striped", "smiling", "adult",
)  # fmt: skip
_HUES = "|".join(word for word, (_, register) in colour_words().items() if register != RIDDLE)
_MODIFIER = re.compile(
    rf"(?<!\bin )(?<!\ball )\b(?:(?:{_HUES})(?: and |, )(?:{_HUES})|{_HUES}|{'|'.join(_QUALITIES)}) "
    r"(?!and\b|in\b|on\b|with\b|is\b|are\b|of\b|at\b|to\b|that\b)(?=[a-z])",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"[,;:] | (?:with|while|near|next to|beside|behind|in front of|on top of|inside|under|above|at|on|in|and) "
)
_UNFINISHED = re.compile(
    r"\b(?:is|are|was|were|be|and|or|the|a|an|of|to|in|on|with|that|which|there|between|his|her|its|their|from|for|up|"
    r"has|have|next|close|front|one|both|by|into|onto|very|some|several|many|looking|wearing|picture|photo|image|view|"
    r"sees|shows|put|left|someone|somebody|it|out)$",
    re.IGNORECASE,
)
_JOINED = re.compile(r"\b(?:between|both|figures)\b", re.IGNORECASE)
_FEWEST = 2


def blur(text: str, contents: Contents) -> list[str]:
    """Vaguer versions: one thing taken back, then several at once."""
    reader = reader_of(contents)
    plain = _without_modifiers(text, reader)
    steps = [plain, _without_numbers(text, reader), _cut(text), _wider(text, reader), _cut(plain or text)]
    steps += [_wider(plain or text, reader), _cut(_cut(text) or text), _wider(_cut(plain or text) or text, reader)]
    everything = _without_numbers(_wider(_cut(plain or text) or text, reader) or text, reader)
    return list(dict.fromkeys(step for step in (*steps, everything) if step and step != text))


def _edited(text: str, edits: Sequence[Edit]) -> str | None:
    return apply(text, edits) if edits else None


def _without_modifiers(text: str, reader: Reader) -> str | None:
    """Without colours, sizes and other qualities."""
    things = reader.things(text)
    # A name keeps its colour: "orange" is also a fruit, "white paper" a place.
    kept = {at for thing in things for at in range(thing.noun_start, thing.end)}
    kept |= {at for one in reader.read(text) if one.kind == "place" for at in range(one.start, one.end)}
    edits = [Edit(thing.noun_end, thing.end, "") for thing in things if thing.noun_end < thing.end]
    edits += [Edit(one.start(), one.end(), "") for one in _MODIFIER.finditer(text) if one.start() not in kept]
    return _edited(text, edits)


def _without_numbers(text: str, reader: Reader) -> str | None:
    """``some`` in the place of numbers above one."""
    return _edited(
        text,
        [
            Edit(thing.start, thing.start + len(thing.determiner), "some")
            for thing in reader.things(text)
            if (thing.number or 0) > 1 and thing.plural
        ],
    )


def _wider(text: str, reader: Reader) -> str | None:
    """Wider words in the place of names: ``an animal`` for ``a dog``."""
    edits: list[Edit] = []
    used: set[str] = set()
    for thing in reader.things(text):
        words = reader.noun(thing.meaning)
        wider = words.plain if thing.register == NARROW else words.wider
        if wider is None or words.unique or thing.modifies or thing.word.lower() == wider:
            continue
        article = thing.determiner.lower() in ("a", "an")
        if article and wider in used:
            edits.append(Edit(thing.start, thing.start + len(thing.determiner), "another"))
        edits.append(Edit(thing.noun_start, thing.noun_end, plural(wider) if thing.plural else wider))
        used.add(wider)
    return _edited(text, edits)


def _cut(text: str | None) -> str | None:
    """Without its last clause, if what remains is a whole description."""
    if text is None:
        return None
    body = text.strip().rstrip(".!?")
    for found in reversed(list(_CLAUSE.finditer(body))):
        rest = body[: found.start()].rstrip(" ,;:")
        whole = not _UNFINISHED.search(rest) and not _MODIFIER.search(rest.split(" ")[-1] + " x")
        if found[0] == " and " and _JOINED.search(rest):
            continue
        if len(rest.split()) >= _FEWEST and whole and rest.count('"') % 2 == 0:
            return tidy(rest + ".")
    return None
