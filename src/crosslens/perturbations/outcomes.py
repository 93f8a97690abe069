"""Everything that perturbations could do to a caption, instead of one random outcome, the smallest change first.

A perturbation decides by its draws alone. So it is run again and again with draws that do not draw but choose: the
first option everywhere, then every other, until all ways through its choices were taken. No perturbation has to know
about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from heapq import heappop, heappush
from itertools import combinations, count
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np

from crosslens.engine import Progress, shown_progress, stage
from crosslens.perturbations.caption import Caption, CaptionWord, Draws, Edit, Edits, apply_edits
from crosslens.perturbations.perturbing import CannotApply, Captions, Perturbation, PerturbationCall, prepare_calls
from crosslens.storage import Array


def edit_distance(left: str, right: str) -> int:
    """The fewest characters to insert, delete, replace, or swap with their neighbour, to turn one text into the other.

    No character is edited twice (the *optimal string alignment* distance), so that two neighbours swapped cost 1.
    """
    return int(_aligned(*(np.array([ord(character) for character in text], np.int32) for text in (left, right))))


@numba.njit(nogil=True, cache=True)
def _aligned(left: Array, right: Array) -> int:
    """The optimal string alignment distance of two rows of characters, in three rows of the table at a time."""
    # The distance is the same without the beginning and the end that both share, and found sooner.
    while left.size and right.size and left[0] == right[0]:
        left, right = left[1:], right[1:]
    while left.size and right.size and left[-1] == right[-1]:
        left, right = left[:-1], right[:-1]
    before = np.zeros(right.size + 1, np.int64)
    above = np.arange(right.size + 1)
    here = np.zeros(right.size + 1, np.int64)
    for row in range(1, left.size + 1):
        here[0] = row
        for column in range(1, right.size + 1):
            same = left[row - 1] == right[column - 1]
            best = min(above[column] + 1, here[column - 1] + 1, above[column - 1] + (0 if same else 1))
            if row > 1 and column > 1 and left[row - 1] == right[column - 2] and left[row - 2] == right[column - 1]:
                best = min(best, before[column - 2] + 1)
            here[column] = best
        before, above, here = above, here, before
    return int(above[-1])


T = TypeVar("T")
Path = tuple[int, ...]

LIMIT = 8_000
"""How often a perturbation is run on one caption, at most."""
_LONGEST = 400
"""Choices in one run: more are only made by a run that does not come to an end."""
_LOOK_AROUND = 2
"""Choices that are enumerated even where no outcome is known yet."""
_ENDS = (0.0, 1 - 2.0**-53)


class PerturbationOutcomes(NamedTuple):
    """What a perturbation can make of a caption, each once; ``complete``: there are no others."""

    edits: tuple[Edits, ...]
    complete: bool


def outcomes(
    name: str, change: Perturbation, caption: Caption, options: Mapping[str, Any], *, limit: int = LIMIT, seed: int = 0
) -> PerturbationOutcomes:
    """Every outcome of one perturbation of one caption, those by the fewest choices first.

    Of an order, the outcomes are those that swap two things and leave the others: the smallest changes. Runs with more
    choices than any that brought something new are not made: a perturbation that picks a word, finds it of no use and
    picks another comes to nothing that the other word alone would not give. Where ``limit`` runs are too few, half of
    them are drawn by the seed, so that every part of the caption has its chance.
    """
    results: dict[Edits, None] = {}
    waiting: list[tuple[int, int, Path]] = [(0, 0, ())]
    number, longest, complete = count(1), _LOOK_AROUND, True
    runs = most = limit - limit // 2
    while waiting and waiting[0][0] <= longest:
        if not runs:
            complete = False
            break
        runs -= 1
        path = heappop(waiting)[2]
        draws, before = ChosenDraws(path), len(results)
        try:
            results[change(caption, draws, **options)] = None
        except (CannotApply, _SameOrder):
            pass
        except _EndlessRun:
            complete = False
        if len(results) > before:
            longest = max(longest, len(draws.taken))
        complete &= max(draws.counts, default=0) <= most
        for step in range(len(path), len(draws.taken)):  # what branches off after the path
            for option in range(1, min(draws.counts[step], most)):
                heappush(waiting, (step + 1, next(number), (*draws.taken[:step], option)))
    for run in range(0 if complete else limit // 2):
        try:
            results[change(caption, Draws(seed, name, caption.id, str(run)), **options)] = None
        except CannotApply:
            continue
    return PerturbationOutcomes(tuple(results), complete)


class _SameOrder(Exception):
    """Raised where things that were ordered are ordered again: the order given will not do, others get their runs."""


class _EndlessRun(Exception):
    """A run that goes on and on."""


class ChosenDraws(Draws):
    """Draws that take the options of a path, then always the first, and remember how many there were."""

    __slots__ = ("_ordered", "_path", "counts", "taken")

    def __init__(self, path: Path) -> None:
        self._path = path
        self.taken: list[int] = []
        self.counts: list[int] = []
        self._ordered: list[Any] | None = None

    def below(self, count: int) -> int:
        """The option that the path names."""
        step = len(self.taken)
        if step == _LONGEST:
            raise _EndlessRun
        choice = self._path[step] if step < len(self._path) else 0
        self.taken.append(choice)
        self.counts.append(count)
        return choice

    def shuffled(self, values: Sequence[T]) -> list[T]:
        """The values with two of them swapped; neighbours are the first option."""
        order = list(values)
        if order == self._ordered:
            raise _SameOrder
        self._ordered = list(values)
        if len(order) > 1:
            first, second = self.choice(_pairs(len(order)))
            order[first], order[second] = order[second], order[first]
        return order

    def favourite(self, options: Iterable[T]) -> T:
        """Any of the options."""
        return self.choice(list(options))

    def fraction(self) -> float:
        """Either end: whatever it is compared with, both answers come up."""
        return _ENDS[self.below(len(_ENDS))]


@cache
def _pairs(count: int) -> tuple[tuple[int, int], ...]:
    """Two of so many positions, neighbours first."""
    return tuple(sorted(combinations(range(count), 2), key=lambda pair: (pair[1] - pair[0], pair[0])))


@dataclass(frozen=True)
class Candidate:
    """A text that one perturbation makes of a caption.

    ``perturbations`` are all that make it; ``edits`` are those of the first. ``characters`` is the edit distance of the
    two texts, where two neighbours swapped count once; ``words`` is how many words of the caption the edits touch.
    """

    text: str
    edits: Edits
    perturbations: tuple[str, ...]
    characters: int
    words: int


@dataclass(frozen=True)
class CandidateEdits:
    """The candidates of one caption, by ``characters``, then ``words``, then as they were found.

    ``complete`` says that they are all there are.
    """

    original: str
    candidates: tuple[Candidate, ...]
    complete: bool

    def __len__(self) -> int:
        return len(self.candidates)


def candidate_edits(
    names: Sequence[str],
    captions: Captions,
    *,
    corpus: Captions | None = None,
    limit: int = LIMIT,
    seed: int = 0,
    pipeline: str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> tuple[CandidateEdits, ...]:
    """For each caption every text that one of the perturbations makes of it, each text once.

    ``corpus`` are the captions that decide what follows from all of them, such as which colours occur (default: the
    captions themselves). ``limit`` bounds how often a perturbation is run on a caption; ``seed`` matters only where
    that is too little to see all outcomes.
    """
    watcher = shown_progress(progress)
    prepared, calls = prepare_calls(names, captions, corpus, options, pipeline, threads, watcher)
    results = []
    with stage(watcher, "finding edits", len(prepared)):
        for caption in prepared:
            results.append(_candidates(caption, calls, limit, seed))
            watcher.advance()
    return tuple(results)


def _candidates(caption: Caption, calls: Sequence[PerturbationCall], limit: int, seed: int) -> CandidateEdits:
    by_text: dict[str, tuple[Edits, dict[str, None]]] = {}
    complete = True
    for call in calls:
        name = call.entry.name
        reachable = outcomes(name, call.entry.value, caption, call.options, limit=limit, seed=seed)
        complete &= reachable.complete
        for edits in reachable.edits:
            by_text.setdefault(apply_edits(caption.text, edits), (edits, {}))[1][name] = None
    candidates = []
    for text, (edits, names) in by_text.items():
        if text.strip() and text != caption.text:
            touched = sum(any(_touches(edit, word) for edit in edits) for word in caption.words)
            distance = edit_distance(caption.text, text)
            candidates.append(Candidate(text, edits, tuple(names), distance, max(1, touched)))
    candidates.sort(key=lambda candidate: (candidate.characters, candidate.words))
    return CandidateEdits(caption.text, tuple(candidates), complete)


def _touches(edit: Edit, word: CaptionWord) -> bool:
    inserted = edit.start == edit.end and word.start <= edit.start <= word.end
    return inserted or (word.start < edit.end and edit.start < word.end)
