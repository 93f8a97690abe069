"""Every single edit that some perturbations could make to a caption, the smallest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crosslens.core.progress import Progress, Silent, stage
from crosslens.core.registry import Entry
from crosslens.perturb.caption import Caption
from crosslens.perturb.distance import edit_distance
from crosslens.perturb.edit import apply_edits
from crosslens.perturb.outcomes import LIMIT, outcomes
from crosslens.perturb.perturbation import PERTURBATIONS, Edits, Perturbation
from crosslens.perturb.perturbing import Captions, check_options, options_for, prepare


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
class Candidates:
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
) -> tuple[Candidates, ...]:
    """For each caption every text that one of the perturbations makes of it, each text once.

    ``corpus`` are the captions that decide what follows from all of them, such as which colours occur (default: the
    captions themselves). ``limit`` bounds how often a perturbation is run on a caption; ``seed`` matters only where
    that is too little to see all outcomes.
    """
    entries = [PERTURBATIONS[name] for name in names]
    check_options(entries, options)
    watcher = progress or Silent()
    how: dict[str, Any] = {"pipeline": pipeline, "threads": threads, "progress": watcher}
    prepared = prepare(entries, captions, **how)
    own = []
    for entry in entries:
        needs_all = corpus is not None and entry.details["corpus"] is not None
        everything = prepare([entry], corpus, **how) if needs_all and corpus is not None else prepared
        own.append(options_for(entry, everything, options))
    found = []
    with stage(watcher, "finding edits", len(prepared)):
        for caption in prepared:
            found.append(_candidates(caption, list(zip(entries, own, strict=True)), limit, seed))
            watcher.advance()
    return tuple(found)


def _candidates(
    caption: Caption, entries: Sequence[tuple[Entry[Perturbation], Mapping[str, Any]]], limit: int, seed: int
) -> Candidates:
    edits: dict[str, Edits] = {}
    makers: dict[str, list[str]] = {}
    complete = True
    for entry, options in entries:
        found = outcomes(entry.name, entry.value, caption, options, limit=limit, seed=seed)
        complete &= found.complete
        for one in found.edits:
            text = apply_edits(caption.text, one)
            edits.setdefault(text, one)
            if entry.name not in makers.setdefault(text, []):
                makers[text].append(entry.name)
    texts = [text for text in edits if text.strip() and text != caption.text]
    candidates = [
        Candidate(
            text, edits[text], tuple(makers[text]), edit_distance(caption.text, text), _touched(caption, edits[text])
        )
        for text in texts
    ]
    return Candidates(caption.text, tuple(sorted(candidates, key=lambda one: (one.characters, one.words))), complete)


def _touched(caption: Caption, edits: Edits) -> int:
    """How many words the edits change or stand at."""
    touched = {
        word.start
        for edit in edits
        for word in caption.words
        if (word.start < edit.end and edit.start < word.end)
        or (edit.start == edit.end and word.start <= edit.start <= word.end)
    }
    return max(1, len(touched))
