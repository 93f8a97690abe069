"""Whether two captions can both be true of one picture: a veto, by words alone.

It says that a caption is denied by another one, never that it fits. What it looks for are facts that pictures decide:
colours and sizes of the same noun, how many there are, sides, written words and names, opposites, kinds of which a
picture shows one, and, between captions that are nearly equal, whatever they differ in. It would rather deny too much.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from crosslens.core import MissingExtraError
from crosslens.engine import Progress
from crosslens.language import (
    ACTION_OF,
    COLOUR_FAMILY,
    COLOURS,
    CONTRARY_SIDES,
    COUNTED_AS,
    EXCLUSIVE,
    FACT_WORDS,
    LARGE,
    NUMBERS,
    QUOTED,
    SMALL,
    STOP_WORDS,
    in_digits,
    is_noun,
    is_plural,
    load_wordnet,
    may_name,
    naming_words,
    singularise,
)
from crosslens.perturbations import perturb_all
from crosslens.values import Dataset

_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)?|[^\w\s]|_")
_QUIET = frozenset(".,;:!?\"'“”‘’…-–—")
"""Punctuation that changes no caption, except beside a digit or a symbol: 5 - 3 is not 5 3, nor -5 the same as 5."""
_QUOTED_ONCE = re.compile(r"(?<!\w)['‘]([^'’]{2,}?)['’](?!\w)")
_SPELLED = re.compile(r"\b(?:[A-Z]-){2,}[A-Z]\b")
_CAPITALS = re.compile(r"\b[A-Z][A-Z0-9]+\b")
_SIZES = dict.fromkeys(LARGE, "large") | dict.fromkeys(SMALL, "small")
_NEARLY = 0.6
"""The share of words in the same order from which two captions count as one that was edited."""
_WINDOW = 3
_MOST_COUNTED = 12
_FEW_ALIKE = 20


def words_in_order(text: str) -> tuple[str, ...]:
    """What makes two captions the same: the words in their order, without case, white space and punctuation."""
    tokens = [(match.start(), match.group()) for match in _TOKEN.finditer(text)]
    words = []
    for position, (start, token) in enumerate(tokens):
        if token in _QUIET:
            before = tokens[position - 1][1] if position else ""
            after_start, after = tokens[position + 1] if position + 1 < len(tokens) else (0, "")
            touching = after_start == start + 1
            counts = after[:1].isdigit() and (before[-1:].isdigit() or (token in "-–" and touching))
            if not counts and not (_is_symbol(before) or _is_symbol(after)):
                continue
        words.append(token.casefold())
    return tuple(words)


def _is_symbol(token: str) -> bool:
    return bool(token) and not token[0].isalnum() and token not in _QUIET


Values = Mapping[str, frozenset[str]]


class Statements(NamedTuple):
    """What one caption states, as far as closed lists know.

    ``colours``, ``sizes`` and ``counts`` (``0``: several) are by noun; ``numerals`` are ``numbers`` that count nothing.
    """

    words: tuple[str, ...]
    content: tuple[str, ...]
    colours: Values
    sizes: Values
    counts: Values
    written: frozenset[str]
    numbers: frozenset[str]
    numerals: frozenset[str]
    names: frozenset[str]
    denied: frozenset[str]


def contradicts(first: str, second: str) -> str | None:
    """Why two captions cannot both be true of one picture; None where neither denies the other."""
    return next(_reasons(_statements(first), _statements(second)), None)


def _reasons(first: Statements, second: Statements) -> Iterator[str]:
    for fact, mine, theirs in (("colour", first.colours, second.colours), ("size", first.sizes, second.sizes)):
        for noun in sorted(mine.keys() & theirs.keys()):
            if not mine[noun] & theirs[noun]:
                yield f"{fact} of {noun}: {_joined(mine[noun])}, {_joined(theirs[noun])}"
    for noun in sorted(first.counts.keys() & second.counts.keys()):
        counts, others = first.counts[noun], second.counts[noun]
        if not (counts & others or ("0" in counts and others != {"1"}) or ("0" in others and counts != {"1"})):
            yield f"number of {noun}"
    for fact, words, others in (("written", first.written, second.written), ("name", first.names, second.names)):
        if words and others and not words & others:
            yield f"{fact}: {_joined(words)}, {_joined(others)}"
    if first.numerals - second.numbers and second.numerals - first.numbers:
        yield f"numerals: {_joined(first.numerals)}, {_joined(second.numerals)}"
    words, others = frozenset(first.words), frozenset(second.words)
    for side, contrary in CONTRARY_SIDES:
        here_and_there = sorted((bool(side & text), bool(contrary & text)) for text in (words, others))
        if here_and_there == [(False, True), (True, False)]:
            yield f"side: {_joined(side & (words | others))}, {_joined(contrary & (words | others))}"
    things, theirs_too = frozenset(first.content), frozenset(second.content)
    acting, acting_too = (frozenset(map(_action, content)) for content in (things, theirs_too))
    for kinds in EXCLUSIVE:
        if acting & kinds and acting_too & kinds and not acting & acting_too & kinds:
            yield f"kind: {_joined(acting & kinds)}, {_joined(acting_too & kinds)}"
    if gone := (first.denied & theirs_too - second.denied) | (second.denied & things - first.denied):
        yield f"denied: {_joined(gone)}"
    for word in sorted(things - theirs_too):
        if opposite := _opposites(word) & (theirs_too - things):
            yield f"opposites: {word}, {_joined(opposite)}"
    yield from _edited(first, second)


def _edited(first: Statements, second: Statements) -> Iterator[str]:
    """What two captions differ in that are nearly the same: other words in the same position, or another order."""
    if first.words == second.words:
        return
    reordered = first.content != second.content or sorted(first.words) == sorted(second.words)
    if reordered and sorted(first.content) == sorted(second.content) and len(first.content) > 1:
        yield "the same words in another order"
    shorter, longer = sorted((len(first.words), len(second.words)))
    shared = sum(min(first.words.count(word), second.words.count(word)) for word in set(first.words))
    if shared < _NEARLY * longer or not shorter:
        return
    gone: list[str] = []
    new: list[str] = []
    for kind, start, stop, at, to in SequenceMatcher(None, first.words, second.words, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        mine, theirs = first.words[start:stop], second.words[at:to]
        old_words, new_words = content_words(mine), content_words(theirs)
        gone, new = [*gone, *old_words], [*new, *new_words]
        if old_words and new_words and not any(_synonyms(word) & set(new_words) for word in old_words):
            yield f"{' '.join(old_words)}, not {' '.join(new_words)}"
        for sides in CONTRARY_SIDES:
            if any(sides[side] & set(mine) and sides[1 - side] & set(theirs) for side in (0, 1)):
                yield f"side: {' '.join(mine)}, not {' '.join(theirs)}"
        if any(word.isdecimal() for word in (*mine, *theirs)):
            yield f"numerals: {' '.join(mine)}, {' '.join(theirs)}"
    if gone and new and not all(_synonyms(word) & set(new) for word in gone):
        yield f"{' '.join(gone)}, not {' '.join(new)}"


@lru_cache(maxsize=1 << 16)
def _statements(text: str) -> Statements:
    words = tuple(in_digits(words_in_order(text)))
    tokens = in_digits([match.group().casefold() for match in _TOKEN.finditer(text) if match.group() not in "-–"])
    colours: dict[str, set[str]] = {}
    sizes: dict[str, set[str]] = {}
    counts: dict[str, list[int]] = {}
    denied: set[str] = set()
    bare: set[str] = set()
    digits = {match.group() for match in _TOKEN.finditer(text) if match.group().isdecimal()}
    calculates = not FACT_WORDS["arithmetic"].isdisjoint(words)
    for position, word in enumerate(tokens):
        if word in COLOURS:
            for noun in _nouns_after(tokens, position) or _nouns_before(tokens, position):
                colours.setdefault(noun, set()).add(COLOUR_FAMILY.get(word, word))
        elif word in _SIZES:
            for noun in _nouns_after(tokens, position):
                sizes.setdefault(noun, set()).add(_SIZES[word])
        elif word in FACT_WORDS["negations"]:
            beyond = content_words(tokens[position + 1 : position + 1 + _WINDOW])
            denied.update(word for word in beyond if not word.isdecimal())
        if (count := _count(tokens, position)) is not None:
            counted_nouns = [noun for noun in _nouns_after(tokens, position) if is_plural(noun) == (count != 1)]
            for noun in map(singularise, counted_nouns):
                if word != "another" or noun in counts:
                    counts.setdefault(noun, []).append(count)
            beside = {*tokens[max(position - 1, 0) : position], *tokens[position + 1 : position + 2]}
            states = calculates or (count > _MOST_COUNTED and not beside & FACT_WORDS["clock"])
            if word.isdecimal() and (word in digits or (states and not counted_nouns)):
                bare.add(word)
    several = (word for word in words if len(word) > 2 and word not in STOP_WORDS and is_plural(word) and is_noun(word))
    numbers = {noun: _possible(values) for noun, values in counts.items()}
    numbers = {singularise(word): frozenset("0") for word in several} | numbers
    return Statements(
        words, content_words(words), _by_noun(colours), _by_noun(sizes), numbers, _written(text),
        frozenset(filter(str.isdecimal, words)), frozenset(bare), _names(text), frozenset(denied),
    )  # fmt: skip


def _by_noun(table: Mapping[str, set[str]]) -> Values:
    return {singularise(noun): frozenset(values) for noun, values in table.items()}


def _possible(counts: Sequence[int]) -> frozenset[str]:
    """How many there may be of what is counted several times: *a black dog and a white dog* are two, or one."""
    return frozenset(map(str, counts if 0 in counts else (*counts, sum(counts))))


def _count(words: Sequence[str], position: int) -> int | None:
    word = words[position]
    if word in ("a", "an", "one", "another") or (word == "single" and words[position - 1] not in ("a", "one")):
        return 1
    if word in FACT_WORDS["several"]:
        return 0
    return NUMBERS.index(COUNTED_AS[word]) if word in COUNTED_AS else int(word) if word.isdecimal() else None


def _nouns_before(words: Sequence[str], position: int) -> Sequence[str]:
    """What a colour is of that ends a phrase: *a girl in red*."""
    naming = [may_name(word) and word not in COLOURS for word in words[:position]]
    last = max((at for at in range(max(position - _WINDOW - 2, 0), position) if naming[at]), default=None)
    return [] if last is None else words[last - (last > 0 and naming[last - 1]) : last + 1]


def _nouns_after(words: Sequence[str], position: int) -> list[str]:
    """The words of the thing behind an attribute, beyond others of its attributes: *red, white and blue flags*."""
    attributes = COLOURS | _SIZES.keys()
    while position + 1 < len(words):
        word, after = words[position + 1], words[position + 2 : position + 3]
        if word not in attributes and word not in ("and", "of") and not (word == "," and attributes & set(after)):
            break
        position += 1
    return [word for word in naming_words(words, position)[:_WINDOW] if word not in attributes]


def _written(text: str) -> frozenset[str]:
    quoted = QUOTED.findall(text) + _QUOTED_ONCE.findall(text)
    quoted += [match.replace("-", "") for match in _SPELLED.findall(text)]
    if not text.isupper():
        quoted += [word for word in _CAPITALS.findall(text) if word not in ("TV", "USA", "US", "UK")]
    if not quoted:
        words = words_in_order(text)
        quoted = [after for word, after in pairwise(words) if word in FACT_WORDS["says"]]
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
        return COLOUR_FAMILY.get(word, word)
    if word.endswith(("ing", "ed")) and (verb := net.morphy(word, "v")):
        return verb
    return net.morphy(word, "n") or net.morphy(word, "v") or word


def _action(word: str) -> str:
    return word if word in FACT_WORDS["seldom_done"] else ACTION_OF.get(word, word)


@lru_cache(maxsize=1 << 14)
def _opposites(word: str) -> frozenset[str]:
    net = load_wordnet()
    return frozenset(opposite.lower() for part in "anv" for opposite in net.antonyms(word, part))


@lru_cache(maxsize=1 << 14)
def _synonyms(word: str) -> frozenset[str]:
    """The word, and those that share one of its senses, or say the same action; but a colour is no other colour."""
    net = load_wordnet()
    same = {lemma.lower() for synset in net.synsets(word).tolist() for lemma in net.lemmas(synset)}
    same |= {other for other in ACTION_OF if ACTION_OF[other] == ACTION_OF.get(_action(word))}
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
    nouns = sorted({word for text in texts for word in _TOKEN.findall(text) if _names_thing(word)})
    edited: list[str | None] = []
    for position, text in enumerate(texts):
        choices = changed.get(text, []) if position % 2 else []
        matches = [match for match in _TOKEN.finditer(text) if _names_thing(match.group())]
        text_words = set(content_words(words_in_order(text)))
        replacements = [noun for noun in nouns if text_words.isdisjoint(_synonyms(_base(noun)))]
        if choices:
            edited.append(choices[int(stream.integers(len(choices)))])
        elif matches and replacements:
            match = matches[int(stream.integers(len(matches)))]
            noun = replacements[int(stream.integers(len(replacements)))]
            edited.append(text[: match.start()] + noun + text[match.end() :])
        else:
            edited.append(None)
    return edited


def _names_thing(word: str) -> bool:
    """Whether a word names a thing, as far as it can be told without parsing."""
    word = word.casefold()
    return len(word) > 2 and word.isalpha() and word not in STOP_WORDS | COLOURS and (is_noun(word) or len(word) > 4)


def near_twins(dataset: Dataset) -> list[tuple[int, int]]:
    """Pairs of captions (rows) of different images that differ in one word that decides, each in both orders."""
    alike: dict[tuple[str, ...], list[int]] = {}
    for row, text in enumerate(dataset.texts):
        words = content_words(words_in_order(text))
        for position in range(len(words) if len(words) > 2 else 0):
            alike.setdefault((*words[:position], "", *words[position + 1 :]), []).append(row)
    owner = dataset.caption_image
    pairs = {
        (row, other)
        for rows in alike.values()
        for row in rows[:_FEW_ALIKE]
        for other in rows[:_FEW_ALIKE]
        if owner[row] != owner[other]
    }
    return sorted(pair for pair in pairs if contradicts(dataset.texts[pair[0]], dataset.texts[pair[1]]))


def _joined(words: frozenset[str]) -> str:
    return " ".join(sorted(words))
