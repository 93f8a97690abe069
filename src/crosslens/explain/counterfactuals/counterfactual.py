"""Counterfactuals: what little would have to be different in a query for its image to be found, or missed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from crosslens.core.dataset import Dataset
from crosslens.core.errors import InputError, UnknownNameError, UsageError
from crosslens.core.progress import Progress, Silent, stage
from crosslens.encode.cache import Cache
from crosslens.encode.encoder import Encoder, Tell, label, load_encoder, to_stderr
from crosslens.encode.summaries import Summariser
from crosslens.explain.counterfactuals.contest import Contest, contest_of, sampled
from crosslens.explain.counterfactuals.gallery import Standing
from crosslens.explain.counterfactuals.result import RIGHT, WRONG, Counterfactual, Counterfactuals
from crosslens.explain.counterfactuals.search import Found, Search, search
from crosslens.perturb.candidates import Candidates, candidate_edits
from crosslens.perturb.choice import chosen_perturbations, is_image_perturbation

BUDGET = 200
"""Encodings that a query is worth."""
_TOGETHER = 64
"""Queries that are searched at the same time, so that the model gets full batches."""


def counterfactual(dataset: Dataset, model: str | Encoder | Any, query: str, **options: Any) -> Counterfactual:
    """The smallest single edit of one query that turns a top-1 success into a failure, or a failure into a success.

    ``query`` is the id of a caption; ``options`` are those of :func:`counterfactuals`.
    """
    return counterfactuals(dataset, model, [query], **options).results[0]


def counterfactuals(
    dataset: Dataset,
    model: str | Encoder | Any,
    queries: Sequence[str] | None = None,
    *,
    sample: int | None = None,
    only: str | None = None,
    perturbations: str | Sequence[str] = "everything",
    budget: int = BUDGET,
    image_text: str | Summariser | None = None,
    query_caption: int = 0,
    image_folder: str | Path | None = None,
    score: str | None = None,
    seed: int = 0,
    device: str | None = None,
    precision: str = "fp32",
    offline: bool = False,
    skip_bad: bool = False,
    cache: Cache | None = None,
    batch_size: int | None = None,
    pipeline: str | None = None,
    threads: int | None = None,
    tell: Tell = to_stderr,
    progress: Progress | None = None,
    **options: Any,
) -> Counterfactuals:
    """For each query the smallest single edit that changes whether its own image comes first.

    ``queries`` are ids of captions (default: all), ``sample`` draws so many of them by the seed, and ``only`` keeps
    those that find their image first (``right``) or do not (``wrong``). Edits are what the ``perturbations`` (names and
    groups) can make of a caption, one at a time; ``options`` go to them. ``budget`` is how many changed texts are
    encoded per query, at most. With ``image_text`` an image is represented by its other captions, as in text-only
    retrieval, and caption number ``query_caption`` of each image asks.

    The answer does not depend on the order or number of queries. ``cache`` keeps the vectors, so that the same search
    again, or one that was stopped, does not encode them twice.
    """
    if budget < 1:
        raise UsageError(f"a budget of {budget} encodings", fix="allow at least one")
    if sample is not None and sample < 1:
        raise UsageError(f"a sample of {sample} queries", fix="draw at least one")
    if only not in (None, RIGHT, WRONG):
        raise UnknownNameError("kind of query", str(only), (RIGHT, WRONG))
    names = _text_perturbations(perturbations)
    encoder = load_encoder(model, device=device, precision=precision, offline=offline, tell=tell)
    contest = contest_of(
        dataset,
        encoder,
        _wanted(queries),
        sample=None if only else sample,
        seed=seed,
        image_text=image_text,
        query_caption=query_caption,
        image_folder=image_folder,
        score=score,
        skip_bad=skip_bad,
        how={"cache": cache, "batch_size": batch_size, "precision": precision, "progress": progress},
    )
    contest = _chosen(contest, only, sample, seed)
    edits = {"pipeline": pipeline, "threads": threads, "seed": seed, "corpus": dataset, **options}
    return Counterfactuals(
        dataset.name,
        label(encoder),
        contest.direction,
        len(contest.gallery.images.ids),
        names,
        budget,
        tuple(_search_all(contest, names, budget, edits, progress or Silent())),
    )


def _text_perturbations(perturbations: str | Sequence[str]) -> tuple[str, ...]:
    names = chosen_perturbations(perturbations)
    for name in names:
        if is_image_perturbation(name):
            raise UsageError(f"{name} changes pictures, not queries", fix="name perturbations of texts")
    return names


def _wanted(queries: Sequence[str] | None) -> Sequence[str] | None:
    if isinstance(queries, str):
        raise InputError("one query where a list belongs", expected="ids of captions", fix="put it into a list")
    return queries


def _chosen(contest: Contest, only: str | None, sample: int | None, seed: int) -> Contest:
    """Of all queries those that are right, or wrong; then so many of them."""
    if only is None:
        return contest
    rows = [row for row, one in enumerate(contest.before) if one.right == (only == RIGHT)]
    if not rows:
        raise InputError(
            f"no query is {only}", expected=f"one that is, among {len(contest.before):,}", fix="drop --only"
        )
    return contest.select(sampled(rows, sample, seed))


def _search_all(
    contest: Contest, names: Sequence[str], budget: int, edits: dict[str, Any], progress: Progress
) -> Iterator[Counterfactual]:
    for start in range(0, len(contest.ids), _TOGETHER):
        rows = range(start, min(start + _TOGETHER, len(contest.ids)))
        texts = {contest.ids[row]: contest.before[row].text for row in rows}
        candidates = candidate_edits(names, texts, progress=progress, **edits)
        searches = [search(contest.before[row], one, budget) for row, one in zip(rows, candidates, strict=True)]
        with stage(progress, "looking for counterfactuals", len(searches)):
            found = _in_step(searches, rows, contest, progress)
        for row, edit, place in zip(rows, found, candidates, strict=True):
            yield _result(contest, row, place, edit)


def _in_step(searches: Sequence[Search], rows: Sequence[int], contest: Contest, progress: Progress) -> list[Found]:
    """Run searches side by side: what they want encoded goes through the model together."""
    found: dict[int, Found] = {}
    answers: dict[int, list[Standing] | None] = dict.fromkeys(range(len(searches)))
    while answers:
        wanted: dict[int, list[str]] = {}
        for place, answer in answers.items():
            try:
                wanted[place] = next(searches[place]) if answer is None else searches[place].send(answer)
            except StopIteration as end:
                found[place] = end.value
                progress.advance()
        texts = [text for asked in wanted.values() for text in asked]
        own = [rows[place] for place, asked in wanted.items() for _ in asked]
        standings = iter(contest.standings(texts, own) if texts else ())
        answers = {place: [next(standings) for _ in asked] for place, asked in wanted.items()}
    return [found[place] for place in range(len(searches))]


def _result(contest: Contest, row: int, candidates: Candidates, found: Found) -> Counterfactual:
    edit = found.edit
    return Counterfactual(
        contest.ids[row],
        contest.gallery.images.ids[contest.own[row]],
        contest.before[row],
        found.after,
        found.flipped,
        () if edit is None else edit.edits,
        () if edit is None else edit.perturbations,
        0 if edit is None else edit.characters,
        0 if edit is None else edit.words,
        len(candidates),
        found.tried,
        found.searched,
        found.encodings,
        found.exhaustive,
        candidates.complete,
    )
