"""Places when all orders within a tie are equally likely: exact expectations in closed form.

A tie of g items, r of them relevant, starts after ``above`` items, c of them relevant. Only ties that hold a relevant
item matter. For average precision this is the form of McSherry and Najork (2008).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from crosslens.metrics.coverage import Coverage
from crosslens.metrics.places import FAR, FloatArray, IntArray, Pairs, Places


class ExpectedPlaces(Places):
    """The expectation of every answer over uniformly random orders within ties."""

    def __init__(self, pairs: Pairs, coverage: Coverage) -> None:
        super().__init__(pairs, coverage)
        listed = pairs.starts[pairs.above[pairs.starts] != FAR] if len(pairs.rows) else pairs.starts
        self._row, self._above, self._size = pairs.rows[listed], pairs.above[listed], pairs.size[listed]
        self._sharers = pairs.sharers[np.searchsorted(pairs.starts, listed)]
        self._earlier = pairs.position[listed]
        # The first tie of each query, for what depends on the best relevant item only.
        self._leads = np.flatnonzero(self._earlier == 0)

    @cached_property
    def _harmonic(self) -> FloatArray:
        """1 + 1/2 + … + 1/n for n = 0, 1, …: differences of it are sums of 1/rank over a run of places."""
        deepest = int((self._above + self._size).max(initial=0))
        return np.concatenate([[0.0], np.cumsum(1 / np.arange(1, deepest + 1))])

    def _inside(self, k: int | IntArray | None) -> IntArray:
        """How many places of each tie are among the first ``k``."""
        if k is None:
            return self._size
        limit = k if isinstance(k, int) else k[self._row]
        return np.clip(limit - self._above, 0, self._size)

    def _sum(self, per_tie: FloatArray) -> FloatArray:
        return np.bincount(self._row, per_tie, self.pairs.queries).astype(np.float64, copy=False)

    def _of_leads(self, per_lead: FloatArray) -> FloatArray:
        result = np.zeros(self.pairs.queries)
        result[self._row[self._leads]] = per_lead
        return result

    def _found(self, k: int | IntArray) -> FloatArray:
        return self._sum(self._sharers * self._inside(k) / self._size)

    def _hit(self, k: int) -> FloatArray:
        inside = self._inside(k)[self._leads]
        return self._of_leads(1 - chance_of_none(self._size[self._leads], self._sharers[self._leads], inside))

    def _first(self) -> FloatArray:
        lead = self._leads
        return self._of_leads(self._above[lead] + (self._size[lead] + 1) / (self._sharers[lead] + 1))

    def _reciprocal(self, k: int | None) -> FloatArray:
        above, size, sharers = (part[self._leads] for part in (self._above, self._size, self._sharers))
        inside = self._inside(k)[self._leads]
        alone = (self._harmonic[above + inside] - self._harmonic[above]) / size
        values = np.where(size == 1, inside / (above + 1), alone)
        crowded = np.flatnonzero((sharers > 1) & (inside > 0))
        if len(crowded):
            cases = np.stack([above, size, sharers, inside], axis=1)[crowded]
            distinct, case_of = np.unique(cases, axis=0, return_inverse=True)
            values[crowded] = np.array([_reciprocal_of_best(*map(int, case)) for case in distinct])[case_of.ravel()]
        return self._of_leads(values)

    def _precisions(self, k: int | IntArray | None) -> FloatArray:
        above, size, sharers = self._above, self._size, self._sharers
        inside = self._inside(k)
        # Given a relevant item at the j-th place of the tie, (j−1)·slope others are expected before it in the tie, so
        # the precision there is (c + 1 + (j−1)·slope) / (above + j) = slope + (c + 1 − slope·(above+1)) / (above + j).
        slope = (sharers - 1) / np.maximum(size - 1, 1)
        inverse_ranks = np.where(
            size == 1, inside / (above + 1), self._harmonic[above + inside] - self._harmonic[above]
        )
        total = slope * inside + (self._earlier + 1 - slope * (above + 1)) * inverse_ranks
        return self._sum(total * sharers / size)

    def _each(self) -> FloatArray:
        return np.asarray(self.pairs.above + (self.pairs.size + 1) / 2, np.float64)


def chance_of_none(size: IntArray, sharers: IntArray, inside: IntArray) -> FloatArray:
    """C(size − sharers, inside) / C(size, inside): no relevant item among the places inside (hypergeometric)."""
    fewer, more = np.minimum(sharers, inside), np.maximum(sharers, inside)
    chance = np.ones(len(size))
    for step in range(int(fewer.max(initial=0))):
        factor = np.maximum(size - more - step, 0) / np.maximum(size - step, 1)
        chance *= np.where(step < fewer, factor, 1.0)
    return chance


def _reciprocal_of_best(above: int, size: int, sharers: int, inside: int) -> float:
    """E[1 / rank of the best of ``sharers`` items spread over a tie], counting only the first ``inside`` places."""
    last = min(inside, size - sharers + 1)
    j = np.arange(1, last)
    # P(best at place j + 1) / P(best at place j), starting from P(best at place 1) = sharers / size.
    ratios = (size - j - sharers + 1) / (size - j)
    chances = sharers / size * np.concatenate([[1.0], np.cumprod(ratios)])
    return float((chances / (above + np.arange(1, last + 1))).sum())
