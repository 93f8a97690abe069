"""Descriptions made sharper: what a picture holds, and its rivals do not, is added."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from crosslens.build.generators.contents import Contents, Group
from crosslens.build.generators.edits import Edit, apply, tidy
from crosslens.build.generators.phrases import VAGUE, Thing, reader_of
from crosslens.build.generators.telling import place_phrase, spot, there_is
from crosslens.build.generators.vocabulary import NARROW, RIDDLE, coloured, plural
from crosslens.synth.grammar import listing, number_word

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
    edit: Edit | None = None
    tail: str = ""
    more: Group | None = None


def sharpen(text: str, contents: Contents, rivals: Sequence[str]) -> list[str]:
    """The text with one further fact, then with two, then with three; the rarest facts first."""
    found = sorted(_additions(text, contents, rivals), key=lambda one: one.shared)
    made: list[str] = []
    for size in range(1, _MOST_ADDED + 1):
        chosen = combinations(found[: 8 if size == 1 else 5], size)
        made += [_with(text, some) for some in chosen if len({one.about for one in some}) == size]
    return list(dict.fromkeys(made))


def _additions(text: str, contents: Contents, rivals: Sequence[str]) -> Iterator[Addition]:
    reader = reader_of(contents)
    spoken = [reader.mentions(rival) for rival in rivals]
    things = reader.things(text)
    named = {thing.meaning for thing in things}
    for thing in things:
        # Named twice ("six people, and a man"), it is not clear which of them a number counts.
        if sum(one.meaning == thing.meaning for one in things) == 1:
            yield from _within(thing, contents[thing.meaning], rivals, text)
    for group in contents.groups:
        shared = sum(group.name in names for names in spoken)
        if group.name not in named:
            yield Addition(group.name, shared, more=group)
        elif spot(group) and " of the picture" not in text:
            word = next(thing.word for thing in things if thing.meaning == group.name)
            known = word if not group.noun.unique else group.told().removeprefix("the ")
            yield Addition(f"where {group.name}", shared, tail=f"the {known}{spot(group)}")
    at = place_phrase(contents.place).strip()
    if at and not any(phrase.kind == "place" for phrase in reader.read(text)):
        yield Addition("place", sum(at in rival.lower() for rival in rivals), tail=at)


def _within(thing: Thing, group: Group, rivals: Sequence[str], text: str) -> Iterator[Addition]:
    """Its number and its colour, said where it is named."""
    many, about = group.count(), f"number {group.name}"
    if thing.register == RIDDLE or group.noun.unique or thing.colour or thing.size or thing.modifies:
        return
    if thing.plural and many is not None and many > 1 and thing.register != NARROW and _takes_number(thing, text):
        edit = Edit(thing.start, thing.end, f"{number_word(many)} {plural(thing.word)}")
        yield Addition(about, sum(f"{number_word(many)} " in rival.lower() for rival in rivals), edit)
    if len(group.colours) == 1 and thing.plural == (many != 1):
        phrase = coloured(thing.word, group.name, group.members[0].category, group.colours[0])
        edit = Edit(thing.noun_start, thing.noun_end, plural(phrase) if thing.plural else phrase)
        yield Addition(about, sum(group.colours[0] in rival.lower() for rival in rivals), edit)


def _takes_number(thing: Thing, text: str) -> bool:
    """Whether a number can stand before it: in the place of ``some``, or where nothing else describes it."""
    if thing.determiner:
        return thing.determiner.lower() in VAGUE
    before = text[: thing.start].split()
    return not before or before[-1].lower() in _BEFORE_A_NUMBER


def _with(text: str, additions: Sequence[Addition]) -> str:
    """The text with the additions made: those within it in their place, the others at its end."""
    body = apply(text.strip(), [one.edit for one in additions if one.edit]) if any(a.edit for a in additions) else text
    stop = body.rstrip()[-1:] if body.rstrip()[-1:] in ".!?" else "."
    body = body.strip().rstrip(".!?").rstrip()
    more = [one.more for one in additions if one.more]
    spots = [one.tail for one in additions if one.tail.startswith("the ")]
    places = [one.tail for one in additions if one.tail and one.tail not in spots]
    body += "".join(f", {place}" for place in places)
    if spots:
        body += f", with {listing(spots)}"
    if more:
        named = listing([group.told() for group in more])
        named += spot(more[0]) if len(more) == 1 and not spots and spot(more[0]) else " in view"
        # A second "with" would read as part of the first.
        body += f"; {there_is(more)} also {named}" if " with " in body else f", with {named}"
    return tidy(body + stop)
