"""Typing errors: one letter of one word swapped, lost, doubled up with its neighbour, or missed.

First the word is drawn, each with the same chance, then the position in it. A letter that carries a combining mark is
left alone, so that no mark ends up on another letter.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from string import ascii_lowercase

from crosslens.core import UsageError
from crosslens.perturbations.caption import Caption, Edit, Edits
from crosslens.perturbations.draws import Draws
from crosslens.perturbations.registry import CannotApply, perturbation

ROWS = (("qwertyuiop", 0.0), ("asdfghjkl", 0.25), ("zxcvbnm", 0.75))
"""The rows of letters, and how far each is set in, in widths of a key: they are not straight below each other."""


_KEYS = {
    letter: (row, inset + column) for row, (letters, inset) in enumerate(ROWS) for column, letter in enumerate(letters)
}


def _touch(letter: str, other: str) -> bool:
    """Keys touch when they are in the same row or the next one, and less than a width and a bit apart."""
    down, across = (abs(mine - its) for mine, its in zip(_KEYS[letter], _KEYS[other], strict=True))
    return (down == 0 and across == 1) or (down == 1 and across < 1)


KEY_NEIGHBOURS = {letter: "".join(other for other in _KEYS if _touch(letter, other)) for letter in _KEYS}
"""For each letter (lower case) the letters whose keys touch its own: ``s`` has ``w e a d z x``."""

_remembered = lru_cache(maxsize=1 << 16)
"""Captions have few different words: most are looked at once."""

Positions = Callable[[str], list[int]]
"""The positions in a word (with the punctuation around it) at which an error can happen."""


@perturbation("char_swap", level="word", order=1, brit=True, typo=True, keeps_meaning=True)
def char_swap(caption: Caption, draws: Draws, k: int = 1) -> Edits:
    """Swap two different letters that stand side by side.

    k: in how many words this happens, where the caption has as many
    """
    words = _drawn(caption, draws, k, _even_pairs, _pairs, "no two different letters side by side")
    return tuple(
        Edit(start + at, start + at + 2, word[at : at + 2], word[at + 1] + word[at]) for start, word, at in words
    )


@perturbation("missing_char", level="word", order=2, brit=True, typo=True, keeps_meaning=True)
def missing_char(caption: Caption, draws: Draws, k: int = 1) -> Edits:
    """Leave out one letter of a word that has two or more.

    k: in how many words this happens, where the caption has as many
    """
    words = _drawn(caption, draws, k, _plain_spares, _spares, "no word of two letters or more")
    return tuple(Edit(start + at, start + at + 1, word[at], "") for start, word, at in words)


@perturbation("extra_char", level="word", order=3, brit=True, typo=True, keeps_meaning=True)
def extra_char(caption: Caption, draws: Draws, k: int = 1) -> Edits:
    """Type a keyboard neighbour right before or after its letter.

    k: in how many words this happens, where the caption has as many
    """
    return _inserted(caption, draws, k, lambda letter: KEY_NEIGHBOURS[letter.lower()])


@perturbation("extra_char[any]", level="word", order=23, typo=True, keeps_meaning=True)
def any_extra_char(caption: Caption, draws: Draws, k: int = 1) -> Edits:
    """Type a letter of the alphabet, any of them, right before or after a letter: BRIT's "extra random character".

    k: in how many words this happens, where the caption has as many
    """
    return _inserted(caption, draws, k, lambda _: ascii_lowercase)


@perturbation("nearby_char", level="word", order=4, brit=True, typo=True, keeps_meaning=True)
def nearby_char(caption: Caption, draws: Draws, k: int = 1) -> Edits:
    """Replace one letter by a keyboard neighbour, its case kept.

    k: in how many words this happens, where the caption has as many
    """
    edits = []
    for start, word, at in _drawn(caption, draws, k, _keys, _keys, "no letter of the keyboard"):
        near = draws.choice(KEY_NEIGHBOURS[word[at].lower()])
        edits.append(Edit(start + at, start + at + 1, word[at], near.upper() if word[at].isupper() else near))
    return tuple(edits)


def _inserted(caption: Caption, draws: Draws, k: int, offered: Callable[[str], str]) -> Edits:
    """A letter more in each of ``k`` words, drawn from those that are offered for a letter beside it."""
    edits = []
    for start, word, at in _drawn(caption, draws, k, _keys, _keys, "no letter of the keyboard"):
        extra = draws.choice(offered(word[at]))
        shouted = word.isupper() and sum(map(str.isalnum, word)) > 1
        # Nothing comes before the capital of a word: "Man" becomes "Mnan", not "nMan".
        may_precede = word[at].islower() or shouted or not _begins(word, at)
        insertion = start + at + (0 if may_precede and draws.below(2) else 1)
        edits.append(Edit(insertion, insertion, "", extra.upper() if shouted else extra))
    return tuple(edits)


def _drawn(
    caption: Caption, draws: Draws, k: int, preferred: Positions, allowed: Positions, reason: str
) -> list[tuple[int, str, int]]:
    """``k`` words, each with its start and a position in it, in the order of the text; fewer where there are none.

    Words that offer a preferred position come first; only where none is left, any allowed position will do. A word is
    drawn before it is looked at, which costs less than looking at all of them, and gives each the same chance: what
    offers no position is put back.
    """
    if not isinstance(k, int) or k < 1:
        raise UsageError(f"k = {k!r}", fix="k, the number of words to change, must be a whole number of at least 1")
    words = caption.text.split()  # with their punctuation, which offers no position
    drawn: list[tuple[int, int]] = []
    pool = list(range(len(words)))
    for positions in (preferred, allowed) if preferred is not allowed else (allowed,):
        without = []
        while pool and len(drawn) < k:
            word = pool.pop(draws.below(len(pool)))
            offered = positions(words[word])
            if offered:
                drawn.append((word, offered[draws.below(len(offered))]))
            else:
                without.append(word)
        pool += without
    if not drawn:
        raise CannotApply(reason)
    return [(_start(caption.text, word), words[word], at) for word, at in sorted(drawn)]


def _start(text: str, word: int) -> int:
    """Where a word starts, by its number."""
    return len(text) - len(text.split(None, word)[word])


def _letters(word: str) -> list[int]:
    """The positions of the letters that carry no mark."""
    letters = [at for at, character in enumerate(word) if character.isalpha()]
    return letters if word.isascii() else [at for at in letters if not _is_mark(word[at + 1 : at + 2])]


def _is_mark(character: str) -> bool:
    """Marks, and the invisible joiners that tie letters together."""
    return bool(character) and unicodedata.category(character) in ("Mn", "Mc", "Me", "Cf")


def _begins(word: str, at: int) -> bool:
    """Whether nothing but punctuation precedes."""
    return not any(map(str.isalnum, word[:at]))


@_remembered
def _pairs(word: str) -> list[int]:
    """The positions of two different letters side by side."""
    adjacent = [at for at, after in pairwise(_letters(word)) if after == at + 1]
    return [at for at in adjacent if word[at] != word[at + 1] and word[at].lower() != word[at + 1].lower()]


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
    return [at for at in _letters(word) if word[at].isascii()]
