"""What is certain about one query: the findings that its two sentences may be built from."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from crosslens.explanations.concepts.lexicon import ATTRIBUTE_FAMILIES, are_related, is_object_word, is_visible
from crosslens.explanations.words.checks import SATISFIED, VIOLATED, MentionCheck
from crosslens.explanations.words.images import AnnotatedImage, ImageObject
from crosslens.explanations.words.mentions import QueryMentions
from crosslens.language import is_plural

_LISTED = re.compile(r"\s*,?\s*(?:and\s+)?|\s*[/-]\s*")


class ObjectPhrase(NamedTuple):
    """Objects under one noun: ``plural`` where they are several, ``number`` how many, where the text states it."""

    noun: str
    plural: bool = False
    number: int | None = None


class WrongValue(NamedTuple):
    """The text states ``asked`` (as written); every such object of the image is ``observed`` instead."""

    phrase: ObjectPhrase
    family: str
    asked: str
    observed: tuple[str, ...]
    number: int


@dataclass(frozen=True)
class Findings:
    """Everything that a sentence may state.

    The mentions are the query's, or the retrieved caption's for an image query; they are checked against the image that
    should satisfy them: the retrieved one, or the query image. ``right`` is the image that is relevant to the query,
    ``other`` the one that was retrieved (or, where the query succeeded, came next).

    ``lacking``      mentioned objects of which the checked image has none, but the other does (or may)
    ``lacking_both`` mentioned objects of which neither image has any
    ``wrong_counts`` (noun, number mentioned, number of such objects in the checked image: at least one)
    ``misplaced``    (noun, side, other noun): mentioned on a side of the other, where none of the checked image's is
    ``fitting``      mentioned objects that the checked image has
    ``checked``      whether the text was parsed at all
    ``listed``       whether the list came ready-made, and may be shorter than the gallery: ``gallery`` is its length
    ``only_right``   objects of the right image of which the other has none; ``only_other`` the reverse
    ``both``         objects of both; ``counts`` (noun, right, other) where their numbers differ
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
    lacking: tuple[ObjectPhrase, ...] = ()
    lacking_both: tuple[ObjectPhrase, ...] = ()
    wrong_counts: tuple[tuple[str, int, int], ...] = ()
    wrong_values: tuple[WrongValue, ...] = ()
    misplaced: tuple[tuple[str, str, str], ...] = ()
    fitting: tuple[ObjectPhrase, ...] = ()
    only_right: tuple[ObjectPhrase, ...] = ()
    only_other: tuple[ObjectPhrase, ...] = ()
    both: tuple[ObjectPhrase, ...] = ()
    counts: tuple[tuple[str, int, int], ...] = ()
    listed: bool = False


def mention_findings(
    mentions: QueryMentions, checked: Sequence[MentionCheck], own: Sequence[MentionCheck]
) -> dict[str, Any]:
    """The fields of :class:`Findings` about the mentions, from their checks against the image that should satisfy them,
    and against their ``own`` image, which the text was written for."""
    phrases = _phrases(mentions)
    objects = [check for check in checked if check.word.kind == "object"]
    lacking = list(dict.fromkeys(check.word.noun for check in objects if check.verdict == VIOLATED))
    doubtful = {check.word for check in own if check.verdict == VIOLATED}
    lacking_own = {mention.noun for mention in doubtful if mention.kind == "object"}
    wrong = [check for check in checked if check.verdict == VIOLATED and check.word.noun not in lacking]
    wrong.sort(key=lambda check: check.word in doubtful)  # what fits neither image says little about this one
    return {
        "lacking": tuple(phrases[noun] for noun in lacking if noun not in lacking_own),
        "lacking_both": tuple(phrases[noun] for noun in lacking if noun in lacking_own),
        "wrong_counts": tuple(
            (check.word.noun, check.word.number, check.number)
            for check in wrong
            if check.word.kind == "count" and check.number and check.word.number is not None
        ),
        "wrong_values": tuple(
            dict.fromkeys(
                WrongValue(
                    phrases[check.word.noun],
                    check.word.kind,
                    _asked(check, mentions),
                    check.observed,
                    check.number or 1,
                )
                for check in wrong
                if check.word.kind in ATTRIBUTE_FAMILIES and check.observed
            )
        ),
        "misplaced": tuple(
            (check.word.noun, check.side, check.word.other)
            for check in wrong
            if check.word.kind == "relation" and check.word.other not in lacking and check.side
        ),
        "fitting": _fitting([check for check in objects if check.verdict == SATISFIED], phrases),
    }


