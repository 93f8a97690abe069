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

from crosslens.analyze.probes.edits import COLOUR_WORDS, FUNCTION_WORDS, NUMBERS_READ, Words, counts_nouns, is_colour
from crosslens.language import is_plural, load_wordnet, word_set

_DIRECTED = (
    ("to", "the", "left", "of"), ("to", "the", "right", "of"), ("left", "of"), ("right", "of"), ("on", "top", "of"),
    ("in", "front", "of"), ("above",), ("below",), ("over",), ("under",), ("underneath",), ("beneath",), ("behind",),
    ("inside",),
)  # fmt: skip
"""What holds from one side only. Not *in* and *on*: nobody needs order to know which side is the beach."""
_DONE_TO = word_set(
    """chasing riding carrying holding pulling pushing following eating biting catching kicking feeding petting
    licking chewing leading throwing washing dragging driving climbing watching chases rides carries holds pulls pushes
    follows eats bites catches kicks feeds pets licks chews leads throws drags drives climbs watches"""
)
_DETERMINERS = frozenset({"a", "an", "the", *NUMBERS_READ} - {"one"})
_NO_THING = word_set(
    """background foreground front left right row line air middle distance side way top bottom picture photo image part
    day time center centre corner edge end back motion circle group crowd couple pair bunch midair lot shade rain dark
    sun night morning evening afternoon view action half hurry game race scene answer display water"""
)
_RING = word_set(
    "king ring thing building ceiling string wing spring morning evening painting clothing crossing wedding railing"
)
_LONGEST = 4


class Thing(NamedTuple):
    """The words behind an article, from ``first`` to ``last``, the noun."""

    first: int
    last: int


def swaps(words: Words) -> list[tuple[str, str]]:
    """Every text that says something else in the same words, and what was exchanged: attributes or sides."""
    pairs = {"attributes": _attribute_pairs(words), "sides": _directed_pairs(words)}
    return [(_exchanged(words, *pair), sort) for sort, found in pairs.items() for pair in found]


def _exchanged(words: Words, one: Thing, other: Thing) -> str:
    (start, end), (start_other, end_other) = (
        (words.spans[thing.first][0], words.spans[thing.last][1]) for thing in (one, other)
    )
    text, first, second = words.text, words.text[start:end], words.text[start_other:end_other]
    if not start and first[:1].isupper():  # the capital stays at the beginning
        first, second = first[:1].lower() + first[1:], second[:1].upper() + second[1:]
    return text[:start] + second + text[end:start_other] + first + text[end_other:]


def _attribute_pairs(words: Words) -> Iterator[tuple[Thing, Thing]]:
    """Colours, and numbers, that two different nouns have."""
    colours = [
        at for at, word in enumerate(words.lower) if word in COLOUR_WORDS and is_colour(words, at) and _alone(words, at)
    ]
    numbers = [at for at, word in enumerate(words.lower) if word in NUMBERS_READ and counts_nouns(words, at)]
    for places in (colours, numbers):
        for one, other in pairwise(places):
            nouns = [_noun_behind(words, at) for at in (one, other)]
            different = words[one] != words[other] and {words[one], words[other]} != {"gray", "grey"}
            if (
                different
                and all(nouns)
                and nouns[0] != nouns[1]
                and not any(words[at] == "or" for at in range(one, other))
            ):
                yield Thing(one, one), Thing(other, other)


def _alone(words: Words, at: int) -> bool:
    """Whether a colour is the only one of its noun."""
    after, before = words[at + 1], words[at - 1]
    paired = after in ("and", ",", "-", "/", "with") or after in COLOUR_WORDS or before in COLOUR_WORDS
    return not paired and not (before in ("and", ",") and words[at - 2] in COLOUR_WORDS)


def _noun_behind(words: Words, at: int) -> str:
    """The last word of the run of words behind an attribute; none where something else follows at once."""
    end = at
    while end - at < _LONGEST and _may_name(words[end + 1]):
        end += 1
    return words[end] if end > at and is_noun(words[end]) else ""


def _may_name(word: str) -> bool:
    named = word.replace("-", "").isalpha() and word not in FUNCTION_WORDS and word not in _DONE_TO
    return named and (word in _RING or not word.endswith(("ing", "ly")))


@lru_cache(maxsize=1 << 14)
def is_noun(word: str) -> bool:
    """Whether WordNet has it as a noun."""
    net = load_wordnet()
    return net.morphy(word, "n") is not None


@lru_cache(maxsize=1 << 14)
def _is_verb_form(word: str) -> bool:
    """*runs*, *stands*: in the singular, behind a noun, it is what the noun does."""
    return word.endswith("s") and not word.endswith("ss") and load_wordnet().morphy(word, "v") is not None


def _directed_pairs(words: Words) -> Iterator[tuple[Thing, Thing]]:
    at = 0
    while at < len(words):
        length = _relation(words, at)
        if length:
            one, other = _thing_before(words, at), _thing_behind(words, at + length)
            nouns = [words[thing.last] for thing in (one, other) if thing]
            if one and other and nouns[0] != nouns[1] and is_plural(nouns[0]) == is_plural(nouns[1]):
                yield one, other
        at += max(length, 1)


def _relation(words: Words, at: int) -> int:
    if words[at] in _DONE_TO:
        return 1
    return next((len(form) for form in _DIRECTED if words.lower[at : at + len(form)] == form), 0)


def _thing_behind(words: Words, at: int) -> Thing | None:
    """A thing with its article or number, right behind a relation."""
    if words[at] not in _DETERMINERS:
        return None
    at += words[at + 1] in NUMBERS_READ  # the three dogs
    last = at
    while last - at < _LONGEST and _may_name(words[last + 1]):
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
        if not (verb or _may_name(between)):
            return None
        start -= 1
    if start < 0 or words[start] not in _DETERMINERS or words[start - 1] in ("and", ",", "with", "of", "or"):
        return None
    last = start
    while last + 1 < at and _may_name(words[last + 1]):
        verb = _is_verb_form(words[last + 1]) and words[start] not in NUMBERS_READ  # three dogs run, one runs
        if last > start and verb and is_noun(words[last]):
            break
        last += 1
    return _thing(words, start + 1, last)


def _thing(words: Words, first: int, last: int) -> Thing | None:
    noun = words[last]
    named = first <= last and is_noun(noun) and last - first < _LONGEST
    if not named or noun in _NO_THING or noun in ("men", "women", "people", "children") or words[first] in _NO_THING:
        return None
    return Thing(first, last) if words[last + 1] not in ("and", "'", "of", "or", "-", "'s") else None
