"""Typing errors: one letter of one word swapped, lost, doubled up with its neighbour, or missed.

First the word is drawn, each with the same chance, then the position in it. A letter that carries a combining mark is
left alone, so that no mark ends up on another letter.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from string import ascii_lowercase
from typing import Literal

from crosslens.perturbations.caption import Caption, Draws, Edit, Edits
from crosslens.perturbations.perturbing import CannotApply, check_count, perturbation

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


@perturbation("char_swap", phrase="swapped letters", level="word", order=1, brit=True, typo=True, keeps_meaning=True)
def char_swap(caption: Caption, draws: Draws, k: int = 1) -> Edits:
    """Swap two different letters that stand side by side.

    k: in how many words this happens, where the caption has as many
    """
    words = _drawn(caption, draws, k, "no two different letters side by side", _even_pairs, _pairs)
    return tuple(
        Edit(start + at, start + at + 2, word[at : at + 2], word[at + 1] + word[at]) for start, word, at in words
    )


@perturbation("missing_char", phrase="missing letters", level="word", order=2, brit=True, typo=True, keeps_meaning=True)
def missing_char(caption: Caption, draws: Draws, k: int = 1) -> Edits:
    """Leave out one letter of a word that has two or more.

    k: in how many words this happens, where the caption has as many
    """
    words = _drawn(caption, draws, k, "no word of two letters or more", _plain_spares, _spares)
    return tuple(Edit(start + at, start + at + 1, word[at], "") for start, word, at in words)


@perturbation("extra_char", phrase="extra letters", level="word", order=3, brit=True, typo=True, keeps_meaning=True)
def extra_char(caption: Caption, draws: Draws, k: int = 1) -> Edits:
    """Type a keyboard neighbour right before or after its letter.

    k: in how many words this happens, where the caption has as many
    """
    return _inserted(caption, draws, k, lambda letter: KEY_NEIGHBOURS[letter.lower()])


@perturbation("extra_char[any]", phrase="random extra letters", level="word", order=23, typo=True, keeps_meaning=True)
def any_extra_char(caption: Caption, draws: Draws, k: int = 1) -> Edits:
    """Type a letter of the alphabet, any of them, right before or after a letter: BRIT's "extra random character".

    k: in how many words this happens, where the caption has as many
    """
    return _inserted(caption, draws, k, lambda _: ascii_lowercase)


@perturbation(
    "nearby_char",
    phrase="letters of neighbouring keys",
    level="word",
    order=4,
    brit=True,
    typo=True,
    keeps_meaning=True,
)
def nearby_char(caption: Caption, draws: Draws, k: int = 1) -> Edits:
    """Replace one letter by a keyboard neighbour, its case kept.

    k: in how many words this happens, where the caption has as many
    """
    edits = []
    for start, word, at in _drawn(caption, draws, k, "no letter of the keyboard", _keyboard_letters):
        near = draws.choice(KEY_NEIGHBOURS[word[at].lower()])
        edits.append(Edit(start + at, start + at + 1, word[at], near.upper() if word[at].isupper() else near))
    return tuple(edits)


def _inserted(caption: Caption, draws: Draws, k: int, offered: Callable[[str], str]) -> Edits:
    """A letter more in each of ``k`` words, drawn from those that are offered for a letter beside it."""
    edits = []
    for start, word, at in _drawn(caption, draws, k, "no letter of the keyboard", _keyboard_letters):
        extra = draws.choice(offered(word[at]))
        shouted = word.isupper() and sum(map(str.isalnum, word)) > 1
        # Nothing comes before the capital of a word: "Man" becomes "Mnan", not "nMan".
        may_precede = word[at].islower() or shouted or not _begins(word, at)
        insertion = start + at + (0 if may_precede and draws.below(2) else 1)
        edits.append(Edit(insertion, insertion, "", extra.upper() if shouted else extra))
    return tuple(edits)


def _drawn(
    caption: Caption, draws: Draws, k: int, reason: str, *offers: Callable[[str], list[int]]
) -> list[tuple[int, str, int]]:
    """``k`` words, each with its start and a position in it, in the order of the text; fewer where there are none.

    ``offers`` give the positions in a word (with the punctuation around it) at which an error can happen, the preferred
    ones first; only where no word has such a position, the next offer counts. A word is drawn before it is looked at,
    which costs less than looking at all of them, and gives each the same chance: what offers no position is put back.
    """
    check_count(k)
    words = caption.text.split()  # with their punctuation, which offers no position
    positions_drawn: list[tuple[int, int]] = []
    pool = list(range(len(words)))
    for positions in offers:
        without = []
        while pool and len(positions_drawn) < k:
            word = pool.pop(draws.below(len(pool)))
            offered = positions(words[word])
            if offered:
                positions_drawn.append((word, offered[draws.below(len(offered))]))
            else:
                without.append(word)
        pool += without
    if not positions_drawn:
        raise CannotApply(reason)
    starts = {word: len(caption.text) - len(caption.text.split(None, word)[word]) for word, _ in positions_drawn}
    return [(starts[word], words[word], at) for word, at in sorted(positions_drawn)]


def _letters(word: str) -> list[int]:
    """The positions of the letters that carry no mark, nor an invisible joiner that ties them to the next."""
    letters = [at for at, character in enumerate(word) if character.isalpha()]
    if word.isascii():
        return letters
    tied = {at - 1 for at, character in enumerate(word) if unicodedata.category(character) in ("Mn", "Mc", "Me", "Cf")}
    return [at for at in letters if at not in tied]


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
def _keyboard_letters(word: str) -> list[int]:
    """The letters that a keyboard has."""
    return [at for at in _letters(word) if word[at].isascii()]


_BLANKS = "".join(filter(str.isspace, map(chr, range(0x3001))))
_AT_THE_END = f"{_BLANKS}.!?…,;:"


@perturbation(
    "distraction_true", phrase="“and true is true” at the end", level="sentence", order=7, brit=True, keeps_meaning=True
)
def distraction_true(caption: Caption, draws: Draws) -> Edits:
    """Append *and true is true.*"""
    return _appended(caption, " and true is true.")


@perturbation(
    "distraction_false",
    phrase="“and false is false” at the end",
    level="sentence",
    order=8,
    brit=True,
    keeps_meaning=True,
)
def distraction_false(caption: Caption, draws: Draws) -> Edits:
    """Append *and false is false.*"""
    return _appended(caption, " and false is false.")


def _appended(caption: Caption, words: str) -> Edits:
    """The caption's own full stop gives way: the sentence goes on."""
    text = caption.text
    if not any(map(str.isalnum, text)):
        raise CannotApply("no words")
    end = len(text.rstrip(_AT_THE_END))
    return (Edit(end, len(text), text[end:], words),)


