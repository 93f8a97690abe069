"""Counterfactuals: the smallest edit of a query that changes whether its own image comes first, within a budget.

Edits are tried by their cost, the number of changed characters, the cheapest first. Every edit of one cost is tried
before the search ends with one of them; of those that flip, the one that touches the fewest words, then the one with
the widest margin, is the result.

Where a cost has more edits than the budget has encodings left, the influence of words is measured first: the caption is
encoded without each of them, and edits of the words whose absence moves the margin most towards the flip come first.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, Unpack

import polars as pl

from crosslens.core import (
    Diffs,
    Figure,
    InputError,
    Lines,
    Part,
    Presented,
    Section,
    Series,
    Table,
    Text,
    TextDiff,
    UsageError,
    accepts_options,
)
from crosslens.encode import EncodeOptions, Encoder, label, load_encoder
from crosslens.engine import Progress, shown_progress, stage
from crosslens.explanations.counterfactual_options import RIGHT, WRONG, CounterfactualOptions
from crosslens.explanations.query_set import QueryResult, QuerySet, query_set_of
from crosslens.metrics import format_count
from crosslens.perturbations import (
    Candidate,
    CandidateEdits,
    Edit,
    candidate_edits,
    chosen_perturbations,
    diff_spans,
    is_image_perturbation,
    words_of,
)
from crosslens.storage import json_form
from crosslens.values import Dataset

if TYPE_CHECKING:
    from crosslens.explanations.keywords import CounterfactualKeywords

_KINDS = (("right → wrong", True), ("wrong → right", False))
_COLUMNS: dict[str, Any] = {
    **dict.fromkeys(("query", "image", "kind"), pl.String),
    "flipped": pl.Boolean,
    **dict.fromkeys(("characters", "words"), pl.Int64),
    "perturbations": pl.List(pl.String),
    **dict.fromkeys(("text_before", "text_after", "top_before", "top_after"), pl.String),
    **dict.fromkeys(("rank_before", "rank_after"), pl.Int64),
    **dict.fromkeys(("margin_before", "margin_after"), pl.Float64),
    "encodings": pl.Int64,
    "exhaustive": pl.Boolean,
}


@dataclass(frozen=True)
class Counterfactual(Presented):
    """The smallest edit of one query that changes whether its own image comes first.

    ``flipped`` says whether there is one; if not, ``after`` and the edit are of the edit that came closest (``after``
    is None where there was no edit to try). ``characters`` is its edit distance, where neighbours swapped count once,
    ``words`` how many words it touches, ``perturbations`` all that make it.

    ``tried`` of ``candidates`` edits were encoded, every one of up to ``searched`` characters; with the measurement of
    words, ``encodings`` were spent. ``complete`` says that the candidates were all edits that these perturbations can
    make, ``exhaustive`` that no smaller flip (or none at all, where there is none) was missed among them.
    """

    query: str
    image: str
    before: QueryResult
    after: QueryResult | None
    flipped: bool
    edits: tuple[Edit, ...]
    perturbations: tuple[str, ...]
    characters: int
    words: int
    candidates: int
    tried: int
    searched: int
    encodings: int
    exhaustive: bool
    complete: bool = True

    @property
    def title(self) -> str:
        return f"Counterfactual: {self.query}"

    def sections(self) -> Iterator[Section]:
        """The query before and after the edit, and what the edit does to its ranking."""
        yield Section("", (Diffs((_edit_diff(self),)),))

    @property
    def kind(self) -> str:
        """``right → wrong`` for a success that turns into a failure, ``wrong → right`` for the reverse."""
        return f"{RIGHT} → {WRONG}" if self.before.right else f"{WRONG} → {RIGHT}"

    def ruled_out(self, characters: int) -> bool:
        """Whether it is known that no edit of so many characters flips it."""
        if self.flipped:  # costs are tried in order
            return self.complete and self.characters > characters
        return self.exhaustive or (self.complete and self.searched >= characters)

    def as_dict(self) -> dict[str, Any]:
        edits = [{"span": edit.span, "before": edit.before, "after": edit.after} for edit in self.edits]
        names = (
            *("query", "image", "flipped", "kind", "perturbations", "characters", "words", "edits", "before", "after"),
            *("candidates", "tried", "searched", "encodings", "exhaustive", "complete"),
        )
        return json_form({name: edits if name == "edits" else getattr(self, name) for name in names})


@dataclass(frozen=True)
class Radius:
    """How many of some queries an edit of at most so many characters flips.

    ``flipped`` do for certain; of ``open`` ones it is unknown, as the budget did not reach that far.
    """

    characters: int
    queries: int
    flipped: int
    open: int

    @property
    def share(self) -> float:
        """The share that is known to flip: a lower bound."""
        return self.flipped / self.queries

    @property
    def at_most(self) -> float:
        """The share if all that are open did: an upper bound."""
        return (self.flipped + self.open) / self.queries


@dataclass(frozen=True, eq=False)
class Counterfactuals(Presented):
    """Counterfactuals of several queries of one dataset, by one model; a terminal shows the first ``shown``."""

    dataset: str
    model: str
    direction: str
    gallery: int
    perturbations: tuple[str, ...]
    budget: int
    results: tuple[Counterfactual, ...]
    shown: int = 5

    @property
    def title(self) -> str:
        return f"Counterfactuals: {self.dataset}"

    def sections(self) -> Iterator[Section]:
        """The edits, smallest first; of several queries, how many characters it takes."""
        head = (
            f"{self.model} on {self.dataset}: {format_count(len(self), 'query')} ({self.direction}) among "
            f"{self.gallery:,} images, up to {format_count(self.budget, 'encoding')} each"
        )
        flips = sorted((edit for edit in self if edit.flipped), key=lambda edit: (edit.characters, edit.words))
        diffs = map(_edit_diff, [*flips, *(edit for edit in self if not edit.flipped)])
        more = f"… and {format_count(len(self) - self.shown, 'more query')} (--show N prints more)"
        kinds = ((kind, len(self.of(right=right)), self.radii(right=right)) for kind, right in _KINDS)
        groups = [(f"{kind} (of {queries:,})", radii) for kind, queries, radii in kinds if queries and radii]
        parts: list[Part] = [Text.of(head)]
        if len(self.steps) > 1:
            series = []
            for kind, radii in groups:
                ends = ((radius.share, radius.at_most) if radius.open else (math.nan, math.nan) for radius in radii)
                figures = (Figure.percent(radius.share, *band) for radius, band in zip(radii, ends, strict=True))
                series.append(Series(kind, tuple(figures)))
            curve = Lines(
                title="Queries that an edit of at most so many characters flips",
                about="In percent; a band where the budget did not reach all edits.",
                across=tuple(map(float, self.steps)),
                series=tuple(series),
                axis="characters",
                limits=(0.0, 1.0),
            )
            parts.append(curve)
        parts.append(Diffs(tuple(diffs), most=self.shown, rest=more))
        if len(self) > 1:
            rows = []
            for index, step in enumerate(self.steps):
                cells = (
                    f"{100 * at.share:.1f} to {100 * at.at_most:.1f} %" if at.open else f"{100 * at.share:.1f} %"
                    for at in (radii[index] for _, radii in groups)
                )
                rows.append((f"≤ {step}", *cells))
            if rows:
                parts.append(Table(("characters", *(kind for kind, _ in groups)), rows, "r" + "l" * len(groups)))
            counts = [self.by_perturbation(right=right) for _, right in _KINDS]
            names = sorted({*counts[0], *counts[1]}, key=lambda name: -sum(by_name.get(name, 0) for by_name in counts))
            if names:
                header = ("smallest flip by", *(kind for kind, _ in _KINDS))
                parts.append(Table(header, [(name, *(by_name.get(name, 0) for by_name in counts)) for name in names]))
            notes = [
                f"{len(flips):,} of {format_count(len(self), 'query')} flipped by a single edit of a perturbation."
            ]
            if any(radius.open for _, radii in groups for radius in radii):
                notes.append(
                    "Where a range is given, the budget did not reach all edits: the share is between the two."
                )
            if any(len(edit.perturbations) > 1 for edit in flips):
                notes.append("An edit that several perturbations make counts for each.")
            parts.append(Text.of(*notes))
        yield Section("", tuple(parts))

    def __iter__(self) -> Iterator[Counterfactual]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def of(self, *, right: bool) -> tuple[Counterfactual, ...]:
        """Those of queries that found their image first, or of those that did not."""
        return tuple(result for result in self.results if result.before.right == right)

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """The numbers of characters at which some query flips."""
        return tuple(sorted({result.characters for result in self.results if result.flipped}))

    def radii(self, *, right: bool) -> tuple[Radius, ...]:
        """The curve of robustness: for each of the steps, how many queries flip up to there; empty without queries."""
        group = self.of(right=right)
        radii = []
        for step in self.steps if group else ():
            flipped = [result.flipped and result.characters <= step for result in group]
            ruled_out = sum(result.ruled_out(step) for result, flips in zip(group, flipped, strict=True) if not flips)
            radii.append(Radius(step, len(group), sum(flipped), len(group) - sum(flipped) - ruled_out))
        return tuple(radii)

    def by_perturbation(self, *, right: bool) -> dict[str, int]:
        """How many smallest flips each perturbation makes; one that several make counts for each of them."""
        flips = (result.perturbations for result in self.of(right=right) if result.flipped)
        counts = Counter(chain.from_iterable(flips))
        return {
            name: counts[name] for name in sorted(self.perturbations, key=lambda name: -counts[name]) if counts[name]
        }

    @cached_property
    def table(self) -> pl.DataFrame:
        """One row per query."""
        rows = []
        for result in self.results:
            sides = (result.before, result.after)
            values = [getattr(side, name, None) for name in ("text", "top", "rank", "margin") for side in sides]
            edit = (result.characters, result.words, list(result.perturbations)) if result.after else (None, None, [])
            start = (result.query, result.image, result.kind, result.flipped)
            rows.append((*start, *edit, *values, result.encodings, result.exhaustive))
        return pl.DataFrame(rows, schema=_COLUMNS, orient="row")

    def as_dict(self) -> dict[str, Any]:
        """For JSON: the summary, then every query."""
        summary = {
            name: {
                "queries": len(self.of(right=right)),
                "flipped": sum(result.flipped for result in self.of(right=right)),
                "radius": [
                    {"characters": radius.characters, "share": radius.share, "at_most": radius.at_most}
                    for radius in self.radii(right=right)
                ],
                "by_perturbation": self.by_perturbation(right=right),
            }
            for name, right in ((RIGHT, True), (WRONG, False))
        }
        names = ("dataset", "model", "direction", "gallery", "perturbations", "budget")
        content = {name: getattr(self, name) for name in names}
        return json_form({**content, "summary": summary, "queries": self.results})


_QUERIES_AT_ONCE = 64
"""Queries that are searched at the same time, so that the model gets full batches."""
_BATCH = 32
"""Costs with fewer edits are tried together with the next."""
_INFLUENCE_SHARE = 4
"""At most one of so many encodings is spent on the influence of words."""


@accepts_options(CounterfactualOptions, EncodeOptions)
def find_counterfactual(
    dataset: Dataset, model: str | Encoder | Any, query: str, **options: Unpack[CounterfactualKeywords]
) -> Counterfactual:
    """The smallest single edit of one query that turns a top-1 success into a failure, or a failure into a success.

    Args:
        dataset: Images and their captions.
        model: A name such as ``clip:…``, or an encoder.
        query: The id of a caption.
    """
    return find_counterfactuals(dataset, model, [query], **options).results[0]


@accepts_options(CounterfactualOptions, EncodeOptions)
def find_counterfactuals(
    dataset: Dataset,
    model: str | Encoder | Any,
    queries: Sequence[str] | None = None,
    *,
    progress: Progress | None = None,
    **options: Unpack[CounterfactualKeywords],
) -> Counterfactuals:
    """For each query the smallest single edit that changes whether its own image comes first.

    Edits are what the perturbations can make of a caption, one at a time. The result does not depend on the order or
    number of queries. Keywords that are not listed here go to the perturbations.

    Args:
        dataset: Images and their captions.
        model: A name such as ``clip:…``, or an encoder.
        queries: Ids of captions; by default all.
        progress: Told how much is done.
    """
    if isinstance(queries, str):
        raise InputError("queries is a string", expected="a list of caption ids", fix="put it into a list")
    settings, encoding = CounterfactualOptions.pick(options), EncodeOptions.pick(options)
    declared = {**vars(settings), **vars(encoding)}
    perturbing: dict[str, Any] = {name: value for name, value in options.items() if name not in declared}
    names = chosen_perturbations(settings.perturbations)
    if name := next(filter(is_image_perturbation, names), None):
        raise UsageError(f"{name} changes images, not queries", fix="name perturbations of texts", subject=name)
    encoder = load_encoder(model, encoding)
    query_set = query_set_of(dataset, encoder, queries, settings, encoding, progress)
    tagging = {"pipeline": settings.pipeline, "threads": settings.threads}
    edits = {**tagging, "seed": settings.seed, "corpus": dataset, **perturbing}
    progress, image_ids = shown_progress(progress), query_set.gallery.images.ids
    results: list[Counterfactual] = []
    for start in range(0, len(query_set.ids), _QUERIES_AT_ONCE):
        rows = range(start, min(start + _QUERIES_AT_ONCE, len(query_set.ids)))
        texts = {query_set.ids[row]: query_set.before[row].text for row in rows}
        candidates = candidate_edits(names, texts, progress=progress, **edits)
        images = [image_ids[query_set.own_rows[row]] for row in rows]
        before = query_set.before[rows.start : rows.stop]
        searches = [search(*parts, settings.budget) for parts in zip(texts, images, before, candidates, strict=True)]
        with stage(progress, "looking for counterfactuals", len(searches)):
            results += _run_searches(searches, rows, query_set, progress)
    head = (dataset.name, label(encoder), query_set.direction, len(image_ids), names, settings.budget)
    return Counterfactuals(*head, tuple(results))


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
        query_rows = [rows[number] for number, request in requests.items() for _ in request]
        results = iter(query_set.results(texts, query_rows) if texts else ())
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
    def remaining(self) -> int:
        return self.budget - self.spent

    def encode(self, texts: list[str]) -> Generator[list[str], list[QueryResult], list[QueryResult]]:
        """Have texts encoded, at the budget's cost."""
        self.spent += len(texts)
        return (yield texts)

    def flips(self, after: QueryResult) -> bool:
        """Whether right became wrong, or wrong right."""
        return after.right != self.before.right

    def towards(self, after: QueryResult) -> float:
        """How much nearer the margin came to the flip."""
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
        texts = (query, image, self.before, after, bool(flips), edit.edits, edit.perturbations)
        return Counterfactual(*texts, *numbers, exhaustive, complete)


