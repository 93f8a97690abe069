"""What is certain about one query: the few facts that its two sentences may be built from."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from crosslens.explain.concepts.attributes import FAMILIES
from crosslens.explain.words.kinship import are_kin
from crosslens.explain.words.pictures import Picture, Thing
from crosslens.explain.words.query_answers import SATISFIED, VIOLATED, Answer
from crosslens.explain.words.query_words import QueryWords, is_tangible
from crosslens.language.inflection import is_plural


@dataclass(frozen=True)
class Named:
    """Things under one name: ``plural`` where they are several, ``number`` how many, where words say so."""

    thing: str
    plural: bool = False
    number: int | None = None


@dataclass(frozen=True)
class WrongCount:
    """The words say ``asked``, the picture has ``found`` (at least one)."""

    thing: str
    asked: int
    found: int


@dataclass(frozen=True)
class WrongValue:
    """The words say ``asked`` (as written); every such thing of the picture is ``found`` instead."""

    thing: Named
    family: str
    asked: str
    found: tuple[str, ...]
    things: int


@dataclass(frozen=True)
class Misplaced:
    """The words put one thing on a side of the other; none of the picture's is there."""

    thing: str
    side: str
    other: str


@dataclass(frozen=True)
class Facts:
    """Everything that a sentence may say.

    The *words* are the query's, or the retrieved caption's where an image asked; they are checked against the picture
    that should fit them: the retrieved one, or the one that asked. ``right`` is the picture that belongs to the query,
    ``other`` the one that was retrieved (or, where the query succeeded, came next).

    ``lacking``      things of the words of which the checked picture has none, but the other does (or may)
    ``lacking_both`` things of the words of which neither picture has any
    ``fitting``      things of the words that the checked picture has
    ``checked``      whether the words were read at all
    ``only_right``   things of the right picture of which the other has none; ``only_other`` the reverse
    ``both``         things of both; ``counts`` (thing, right, other) where their numbers differ
    """

    direction: str
    source: str
    succeeded: bool
    rank: int | None
    gallery: int
    margin: float | None = None
    margin_at_least: float | None = None
    compared: bool = True
    checked: bool = True
    lacking: tuple[Named, ...] = ()
    lacking_both: tuple[Named, ...] = ()
    wrong_counts: tuple[WrongCount, ...] = ()
    wrong_values: tuple[WrongValue, ...] = ()
    misplaced: tuple[Misplaced, ...] = ()
    fitting: tuple[Named, ...] = ()
    only_right: tuple[Named, ...] = ()
    only_other: tuple[Named, ...] = ()
    both: tuple[Named, ...] = ()
    counts: tuple[tuple[str, int, int], ...] = ()


def word_facts(words: QueryWords, found: Sequence[Answer], belonging: Sequence[Answer]) -> dict[str, object]:
    """The fields of :class:`Facts` about the words: ``found`` is what the checked picture says to them, ``belonging``
    what the picture says that they were written for."""
    asked = _asked(words)
    objects = [one for one in found if one.word.kind == "object"]
    lacking = _distinct(one.word.thing for one in objects if one.verdict == VIOLATED)
    doubted = {one.word for one in belonging if one.verdict == VIOLATED}
    elsewhere = {word.thing for word in doubted if word.kind == "object"}
    wrong = [one for one in found if one.verdict == VIOLATED and one.word.thing not in lacking]
    wrong.sort(key=lambda one: one.word in doubted)  # what fits neither picture says little about this one
    return {
        "lacking": tuple(asked[name] for name in lacking if name not in elsewhere),
        "lacking_both": tuple(asked[name] for name in lacking if name in elsewhere),
        "wrong_counts": tuple(
            WrongCount(one.word.thing, one.word.number, one.number)
            for one in wrong
            if one.word.kind == "count" and one.number and one.word.number is not None
        ),
        "wrong_values": tuple(
            WrongValue(asked[one.word.thing], one.word.kind, one.word.text.lower(), one.found, one.number or 1)
            for one in wrong
            if one.word.kind in FAMILIES and one.found
        ),
        "misplaced": tuple(
            Misplaced(one.word.thing, one.side, one.word.other)
            for one in wrong
            if one.word.kind == "relation" and one.word.other not in lacking and one.side
        ),
        "fitting": _fitting([one for one in objects if one.verdict == SATISFIED], asked),
    }


