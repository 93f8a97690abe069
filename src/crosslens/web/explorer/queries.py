"""What is shown of queries: in a list, one by one with what several runs retrieve, why, and under perturbations."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from threading import Thread
from typing import Any, Literal

import numpy as np
import polars as pl

from crosslens.analyze import check_similarity, held_out_similarity, is_denied
from crosslens.comparisons import group_words
from crosslens.core import (
    CrosslensError,
    Diffs,
    Facet,
    FacetValue,
    PictureCard,
    Presented,
    QueryCard,
    QueryCards,
    Section,
    TextDiff,
    UsageError,
)
from crosslens.metrics import metric_figure
from crosslens.perturbations import Edit, diff_spans, phrase_of
from crosslens.similarity import PreparedSimilarity, load_similarity, prepare_dataset, references_of
from crosslens.values import Dataset
from crosslens.web.background import RecentCache
from crosslens.web.explorer.retrieval import CountedValue, ItemView, QueryFilter, QueryTables, Retrieval
from crosslens.web.library import RunSummary

PHI, QUANTILE = "cider", 0.75
"""The similarity, and which quantile of annotated pairs has to be reached: a mark on a page should rarely be wrong."""
_LONGEST_VALUE, _MOST_CAPTIONS = 200, 500_000
_NOT_FACTS = ("image", "file", "caption", "text", "width", "height")
_PATIENCE = 0.5
"""Seconds after which pages no longer wait for the first marks: they are renewed when these are there."""


@dataclass(frozen=True)
class QueryRow:
    """A query in the list of a run; ``rank`` is that of the first relevant item, which is ``expected``.

    The outcome is a ``hit`` where the first item is relevant, ``unknown`` where none is or the run keeps no ranks.
    """

    query: str
    text: str | None
    image: str | None
    has_picture: bool
    outcome: str
    rank: int | None
    lead: float | None
    """How far the first item's score is above that of the first relevant one, at least."""
    values: dict[str, float | None]
    expected: ItemView | None
    top: list[ItemView]


@dataclass(frozen=True)
class QueryList:
    """A page of the queries of a run; ``figure`` is the metric over all that match, ``facets`` what narrows them."""

    run: str
    direction: str
    directions: list[str]
    queries: int
    matching: int
    offset: int
    limit: int
    depth: int
    metrics: list[str]
    metric: str
    figure: dict[str, float | None]
    facets: dict[str, list[CountedValue]]
    rows: list[QueryRow]


def query_section(
    listed: QueryList, filters: QueryFilter, to: Callable[..., str], page: Callable[[int], str]
) -> Section:
    """The queries of a page with their pictures, under facets; ``to`` is the address of a filter, ``page`` of a row."""
    unit = metric_figure(f"{listed.direction}/{listed.metric}", None)
    unit = replace(unit, digits=0, unit=" %") if unit.scale == 100 else unit
    facets = []
    for name, values in listed.facets.items():
        picked = getattr(filters, name) if name in _FACETS else filters.columns.get(name)
        choices = tuple(
            FacetValue(
                _WORDS[entry.value] if name in _FACETS else group_words(name, entry.value), entry.count,
                None if name in _FACETS or entry.mean is None else replace(unit, value=entry.mean),
                to(filters.choosing(name, entry.value)), entry.value == picked,
            )
            for entry in values
        )  # fmt: skip
        if len(choices) > 1 or picked:
            facets.append(Facet(_FACETS.get(name) or f"{name.replace('_', ' ')} · {listed.metric}", choices))
    cards = tuple(_card(row, listed, page(listed.offset + number)) for number, row in enumerate(listed.rows))
    return Section("", (QueryCards(cards, facets=tuple(facets), large=True),))


_FACETS = {"outcome": "first relevant", "side": "against the other run"}
_WORDS = {
    "failed": "all misses", "hit": "at rank 1", "2-5": "at 2 to 5", "6-10": "at 6 to 10", "11-": "beyond 10",
    "only_this": "only this run finds", "only_other": "only the other finds", "both": "both find",
    "neither": "neither finds",
}  # fmt: skip


def _card(row: QueryRow, listed: QueryList, address: str) -> QueryCard:
    """What was asked for, and the first items with their scores."""
    cards = [PictureCard("query", (), row.image)] if row.has_picture else []
    if row.expected is not None:
        expected = row.expected
        cards.append(PictureCard("right", _words(expected), _image(expected), "right"))
    for item in row.top if row.image is None else row.top[:1]:
        score = "" if item.score is None else f" · {item.score:.2f}"
        mark: Literal["right", "wrong"] = "right" if item.relevant else "wrong"
        cards.append(PictureCard(f"{item.rank}{score}", _words(item), _image(item), mark))
    where = "no relevant item is known"
    if row.outcome == "hit":
        where = "the first item is relevant"
    elif row.outcome == "failed":
        where = "the relevant one is not in the list" if row.rank is None else f"the relevant one is at {row.rank:,}"
        least = "at least " if row.rank is not None and row.rank > listed.depth else ""
        where += "" if row.lead is None else f"; another is ahead by {least}{row.lead:.3f}"
    text = row.text if row.image is None else None
    return QueryCard(row.query, text or "", tuple(cards), (where,), (row.query,) if text else (), address=address)