def _asked(check: MentionCheck, mentions: QueryMentions) -> str:
    """A value with those that are listed with it: of a *black and white dog*, both."""
    start, end = check.word.start, check.word.end
    listed = [word for word in mentions.of(check.word.kind) if word.noun == check.word.noun]
    for word in [*listed, *reversed(listed)]:
        if end < word.start and _LISTED.fullmatch(mentions.text[end : word.start]):
            end = word.end
        elif word.end < start and _LISTED.fullmatch(mentions.text[word.end : start]):
            start = word.start
    if (start, end) == (check.word.start, check.word.end):
        return check.word.text.lower()
    return re.sub(r"\s+,", ",", mentions.text[start:end].lower())


def _fitting(satisfied: Sequence[MentionCheck], phrases: Mapping[str, ObjectPhrase]) -> tuple[ObjectPhrase, ...]:
    """What is there, once: *sheet* and *paper* are one object where a sheet of paper is all that they name."""
    distinct = {(check.observed, check.number): check for check in reversed(satisfied)}
    return tuple(dict.fromkeys(_as_observed(check, phrases) for check in reversed(distinct.values())))


def _as_observed(check: MentionCheck, phrases: Mapping[str, ObjectPhrase]) -> ObjectPhrase:
    """As mentioned; in the singular where several were mentioned and one is there: of *people*, the person."""
    phrase = phrases[check.word.noun]
    if not (phrase.plural and check.number == 1):
        return phrase
    return ObjectPhrase(check.observed[0] if is_plural(phrase.noun) else phrase.noun)


def _phrases(mentions: QueryMentions) -> dict[str, ObjectPhrase]:
    numbers = {mention.noun: mention.number for mention in mentions.of("count")}
    return {
        mention.noun: ObjectPhrase(mention.noun, is_plural(mention.text.lower()), numbers.get(mention.noun))
        for mention in mentions.of("object")
    }


def image_findings(right: AnnotatedImage, other: AnnotatedImage, reported: Collection[str] = ()) -> dict[str, Any]:
    """The fields of :class:`Findings` about both images: only what no other annotation in them makes doubtful.

    Objects that the nouns ``reported`` name are left out where only one image has them.
    """
    mine, theirs = _by_name(right), _by_name(other)
    shared = [name for name in mine if name in theirs]
    countable = [name for name in shared if _is_countable(name, right) and _is_countable(name, other)]
    return {
        "only_right": _only(mine, other, reported),
        "only_other": _only(theirs, right, reported),
        "both": tuple(ObjectPhrase(name, len(mine[name]) > 1 and len(theirs[name]) > 1) for name in shared),
        "counts": tuple(
            (name, len(mine[name]), len(theirs[name])) for name in countable if len(mine[name]) != len(theirs[name])
        ),
    }


def _by_name(image: AnnotatedImage) -> dict[str, list[ImageObject]]:
    """The objects by name, those that fill most of the image first."""
    objects: dict[str, list[ImageObject]] = {}
    for item in image.objects:
        if image.source == "annotations" or (is_object_word(item.name) and is_visible(item.name)):
            objects.setdefault(item.name, []).append(item)
    size = {name: sum(item.area or 0.0 for item in items) for name, items in objects.items()}
    return dict(sorted(objects.items(), key=lambda entry: (-size[entry[0]], entry[0])))


def _only(
    by_name: Mapping[str, Sequence[ImageObject]], other: AnnotatedImage, reported: Collection[str]
) -> tuple[ObjectPhrase, ...]:
    """What the other image lacks."""
    return tuple(
        ObjectPhrase(name, len(items) > 1)
        for name, items in by_name.items()
        if _is_absent(name, items, other) and not any(item.is_a(noun) for item in items for noun in reported)
    )


def _is_absent(name: str, objects: Sequence[ImageObject], image: AnnotatedImage) -> bool:
    """Whether an image has nothing of that name, no synonym of it, and nothing that may be the same after all."""
    if image.of(name) or image.may_have(name) or (image.source == "captions" and image.says(name)):
        return False
    if any(item.synset is None for item in objects):  # what it is is unknown
        return False
    present = {item.synset for item in image.objects if item.synset is not None}
    return not any(are_related(item.synset, synset) for item in objects if item.synset for synset in present)


def _is_countable(name: str, image: AnnotatedImage) -> bool:
    """Whether the objects of that name are all that the name can mean, and each is a single one."""
    objects = [item for item in image.objects if item.name == name]
    if image.source == "captions" or is_plural(name) or any(item.crowd for item in objects):
        return False
    return len(image.of(name)) == len(objects) and not image.may_have(name)
