"""Slips of the finger: one letter of one word swapped, lost, doubled up with its neighbour, or missed.

First the word is drawn, each with the same chance, then the place in it. A letter that carries a combining mark is left
alone, so that no mark ends up on another letter.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise

from crosslens.core.errors import UsageError
from crosslens.perturb.caption import Caption
from crosslens.perturb.draws import Draws
from crosslens.perturb.edit import Edit
from crosslens.perturb.keyboard import KEY_NEIGHBOURS
from crosslens.perturb.perturbation import CannotApply, Edits, perturbation

_remembered = lru_cache(maxsize=1 << 16)
"""Captions have few different words: most are looked at once."""

Places = Callable[[str], list[int]]
"""The positions in a word (with the punctuation around it) at which a slip can happen."""


@perturbation("char_swap", level="word")
def char_swap(caption: Caption, draws: Draws, k: int = 1) -> Edits:
    """Swap two different letters that stand side by side.

    k: in how many words this happens, where the caption has as many
    """
    edits = []
    for start, word, at in _drawn(caption, draws, k, _even_pairs, _pairs, "no two different letters side by side"):
        edits.append(Edit(start + at, start + at + 2, word[at : at + 2], word[at + 1] + word[at]))
    return tuple(edits)


@perturbation("missing_char", level="word")
def missing_char(caption: Caption, draws: Draws, k: int = 1) -> Edits:
    """Leave out one letter of a word that has two or more.

    k: in how many words this happens, where the caption has as many
    """
    edits = []
    for start, word, at in _drawn(caption, draws, k, _plain_spares, _spares, "no word of two letters or more"):
        edits.append(Edit(start + at, start + at + 1, word[at], ""))
    return tuple(edits)


@perturbation("extra_char", level="word")
def extra_char(caption: Caption, draws: Draws, k: int = 1) -> Edits:
    """Type a keyboard neighbour right before or after its letter.

    k: in how many words this happens, where the caption has as many
    """
    edits = []
    for start, word, at in _drawn(caption, draws, k, _keys, _keys, "no letter of the keyboard"):
        extra = draws.choice(KEY_NEIGHBOURS[word[at].lower()])
        shouted = word.isupper() and sum(map(str.isalnum, word)) > 1
        # Nothing comes before the capital of a word: "Man" becomes "Mnan", not "nMan".
        may_precede = word[at].islower() or shouted or not _begins(word, at)
        place = start + at + (0 if may_precede and draws.below(2) else 1)
        edits.append(Edit(place, place, "", extra.upper() if shouted else extra))
    return tuple(edits)


@perturbation("nearby_char", level="word")
def nearby_char(caption: Caption, draws: Draws, k: int = 1) -> Edits:
    """Replace one letter by a keyboard neighbour, its case kept.

    k: in how many words this happens, where the caption has as many
    """
    edits = []
    for start, word, at in _drawn(caption, draws, k, _keys, _keys, "no letter of the keyboard"):
        near = draws.choice(KEY_NEIGHBOURS[word[at].lower()])
        edits.append(Edit(start + at, start + at + 1, word[at], near.upper() if word[at].isupper() else near))
    return tuple(edits)


def _drawn(
    caption: Caption, draws: Draws, k: int, preferred: Places, allowed: Places, reason: str
) -> list[tuple[int, str, int]]:
    """``k`` words, each with where it starts and a place in it, in the order of the text; fewer where there are none.

    Words that offer a preferred place come first; only where none is left, any allowed place will do. A word is drawn
    before it is looked at, which costs less than looking at all of them, and gives each the same chance: what offers no
    place is put back.
    """
    if not isinstance(k, int) or k < 1:
        raise UsageError(f"k = {k!r}: in how many words", fix="use 1 or more")
    words = caption.text.split()  # with their punctuation, which offers no place
    found: list[tuple[int, int]] = []
    pool = list(range(len(words)))
    for places in (preferred, allowed) if preferred is not allowed else (allowed,):
        without = []
        while pool and len(found) < k:
            word = pool.pop(draws.below(len(pool)))
            spots = places(words[word])
            if spots:
                found.append((word, spots[draws.below(len(spots))]))
            else:
                without.append(word)
        pool += without
    if not found:
        raise CannotApply(reason)
    return [(_start(caption.text, word), words[word], at) for word, at in sorted(found)]


def _start(text: str, word: int) -> int:
    """Where a word starts, by its number."""
    return len(text) - len(text.split(None, word)[word])


def _letters(word: str) -> list[int]:
    """Where the letters stand that carry no mark."""
    if word.isascii():
        return list(range(len(word))) if word.isalpha() else [at for at, one in enumerate(word) if one.isalpha()]
    return [at for at, one in enumerate(word) if one.isalpha() and not _is_mark(word[at + 1 : at + 2])]


def _is_mark(character: str) -> bool:
    """Marks, and the invisible joiners that tie letters together."""
    return bool(character) and unicodedata.category(character) in ("Mn", "Mc", "Me", "Cf")


def _begins(word: str, at: int) -> bool:
    """Whether nothing but punctuation stands before."""
    return not any(map(str.isalnum, word[:at]))


@_remembered
def _pairs(word: str) -> list[int]:
    """Where two different letters stand side by side."""
    return [
        at
        for at, after in pairwise(_letters(word))
        if after == at + 1 and word[at] != word[after] and word[at].lower() != word[after].lower()
    ]


@_remembered
def _even_pairs(word: str) -> list[int]:
    """Such pairs of the same case: swapped, they leave the capitals where they were."""
    if word.islower() or word.isupper():
        return _pairs(word)
    return [at for at in _pairs(word) if word[at].isupper() == word[at + 1].isupper()]


@_remembered
def _spares(word: str) -> list[int]:
    """The letters of a word that has another one."""
    letters = _letters(word)
    return letters if len(letters) > 1 or sum(map(str.isalpha, word)) > 1 else []


@_remembered
def _plain_spares(word: str) -> list[int]:
    """Such letters, but for the capital at the beginning of an ordinary word."""
    spares = _spares(word)
    if spares and word[spares[0]].isupper() and not word.isupper() and _begins(word, spares[0]):
        return spares[1:]
    return spares


@_remembered
def _keys(word: str) -> list[int]:
    """The letters that a keyboard has."""
    if word.isascii():
        return _letters(word)
    return [at for at in _letters(word) if word[at].isascii()]
