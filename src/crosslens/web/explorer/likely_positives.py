"""Items of top lists that nobody marked as relevant although their captions say so.

As in ``crosslens missing-positives``: φ of a query's caption against the captions of an image is compared with φ of
captions that people wrote about an image, each against the image's others. Here only the pairs of a page are computed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Thread

import numpy as np

from crosslens.analyze import held_out_similarity
from crosslens.core import CrosslensError, Dataset, UsageError
from crosslens.similarity import PreparedSimilarity, load_similarity, prepare_dataset
from crosslens.web.explorer.models import ItemView, LikelyPositive, LikelyPositives, QueryView
from crosslens.web.explorer.tables import QueryTables
from crosslens.web.kept import Kept

PHI, QUANTILE = "cider", 0.75
"""The similarity, and which quantile of annotated pairs has to be reached: a mark on a page should rarely be wrong."""
_DATASETS = 2
_PATIENCE = 0.5
"""Seconds after which pages no longer wait for the first marks: they are renewed when these are there."""
_MOST_CAPTIONS = 500_000


@dataclass(frozen=True)
class PageMarks:
    """What a page marks; ``pending`` where the dataset is still being prepared."""

    likely: LikelyPositives | None = None
    pending: bool = False

    @property
    def phi(self) -> dict[str, float]:
        """φ of the marked items."""
        return {} if self.likely is None else {item.item: item.phi for item in self.likely.items}


@dataclass(frozen=True)
class _Prepared:
    phi: PreparedSimilarity
    threshold: float


class LikelyPositiveSearch:
    """φ of a dataset's pairs, prepared in the background when first needed: that takes seconds for a large one."""

    def __init__(self, tables: QueryTables) -> None:
        self._tables = tables
        self._kept: Kept[_Preparation] = Kept(_DATASETS)

    def search(
        self, run: str, direction: str | None, query: str, items: Iterable[ItemView] | None = None, *, k: int = 10,
        patience: float | None = None,
    ) -> LikelyPositives:  # fmt: skip
        """Those of ``items`` (default: the first ``k`` of the query) that are not relevant and reach the threshold.

        Raises TimeoutError where the dataset is not prepared ``patience`` seconds after that began; it goes on.
        """
        own = self._tables.table(run, direction).retrieval
        row = own.row(query)
        dataset = self._tables.services.library.dataset_of(run)
        texts = dataset.fingerprint, dataset.described.fingerprint
        prepared = self._kept.get(texts, lambda: _Preparation(dataset)).result(patience)
        shown = own.top(row, k) if items is None else items
        open_items = {item.item: item for item in shown if not item.relevant}.values()
        pairs = [_pair(dataset, own.query_names[row], item, own.forward) for item in open_items]
        known = [(item, pair) for item, pair in zip(open_items, pairs, strict=True) if pair is not None]
        values = _values(prepared.phi, [pair for _, pair in known])
        likely = [
            LikelyPositive(item=item.item, phi=float(value))
            for (item, _), value in zip(known, values, strict=True)
            if value >= prepared.threshold
        ]
        return LikelyPositives(phi=PHI, threshold=prepared.threshold, quantile=QUANTILE, items=likely)

    def of_view(self, run: str, view: QueryView, patience: float = _PATIENCE) -> PageMarks:
        """What a page marks among the items of all runs that it shows; nothing where that cannot be computed."""
        items = [item for result in view.results for item in result.items]
        try:
            return PageMarks(self.search(run, view.direction, view.query, items, patience=patience))
        except TimeoutError:
            return PageMarks(pending=True)
        except CrosslensError:
            return PageMarks()


class _Preparation:
    """The preparation of a dataset, in a thread that ends with the server."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset, self._began = dataset, time.monotonic()
        self._future: Future[_Prepared] = Future()
        Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        try:
            self._future.set_result(_prepare(self._dataset))
        except BaseException as error:  # whoever waits for the result is told
            self._future.set_exception(error)

    def result(self, patience: float | None) -> _Prepared:
        """What was prepared; raises TimeoutError where it is not there ``patience`` seconds after the beginning."""
        left = None if patience is None else max(0.0, self._began + patience - time.monotonic())
        return self._future.result(left)


def _prepare(dataset: Dataset) -> _Prepared:
    if len(dataset.caption_ids) > _MOST_CAPTIONS:
        problem = f"{dataset.name} has more than {_MOST_CAPTIONS:,} captions, too many to compare while a page waits"
        raise UsageError(problem, fix="use crosslens missing-positives", code="too-large")
    similarity = load_similarity(PHI)
    annotated = held_out_similarity(dataset, similarity)
    if not len(annotated):
        raise UsageError("no image has two captions to derive the threshold from", code="no-threshold")
    return _Prepared(prepare_dataset(dataset, similarity), float(np.quantile(annotated, QUANTILE)))


def _pair(dataset: Dataset, query: str, item: ItemView, forward: bool) -> tuple[int, int] | None:
    """The rows of image and caption; None where the dataset does not have them."""
    image, caption = (query, item.item) if forward else (item.item, query)
    rows = dataset.image_rows.get(image), dataset.caption_rows.get(caption)
    return None if rows[0] is None or rows[1] is None else (rows[0], rows[1])


def _values(phi: PreparedSimilarity, pairs: Sequence[tuple[int, int]]) -> Sequence[float]:
    if not pairs:
        return []
    images, captions = np.array(pairs, np.int64).T
    values: Sequence[float] = phi.pairs(images, captions).tolist()
    return values
