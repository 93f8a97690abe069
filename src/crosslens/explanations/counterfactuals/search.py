"""Counterfactuals: the smallest edit of a query that changes whether its own image comes first, within a budget.

Edits are tried by their cost, the number of changed characters, the cheapest first. Every edit of one cost is tried
before the search ends with one of them; of those that flip, the one that touches the fewest words, then the one with
the widest margin, is the result.

Where a cost has more edits than the budget has encodings left, the influence of words is measured first: the caption is
encoded without each of them, and edits of the words whose absence moves the margin most towards the flip come first.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from crosslens.core import Dataset, InputError, Progress, SilentProgress, UsageError, stage
from crosslens.encode import EncodeOptions, Encoder, label, load_encoder
from crosslens.explanations.counterfactuals.options import CounterfactualOptions
from crosslens.explanations.counterfactuals.query_set import QueryResult, QuerySet, query_set_of
from crosslens.explanations.counterfactuals.result import Counterfactual, Counterfactuals
from crosslens.perturbations import (
    Candidate,
    CandidateEdits,
    CaptionWord,
    candidate_edits,
    chosen_perturbations,
    is_image_perturbation,
    words_of,
)

_QUERIES_AT_ONCE = 64
"""Queries that are searched at the same time, so that the model gets full batches."""
_BATCH = 32
"""Costs with fewer edits are tried together with the next."""
_INFLUENCE_SHARE = 4
"""At most one of so many encodings is spent on the influence of words."""


def find_counterfactual(dataset: Dataset, model: str | Encoder | Any, query: str, **options: Any) -> Counterfactual:
    """The smallest single edit of one query that turns a top-1 success into a failure, or a failure into a success.

    ``query`` is the id of a caption; ``options`` are those of :func:`counterfactuals`.
    """
    return find_counterfactuals(dataset, model, [query], **options).results[0]


def find_counterfactuals(
    dataset: Dataset,
    model: str | Encoder | Any,
    queries: Sequence[str] | None = None,
    *,
    progress: Progress | None = None,
    **options: Any,
) -> Counterfactuals:
    """For each query the smallest single edit that changes whether its own image comes first.

    ``queries`` are ids of captions (default: all), ``sample`` draws so many of them by the ``seed``, and ``only`` keeps
    those that find their image first (``right``) or do not (``wrong``). Edits are what the ``perturbations`` (names and
    groups) can make of a caption, one at a time. ``budget`` is how many changed texts are encoded per query, at most.
    With ``image_text`` an image is represented by its other captions, as in text-only retrieval, and caption number
    ``query_caption`` of each image is its query. ``score`` compares vectors; ``pipeline`` and ``threads`` tag captions.

    The options of encoding are ``device``, ``precision``, ``batch_size``, ``cache``, ``offline``, ``image_folder``,
    ``skip_bad`` and ``notify``; all others go to the perturbations. The result does not depend on the order or number
    of queries. ``cache`` keeps the vectors, so that a repeated or interrupted search does not encode them twice.
    """
    if isinstance(queries, str):
        raise InputError("queries is a string", expected="a list of caption ids", fix="put it into a list")
    chosen, encoding = CounterfactualOptions.pick(options), EncodeOptions.pick(options)
    names = _text_perturbations(chosen.perturbations)
    encoder = load_encoder(model, encoding)
    query_set = query_set_of(dataset, encoder, queries, chosen, encoding, progress)
    tagging = {"pipeline": chosen.pipeline, "threads": chosen.threads}
    edits = {**tagging, "seed": chosen.seed, "corpus": dataset, **options}
    return Counterfactuals(
        dataset.name,
        label(encoder),
        query_set.direction,
        len(query_set.gallery.images.ids),
        names,
        chosen.budget,
        tuple(_search_all(query_set, names, chosen.budget, edits, progress or SilentProgress())),
    )


def _text_perturbations(perturbations: str | Sequence[str]) -> tuple[str, ...]:
    names = chosen_perturbations(perturbations)
    for name in names:
        if is_image_perturbation(name):
            raise UsageError(f"{name} changes images, not queries", fix="name perturbations of texts", subject=name)
    return names


def _search_all(
    query_set: QuerySet, names: Sequence[str], budget: int, edits: dict[str, Any], progress: Progress
) -> Iterator[Counterfactual]:
    for start in range(0, len(query_set.ids), _QUERIES_AT_ONCE):
        rows = range(start, min(start + _QUERIES_AT_ONCE, len(query_set.ids)))
        texts = {query_set.ids[row]: query_set.before[row].text for row in rows}
        candidates = candidate_edits(names, texts, progress=progress, **edits)
        images = [query_set.gallery.images.ids[query_set.own[row]] for row in rows]
        before = query_set.before[rows.start : rows.stop]
        searches = [search(*parts, budget) for parts in zip(texts, images, before, candidates, strict=True)]
        with stage(progress, "looking for counterfactuals", len(searches)):
            results = _run_searches(searches, rows, query_set, progress)
        yield from results


def _run_searches(
    searches: Sequence[Search], rows: Sequence[int], query_set: QuerySet, progress: Progress
) -> list[Counterfactual]:
    """Run searches side by side: the texts that they need encoded go through the model together."""
    finished: dict[int, Counterfactual] = {}
    answers: dict[int, list[QueryResult] | None] = dict.fromkeys(range(len(searches)))
    while answers:
        requests: dict[int, list[str]] = {}
        for number, answer in answers.items():
            try:
                requests[number] = searches[number].send(answer)
            except StopIteration as end:
                finished[number] = end.value
                progress.advance()
        texts = [text for request in requests.values() for text in request]
        own = [rows[number] for number, request in requests.items() for _ in request]
        results = iter(query_set.results(texts, own) if texts else ())
        answers = {number: [next(results) for _ in request] for number, request in requests.items()}
    return [finished[number] for number in range(len(searches))]


Search = Generator[list[str], Any, Counterfactual]
"""A search in progress: it yields texts to encode, is sent their results, and returns its own."""
_NO_EDIT = Candidate("", (), (), 0, 0)


@dataclass
class _SearchState:
    """What was tried so far."""

    before: QueryResult
    budget: int
    spent: int = 0
    searched: int = 0
    tried: list[tuple[Candidate, QueryResult]] = field(default_factory=list)

    @property
    def left(self) -> int:
        return self.budget - self.spent

    def encode(self, texts: list[str]) -> Generator[list[str], list[QueryResult], list[QueryResult]]:
        """Have texts encoded, at the budget's cost."""
        self.spent += len(texts)
        return (yield texts)

    def flips(self, after: QueryResult) -> bool:
        """Whether right became wrong, or wrong right."""
        return after.right != self.before.right

    def towards(self, after: QueryResult) -> float:
        """How far the margin moved towards the flip."""
        change = after.margin - self.before.margin
        return -change if self.before.right else change

    def result(self, query: str, image: str, candidates: CandidateEdits) -> Counterfactual:
        """The smallest flip, or else the edit that came closest to one."""
        flips = [pair for pair in self.tried if self.flips(pair[1])]
        edit, after = _NO_EDIT, None
        complete = candidates.complete
        exhaustive = complete and len(self.tried) == len(candidates)
        if flips:
            edit, after = min(flips, key=lambda pair: (pair[0].characters, pair[0].words, -abs(pair[1].margin)))
            exhaustive = complete and edit.characters <= self.searched
        elif self.tried:
            edit, after = max(self.tried, key=lambda pair: self.towards(pair[1]))
        numbers = (edit.characters, edit.words, len(candidates), len(self.tried), self.searched, self.spent)
        return Counterfactual(
            query,
            image,
            self.before,
            after,
            bool(flips),
            edit.edits,
            edit.perturbations,
            *numbers,
            exhaustive,
            complete,
        )


