"""Places when one order of the gallery is taken as it stands."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from crosslens.metrics.coverage import Coverage
from crosslens.metrics.places import FAR, FloatArray, IntArray, Pairs, Places
from crosslens.metrics.ties import Ties


class OrderedPlaces(Places):
    """One order of the gallery is taken as it stands: ``stable``, ``optimistic`` or ``pessimistic``."""

    def __init__(self, pairs: Pairs, coverage: Coverage, ties: Ties) -> None:
        super().__init__(pairs, coverage)
        if ties == "stable":
            self.ranks = pairs.above + pairs.before + 1
        else:
            among = np.arange(len(pairs.rows)) - np.repeat(pairs.starts, pairs.sharers)
            self.ranks = pairs.above + among + 1
            if ties == "pessimistic":
                self.ranks += pairs.size - np.repeat(pairs.sharers, pairs.sharers)

    @cached_property
    def _best(self) -> IntArray:
        best = np.full(self.pairs.queries, FAR)
        some = self.relevant > 0
        best[some] = self.ranks[self.pairs.offsets[:-1][some]]
        return best

    def _within(self, k: int | IntArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
        return self.ranks <= (k if isinstance(k, int) else k[self.pairs.rows])

    def _found(self, k: int | IntArray) -> FloatArray:
        return self._per_query(self._within(k).astype(np.float64))

    def _hit(self, k: int) -> FloatArray:
        return (self._best <= k).astype(np.float64)

    def _first(self) -> FloatArray:
        return self._best.astype(np.float64)

    def _reciprocal(self, k: int | None) -> FloatArray:
        return np.where(self._best <= (FAR if k is None else k), 1 / self._best, 0.0)

    def _precisions(self, k: int | IntArray | None) -> FloatArray:
        return self._per_query(self._precision_at_each * self._within(FAR if k is None else k))

    @cached_property
    def _precision_at_each(self) -> FloatArray:
        return np.asarray((self.pairs.position + 1) / self.ranks, np.float64)

    def _each(self) -> FloatArray:
        return self.ranks.astype(np.float64)
