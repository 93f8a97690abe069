"""Descriptions made more specific: facts are added that the rivals do not mention."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from crosslens.build.generators.annotations import ImageContents, ObjectGroup
from crosslens.build.generators.describe import position_of, setting_phrase, there_is
from crosslens.build.generators.phrases import VAGUE, NounPhrase, PhraseEdit, apply_phrase_edits, reader_of, tidy
from crosslens.build.generators.vocabulary import NARROW, RIDDLE, coloured, plural
from crosslens.synth import listing, number_word

_MOST_ADDED = 3
_PREPOSITIONS = "with near beside past by behind and of are has have holding on in at"
_BEFORE_A_NUMBER = frozenset(_PREPOSITIONS.split())


@dataclass(frozen=True)
class Addition:
    """Something true that a text does not say yet: a change within it, or a phrase at its end.

    ``shared`` is how many rivals say the same; ``about`` keeps two additions from saying one thing twice.
    """

    about: str
    shared: int
    edit: PhraseEdit | None = None
    tail: str = ""
    more: ObjectGroup | None = None


def specialise(text: str, contents: ImageContents, rivals: Sequence[str]) -> list[str]:
    """The text with one further fact, then with two, then with three; the rarest facts first."""
    additions = sorted(_additions(text, contents, rivals), key=lambda addition: addition.shared)
    versions: list[str] = []
    for size in range(1, _MOST_ADDED + 1):
        chosen = combinations(additions[: 8 if size == 1 else 5], size)
        versions += [_with(text, some) for some in chosen if len({addition.about for addition in some}) == size]
    return list(dict.fromkeys(versions))


def _additions(text: str, contents: ImageContents, rivals: Sequence[str]) -> Iterator[Addition]:
    reader = reader_of(contents)
    mentioned = [reader.mentions(rival) for rival in rivals]
    noun_phrases = reader.noun_phrases(text)
    words = {phrase.meaning: phrase.word for phrase in reversed(noun_phrases)}
    for phrase in noun_phrases:
        # Named twice ("six people, and a man"), it is not clear which of them a number counts.
        if sum(other.meaning == phrase.meaning for other in noun_phrases) == 1:
            yield from _within(phrase, contents[phrase.meaning], rivals, text)
    for group in contents.groups:
        shared = sum(group.name in names for names in mentioned)
        if group.name not in words:
            yield Addition(group.name, shared, more=group)
        elif position_of(group) and " of the picture" not in text:
            word = words[group.name] if not group.noun.unique else group.phrase().removeprefix("the ")
            yield Addition(f"where {group.name}", shared, tail=f"the {word}{position_of(group)}")
    setting = setting_phrase(contents.setting).strip()
    if setting and not any(phrase.kind == "setting" for phrase in reader.read(text)):
        yield Addition("setting", sum(setting in rival.lower() for rival in rivals), tail=setting)


def _within(phrase: NounPhrase, group: ObjectGroup, rivals: Sequence[str], text: str) -> Iterator[Addition]:
    """Its number and its colour, added to the noun phrase itself."""
    many, about = group.count(), f"number {group.name}"
    if phrase.register == RIDDLE or group.noun.unique or phrase.colour or phrase.size or phrase.modifies:
        return
    if phrase.plural and many is not None and many > 1 and phrase.register != NARROW and _takes_number(phrase, text):
        edit = PhraseEdit(phrase.start, phrase.end, f"{number_word(many)} {plural(phrase.word)}")
        yield Addition(about, sum(f"{number_word(many)} " in rival.lower() for rival in rivals), edit)
    if len(group.colours) == 1 and phrase.plural == (many != 1):
        new = coloured(phrase.word, group.name, group.members[0].category, group.colours[0])
        edit = PhraseEdit(phrase.noun_start, phrase.noun_end, plural(new) if phrase.plural else new)
        yield Addition(about, sum(group.colours[0] in rival.lower() for rival in rivals), edit)


def _takes_number(phrase: NounPhrase, text: str) -> bool:
    """Whether a number can precede it: instead of ``some``, or where nothing else describes it."""
    if phrase.determiner:
        return phrase.determiner.lower() in VAGUE
    before = text[: phrase.start].split()
    return not before or before[-1].lower() in _BEFORE_A_NUMBER


def _with(text: str, additions: Sequence[Addition]) -> str:
    """The text with the additions made: edits within it, the others at its end."""
    edits = [addition.edit for addition in additions if addition.edit]
    body = apply_phrase_edits(text.strip(), edits) if edits else text
    stop = body.rstrip()[-1:] if body.rstrip()[-1:] in ".!?" else "."
    body = body.strip().rstrip(".!?").rstrip()
    more = [addition.more for addition in additions if addition.more]
    positions = [addition.tail for addition in additions if addition.tail.startswith("the ")]
    settings = [addition.tail for addition in additions if addition.tail and addition.tail not in positions]
    body += "".join(f", {setting}" for setting in settings)
    if positions:
        body += f", with {listing(positions)}"
    if more:
        named = listing([group.phrase() for group in more])
        named += position_of(more[0]) if len(more) == 1 and not positions and position_of(more[0]) else " in view"
        # A second "with" would read as part of the first.
        body += f"; {there_is(more)} also {named}" if " with " in body else f", with {named}"
    return tidy(body + stop)
