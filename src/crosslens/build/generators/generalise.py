"""Descriptions made more general: modifiers, numbers and clauses are left out, names replaced by hypernyms."""

from __future__ import annotations

import re
from collections.abc import Sequence

from crosslens.build.generators.annotations import ImageContents
from crosslens.build.generators.phrases import SIZES, PhraseEdit, PhraseReader, apply_phrase_edits, reader_of, tidy
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


def generalise(text: str, contents: ImageContents) -> list[str]:
    """More general versions: one detail left out, then several at once."""
    reader = reader_of(contents)
    plain = _without_modifiers(text, reader)
    steps = [plain, _without_numbers(text, reader), _cut(text), _wider(text, reader), _cut(plain or text)]
    steps += [_wider(plain or text, reader), _cut(_cut(text) or text), _wider(_cut(plain or text) or text, reader)]
    everything = _without_numbers(_wider(_cut(plain or text) or text, reader) or text, reader)
    return list(dict.fromkeys(step for step in (*steps, everything) if step and step != text))


def _edited(text: str, edits: Sequence[PhraseEdit]) -> str | None:
    return apply_phrase_edits(text, edits) if edits else None


def _without_modifiers(text: str, reader: PhraseReader) -> str | None:
    """Without colours, sizes and other qualities."""
    noun_phrases = reader.noun_phrases(text)
    # A name keeps its colour: "orange" is also a fruit, "white paper" a setting.
    kept = {at for phrase in noun_phrases for at in range(phrase.noun_start, phrase.end)}
    kept |= {at for phrase in reader.read(text) if phrase.kind == "setting" for at in range(phrase.start, phrase.end)}
    edits = [PhraseEdit(phrase.noun_end, phrase.end, "") for phrase in noun_phrases if phrase.noun_end < phrase.end]
    edits += [
        PhraseEdit(match.start(), match.end(), "") for match in _MODIFIER.finditer(text) if match.start() not in kept
    ]
    return _edited(text, edits)


def _without_numbers(text: str, reader: PhraseReader) -> str | None:
    """``some`` instead of numbers above one."""
    return _edited(
        text,
        [
            PhraseEdit(phrase.start, phrase.start + len(phrase.determiner), "some")
            for phrase in reader.noun_phrases(text)
            if (phrase.number or 0) > 1 and phrase.plural
        ],
    )


def _wider(text: str, reader: PhraseReader) -> str | None:
    """Hypernyms instead of names: ``an animal`` for ``a dog``."""
    edits: list[PhraseEdit] = []
    used: set[str] = set()
    for phrase in reader.noun_phrases(text):
        words = reader.noun(phrase.meaning)
        wider = words.plain if phrase.register == NARROW else words.wider
        if wider is None or words.unique or phrase.modifies or phrase.word.lower() == wider:
            continue
        article = phrase.determiner.lower() in ("a", "an")
        if article and wider in used:
            edits.append(PhraseEdit(phrase.start, phrase.start + len(phrase.determiner), "another"))
        edits.append(PhraseEdit(phrase.noun_start, phrase.noun_end, plural(wider) if phrase.plural else wider))
        used.add(wider)
    return _edited(text, edits)


def _cut(text: str | None) -> str | None:
    """Without its last clause, if what remains is a whole description."""
    if text is None:
        return None
    body = text.strip().rstrip(".!?")
    for match in reversed(list(_CLAUSE.finditer(body))):
        rest = body[: match.start()].rstrip(" ,;:")
        whole = not _UNFINISHED.search(rest) and not _MODIFIER.search(rest.split(" ")[-1] + " x")
        if match[0] == " and " and _JOINED.search(rest):
            continue
        if len(rest.split()) >= _FEWEST and whole and rest.count('"') % 2 == 0:
            return tidy(rest + ".")
    return None
