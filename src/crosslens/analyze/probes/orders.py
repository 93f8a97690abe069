"""Two words of a caption in each other's place, where their order decides what is said.

Attributes of two things (*a red car and a blue bus*: a blue car and a red bus), numbers of two things, and the two
sides of what cannot hold both ways (*a dog chasing a cat*, *a cup on top of a table*, *a cat left of a dog*). Never the
sides of *and*, *with*, *near* or *beside*. The words are the same, so that a bag of words cannot tell; articles stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from crosslens.language import (
    COLOUR_FAMILIES,
    FACT_READERS,
    FACT_WORDS,
    OPPOSITE_POSITIONS,
    SMALL_NUMBERS,
    Words,
    is_noun,
    is_plural,
    load_wordnet,
    may_name,
    naming_words,
    takes_an,
)

_DIRECTED = tuple(
    tuple(form.split())
    for form in (
        "to the left of", "to the right of", "left of", "right of", "on top of", "in front of", "above", "below",
        "over", "under", "underneath", "beneath", "behind", "inside",
    )
)  # fmt: skip
"""What holds from one side only. Not *in* and *on*: nobody needs order to know which side is the beach."""
_DETERMINERS = frozenset({"a", "an", "the", *SMALL_NUMBERS})
_LONGEST = 4


class Thing(NamedTuple):
    """The words behind an article, from ``first`` to ``last``, the noun."""

    first: int
    last: int


class Swap(NamedTuple):
    """A text that says something else in the same words, and what was exchanged: colours, numbers or sides.

    ``control`` is false by another word instead: a model that does not notice it cannot notice their order either.
    """

    text: str
    sort: str
    control: str


def swaps(words: Words) -> list[Swap]:
    """Every text that says something else in the same words."""
    pairs = [(thing, other, other, _inside(words, thing), sort) for thing, other, sort in _attribute_pairs(words)]
    for thing, other, relation in _directed_pairs(words):
        opposite = OPPOSITE_POSITIONS.get(words.written(*relation).lower())
        pairs.append((thing, other, *((relation, opposite) if opposite else (other, _inside(words, thing))), "sides"))
    return [
        Swap(_exchanged(words, thing, other), sort, words.with_other(*changed, text))
        for thing, other, changed, text, sort in pairs
        if _articles_fit(words, thing, other)
    ]


def _exchanged(words: Words, thing: Thing, other: Thing) -> str:
    start, end, start_other, end_other = (*_span(words, thing), *_span(words, other))
    text, first, second = words.text, _inside(words, thing), words.written(*other)
    if first != words.written(*thing):
        second = second[:1].upper() + second[1:]
    return text[:start] + second + text[end:start_other] + first + text[end_other:]


def _inside(words: Words, thing: Thing) -> str:
    """A thing as it is written inside a text: the capital stays at the beginning."""
    written = words.written(*thing)
    return written if _span(words, thing)[0] else written[:1].lower() + written[1:]


def _articles_fit(words: Words, thing: Thing, other: Thing) -> bool:
    """Whether *a* and *an* are right in the other order, too: changed ones would tell a bag of words."""
    pairs = ((thing, other), (other, thing))
    return all(words[at.first - 1] != ("a" if takes_an(words[new.first]) else "an") for at, new in pairs)


def _span(words: Words, thing: Thing) -> tuple[int, int]:
    return words.spans[thing.first][0], words.spans[thing.last][1]


def _attribute_pairs(words: Words) -> Iterator[tuple[Thing, Thing, str]]:
    """Colours, and numbers, that two different nouns have, and which of them."""
    for attribute in ("colour", "count"):
        facts = (fact for fact in FACT_READERS[attribute](words) if not words[fact.first].isdecimal())
        for former, latter in pairwise(fact for fact in facts if attribute == "count" or _alone(words, fact.first)):
            nouns = {_noun_behind(words, fact.first) for fact in (former, latter)}
            listed = "or" in words.lower[former.first : latter.first]
            if former.value != latter.value and len(nouns - {""}) == 2 and not listed:
                yield Thing(former.first, former.last), Thing(latter.first, latter.last), attribute


def _alone(words: Words, at: int) -> bool:
    """Whether a colour is the only one of its noun."""
    after, before, earlier = (words[at + step] in (*COLOUR_FAMILIES, "grey") for step in (1, -1, -2))
    paired = after or before or words[at + 1] in ("and", ",", "-", "/", "with")
    return not paired and not (earlier and words[at - 1] in ("and", ","))


def _noun_behind(words: Words, at: int) -> str:
    """The last word of the run of words behind an attribute; none where something else follows at once."""
    last = naming_words(words, at)[-1:]
    return last[0] if last and is_noun(last[0]) else ""


@lru_cache(maxsize=1 << 14)
def _is_verb_form(word: str) -> bool:
    """*runs*, *stands*: in the singular, behind a noun, it is what the noun does."""
    return word.endswith("s") and not word.endswith("ss") and load_wordnet().morphy(word, "v") is not None


def _directed_pairs(words: Words) -> Iterator[tuple[Thing, Thing, Thing]]:
    """Two things, and the words that say how the first is to the second: of *to the left of*, *left*."""
    at = 0
    while at < len(words):
        length = _relation(words, at)
        before, behind = (_thing_before(words, at), _thing_behind(words, at + length)) if length else (None, None)
        nouns = [words[thing.last] for thing in (before, behind) if thing]
        if before and behind and nouns[0] != nouns[1] and is_plural(nouns[0]) == is_plural(nouns[1]):
            side = next((place for place in range(at, at + length) if words[place] in ("left", "right")), None)
            yield before, behind, Thing(at, at + length - 1) if side is None else Thing(side, side)
        at += max(length, 1)


def _relation(words: Words, at: int) -> int:
    if words[at] in FACT_WORDS["done_to"]:
        return 1
    return next((len(form) for form in _DIRECTED if words.lower[at : at + len(form)] == form), 0)


def _thing_behind(words: Words, at: int) -> Thing | None:
    """A thing with its article or number, right behind a relation."""
    if words[at] not in _DETERMINERS:
        return None
    at += words[at + 1] in SMALL_NUMBERS  # the three dogs
    last = at
    while last - at < _LONGEST and may_name(words[last + 1]):
        last += 1
        if last - at > 1 and _is_verb_form(words[last]) and is_noun(words[last - 1]):
            last -= 1
            break
    return _thing(words, at + 1, last)


def _thing_before(words: Words, at: int) -> Thing | None:
    """The thing of which a relation is said: with its verb, if any, between it and the relation."""
    start = at - 1
    while start >= 0 and at - start <= _LONGEST + 3 and words[start] not in _DETERMINERS:
        between = words[start]
        verb = between in ("is", "was", "that", "which", "who") or between.endswith("ing") or _is_verb_form(between)
        if not (verb or may_name(between)):
            return None
        start -= 1
    if start < 0 or words[start] not in _DETERMINERS or words[start - 1] in ("and", ",", "with", "of", "or"):
        return None
    last = start
    while last + 1 < at and may_name(words[last + 1]):
        verb = _is_verb_form(words[last + 1]) and words[start] not in SMALL_NUMBERS  # three dogs run, one runs
        if last > start and verb and is_noun(words[last]):
            break
        last += 1
    return _thing(words, start + 1, last)


def _thing(words: Words, first: int, last: int) -> Thing | None:
    if not 0 <= last - first < _LONGEST or not is_noun(words[last]):
        return None
    ends = words[last + 1] not in ("and", "'", "of", "or", "-", "'s")
    return Thing(first, last) if ends and not {words[first], words[last]} & FACT_WORDS["no_thing"] else None
