"""Everything that perturbations could do to a caption, instead of one random outcome, the smallest change first.

A perturbation decides by its draws alone. So it is run again and again with draws that do not draw but choose: the
first option everywhere, then every other, until all ways through its choices were taken. No perturbation has to know
about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple, TypeVar

from crosslens.core import Progress, SilentProgress, stage
from crosslens.perturbations.caption import Caption
from crosslens.perturbations.distance import edit_distance
from crosslens.perturbations.draws import Draws
from crosslens.perturbations.edit import Edits, apply_edits
from crosslens.perturbations.perturbing import Captions, PerturbationCall, prepare_calls
from crosslens.perturbations.registry import CannotApply, Perturbation

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
    complete = _enumerate(change, caption, options, limit - limit // 2, results)
    for run in range(0 if complete else limit // 2):
        try:
            results[change(caption, Draws(seed, name, caption.id, str(run)), **options)] = None
        except CannotApply:
            continue
    return PerturbationOutcomes(tuple(results), complete)


def _enumerate(
    change: Perturbation, caption: Caption, options: Mapping[str, Any], limit: int, results: dict[Edits, None]
) -> bool:
    """Put the outcomes into ``results``; False where the runs did not suffice."""
    waiting: dict[int, list[Path]] = {0: [()]}
    runs, longest, whole = 0, _LOOK_AROUND, True
    while waiting and min(waiting) <= longest:
        for path in waiting.pop(min(waiting)):
            if runs == limit:
                return False
            runs += 1
            draws, known = ChosenDraws(path), len(results)
            try:
                results[change(caption, draws, **options)] = None
            except (CannotApply, _SameOrder):
                pass
            except _EndlessRun:
                whole = False
            if len(results) > known:
                longest = max(longest, draws.length)
            whole &= draws.widest <= limit
            for other in draws.other_paths(limit):
                waiting.setdefault(len(other), []).append(other)
    return whole


class _SameOrder(Exception):
    """The same things are to be ordered again: the order given will not do, and others get runs of their own."""


class _EndlessRun(Exception):
    """A run that goes on and on."""


class ChosenDraws(Draws):
    """Draws that take the options of a path, then always the first, and remember how many there were."""

    __slots__ = ("_counts", "_ordered", "_path", "_taken")

    def __init__(self, path: Path) -> None:
        self._path = path
        self._taken: list[int] = []
        self._counts: list[int] = []
        self._ordered: list[Any] | None = None

    @property
    def length(self) -> int:
        """How many choices were made."""
        return len(self._taken)

    @property
    def widest(self) -> int:
        """The most options that a choice had."""
        return max(self._counts, default=0)

    def below(self, count: int) -> int:
        """The option that the path names."""
        if self.length == _LONGEST:
            raise _EndlessRun
        choice = self._path[self.length] if self.length < len(self._path) else 0
        self._taken.append(choice)
        self._counts.append(count)
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

    def other_paths(self, most: int) -> Iterator[Path]:
        """The ways that branch off after the given path, at most so many at each choice."""
        for step in range(len(self._path), self.length):
            for option in range(1, min(self._counts[step], most)):
                yield (*self._taken[:step], option)


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
    watcher = progress or SilentProgress()
    prepared, calls = prepare_calls(names, captions, corpus, options, pipeline, threads, watcher)
    results = []
    with stage(watcher, "finding edits", len(prepared)):
        for caption in prepared:
            results.append(_candidates(caption, calls, limit, seed))
            watcher.advance()
    return tuple(results)


def _candidates(caption: Caption, calls: Sequence[PerturbationCall], limit: int, seed: int) -> CandidateEdits:
    edits_of: dict[str, Edits] = {}
    perturbations: dict[str, list[str]] = {}
    complete = True
    for call in calls:
        name = call.entry.name
        reachable = outcomes(name, call.entry.value, caption, call.options, limit=limit, seed=seed)
        complete &= reachable.complete
        for edits in reachable.edits:
            text = apply_edits(caption.text, edits)
            edits_of.setdefault(text, edits)
            if name not in perturbations.setdefault(text, []):
                perturbations[text].append(name)
    candidates = [
        Candidate(
            text, edits, tuple(perturbations[text]), edit_distance(caption.text, text), _touched_words(caption, edits)
        )
        for text, edits in edits_of.items()
        if text.strip() and text != caption.text
    ]
    candidates.sort(key=lambda candidate: (candidate.characters, candidate.words))
    return CandidateEdits(caption.text, tuple(candidates), complete)


def _touched_words(caption: Caption, edits: Edits) -> int:
    """How many words the edits change or touch."""
    touched = {
        word.start
        for edit in edits
        for word in caption.words
        if (word.start < edit.end and edit.start < word.end)
        or (edit.start == edit.end and word.start <= edit.start <= word.end)
    }
    return max(1, len(touched))
