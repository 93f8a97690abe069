"""Words in another order: all of them, some kinds of them, or in groups of three.

Every word of a caption has a slot, and the words change slots; blanks and punctuation stay where they are. The words
are kept exactly, but for the capital at the start of a sentence, which stays at the start.

Each result is drawn from the orders that read differently, all equally likely: with a word that occurs twice, swapping
it with itself is not another order. At least half of all orders of words that are not all alike read differently, so
drawing again until one does is soon over.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from crosslens.perturbations.caption import Caption, Edit, Edits, Token
from crosslens.perturbations.draws import Draws
from crosslens.perturbations.registry import CannotApply, perturbation

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
        last = at
        while last < count and tokens[last].start < word.end:
            last += 1
        if last == at:
            kinds.append("other")
        else:
            kinds.append(_kind(tokens[at] if last == at + 1 else _head(tokens, at, last)))
        at = last
    return kinds


def _head(tokens: tuple[Token, ...], first: int, last: int) -> Token:
    for token in tokens[first:last]:
        outside = not first <= token.head < last or token.arc == "ROOT"
        if outside and token.pos not in ("PUNCT", "SPACE"):
            return token
    return tokens[last - 1]


def _kind(token: Token) -> Kind:
    tag = token.tag
    if tag.startswith("JJ"):
        return "adjective"
    if not tag.startswith("NN"):
        return "other"
    if token.pos == "PRON":  # "someone", "nothing": tagged like nouns, and yet none
        return "pronoun"
    return "name" if tag.startswith("NNP") else "noun"


_STOP = re.compile(r"[.!?…]")
_ABBREVIATION = re.compile(r"(?:mr|mrs|ms|dr|st|vs|no|jr|sr|prof|[a-z])\Z", re.IGNORECASE)
_FIRST_PERSON = re.compile(r"I(?:['’]\w+)?\Z")


def sentence_starts(caption: Caption) -> frozenset[int]:
    """The words (by position) that begin a sentence and have a capital for it; none in a caption all in capitals."""
    words, text = caption.words, caption.text
    if not words or text.isupper():
        return frozenset()
    starts = [0] if words[0].text[0].isupper() else []
    if _STOP.search(text, words[0].end, words[-1].start):
        for position in range(1, len(words)):
            before, word = words[position - 1], words[position]
            ends = _STOP.search(text, before.end, word.start) is not None
            if ends and word.text[0].isupper() and not _ABBREVIATION.match(before.text):
                starts.append(position)
    return frozenset(starts)


def recased(word: str, *, leaves: bool, enters: bool, name: bool = False) -> str:
    """The word as it is written when it ``leaves`` the start of a sentence, or ``enters`` one.

    A name keeps its capital; so does *I*, and what has capitals further on: *SUV*, *T-Shirt*, *McDonald*.
    """
    if leaves == enters or word[1:] != word[1:].lower():
        return word
    if enters:
        new = word[0].upper() + word[1:]
    else:
        new = word if name or _FIRST_PERSON.match(word) else word[0].lower() + word[1:]
    # A few letters (the dotless ı) become another letter in the other case: those stay as they are.
    return new if new.casefold() == word.casefold() else word


@perturbation("shuffle_nouns_and_adj", level="sentence", tags=True, order=9, brit=True, aro=True)
def shuffle_nouns_and_adj(caption: Caption, draws: Draws) -> Edits:
    """Permute the nouns among the nouns, and the adjectives among the adjectives."""
    kinds = slot_kinds(caption)
    nouns = [slot for slot, kind in enumerate(kinds) if kind in ("noun", "name")]
    adjectives = [slot for slot, kind in enumerate(kinds) if kind == "adjective"]
    return _shuffled(caption, draws, [nouns, adjectives], "no two different nouns or adjectives", kinds)


@perturbation("shuffle_all_words", level="sentence", order=10, brit=True)
def shuffle_all_words(caption: Caption, draws: Draws) -> Edits:
    """Permute all words."""
    return _shuffled(caption, draws, [range(len(caption.words))], "no two different words")


@perturbation("shuffle_allbut_nouns_and_adj", level="sentence", tags=True, order=11, brit=True, aro=True)
def shuffle_allbut_nouns_and_adj(caption: Caption, draws: Draws) -> Edits:
    """Permute all words but the nouns and adjectives."""
    kinds = slot_kinds(caption)
    others = [slot for slot, kind in enumerate(kinds) if kind == "other"]
    return _shuffled(caption, draws, [others], "no two different words besides nouns and adjectives", kinds)


@perturbation("shuffle_within_trigrams", level="sentence", order=12, brit=True, aro=True)
def shuffle_within_trigrams(caption: Caption, draws: Draws) -> Edits:
    """Permute the words within each three, and within the two that may be left."""
    return _shuffled(caption, draws, _trigrams(caption), "no two different words")


@perturbation("shuffle_trigrams", level="sentence", order=13, brit=True, aro=True)
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
    as_is = list(range(len(keys)))
    sources = list(as_is)
    for group in groups:
        for slot, source in zip(group, _other_order(draws, group, keys), strict=True):
            sources[slot] = source
    if sources == as_is:
        raise CannotApply(reason)
    return _moved(caption, sources, kinds)


def _other_order(draws: Draws, slots: Sequence[int], keys: Sequence[str]) -> Sequence[int]:
    """The slots in a random order that reads differently; as they are where all orders read the same."""
    as_is = [keys[slot] for slot in slots]
    order = slots
    while len(set(as_is)) > 1 and [keys[slot] for slot in order] == as_is:
        order = draws.shuffled(slots)
    return order


def _keys(caption: Caption) -> list[str]:
    """What a word is known by: capitals do not make another word of it."""
    return [word.text.casefold() for word in caption.words]


def _moved(caption: Caption, sources: Sequence[int], kinds: Sequence[str] | None = None) -> Edits:
    """The edits that put into every slot the word of the slot named for it, capitals adapted."""
    words = caption.words
    starts = sentence_starts(caption)
    edits = []
    for slot, source in enumerate(sources):
        if slot == source:
            continue
        start, end, before = words[slot]
        after = words[source].text
        if source in starts or slot in starts:
            name = kinds is not None and kinds[source] == "name"
            after = recased(after, leaves=source in starts, enters=slot in starts, name=name)
        if after != before:
            edits.append(Edit(start, end, before, after))
    return tuple(edits)
