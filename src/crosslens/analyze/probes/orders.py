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


class WordRange(NamedTuple):
    """Words from ``first`` to ``last``: those behind an article up to the noun, or an attribute."""

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
    pairs = [(former, latter, latter, _inside(words, former), sort) for former, latter, sort in _attribute_pairs(words)]
    for former, latter, relation in _directed_pairs(words):
        opposite = OPPOSITE_POSITIONS.get(words.written(*relation).lower())
        changed = (relation, opposite) if opposite else (latter, _inside(words, former))
        pairs.append((former, latter, *changed, "sides"))
    return [
        Swap(_exchanged(words, former, latter), sort, words.with_other(*changed, text))
        for former, latter, changed, text, sort in pairs
        if _articles_fit(words, former, latter)
    ]


def _exchanged(words: Words, former: WordRange, latter: WordRange) -> str:
    start, end, start_other, end_other = (*_span(words, former), *_span(words, latter))
    text, first, second = words.text, _inside(words, former), words.written(*latter)
    if first != words.written(*former):
        second = second[:1].upper() + second[1:]
    return text[:start] + second + text[end:start_other] + first + text[end_other:]


def _inside(words: Words, part: WordRange) -> str:
    """Words as they are written inside a text: the capital stays at the beginning."""
    written = words.written(*part)
    return written if _span(words, part)[0] else written[:1].lower() + written[1:]


def _articles_fit(words: Words, former: WordRange, latter: WordRange) -> bool:
    """Whether *a* and *an* are right in the other order, too: changed ones would tell a bag of words."""
    pairs = ((former, latter), (latter, former))
    return all(words[at.first - 1] != ("a" if takes_an(words[new.first]) else "an") for at, new in pairs)


def _span(words: Words, part: WordRange) -> tuple[int, int]:
    return words.spans[part.first][0], words.spans[part.last][1]


def _attribute_pairs(words: Words) -> Iterator[tuple[WordRange, WordRange, str]]:
    """Colours, and numbers, that two different nouns have, and which of them."""
    for attribute in ("colour", "count"):
        facts = (fact for fact in FACT_READERS[attribute](words) if not words[fact.first].isdecimal())
        for former, latter in pairwise(fact for fact in facts if attribute == "count" or _alone(words, fact.first)):
            nouns = {_noun_behind(words, fact.first) for fact in (former, latter)}
            listed = "or" in words.lower[former.first : latter.first]
            if former.value != latter.value and len(nouns - {""}) == 2 and not listed:
                yield WordRange(former.first, former.last), WordRange(latter.first, latter.last), attribute


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


def _directed_pairs(words: Words) -> Iterator[tuple[WordRange, WordRange, WordRange]]:
    """Two things, and the words that say how the first is to the second: of *to the left of*, *left*."""
    at = 0
    while at < len(words):
        length = _relation(words, at)
        before, behind = (_phrase_before(words, at), _phrase_behind(words, at + length)) if length else (None, None)
        nouns = [words[phrase.last] for phrase in (before, behind) if phrase]
        if before and behind and nouns[0] != nouns[1] and is_plural(nouns[0]) == is_plural(nouns[1]):
            side = next((position for position in range(at, at + length) if words[position] in ("left", "right")), None)
            yield before, behind, WordRange(at, at + length - 1) if side is None else WordRange(side, side)
        at += max(length, 1)


def _relation(words: Words, at: int) -> int:
    if words[at] in FACT_WORDS["done_to"]:
        return 1
    return next((len(form) for form in _DIRECTED if words.lower[at : at + len(form)] == form), 0)


def _phrase_behind(words: Words, at: int) -> WordRange | None:
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
    return _noun_phrase(words, at + 1, last)


def _phrase_before(words: Words, at: int) -> WordRange | None:
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
    return _noun_phrase(words, start + 1, last)


def _noun_phrase(words: Words, first: int, last: int) -> WordRange | None:
    if not 0 <= last - first < _LONGEST or not is_noun(words[last]):
        return None
    ends = words[last + 1] not in ("and", "'", "of", "or", "-", "'s")
    return WordRange(first, last) if ends and not {words[first], words[last]} & FACT_WORDS["no_thing"] else None