Kind = Literal["noun", "name", "pronoun", "adjective", "other"]


def slot_kinds(caption: Caption) -> list[Kind]:
    """For each word of the caption what it is.

    The parser cuts words where a reader does not: *man's* into *man* and *'s*, *T-shirt* into *T*, *-* and *shirt*,
    *don't* into *do* and *n't*. A word is what its head is, the first of its tokens that hangs on something outside
    the word: *man* and *shirt*, nouns, and *do*, a verb. A word without tokens of its own is anything.
    """
    tokens = caption.tokens
    kinds: list[Kind] = []
    at, count = 0, len(tokens)
    for word in caption.words:
        while at < count and tokens[at].end <= word.start:
            at += 1
        first = at
        while at < count and tokens[at].start < word.end:
            at += 1
        parts = tokens[first:at]
        if len(parts) > 1:
            outside = (part for part in parts if not first <= part.head < at or part.arc == "ROOT")
            parts = (next((part for part in outside if part.pos not in ("PUNCT", "SPACE")), parts[-1]),)
        tag, pos = (parts[0].tag, parts[0].pos) if parts else ("", "")
        kind: Kind = "adjective" if tag.startswith("JJ") else "other"
        if tag.startswith("NN"):  # "someone", "nothing" are tagged like nouns, and yet none
            kind = "pronoun" if pos == "PRON" else "name" if tag.startswith("NNP") else "noun"
        kinds.append(kind)
    return kinds


_STOP = re.compile(r"[.!?…]")
_ABBREVIATION = re.compile(r"(?:mr|mrs|ms|dr|st|vs|no|jr|sr|prof|[a-z])\Z", re.IGNORECASE)
_FIRST_PERSON = re.compile(r"I(?:['’]\w+)?\Z")


@perturbation(
    "shuffle_nouns_and_adj",
    phrase="shuffled nouns and adjectives",
    level="sentence",
    tags=True,
    order=9,
    brit=True,
    aro=True,
)
def shuffle_nouns_and_adj(caption: Caption, draws: Draws) -> Edits:
    """Permute the nouns among the nouns, and the adjectives among the adjectives."""
    kinds = slot_kinds(caption)
    nouns = [slot for slot, kind in enumerate(kinds) if kind in ("noun", "name")]
    adjectives = [slot for slot, kind in enumerate(kinds) if kind == "adjective"]
    return _shuffled(caption, draws, [nouns, adjectives], "no two different nouns or adjectives", kinds)


