"""Items of top lists that nobody marked as relevant although their captions say so.

As in ``crosslens missing-positives``: φ of a query's caption against the captions of an image is compared with φ of
captions that people wrote about an image, each against the image's others. Here only the pairs of a page are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosslens.analyze import held_out_similarity
from crosslens.core import Dataset, UsageError
from crosslens.similarity import PreparedSimilarity, load_similarity, prepare_dataset
from crosslens.web.explorer.models import ItemView, LikelyPositive, LikelyPositives
from crosslens.web.explorer.tables import QueryTables
from crosslens.web.kept import Kept

PHI, QUANTILE = "cider", 0.75
"""The similarity, and which quantile of annotated pairs has to be reached: a mark on a page should rarely be wrong."""
_DATASETS = 2
_MOST_CAPTIONS = 500_000


@dataclass(frozen=True)
class _Prepared:
    phi: PreparedSimilarity
    threshold: float


class LikelyPositiveSearch:
    """φ of a dataset's pairs, prepared when first needed."""

    def __init__(self, tables: QueryTables) -> None:
        self._tables = tables
        self._kept: Kept[_Prepared] = Kept(_DATASETS)

    def search(self, run: str, direction: str | None, query: str, k: int) -> LikelyPositives:
        """The items among the first ``k`` of a query that are not relevant and reach the threshold."""
        own = self._tables.table(run, direction).retrieval
        row = own.row(query)
        dataset = self._tables.services.library.dataset_of(run)
        prepared = self._kept.get(dataset.fingerprint, lambda: _prepare(dataset))
        items = [item for item in own.top(row, k) if not item.relevant]
        pairs = [_pair(dataset, own.query_names[row], item, own.forward) for item in items]
        known = [(item, pair) for item, pair in zip(items, pairs, strict=True) if pair is not None]
        values = _values(prepared.phi, [pair for _, pair in known])
        likely = [
            LikelyPositive(item=item.item, phi=float(value))
            for (item, _), value in zip(known, values, strict=True)
            if value >= prepared.threshold
        ]
        return LikelyPositives(phi=PHI, threshold=prepared.threshold, quantile=QUANTILE, items=likely)


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