def search(query: str, image: str, before: QueryResult, candidates: CandidateEdits, budget: int) -> Search:
    """Search for the smallest edit that flips a query whose own image is ``image``, and whose result is ``before``."""
    state = _SearchState(before, budget)
    levels = [list(level) for _, level in groupby(candidates.candidates, key=lambda edit: edit.characters)]
    while levels and state.left:
        batch = levels.pop(0)
        while levels and len(batch) < _BATCH and len(batch) + len(levels[0]) <= state.left:
            batch += levels.pop(0)
        whole = len(batch) <= state.left
        if not whole:
            batch = (yield from _most_influential_first(batch, state))[: state.left]
        results = yield from state.encode([edit.text for edit in batch])
        state.tried += zip(batch, results, strict=True)
        if whole:
            state.searched = batch[-1].characters
        if any(map(state.flips, results)):
            break
    return state.result(query, image, candidates)


def _most_influential_first(
    level: Sequence[Candidate], state: _SearchState
) -> Generator[list[str], list[QueryResult], list[Candidate]]:
    """Edits of one cost by the influence of the words they touch, where measuring it costs little enough."""
    text = state.before.text
    words = list(words_of(text))
    if not 1 < len(words) <= state.left // _INFLUENCE_SHARE:
        return list(level)
    results = yield from state.encode([_without(text, word) for word in words])
    influence = [state.towards(result) for result in results]

    def largest(edit: Candidate) -> float:
        touched = [
            value
            for word, value in zip(words, influence, strict=True)
            if any(part.start <= word.end and word.start <= part.end for part in edit.edits)
        ]
        return max(touched, default=float("-inf"))

    return sorted(level, key=lambda edit: (-largest(edit), edit.words))


def _without(text: str, word: CaptionWord) -> str:
    """The text without one of its words and the blank before it."""
    return f"{text[: word.start].rstrip()}{text[word.end :]}".strip()
