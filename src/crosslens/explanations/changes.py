"""Two runs, query by query: which queries the second wins and loses, and what is wrong with the hits of either."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from crosslens.core import (
    Cards,
    Figure,
    InputError,
    MissingExtraError,
    Part,
    PictureCard,
    Presented,
    Section,
    Shares,
    Table,
    Text,
)
from crosslens.engine import Progress
from crosslens.explanations.causes import CAUSES, UNEXPLAINED, cause_column, cause_table, judge_failures, texts_of
from crosslens.explanations.failures import DIRECTION_NAMES, failed, query_outcomes, ranking_of
from crosslens.explanations.mentions import mentioned_concepts
from crosslens.explanations.objects import objects_of
from crosslens.explanations.run_dataset import image_files_of_run
from crosslens.similarity import Phi, load_similarity, prepare_dataset
from crosslens.statistics import PairedTest, paired_permutation
from crosslens.storage import Array, json_form
from crosslens.values import IMAGE_TO_TEXT, Dataset, Run, positions

Faults = tuple[tuple[str, ...], tuple[str, ...]]
"""The causes of a failure, and the phrases of the query that its hit contradicts."""

SHOWN = 20
"""Won queries, and lost ones, that are shown."""
_PRINTED = 3
"""Those of them on a terminal."""
_KEY = ("query", "item")
_SCHEMA: dict[str, Any] = {"cause": pl.String, **dict.fromkeys(("first", "second", "gone", "new"), pl.Int64)}


@dataclass(frozen=True)
class TopHit:
    """The first item of a query's list in one run.

    ``rank`` is that of the first relevant item, None where a given list ends before it; ``phi`` how much the hit says
    what the query says; ``causes`` what is wrong with the hit, and ``wrong`` the phrases that disagree with it.
    """

    item: str
    image: str
    text: str | None
    rank: int | None
    phi: float | None
    causes: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()

    @property
    def right(self) -> bool:
        return self.rank == 1


@dataclass(frozen=True)
class QueryChange:
    """One query in both runs; ``image`` is the relevant image, or the query image itself."""

    query: str
    text: str | None
    image: str
    first: TopHit
    second: TopHit


@dataclass(frozen=True, eq=False)
class RunChanges(Presented):
    """Two runs on the same queries of one direction.

    A query is won where its first relevant item is ranked higher by the second run. ``ranks`` tests the difference of
    the mean reciprocal ranks, ``phi`` that of the mean φ of the top hits, whose means are ``phi_means``. ``causes``
    has a row per cause: how many queries fail so in either run, in how many won queries it is gone, and in how many
    lost ones new. ``won`` and ``lost`` are the queries that changed most; ``captions`` has a caption of each image that
    they name, ``pictures`` its file, and ``problem`` says why there are none.
    """

    runs: tuple[str, str]
    dataset: str
    direction: str
    queries: int
    wins: int
    losses: int
    ranks: PairedTest
    phi_name: str
    phi_means: tuple[float, float]
    phi: PairedTest
    causes: pl.DataFrame
    won: tuple[QueryChange, ...]
    lost: tuple[QueryChange, ...]
    notes: tuple[str, ...] = ()
    captions: Mapping[str, str] = field(default_factory=dict)
    pictures: Mapping[str, str] = field(default_factory=dict)
    problem: str | None = None

    @property
    def title(self) -> str:
        return f"What {self.runs[1]} changed"

    def sections(self) -> Iterator[Section]:
        """The balance, what is wrong with top hits, and the queries that changed most."""
        second, by_image = self.runs[1], self.direction == IMAGE_TO_TEXT
        equal = self.queries - self.wins - self.losses
        where = f"{DIRECTION_NAMES.get(self.direction, self.direction)} on {self.dataset}"
        meaning = "the query says what the captions of the top hit say"
        if by_image:
            meaning = "the top hit says what the captions of the query image say"
        balance = Shares(
            title="Queries won and lost",
            about=f"{where}, {self.queries:,} queries",
            groups=(second,),
            levels=("won", "equal", "lost"),
            counts=((self.wins, equal, self.losses),),
            heading="run",
        )
        text = Text.of(
            f"{where}, {self.queries:,} queries: {self.wins:,} won, {equal:,} equal, {self.losses:,} lost. "
            f"A query is won where its first relevant item is ranked higher; φ is how much {meaning} "
            f"({self.phi_name}).",
            f"Mean reciprocal rank: {_tested(self.ranks, Figure(None, scale=100.0, digits=1, unit=' points'))}.",
            "φ of the top hits: {} → {}, ".format(*(Figure(mean, digits=3) for mean in self.phi_means))
            + f"{_tested(self.phi, Figure(None, digits=3))}.",
        )
        parts: list[Part] = [balance, text]
        if self.causes.height:
            lacking = "what it lacks of what the query mentions"
            if by_image:
                lacking = "what the retrieved caption mentions and the query image lacks"
            remarks = (
                f"Queries whose top hit is not relevant, by {lacking}; a hit may have several faults.",
                "Of one that is not explained, nothing is known to be lacking.",
                "The last two columns count won queries whose hit has the fault no more, and lost queries whose hit "
                "did not have it before.",
            )
            header = ("fault of the top hit", *self.runs, "won: fault gone", "lost: fault new")
            parts.append(Table(header, self.causes.rows(), title="Causes", notes=remarks))
        missing = [image for image in self.images if image not in self.pictures]
        notes = list(self.notes)
        if missing:
            reason = f": {self.problem}" if self.problem else ""
            notes.append(f"{len(missing):,} of {len(self.images):,} pictures are missing{reason}.")
        yield Section(self.title, (*parts, Text(tuple(notes), note=True)))
        for verb, count, cases in (("wins", self.wins, self.won), ("loses", self.losses, self.lost)):
            scope = "all of them" if len(cases) == count else f"the {len(cases):,} whose reciprocal rank changes most"
            lead = Text.of(f"{count:,} queries; {scope}.", note=True) if cases else Text.of("None.")
            cards = (self._cards(change, number < _PRINTED) for number, change in enumerate(cases))
            yield Section(f"Queries that {second} {verb}", (lead, *cards))

    def _cards(self, change: QueryChange, printed: bool) -> Cards:
        """What was asked for; then the first hit of either run: its picture, what it says, and what it lacks."""
        query_text, text = f": {change.text}", None
        heading = "Relevant image"
        if change.text is None:
            query_text, text, heading = "", self.captions.get(change.image), "Query image"
        cards = [PictureCard(f"{heading} {change.image}", () if text is None else (text,), change.image)]
        for hit, run in zip((change.first, change.second), self.runs, strict=True):
            text = hit.text or self.captions.get(hit.image)
            faults = tuple(f"✗ {phrase}" for phrase in hit.wrong) or (", ".join(hit.causes),) * bool(hit.causes)
            phi = "" if hit.phi is None else f", φ {hit.phi:.2f}"
            title = f"{run}{phi}, {'✓ relevant' if hit.right else 'not relevant'}"
            mark: Literal["", "right"] = "right" if hit.right else ""
            texts = () if text is None else (text,)
            cards.append(PictureCard(title, texts, hit.image, mark=mark, details=(*faults, hit.item)))
        ranks = ("not listed" if hit.rank is None else f"{hit.rank:,}" for hit in (change.first, change.second))
        title = f"{change.query}, rank {' → '.join(ranks)}{query_text}"
        return Cards(title, tuple(cards), self.pictures, most=None if printed else 0)

    @property
    def images(self) -> tuple[str, ...]:
        """The images that are shown."""
        images = ((change.image, change.first.image, change.second.image) for change in (*self.won, *self.lost))
        return tuple(dict.fromkeys(chain.from_iterable(images)))

    def as_dict(self) -> dict[str, Any]:
        names = (
            *("runs", "dataset", "direction", "queries", "wins", "losses", "phi_name", "phi_means", "notes", "ranks"),
            *("phi", "causes", "won", "lost"),
        )
        return json_form({name: getattr(self, name) for name in names})


def _tested(test: PairedTest, unit: Figure) -> str:
    difference = replace(unit, value=test.difference, low=test.low, high=test.high, signed=True)
    return f"{difference}, p {Figure.p(test.p_value, test.permutations).equation}"


def compare_queries(
    first: Run,
    second: Run,
    dataset: Dataset,
    direction: str | None = None,
    *,
    names: tuple[str, str] | None = None,
    phi: Phi = "cider",
    most: int = SHOWN,
    permutations: int = 10_000,
    seed: int = 0,
    image_folder: str | Path | None = None,
    progress: Progress | None = None,
) -> RunChanges:
    """Which queries the second run wins over the first and which it loses, with their top hits, φ of these, and causes.

    ``direction``: by default the first that the first run has, captions first. ``most`` won and ``most`` lost queries
    are listed: those whose reciprocal rank changes most, and of equal ones those in the dataset's order. Their pictures
    are looked for below ``image_folder``, or where the run or the dataset has them.
    """
    direction = ranking_of(first, direction, dataset).direction
    outcomes = [query_outcomes(run, dataset, direction) for run in (first, second)]
    shared = outcomes[0].join(outcomes[1], on="query", how="inner", suffix="_after", maintain_order="left")
    if not shared.height:
        raise InputError(
            f"{first.name} and {second.name} have no query in common",
            expected="two runs on one dataset",
            fix="compare runs of the same queries",
        )
    # 1 / rank; 0 where a given list ends before the relevant item
    ranks = [(1.0 / shared[name].cast(pl.Float64)).fill_null(0.0).to_numpy() for name in ("rank", "rank_after")]
    gain = ranks[1] - ranks[0]
    by_image = direction == IMAGE_TO_TEXT
    query_ids, item_ids = (dataset.image_ids, dataset.caption_ids)[:: 1 if by_image else -1]
    queries = positions(shared["query"].to_list(), query_ids, "query")
    clusters = np.arange(shared.height) if by_image else np.asarray(dataset.caption_image)[queries]
    # φ of each top hit: of a caption with the query image's captions; of an image, whose captions, with the query.
    prepared = prepare_dataset(dataset, phi, progress=progress)
    hits = []
    for name in ("item", "item_after"):
        items = positions(shared[name].to_list(), item_ids, "item")
        sides = (queries, items) if by_image else (items, queries)
        hits.append(np.asarray(prepared.pairs(*sides), np.float64))
    faults, notes = _faults_of_hits(outcomes, shared["query"], dataset, progress)

    def largest(change: Array) -> tuple[QueryChange, ...]:
        changes = []
        for row in np.argsort(-change, kind="stable")[:most].tolist():
            if change[row] > 0:
                record = shared.row(row, named=True)
                top = []
                for suffix, values, faults_of in zip(("", "_after"), hits, faults, strict=True):
                    item, image, text, rank = (
                        record[f"{name}{suffix}"] for name in ("item", "retrieved", "answer", "rank")
                    )
                    causes, wrong = faults_of.get(record["query"], ((), ()))
                    top.append(TopHit(item, image, text, rank, float(values[row]), causes, wrong))
                changes.append(QueryChange(record["query"], record["text"], record["ground_truth"], *top))
        return tuple(changes)

    test: dict[str, Any] = {"permutations": permutations, "seed": seed}
    changes = RunChanges(
        runs=names or (first.name, second.name),
        dataset=dataset.name,
        direction=direction,
        queries=shared.height,
        wins=int((gain > 0).sum()),
        losses=int((gain < 0).sum()),
        ranks=paired_permutation(ranks[1], ranks[0], clusters, bounds=(0, 1), **test),
        phi_name=load_similarity(phi).name,
        phi_means=(float(hits[0].mean()), float(hits[1].mean())),
        phi=paired_permutation(hits[1], hits[0], clusters, **test),
        causes=_cause_changes(shared, gain, faults),
        won=largest(gain),
        lost=largest(-gain),
        notes=notes,
        captions=dict(dataset.described.captions.select("image", "text").reverse().iter_rows()),
    )
    files, problem = image_files_of_run(first, dataset, changes.images, image_folder)
    return replace(changes, pictures=files, problem=problem)


def _faults_of_hits(
    outcomes: Sequence[pl.DataFrame], queries: pl.Series, dataset: Dataset, progress: Progress | None
) -> tuple[list[dict[str, Faults]], tuple[str, ...]]:
    """Per run the failed queries and what is wrong with their top hits. A hit of both runs is judged once."""
    tables = [table.filter(failed() & pl.col("query").is_in(queries.implode())) for table in outcomes]
    distinct = pl.concat(tables).unique(_KEY, keep="first", maintain_order=True)
    try:
        mentions = mentioned_concepts(texts_of(distinct), progress=progress)
        objects = objects_of(dataset, progress=progress)
    except MissingExtraError as error:
        return [{}, {}], (f"Causes are left out: {error.problem}; {error.fix}.",)
    judged_hits = judge_failures(distinct, dataset, objects, mentions, progress)
    causes = cause_table([[judgement for _, judgement in row] for row in judged_hits]).to_dicts()
    by_hit: dict[tuple[str, str], Faults] = {}
    for (query, item), row, judgements in zip(distinct.select(_KEY).iter_rows(), causes, judged_hits, strict=True):
        phrases: dict[str, None] = {}
        for mention, judgement in judgements:
            phrase = mention.text.lower()
            if mention.kind == "relation":
                phrase = f"{mention.noun} {mention.value} {mention.other}"
            elif mention.noun not in phrase:
                phrase = f"{phrase} {mention.noun}"
            if judgement.holds is False:
                phrases[f"{judgement.cause}: {phrase}"] = None
        violated = tuple(cause for cause in CAUSES if row[cause_column(cause)])
        by_hit[query, item] = (violated or (row["main_cause"],), tuple(phrases))
    faults = [{query: by_hit[query, item] for query, item in table.select(_KEY).iter_rows()} for table in tables]
    captions = objects.source == "captions"
    source = "captions, as no objects are annotated" if captions else "annotated objects and captions"
    return faults, (f"Causes are judged by {source}.",)


def _cause_changes(shared: pl.DataFrame, gain: Array, faults: Sequence[Mapping[str, Faults]]) -> pl.DataFrame:
    """Per cause: queries that fail so in either run, won queries without it since, lost queries that have it since."""
    counts = {cause: [0, 0, 0, 0] for cause in (*CAUSES, UNEXPLAINED)}
    for query, change in zip(shared["query"], gain, strict=True):
        before, after = (set(run.get(query, ((), ()))[0]) for run in faults)
        for cause in before | after:
            first, second = cause in before, cause in after
            flags = (first, second, change > 0 and not second, change < 0 and not first)
            counts[cause] = [count + int(flag) for count, flag in zip(counts[cause], flags, strict=True)]
    rows = [(cause, *row) for cause, row in counts.items() if row[0] or row[1]]
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")
