"""Runs whose order depends on the size of the gallery, with paired tests where each of them leads by most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np

from crosslens.core import match_ids
from crosslens.metrics import MetricSpec, family_of
from crosslens.pipeline.curves.ranked_run import RankedRun
from crosslens.pipeline.curves.results import Lead, OrderChange
from crosslens.statistics import correct, paired_permutation

_EQUAL = 1e-12


def order_changes(
    ranked: Mapping[tuple[str, str], RankedRun],
    labels: Sequence[str],
    requests: Sequence[tuple[str, MetricSpec]],
    sizes: Sequence[int],
    *,
    permutations: int,
    seed: int,
) -> tuple[OrderChange, ...]:
    """Every pair of runs whose order differs between two of the sizes that both have exactly."""
    changes = []
    for (direction, spec), (first, second) in (
        (request, pair) for request in requests for pair in combinations(labels, 2)
    ):
        pair = _Pair(ranked[first, direction], ranked[second, direction], spec)
        stretches = pair.stretches([size for size in sizes if size <= pair.largest])
        if len(stretches) > 1:
            leads = [_lead(pair, (first, second), stretch, permutations, seed) for stretch in stretches]
            changes_at = [pair.change(before[-1][0], after[0][0])
                          for before, after in pairwise(stretches)]  # fmt: skip
            changes.append(OrderChange(f"{direction}/{spec}", (first, second), tuple(changes_at), tuple(leads)))
    return tuple(changes)


def with_correction(changes: Sequence[OrderChange], correction: str) -> tuple[OrderChange, ...]:
    """All p-values corrected together."""
    values = [lead.p_value for change in changes for lead in change.leads if lead.p_value is not None]
    adjusted = iter(correct(values, correction))
    return tuple(
        replace(change, leads=tuple(
            lead if lead.p_value is None else replace(lead, adjusted_p=float(next(adjusted))) for lead in change.leads
        ))
        for change in changes
    )  # fmt: skip


class _Pair:
    """Two runs and a metric; a positive difference means that the first one is better."""

    def __init__(self, first: RankedRun, second: RankedRun, spec: MetricSpec) -> None:
        self.first, self.second, self.spec = first, second, spec
        self.largest = min(first.galleries.gallery, second.galleries.gallery)
        self._sign = 1 if family_of(spec).higher_is_better else -1

    def difference(self, size: int) -> float:
        """How far the first run is ahead; 0 where rounding decides."""
        difference = self._sign * (self.first.figure(self.spec, size) - self.second.figure(self.spec, size))
        return 0.0 if abs(difference) < _EQUAL else difference

    def stretches(self, sizes: Sequence[int]) -> list[list[tuple[int, float]]]:
        """Consecutive sizes with the same run ahead, each with the difference; equal figures belong to none."""
        stretches: list[list[tuple[int, float]]] = []
        for size in sizes:
            difference = self.difference(size)
            if difference and stretches and (difference > 0) == (stretches[-1][0][1] > 0):
                stretches[-1].append((size, difference))
            elif difference:
                stretches.append([(size, difference)])
        return stretches

    def change(self, before: int, after: int) -> int:
        """The first size after ``before`` at which the other run is ahead, as it is at ``after``."""
        ahead = self.difference(after) > 0
        while after - before > 1:
            middle = (before + after) // 2
            difference = self.difference(middle)
            before, after = (before, middle) if difference and (difference > 0) == ahead else (middle, after)
        return after


def _lead(
    pair: _Pair, labels: tuple[str, str], stretch: Sequence[tuple[int, float]], permutations: int, seed: int
) -> Lead:
    size, difference = max(stretch, key=lambda entry: abs(entry[1]))
    lead = Lead(labels[0] if difference > 0 else labels[1], size, abs(difference))
    rows = match_ids(pair.first.query_ids, pair.second.query_ids)
    if (
        pair.spec.family == "MedR"
        or pair.spec.has("all")
        or (rows < 0).any()
        or len(rows) != len(pair.second.query_ids)
    ):
        return lead
    values = pair.first.values(pair.spec, size), pair.second.values(pair.spec, size)[rows]
    if not np.array_equal(np.isnan(values[0]), np.isnan(values[1])):
        return lead
    test = paired_permutation(*values, pair.first.clusters, permutations=permutations, resamples=0, seed=seed)
    return replace(lead, p_value=test.p_value)