def _words(item: ItemView) -> tuple[str, ...]:
    """A caption's text; of an image without a picture its id."""
    return () if _image(item) is not None else (item.item if item.text is None else item.text,)


def _image(item: ItemView) -> str | None:
    return item.image if item.text is None and item.has_picture else None


@dataclass(frozen=True)
class RunResult:
    """What one run retrieves for a query."""

    run: str
    name: str
    outcome: str
    rank: int | None
    values: dict[str, float | None]
    items: list[ItemView]

    @staticmethod
    def of(summary: RunSummary, retrieval: Retrieval, row: int, k: int) -> RunResult:
        outcome, rank = str(retrieval.outcomes[row]), retrieval.rank(row)
        return RunResult(summary.id, summary.name, outcome, rank, retrieval.values(row), retrieval.top(row, k))


@dataclass(frozen=True)
class QueryView:
    """A query, what is relevant to it, and what several runs over the same dataset retrieve.

    ``captions`` are those of an image query, ``other_runs`` runs over the same dataset that are not shown.
    """

    dataset: str
    direction: str
    query: str
    text: str | None
    image: str | None
    has_picture: bool
    captions: list[str]
    columns: dict[str, str]
    relevant: list[ItemView]
    results: list[RunResult]
    other_runs: dict[str, str]
    notes: list[str]


def shown_facts(row: dict[str, Any]) -> dict[str, str]:
    """What the columns of a dataset say of a query or an image besides its text, each in a line."""
    facts = {}
    for name, value in row.items():
        if value is not None and name not in _NOT_FACTS:
            text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            facts[name] = text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]} …"
    return facts


@dataclass(frozen=True)
class QueryPerturbations(Presented):
    """A query under the perturbations of the robustness studies of its dataset in the folder."""

    rows: tuple[dict[str, Any], ...]

    title = "Under perturbations"

    def as_dict(self) -> dict[str, Any]:
        return {"rows": list(self.rows)}

    def sections(self) -> Iterator[Section]:
        diffs = []
        for row in self.rows:
            before, after = row["rank_before"], row["rank_after"]
            change = "unknown" if before is None else "lost" if after is None else "same"
            if before is not None and after is not None and before != after:
                change = f"{abs(after - before):,} {'up' if after < before else 'down'}"
            ranks = (f"{rank:,}" if rank else word for rank, word in ((before, "–"), (after, "not in list")))
            facts = f"rank {' → '.join(ranks)}: {change}", f"{row['model']}, {row['study']}"
            spans = tuple((span["before"], span["after"]) for span in row["spans"])
            diffs.append(TextDiff(phrase_of(row["perturbation"]), spans, "" if row["applied"] else "unchanged", facts))
        yield Section(self.title, (Diffs(tuple(diffs)),))


def perturbations_of(tables: QueryTables, run: str, direction: str | None, query: str) -> QueryPerturbations:
    """The query under every perturbation, those of the run's own model first."""
    retrieval, summary = tables.retrieval(run, direction), tables.library.summary(run)
    retrieval.row(query)
    rows = []
    for location, study in tables.library.studies(summary.dataset).items():
        if study.direction != retrieval.direction:
            continue
        changes = study.queries.filter((pl.col("query") == query) & (pl.col("seed") == pl.col("seed").min()))
        captions = study.captions.filter(pl.col("caption") == query) if study.captions.height else study.captions
        edited = {
            (caption["perturbation"], caption["seed"]): diff_spans(
                str(caption["original"]),
                [Edit(*(edit[name] for name in Edit._fields)) for edit in caption["edits"] or ()],
            )
            for caption in captions.to_dicts()
        }
        for change in changes.to_dicts():
            ranks = {
                name: None if change[name] is None or change[name] != change[name] else int(change[name])
                for name in ("rank_before", "rank_after")
            }
            facts = {"model": change["model"], "perturbation": change["perturbation"]}
            facts |= {"applied": bool(change["applied"]), **ranks}
            spans = edited.get((change["perturbation"], change["seed"]), ())
            parts = [{"before": before, "after": after} for before, after in spans]
            rows.append({"study": location, **facts, "spans": parts})
    return QueryPerturbations(tuple(sorted(rows, key=lambda row: row["model"] != summary.name)))


