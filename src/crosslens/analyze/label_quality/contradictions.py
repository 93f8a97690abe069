"""Whether two captions can both be true of one picture: a veto, by words alone.

It says that a caption is denied by another one, never that it fits. What it looks for are facts that pictures decide:
colours and sizes of the same noun, how many there are, sides, written words and names, opposites, kinds of which a
picture shows one, and, between captions that are nearly equal, whatever they differ in. It would rather deny too much.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

import numpy as np

from crosslens.core import Dataset, MissingExtraError, Progress
from crosslens.language import (
    COLOURS,
    COUNTED_AS,
    FEMALE,
    HE,
    MALE,
    NUMBERS,
    SHE,
    STOP_WORDS,
    is_plural,
    load_wordnet,
    singularise,
    word_set,
)
from crosslens.perturbations import perturb_all

_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)?|[^\w\s]|_")
_QUIET = frozenset(".,;:!?\"'“”‘’…-–—")
"""Punctuation that changes no caption, except beside a digit or a symbol: 5 - 3 is not 5 3, nor -5 the same as 5."""
_QUOTED = re.compile(r"[\"“”]([^\"“”]+)[\"“”]|(?<!\w)['‘]([^'’]{2,}?)['’](?!\w)")
_SPELLED = re.compile(r"\b(?:[A-Z]-){2,}[A-Z]\b")
_CAPITALS = re.compile(r"\b[A-Z][A-Z0-9]+\b")
_SAYS = word_set("says said saying reads reading spells spelling labeled labelled marked titled called named")
_SEVERAL = word_set("several some many few multiple various numerous lots group bunch crowd both")
_SAME_COLOUR = {"gray": "grey", "blonde": "blond", "golden": "gold"}
_SIZE = {
    **dict.fromkeys(("big", "large", "huge", "giant", "enormous", "gigantic", "massive"), "large"),
    **dict.fromkeys(("small", "little", "tiny", "miniature"), "small"),
}
_SIDES: tuple[tuple[frozenset[str], frozenset[str]], ...] = tuple(
    (word_set(first), word_set(second))
    for first, second in (
        ("left leftmost", "right rightmost"),
        ("above over top upper atop overhead", "below under beneath underneath bottom lower"),
        ("front ahead", "behind back"),
        ("inside within indoors indoor", "outside outdoors outdoor"),
        ("into onto toward towards", "from away"),
        ("near close beside next", "far distant"),
        ("before", "after"),
        ("up upward", "down downward"),
        ("plus add adding sum +", "minus subtract subtraction take - −"),
        ("with", "without"),
        ("day daytime daylight sunny noon", "night nighttime dark midnight"),
        (" ".join((*MALE, *HE, "men", "boys")), " ".join((*FEMALE, *SHE, "women", "girls", "ladies"))),
        ("first", "last"),
        ("all every each", "none"),
    )
)
"""Of each row, a caption that says one side and not the other denies a caption that does the contrary."""
_EXCLUSIVE = tuple(
    word_set(words)
    for words in (
        """dog cat horse cow sheep goat pig elephant giraffe zebra bear lion tiger monkey rabbit duck bird fish snake
        camel kangaroo penguin""",
        "car truck bus train motorcycle bicycle boat airplane plane helicopter tractor sailboat",
        "beach street kitchen bathroom bedroom office forest desert classroom stadium airport farm library restaurant",
        """baseball tennis soccer basketball hockey golf volleyball cricket rugby skateboard skateboarding snowboard
        snowboarding surfing surf skiing ski bowling boxing karate""",
        "pizza cake sandwich burger salad soup donut banana apple broccoli",
        "sit stand lie kneel crouch squat jump leap walk run climb swim dance sleep crawl fly drive eat drink read",
        "square circle triangle rectangle ellipse oval rhombus diamond hexagon pentagon star cube sphere",
        "winter summer spring autumn fall",
        "sunny rainy cloudy snowy foggy stormy",
        "wooden metal plastic glass stone brick leather paper",
        "happy sad angry scared surprised",
        "monday tuesday wednesday thursday friday saturday sunday",
        "english french german spanish italian chinese japanese russian greek arabic",
    )
)
"""Of each row, captions that name different words only deny each other."""
_NEGATIONS = word_set("no not without never nothing isn't aren't doesn't don't cannot none nor neither lacks missing")
_NEARLY = 0.6
"""The share of words in the same order from which two captions count as one that was edited."""
_WINDOW = 3
_FEW_ALIKE = 20


def words_in_order(text: str) -> tuple[str, ...]:
    """What makes two captions the same: the words in their order, without case, white space and punctuation."""
    tokens = [(match.start(), match.group()) for match in _TOKEN.finditer(text)]
    words = []
    for place, (start, token) in enumerate(tokens):
        if token in _QUIET:
            before = tokens[place - 1][1] if place else ""
            after_start, after = tokens[place + 1] if place + 1 < len(tokens) else (0, "")
            touching = after_start == start + 1
            counts = after[:1].isdigit() and (before[-1:].isdigit() or (token in "-–" and touching))
            if not counts and not (_is_symbol(before) or _is_symbol(after)):
                continue
        words.append(token.casefold())
    return tuple(words)


def _is_symbol(token: str) -> bool:
    return bool(token) and not token[0].isalnum() and token not in _QUIET


@dataclass(frozen=True)
class Statements:
    """What one caption states, as far as closed lists know: ``colours`` and ``sizes`` by noun, ``counts`` by noun (0:
    several), ``written`` words, ``numerals`` and ``names``, and the words that it ``denies``."""

    words: tuple[str, ...]
    content: tuple[str, ...]
    colours: Mapping[str, frozenset[str]]
    sizes: Mapping[str, frozenset[str]]
    counts: Mapping[str, frozenset[int]]
    written: frozenset[str]
    numerals: frozenset[str]
    names: frozenset[str]
    denied: frozenset[str]


def contradicts(first: str, second: str) -> str | None:
    """Why two captions cannot both be true of one picture; None where neither denies the other."""
    one, other = _statements(first), _statements(second)
    return next(_reasons(one, other), None)


def _reasons(one: Statements, other: Statements) -> Iterator[str]:
    for what, mine, theirs in (("colour", one.colours, other.colours), ("size", one.sizes, other.sizes)):
        for noun in sorted(mine.keys() & theirs.keys()):
            if not mine[noun] & theirs[noun]:
                yield f"{what} of {noun}: {_listed(mine[noun])}, {_listed(theirs[noun])}"
    for noun in sorted(one.counts.keys() & other.counts.keys()):
        counts = one.counts[noun], other.counts[noun]
        several = any(0 in mine and max(theirs) != 1 for mine, theirs in (counts, counts[::-1]))
        if not counts[0] & counts[1] and not several:
            yield f"number of {noun}"
    for what, said in (("written", (one.written, other.written)), ("name", (one.names, other.names))):
        if said[0] and said[1] and not said[0] & said[1]:
            yield f"{what}: {_listed(said[0])}, {_listed(said[1])}"
    if one.numerals - other.numerals and other.numerals - one.numerals:
        yield f"numerals: {_listed(one.numerals)}, {_listed(other.numerals)}"
    words = frozenset(one.words), frozenset(other.words)
    for sides in _SIDES:
        stated = [[bool(side & mine) for side in sides] for mine in words]
        if sorted(stated) == [[False, True], [True, False]]:
            yield f"side: {_listed(sides[0] & (words[0] | words[1]))}, {_listed(sides[1] & (words[0] | words[1]))}"
    things = frozenset(one.content), frozenset(other.content)
    for kinds in _EXCLUSIVE:
        named = things[0] & kinds, things[1] & kinds
        if named[0] and named[1] and not named[0] & named[1]:
            yield f"kind: {_listed(named[0])}, {_listed(named[1])}"
    for denied, affirmed, denying in ((one.denied, things[1], other.denied), (other.denied, things[0], one.denied)):
        if gone := denied & affirmed - denying:
            yield f"denied: {_listed(gone)}"
    for word in sorted(things[0] - things[1]):
        if opposite := _opposites(word) & (things[1] - things[0]):
            yield f"opposites: {word}, {_listed(opposite)}"
    yield from _edited(one, other)


def _edited(one: Statements, other: Statements) -> Iterator[str]:
    """What two captions differ in that are nearly the same: other words in the same place, or another order."""
    if one.words == other.words:
        return
    reordered = one.content != other.content or sorted(one.words) == sorted(other.words)
    if reordered and sorted(one.content) == sorted(other.content) and len(one.content) > 1:
        yield "the same words in another order"
    shorter, longer = sorted((len(one.words), len(other.words)))
    shared = sum(min(one.words.count(word), other.words.count(word)) for word in set(one.words))
    if shared < _NEARLY * longer or not shorter:
        return
    gone: list[str] = []
    new: list[str] = []
    for operation, start, stop, at, to in SequenceMatcher(None, one.words, other.words, autojunk=False).get_opcodes():
        if operation == "equal":
            continue
        mine, theirs = one.words[start:stop], other.words[at:to]
        here, there = content_words(mine), content_words(theirs)
        gone, new = [*gone, *here], [*new, *there]
        if here and there and not any(_synonyms(word) & set(there) for word in here):
            yield f"{' '.join(here)}, not {' '.join(there)}"
        for sides in _SIDES:
            if any(sides[which] & set(mine) and sides[1 - which] & set(theirs) for which in (0, 1)):
                yield f"side: {' '.join(mine)}, not {' '.join(theirs)}"
        if any(word.isdecimal() for word in (*mine, *theirs)):
            yield f"numerals: {' '.join(mine)}, {' '.join(theirs)}"
    if gone and new and not all(_synonyms(word) & set(new) for word in gone):
        yield f"{' '.join(gone)}, not {' '.join(new)}"


@lru_cache(maxsize=1 << 16)
def _statements(text: str) -> Statements:
    words = words_in_order(text)
    colours: dict[str, set[str]] = {}
    sizes: dict[str, set[str]] = {}
    counts: dict[str, set[int]] = {}
    denied: set[str] = set()
    for place, word in enumerate(words):
        if word in COLOURS:
            for noun in _nouns_of(words, place):
                colours.setdefault(noun, set()).add(_SAME_COLOUR.get(word, word))
        elif word in _SIZE:
            for noun in _nouns_after(words, place):
                sizes.setdefault(noun, set()).add(_SIZE[word])
        elif word in _NEGATIONS:
            denied.update(content_words(words[place + 1 : place + 1 + _WINDOW]))
        if (count := _count(words, place)) is not None:
            for noun in _nouns_after(words, place, plural=count != 1):
                counts.setdefault(noun, set()).add(count)
    for word in words:
        if len(word) > 2 and word not in STOP_WORDS and is_plural(word) and _is_noun(word):
            counts.setdefault(singularise(word), {0})
    content = content_words(words)
    colour, size = ({noun: frozenset(values) for noun, values in table.items()} for table in (colours, sizes))
    numbers = {noun: frozenset(values) for noun, values in counts.items()}
    return Statements(
        words, content, colour, size, numbers, _written(text), frozenset(word for word in words if word.isdecimal()),
        _names(text), frozenset(denied),
    )  # fmt: skip


def _count(words: Sequence[str], place: int) -> int | None:
    word = words[place]
    if word in ("a", "an", "one", "single"):
        return 1
    if word in COUNTED_AS:
        return NUMBERS.index(COUNTED_AS[word])
    if word in _SEVERAL:
        return 0
    if word.isdecimal():
        return int(word)
    return NUMBERS.index(word) if word in NUMBERS else None


def _nouns_of(words: Sequence[str], place: int) -> list[str]:
    """What a colour is of: what follows it, or, where it ends a phrase (*a girl in red*), what leads."""
    after = _nouns_after(words, place)
    if after:
        return after
    before = [word for word in words[max(0, place - _WINDOW - 2) : place] if word not in STOP_WORDS]
    return [singularise(word) for word in before[-2:] if word not in COLOURS]


def _nouns_after(words: Sequence[str], place: int, *, plural: bool | None = None) -> list[str]:
    nouns: list[str] = []
    for word in words[place + 1 :]:
        if word in COLOURS or word in _SIZE or (not nouns and word in ("and", "of", "-")):
            continue
        if word in STOP_WORDS or not word[0].isalpha() or len(nouns) == _WINDOW:
            break
        nouns.append(word)
    if plural is not None:
        nouns = [word for word in nouns if is_plural(word) == plural]
    return [singularise(word) for word in nouns]


def _written(text: str) -> frozenset[str]:
    quoted = ["".join(groups) for groups in _QUOTED.findall(text)]
    quoted += [match.replace("-", "") for match in _SPELLED.findall(text)]
    if not text.isupper():
        quoted += [word for word in _CAPITALS.findall(text) if word not in ("TV", "USA", "US", "UK")]
    if not quoted:
        words = words_in_order(text)
        quoted = [words[place + 1] for place, word in enumerate(words[:-1]) if word in _SAYS]
    return frozenset(word for part in quoted for word in words_in_order(part))


def _names(text: str) -> frozenset[str]:
    """Capitalised words inside sentences, where not everything is capitalised."""
    words = re.findall(r"(?<![.!?] )(?<!^)(?<![\"“'])\b([^\W\d_]+)\b", text)
    capitalised = [word for word in words if word[0].isupper() and word[1:].islower()]
    if len(capitalised) > max(3, len(words) / 2):
        return frozenset()
    return frozenset(word.casefold() for word in capitalised if len(word) > 2)


def content_words(words: Sequence[str]) -> tuple[str, ...]:
    """The base forms of words that name something."""
    return tuple(
        _base(word)
        for word in words
        if (word not in STOP_WORDS or word in NUMBERS) and (word[0].isalnum() or word in "+-*/=<>")
    )


@lru_cache(maxsize=1 << 15)
def _base(word: str) -> str:
    net = load_wordnet()
    if word in COLOURS:
        return _SAME_COLOUR.get(word, word)
    if word.endswith(("ing", "ed")) and (verb := net.morphy(word, "v")):
        return verb
    return net.morphy(word, "n") or net.morphy(word, "v") or word


@lru_cache(maxsize=1 << 14)
def _is_noun(word: str) -> bool:
    return load_wordnet().morphy(word, "n") is not None


@lru_cache(maxsize=1 << 14)
def _opposites(word: str) -> frozenset[str]:
    net = load_wordnet()
    return frozenset(opposite.lower() for part in "anv" for opposite in net.antonyms(word, part))


@lru_cache(maxsize=1 << 14)
def _synonyms(word: str) -> frozenset[str]:
    """The word, and those that share one of its senses; but a colour is no other colour."""
    net = load_wordnet()
    same = {lemma.lower() for synset in net.synsets(word).tolist() for lemma in net.lemmas(synset)}
    return frozenset(same) - COLOURS | {word}


EDITS = ("color_in", "antonym", "size", "number_change", "verb_antonym", "shuffle_nouns_and_adj")


def edited_captions(
    texts: Sequence[str], seed: int, stream: np.random.Generator, progress: Progress | None = None
) -> list[str | None]:
    """Each text with one fact changed, so that it is wrong about its picture; None where nothing can be changed.

    The perturbations take turns where captions can be parsed; what they cannot change, and every second caption, has
    one thing that it names exchanged for one that another caption names.
    """
    changed: dict[str, list[str]] = {}
    with suppress(MissingExtraError):
        for results in perturb_all(EDITS, list(dict.fromkeys(texts)), seed=seed, progress=progress).values():
            for result in results:
                if result.text != result.original:
                    changed.setdefault(result.original, []).append(result.text)
    nouns = sorted({word for text in texts for word in _TOKEN.findall(text) if _named(word)})
    edited: list[str | None] = []
    for place, text in enumerate(texts):
        choices = changed.get(text, []) if place % 2 else []
        named = [match for match in _TOKEN.finditer(text) if _named(match.group())]
        others = [noun for noun in nouns if not _synonyms(_base(noun)) & set(content_words(words_in_order(text)))]
        if choices:
            edited.append(choices[int(stream.integers(len(choices)))])
        elif named and others:
            match = named[int(stream.integers(len(named)))]
            noun = others[int(stream.integers(len(others)))]
            edited.append(text[: match.start()] + noun + text[match.end() :])
        else:
            edited.append(None)
    return edited


def _named(word: str) -> bool:
    """Whether a word names a thing, as far as it can be told without parsing."""
    word = word.casefold()
    return len(word) > 2 and word.isalpha() and word not in STOP_WORDS | COLOURS and (_is_noun(word) or len(word) > 4)


def near_twins(dataset: Dataset) -> list[tuple[int, int]]:
    """Pairs of captions (rows) of different images that differ in one word that decides, each in both orders."""
    alike: dict[tuple[str, ...], list[int]] = {}
    for row, text in enumerate(dataset.texts):
        words = content_words(words_in_order(text))
        for place in range(len(words) if len(words) > 2 else 0):
            alike.setdefault((*words[:place], "", *words[place + 1 :]), []).append(row)
    owner = dataset.caption_image
    pairs = {
        (row, other)
        for rows in alike.values()
        for row in rows[:_FEW_ALIKE]
        for other in rows[:_FEW_ALIKE]
        if owner[row] != owner[other]
    }
    return sorted(pair for pair in pairs if contradicts(dataset.texts[pair[0]], dataset.texts[pair[1]]))


def _listed(words: frozenset[str]) -> str:
    return " ".join(sorted(words))