def _fitting(there: Sequence[Answer], asked: Mapping[str, Named]) -> tuple[Named, ...]:
    """What is there, once: *sheet* and *paper* are one thing where a sheet of paper is all that they call."""
    once = {(one.found, one.number): one for one in reversed(there)}
    return tuple(dict.fromkeys(_as_found(one, asked) for one in reversed(once.values())))


def _as_found(answer: Answer, asked: Mapping[str, Named]) -> Named:
    """As asked for; where several were and one is there, that one, and of *people* the person."""
    named = asked[answer.word.thing]
    if not (named.plural and answer.number == 1):
        return named
    return Named(answer.found[0] if is_plural(named.thing) else named.thing)


def _asked(words: QueryWords) -> dict[str, Named]:
    numbers = {word.thing: word.number for word in words.of("count")}
    return {
        word.thing: Named(word.thing, is_plural(word.text.lower()), numbers.get(word.thing))
        for word in words.of("object")
    }


def picture_facts(right: Picture, other: Picture, said: Collection[str] = ()) -> dict[str, object]:
    """The fields of :class:`Facts` about both pictures: only what no other annotation in them makes doubtful.

    What the names ``said`` call is no news where one picture has it and the other not.
    """
    mine, theirs = (_by_name(one) for one in (right, other))
    shared = [name for name in mine if name in theirs]
    return {
        "only_right": tuple(_named(*item) for item in mine.items() if _absent(*item, other) and _news(item[1], said)),
        "only_other": tuple(_named(*item) for item in theirs.items() if _absent(*item, right) and _news(item[1], said)),
        "both": tuple(Named(name, len(mine[name]) > 1 and len(theirs[name]) > 1) for name in shared),
        "counts": tuple(
            (name, len(mine[name]), len(theirs[name]))
            for name in shared
            if len(mine[name]) != len(theirs[name]) and all(_countable(name, one) for one in (right, other))
        ),
    }


def _by_name(picture: Picture) -> dict[str, list[Thing]]:
    """The things by name, those that fill most of the picture first."""
    found: dict[str, list[Thing]] = {}
    for thing in picture.things:
        if picture.source == "annotations" or is_tangible(thing.name):
            found.setdefault(thing.name, []).append(thing)
    size = {name: sum(thing.area or 0.0 for thing in things) for name, things in found.items()}
    return dict(sorted(found.items(), key=lambda item: (-size[item[0]], item[0])))


def _named(name: str, things: Sequence[Thing]) -> Named:
    return Named(name, len(things) > 1)


def _absent(name: str, things: Sequence[Thing], picture: Picture) -> bool:
    """Whether a picture has nothing of that name, no synonym of it, and nothing that may be the same after all."""
    if picture.of(name) or picture.may_have(name):
        return False
    synsets = {thing.synset for thing in things}
    if None in synsets:  # nobody knows what it is
        return False
    seen = {thing.synset for thing in picture.things if thing.synset is not None}
    return not any(are_kin(one, two) for one in synsets if one is not None for two in seen)


def _news(things: Sequence[Thing], said: Collection[str]) -> bool:
    return not any(thing.is_a(name) for thing in things for name in said)


def _countable(name: str, picture: Picture) -> bool:
    """Whether the things of that name are all that the name calls, and each stands for one."""
    things = [thing for thing in picture.things if thing.name == name]
    if picture.source == "captions" or is_plural(name) or any(thing.crowd for thing in things):
        return False
    return len(picture.of(name)) == len(things) and not picture.may_have(name)


def _distinct(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