@dataclass(frozen=True)
class LikelyPositive:
    """An item outside the ground truth that its captions say is relevant."""

    item: str
    phi: float


@dataclass(frozen=True)
class LikelyPositives:
    """Items of the top lists whose φ reaches the threshold."""

    phi: str
    threshold: float
    quantile: float
    items: list[LikelyPositive]


@dataclass(frozen=True)
class PageMarks:
    """What a page marks; ``pending`` where the dataset is still being prepared."""

    likely: LikelyPositives | None = None
    pending: bool = False

    @property
    def phi(self) -> dict[str, float]:
        return {} if self.likely is None else {item.item: item.phi for item in self.likely.items}


class LikelyPositiveSearch:
    """Items of top lists that nobody marked as relevant and that are worth a look by their captions.

    As in ``crosslens missing-positives``: φ of a query's caption against the captions of an image is compared with φ of
    captions that people wrote about an image, each against the image's others; what a caption denies is left out, and
    everything where similarity cannot tell on this data. Here only the pairs of a page are computed; what they need is
    prepared in the background, as that takes seconds for a large dataset.
    """

    def __init__(self, tables: QueryTables) -> None:
        self._tables = tables
        self._cache: RecentCache[_Preparation] = RecentCache(2)

    def search(
        self, run: str, direction: str | None, query: str, items: Iterable[ItemView] | None = None, *, k: int = 10,
        patience: float | None = None,
    ) -> LikelyPositives:  # fmt: skip
        """Those of ``items`` (default: the first ``k`` of the query) that are not relevant and reach the threshold.

        Raises TimeoutError where the dataset is not prepared ``patience`` seconds after that began; it goes on.
        """
        retrieval = self._tables.retrieval(run, direction)
        row = retrieval.row(query)
        dataset = self._tables.library.dataset_of(run)
        texts = dataset.fingerprint, dataset.described.fingerprint
        phi, threshold, can_tell = self._cache.get(texts, lambda: _Preparation(dataset)).result(patience)
        listed = retrieval.top(row, k) if items is None else items
        open_items = list(dict.fromkeys(item.item for item in listed if not item.relevant))
        name = retrieval.query_names[row]
        pairs = [(name, item) if retrieval.forward else (item, name) for item in open_items]
        rows = [(dataset.image_rows.get(image), dataset.caption_rows.get(caption)) for image, caption in pairs]
        candidates = [
            (item, (image, caption))
            for item, (image, caption) in zip(open_items, rows, strict=True)
            if can_tell and image is not None and caption is not None
        ]
        values = phi.pairs(*np.array([pair for _, pair in candidates], np.int64).T).tolist() if candidates else []
        references = references_of(dataset)
        likely = [
            LikelyPositive(item, value)
            for (item, (image, caption)), value in zip(candidates, values, strict=True)
            if value >= threshold and not is_denied(dataset.texts[caption], references[image])
        ]
        return LikelyPositives(PHI, threshold, QUANTILE, likely)

    def of_view(self, run: str, view: QueryView) -> PageMarks:
        """What a page marks among the items of all runs that it shows; nothing where that cannot be computed."""
        items = [item for result in view.results for item in result.items]
        try:
            return PageMarks(self.search(run, view.direction, view.query, items, patience=_PATIENCE))
        except TimeoutError:
            return PageMarks(pending=True)
        except CrosslensError:
            return PageMarks()


class _Preparation:
    """φ of a dataset, its threshold, and whether φ can tell; prepared in a thread that ends with the server."""

    def __init__(self, dataset: Dataset) -> None:
        self._began = time.monotonic()
        self._future: Future[tuple[PreparedSimilarity, float, bool]] = Future()

        def work() -> None:
            try:
                if len(dataset.caption_ids) > _MOST_CAPTIONS:
                    raise UsageError(
                        f"{dataset.name} has more than {_MOST_CAPTIONS:,} captions, "
                        "too many to compare while a page waits",
                        fix="use crosslens missing-positives",
                        code="too-large",
                    )
                similarity = load_similarity(PHI)
                annotated = held_out_similarity(dataset, similarity)
                if not len(annotated):
                    raise UsageError("no image has two captions to derive the threshold from", code="no-threshold")
                threshold = float(np.quantile(annotated, QUANTILE))
                can_tell = not check_similarity(dataset, similarity, threshold).fails
                self._future.set_result((prepare_dataset(dataset, similarity), threshold, can_tell))
            except BaseException as error:  # raised where somebody waits for the result
                self._future.set_exception(error)

        Thread(target=work, daemon=True).start()

    def result(self, patience: float | None) -> tuple[PreparedSimilarity, float, bool]:
        """What was prepared; raises TimeoutError where it is not there ``patience`` seconds after the beginning."""
        timeout = None if patience is None else max(0.0, self._began + patience - time.monotonic())
        return self._future.result(timeout)
