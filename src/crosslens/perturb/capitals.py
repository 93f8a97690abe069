"""The capital at the start of a sentence: it belongs to the place, unless the word would have one anywhere."""

from __future__ import annotations

import re

from crosslens.perturb.caption import Caption

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
