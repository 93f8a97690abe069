"""One fact of a caption made false: a colour, a number, a side, a size, an action, a written word.

An edit must contradict the caption, and what else is said of its image: a colour becomes a clearly different one that
no caption of the image names, a number differs by two at least, a standing man runs. A caption that is missed costs
nothing, a wrong edit would accuse a model that reads well.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from crosslens.language import (
    ACTION_FORMS,
    ACTION_OF,
    COLOUR_FAMILIES,
    COLOUR_FAMILY,
    CONTRARY_ACTIONS,
    FACT_READERS,
    FAR_COLOURS,
    LARGE,
    OPPOSITE_POSITIONS,
    QUOTED,
    SIZE_WORDS,
    SMALL,
    SMALL_NUMBERS,
    Stated,
    Words,
    number_word,
    takes_an,
)
from crosslens.perturbations import cased_like

ImageWords = frozenset[str]
"""All words of all captions of an image, in lower case: what is said of it is no edit that contradicts."""


@dataclass(frozen=True)
class Fact:
    """A kind of fact that captions state.

    ``contraries``: what would make it false in its place; None: any other that captions state. ``pattern`` matches each
    word that an edit replaces or puts in.
    """

    name: str
    plural: str
    changed: str
    pattern: re.Pattern[str]
    contraries: Callable[[Words, Stated, ImageWords], Iterable[str]] | None

    def values(self, words: Words) -> list[str]:
        """What a caption states."""
        return [fact.value for fact in FACT_READERS[self.name](words)]

    def edited(
        self, words: Words, image_words: ImageWords, counts: Counter[str], stream: np.random.Generator
    ) -> tuple[str, str] | None:
        """The caption with one fact made false, by words that captions use, and its sort; None where it states none."""
        quoted = [match.span() for match in QUOTED.finditer(words.text)] if self.contraries else []
        facts = [
            (fact, options)
            for fact in FACT_READERS[self.name](words)
            if not any(start < words.spans[fact.first][0] < end for start, end in quoted)
            and (options := self._options(words, fact, image_words, counts))
        ]
        if not facts:
            return None
        fact, options = facts[int(stream.integers(len(facts)))]
        weights = np.array([1 + counts[option] for option in options], np.float64)
        option = options[int(stream.choice(len(options), p=weights / weights.sum()))]
        return _replaced(words, fact, option), fact.sort

    def _options(self, words: Words, fact: Stated, image_words: ImageWords, counts: Counter[str]) -> tuple[str, ...]:
        if self.contraries:
            return tuple(self.contraries(words, fact, image_words))
        plain = fact.value.lower()
        return tuple(text for text in counts if text.lower() not in plain and plain not in text.lower())

    def without(self, text: str) -> str:
        """The text as a model sees it that does not read these facts."""
        return re.sub(r"\ban\b", "a", " ".join(self.pattern.sub(" ", text).split()))


def _replaced(words: Words, fact: Stated, new: str) -> str:
    """The text with a fact replaced; an *a* before it follows the new sound."""
    start, end = words.spans[fact.first][0], words.spans[fact.last][1]
    before = words.text[:start]
    if words[fact.first - 1] in ("a", "an"):
        at, to = words.spans[fact.first - 1]
        before = before[:at] + cased_like(before[at:to], "an" if takes_an(new) else "a") + before[to:]
    return before + cased_like(words.text[start:end], new) + words.text[end:]


def _other_colours(words: Words, fact: Stated, image_words: ImageWords) -> Iterable[str]:
    return sorted(FAR_COLOURS[fact.value] - {COLOUR_FAMILY[word] for word in image_words if word in COLOUR_FAMILY})


def _other_numbers(words: Words, fact: Stated, image_words: ImageWords) -> Iterable[str]:
    value, numbers = SMALL_NUMBERS[fact.value], {number_word(word) for word in image_words}
    for word, number in SMALL_NUMBERS.items():
        less, more = sorted((number, value))
        if more - less >= 2 and more >= 1.5 * less and number <= 9 and word not in numbers:
            yield str(number) if words[fact.first].isdecimal() else word


def _other_sizes(words: Words, fact: Stated, image_words: ImageWords) -> Iterable[str]:
    other, options = ("small", ("small", "tiny")) if fact.value in LARGE else ("large", ("big", "huge", "large"))
    return () if image_words & SIZE_WORDS[other] else options


def _other_actions(words: Words, fact: Stated, image_words: ImageWords) -> Iterable[str]:
    done = {ACTION_OF[word] for word in image_words if word in ACTION_OF}
    done |= {"sit"} if image_words & {"bench", "chair"} else set()
    done |= {"sleep"} if "bed" in image_words else set()
    for action in CONTRARY_ACTIONS[fact.value]:
        if action not in done:
            yield ACTION_FORMS[action][words[fact.first].endswith("s")]


def _opposite_positions(words: Words, fact: Stated, image_words: ImageWords) -> Iterable[str]:
    return (OPPOSITE_POSITIONS[fact.value],)  # captions of one image state the same relation from both ends


def _any_of(words: Iterable[str]) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w'-])(?:{'|'.join(sorted(words, key=len, reverse=True))})(?![\w'-])", re.IGNORECASE)


def _words_of(groups: Iterable[Iterable[str]]) -> re.Pattern[str]:
    return _any_of(word for words in groups for word in words)


FACTS = (
    Fact("colour", "colours", "a colour", _words_of(COLOUR_FAMILIES.values()), _other_colours),
    Fact("count", "numbers", "a number", _any_of((*SMALL_NUMBERS, *map(str, range(2, 13)))), _other_numbers),
    Fact("position", "positions", "a position", _any_of(OPPOSITE_POSITIONS), _opposite_positions),
    Fact("action", "actions", "an action", _words_of(ACTION_FORMS.values()), _other_actions),
    Fact("size", "sizes", "a size", _any_of((*LARGE, *SMALL)), _other_sizes),
    Fact("text", "written words", "a written word", QUOTED, None),
)
"""What a word or two of a caption state, in the order in which it is shown."""