@perturbation("shuffle_all_words", phrase="shuffled words", level="sentence", order=10, brit=True)
def shuffle_all_words(caption: Caption, draws: Draws) -> Edits:
    """Permute all words."""
    return _shuffled(caption, draws, [range(len(caption.words))], "no two different words")


@perturbation(
    "shuffle_allbut_nouns_and_adj",
    phrase="shuffled words other than nouns and adjectives",
    level="sentence",
    tags=True,
    order=11,
    brit=True,
    aro=True,
)
def shuffle_allbut_nouns_and_adj(caption: Caption, draws: Draws) -> Edits:
    """Permute all words but the nouns and adjectives."""
    kinds = slot_kinds(caption)
    others = [slot for slot, kind in enumerate(kinds) if kind == "other"]
    return _shuffled(caption, draws, [others], "no two different words besides nouns and adjectives", kinds)


@perturbation(
    "shuffle_within_trigrams", phrase="shuffled words within threes", level="sentence", order=12, brit=True, aro=True
)
def shuffle_within_trigrams(caption: Caption, draws: Draws) -> Edits:
    """Permute the words within each three, and within the two that may be left."""
    return _shuffled(caption, draws, _trigrams(caption), "no two different words")


@perturbation("shuffle_trigrams", phrase="shuffled threes of words", level="sentence", order=13, brit=True, aro=True)
def shuffle_trigrams(caption: Caption, draws: Draws) -> Edits:
    """Permute the groups of three words; each group keeps its order."""
    keys, blocks = _keys(caption), _trigrams(caption)
    # Blocks that read alike, or made of one word only, can be put in any order without a visible change.
    if len(set(keys)) < 2 or len({tuple([keys[slot] for slot in block]) for block in blocks}) < 2:
        raise CannotApply("no two different groups of three words")
    while True:
        order = [slot for block in draws.shuffled(blocks) for slot in block]
        if [keys[slot] for slot in order] != keys:
            return _moved(caption, order)


def _trigrams(caption: Caption) -> list[range]:
    count = len(caption.words)
    return [range(first, min(first + 3, count)) for first in range(0, count, 3)]


def _shuffled(
    caption: Caption, draws: Draws, groups: Sequence[Sequence[int]], reason: str, kinds: Sequence[str] | None = None
) -> Edits:
    """Each group of slots gets its own words in another order, where there is one."""
    keys = _keys(caption)
    sources = list(range(len(keys)))
    for group in groups:
        order, as_is = group, [keys[slot] for slot in group]
        while len(set(as_is)) > 1 and [keys[slot] for slot in order] == as_is:
            order = draws.shuffled(group)
        for slot, source in zip(group, order, strict=True):
            sources[slot] = source
    if sources == list(range(len(keys))):
        raise CannotApply(reason)
    return _moved(caption, sources, kinds)


def _keys(caption: Caption) -> list[str]:
    """What a word is known by: capitals do not make another word of it."""
    return [word.text.casefold() for word in caption.words]


def _moved(caption: Caption, sources: Sequence[int], kinds: Sequence[str] | None = None) -> Edits:
    """The edits that put into every slot the word of the slot named for it.

    A word that leaves the start of a sentence loses its capital, one that enters it gets one. A name keeps its capital;
    so does *I*, and what has capitals further on: *SUV*, *T-Shirt*, *McDonald*.
    """
    words, text = caption.words, caption.text
    starts = set()  # of sentences, where they have a capital for it; none in a caption all in capitals
    if words and not text.isupper():
        starts = {0} if words[0].text[0].isupper() else set()
        stops = _STOP.search(text, words[0].end, words[-1].start) is not None
        for position, (before, word) in enumerate(pairwise(words), 1) if stops else ():
            ends = _STOP.search(text, before.end, word.start)
            if ends and word.text[0].isupper() and not _ABBREVIATION.match(before.text):
                starts.add(position)
    edits = []
    for slot, source in enumerate(sources):
        if slot == source:
            continue
        start, end, old = words[slot]
        after = new = words[source].text
        if (source in starts) != (slot in starts) and after[1:] == after[1:].lower():
            if slot in starts:
                new = after[0].upper() + after[1:]
            elif not (kinds is not None and kinds[source] == "name") and not _FIRST_PERSON.match(after):
                new = after[0].lower() + after[1:]
            # A few letters (the dotless ı) become another letter in the other case: those stay as they are.
            after = new if new.casefold() == after.casefold() else after
        if after != old:
            edits.append(Edit(start, end, old, after))
    return tuple(edits)
