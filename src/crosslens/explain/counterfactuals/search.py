"""The smallest edit that changes whether a text finds its image, within so many encodings.

Edits are tried by their cost, the cheapest first: the number of changed characters. Every edit of one cost is tried
before the search is content with one of them; of those that flip, the one that touches the fewest words, then the one
with the widest margin, is the answer.

Where a cost has more edits than the budget has encodings left, the words are asked first: the caption is encoded
without each of them, and edits of the words whose absence moves the margin most towards the flip come first.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from crosslens.explain.counterfactuals.gallery import Standing
from crosslens.perturb.candidates import Candidate, Candidates
from crosslens.perturb.caption import Word, words_of

Search = Generator[list[str], list[Standing], "Found"]
"""A search in progress: it hands out texts and wants to know how they stand; in the end it says what it found."""

_BATCH = 32
"""Costs with fewer edits are tried together with the next."""
_SHARE = 4
"""At most one of so many encodings goes into asking words."""


@dataclass(frozen=True)
class Found:
    """Where a search came to.

    ``edit`` is the smallest that flips or, where none did, the one that came closest (None where there was nothing to
    try), and ``after`` how its text stands. ``encodings`` counts all that was spent, ``tried`` the edits among it.
    Every edit of up to ``searched`` characters was tried; ``exhaustive`` says that no smaller edit than the one found,
    or no edit at all where none flips, was left untried.
    """

    edit: Candidate | None
    after: Standing | None
    flipped: bool
    encodings: int
    tried: int
    searched: int
    exhaustive: bool


@dataclass
class _Tally:
    """What was tried so far."""

    before: Standing
    left: int
    spent: int = 0
    searched: int = 0
    tried: list[tuple[Candidate, Standing]] = field(default_factory=list)

    def ask(self, texts: list[str]) -> Generator[list[str], list[Standing], list[Standing]]:
        """Have texts encoded, at the budget's cost."""
        self.left -= len(texts)
        self.spent += len(texts)
        return (yield texts)

    def flips(self, after: Standing) -> bool:
        """Whether right became wrong, or wrong right."""
        return after.right != self.before.right

    def towards(self, after: Standing) -> float:
        """How far the margin moved towards the flip."""
        change = after.margin - self.before.margin
        return -change if self.before.right else change

    def found(self, candidates: Candidates) -> Found:
        """The smallest flip, or else the edit that came closest to one."""
        flips = [one for one in self.tried if self.flips(one[1])]
        edit: Candidate | None = None
        after: Standing | None = None
        exhaustive = candidates.complete and len(self.tried) == len(candidates)
        if flips:
            edit, after = min(flips, key=lambda one: (one[0].characters, one[0].words, -abs(one[1].margin)))
            exhaustive = candidates.complete and edit.characters <= self.searched
        elif self.tried:
            edit, after = max(self.tried, key=lambda one: self.towards(one[1]))
        return Found(edit, after, bool(flips), self.spent, len(self.tried), self.searched, exhaustive)


def search(before: Standing, candidates: Candidates, budget: int) -> Search:
    """Look for the smallest edit that flips a text which stands as ``before``."""
    tally = _Tally(before, budget)
    levels = [list(level) for _, level in groupby(candidates.candidates, key=lambda one: one.characters)]
    while levels and tally.left:
        batch = levels.pop(0)
        while levels and len(batch) < _BATCH and len(batch) + len(levels[0]) <= tally.left:
            batch += levels.pop(0)
        whole = len(batch) <= tally.left
        if not whole:
            batch = (yield from _most_telling_first(batch, tally))[: tally.left]
        standings = yield from tally.ask([one.text for one in batch])
        tally.tried += zip(batch, standings, strict=True)
        if whole:
            tally.searched = batch[-1].characters
        if any(map(tally.flips, standings)):
            break
    return tally.found(candidates)


def _most_telling_first(
    level: Sequence[Candidate], tally: _Tally
) -> Generator[list[str], list[Standing], list[Candidate]]:
    """Edits of one cost in the order of how much the words they touch matter, where asking costs little enough."""
    text = tally.before.text
    words = list(words_of(text))
    if not 1 < len(words) <= tally.left // _SHARE:
        return list(level)
    standings = yield from tally.ask([_without(text, word) for word in words])
    telling = [tally.towards(one) for one in standings]

    def most(one: Candidate) -> float:
        return max((telling[place] for place in _touched(one, words)), default=float("-inf"))

    return sorted(level, key=lambda one: (-most(one), one.words))


def _without(text: str, word: Word) -> str:
    """The text without one of its words and the blank before it."""
    return f"{text[: word.start].rstrip()}{text[word.end :]}".strip()


def _touched(candidate: Candidate, words: Sequence[Word]) -> Iterator[int]:
    for place, word in enumerate(words):
        if any(edit.start <= word.end and word.start <= edit.end for edit in candidate.edits):
            yield place