def search(query: str, image: str, before: QueryResult, candidates: CandidateEdits, budget: int) -> Search:
    """Search for the smallest edit that flips a query whose own image is ``image``, and whose result is ``before``."""
    state = _SearchState(before, budget)
    levels = [list(level) for _, level in groupby(candidates.candidates, key=lambda edit: edit.characters)]
    while levels and state.remaining:
        batch = levels.pop(0)
        while levels and len(batch) < _BATCH and len(batch) + len(levels[0]) <= state.remaining:
            batch += levels.pop(0)
        whole = len(batch) <= state.remaining
        if not whole:
            batch = (yield from _most_influential_first(batch, state))[: state.remaining]
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
    if not 1 < len(words) <= state.remaining // _INFLUENCE_SHARE:
        return list(level)
    results = yield from state.encode([f"{text[: word.start].rstrip()}{text[word.end :]}".strip() for word in words])
    influence = [state.towards(result) for result in results]

    def largest(edit: Candidate) -> float:
        touched = [
            value
            for word, value in zip(words, influence, strict=True)
            if any(part.start <= word.end and word.start <= part.end for part in edit.edits)
        ]
        return max(touched, default=float("-inf"))

    return sorted(level, key=lambda edit: (-largest(edit), edit.words))


def _edit_diff(edit: Counterfactual) -> TextDiff:
    """One query: what happened, the edit, and what it did to the ranking."""
    before, after = edit.before, edit.after
    state, made_by = "right" if before.right else "wrong", ", ".join(edit.perturbations)
    if after is None:
        verdict = f"stays {state}: these perturbations can change nothing in it"
        return TextDiff(edit.query, diff_spans(before.text, ()), verdict)
    among = f"all {edit.tried:,} edits" if edit.exhaustive else f"{edit.tried:,} of {edit.candidates:,} edits"
    verdict = f"stays {state}: no flip among {among}; the closest ({made_by}):"
    if edit.flipped:
        verdict = f"{edit.kind} by {format_count(edit.characters, 'character')} ({made_by})"
    top = f"top-1 {before.top} → {after.top}" if before.top != after.top else f"top-1 stays {before.top}"
    places = f"rank of its own image {before.rank:,} → {after.rank:,}"
    margins = f"margin {before.margin:+.4f} → {after.margin:+.4f}"
    effort = format_count(edit.encodings, "encoding")
    if not edit.flipped:
        if edit.searched and not edit.exhaustive:
            effort += f"; every edit of up to {format_count(edit.searched, 'character')} tried"
    elif edit.exhaustive:
        effort += f"; every edit of up to {format_count(edit.characters, 'character')} tried: none is smaller"
    elif edit.complete:
        effort += "; no edit of fewer characters flips it; not all as small were tried"
    else:
        effort += "; not every possible edit was looked at"
    facts = (top, f"{places}; {margins}", effort)
    return TextDiff(edit.query, diff_spans(before.text, edit.edits), verdict, facts)
