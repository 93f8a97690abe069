"""Every metric once more, from its definition, in plain Python on full lists: slow, obvious, independent.

``order`` is the whole gallery, best first; ``relevant`` the set of relevant items, never empty. A reference gives the
value of one query; ``[all]`` variants give the list of ranks that are pooled over queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations, product
from statistics import fmean, median
from typing import Any

from crosslens.metrics import MetricSpec

Reference = Callable[[list[int], set[int], MetricSpec], Any]
REFERENCES: dict[str, Reference] = {}


def reference(name: str) -> Callable[[Reference], Reference]:
    """Give the slow version of the metric ``name``."""

    def keep(function: Reference) -> Reference:
        REFERENCES[name] = function
        return function

    return keep


@reference("Hit")
def hit(order: list[int], relevant: set[int], spec: MetricSpec) -> float:
    return 1.0 if any(item in relevant for item in order[: spec.cutoff]) else 0.0


@reference("Recall")
def recall(order: list[int], relevant: set[int], spec: MetricSpec) -> float:
    return len(set(order[: spec.cutoff]) & relevant) / len(relevant)


@reference("CappedRecall")
def capped_recall(order: list[int], relevant: set[int], spec: MetricSpec) -> float:
    return len(set(order[: spec.cutoff]) & relevant) / min(spec.cutoff, len(relevant))


@reference("Fails")
def fails(order: list[int], relevant: set[int], spec: MetricSpec) -> float:
    return 0.0 if order[0] in relevant else 1.0


@reference("MRR")
def reciprocal_rank(order: list[int], relevant: set[int], spec: MetricSpec) -> float:
    for rank, item in enumerate(order[: spec.cutoff], start=1):
        if item in relevant:
            return 1 / rank
    return 0.0


@reference("MedR")
@reference("MeanR")
def rank_of_first(order: list[int], relevant: set[int], spec: MetricSpec) -> Any:
    ranks = [rank for rank, item in enumerate(order, start=1) if item in relevant]
    return ranks if "all" in spec.options else ranks[0]


@reference("AP")
def average_precision(order: list[int], relevant: set[int], spec: MetricSpec) -> float:
    total = 0.0
    for rank, item in enumerate(order[: spec.cutoff], start=1):
        if item in relevant:
            total += len(set(order[:rank]) & relevant) / rank
    return total / len(relevant)


@reference("Precision")
def precision(order: list[int], relevant: set[int], spec: MetricSpec) -> float:
    return len(set(order[: spec.k]) & relevant) / spec.k


@reference("mAP@R")
def average_precision_at_r(order: list[int], relevant: set[int], spec: MetricSpec) -> float:
    total = 0.0
    for rank, item in enumerate(order[: len(relevant)], start=1):
        if item in relevant:
            total += len(set(order[:rank]) & relevant) / rank
    return total / len(relevant)


@reference("RPrecision")
def r_precision(order: list[int], relevant: set[int], spec: MetricSpec) -> float:
    return len(set(order[: len(relevant)]) & relevant) / len(relevant)


@reference("Rsum")
def rsum(order: list[int], relevant: set[int], spec: MetricSpec) -> float:
    """What one query adds in its own direction; the two directions' means are added up."""
    part = capped_recall if "capped" in spec.options else hit
    return 100 * sum(part(order, relevant, MetricSpec("", (), k)) for k in (1, 5, 10))


def orders(scores: Sequence[float], relevant: set[int], ties: str) -> Iterator[list[int]]:
    """The orders of the gallery that a tie mode stands for: one, or under ``expected`` all of them."""
    groups = []
    for score in sorted(set(scores), reverse=True):
        tied = [item for item, score_of_item in enumerate(scores) if score_of_item == score]
        if ties == "expected":
            groups.append([list(order) for order in permutations(tied)])
        elif ties == "optimistic":
            groups.append([sorted(tied, key=lambda item: item not in relevant)])
        elif ties == "pessimistic":
            groups.append([sorted(tied, key=lambda item: item in relevant)])
        else:
            groups.append([tied])
    for ordering in product(*groups):
        yield [item for group in ordering for item in group]


def value(spec: MetricSpec, scores: Sequence[float], relevant: set[int], ties: str = "stable") -> Any:
    """The value of one query: a mean over orders; for pooled ranks, the mean rank of each relevant item."""
    function = REFERENCES[spec.family]
    values = [function(order, relevant, spec) for order in orders(scores, relevant, ties)]
    if "all" not in spec.options:
        return fmean(values)
    if ties != "expected":
        return values[0]
    by_item = {item: [] for item in relevant}
    for order in orders(scores, relevant, ties):
        for item in relevant:
            by_item[item].append(order.index(item) + 1)
    return sorted(fmean(ranks) for ranks in by_item.values())


def headline(spec: MetricSpec, values: list[Any]) -> float:
    """The figure from the values of all queries that count."""
    if "all" in spec.options:
        values = [rank for ranks in values for rank in ranks]
    if spec.family != "MedR":
        return fmean(values)
    return float(median(values) // 1) if "floor" in spec.options else float(median(values))
