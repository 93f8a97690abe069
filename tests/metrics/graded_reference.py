"""Every graded metric once more, from its definition, for one query and one order of its gallery.

A reference returns None where the query is skipped. Ties: ``optimistic`` is the best, ``pessimistic`` the worst and
``expected`` the mean over all orders within the ties, found by trying every one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import log2
from statistics import fmean

from crosslens.metrics import MetricSpec, parse_metric


@dataclass(frozen=True)
class Query:
    """All there is to know about one query: per item a score and a value, the relevant ones with their grades.

    ``groups`` are images in the order in which the captions of the query's image vote for them, each as its items;
    ``other_groups`` are the same without the query's image and the images of relevant items.
    """

    scores: Sequence[float]
    phi: Sequence[float]
    relevant: dict[int, float]
    groups: Sequence[Sequence[int]] = ()
    other_groups: Sequence[Sequence[int]] = ()
    other_scores: Sequence[float] = ()


Reference = Callable[[list[int], Query, MetricSpec], float | None]
GRADED: dict[str, Reference] = {}
SPECS: list[MetricSpec] = []


def reference(name: str, *variants: str) -> Callable[[Reference], Reference]:
    """Give the slow version of the metric ``name``, with which ``variants`` ("[exp]@2") are compared."""

    def keep(function: Reference) -> Reference:
        GRADED[name] = function
        SPECS.extend(parse_metric(name + variant).spec for variant in variants)
        return function

    return keep


def most_similar(query: Query, spec: MetricSpec) -> list[int]:
    """The gallery by value, the lower index first among equals; without the ground truth where asked."""
    items = sorted(range(len(query.phi)), key=lambda item: (-query.phi[item], item))
    return [item for item in items if not (spec.has("non-gt") and item in query.relevant)]


def retrieved(order: list[int], query: Query, spec: MetricSpec) -> list[int]:
    return [item for item in order if not (spec.has("non-gt") and item in query.relevant)][: spec.cutoff]


@reference(
    "NCS",
    "@1", "@3", "@10", "[eq5]@2", "[eq5, m=3]@2", "[non-gt]@2", "[eq5, m=2, non-gt]@3", "[zero]@2",
    "[non-gt, zero]@1", "[eq5, m=2, non-gt, zero]@3",
)  # fmt: skip
def ncs(order: list[int], query: Query, spec: MetricSpec) -> float | None:
    best = most_similar(query, spec)[: int(spec.setting("m") or spec.cutoff)]
    counted = [item for item in retrieved(order, query, spec) if not spec.has("eq5") or item in best]
    ideal = sum(query.phi[item] for item in best)
    if ideal <= 0:
        return 0.0 if spec.has("zero") else None
    return sum(query.phi[item] for item in counted) / ideal


@reference("Nsum", "", "[eq5]", "[non-gt]", "[non-gt, zero]")
def nsum(order: list[int], query: Query, spec: MetricSpec) -> float | None:
    parts = [ncs(order, query, MetricSpec("NCS", spec.options, k)) for k in (1, 5, 10)]
    return None if None in parts else 100 * sum(parts)


def similar_items(query: Query, spec: MetricSpec) -> list[int]:
    m = int(spec.setting("m"))
    if spec.has("by-image"):
        groups = query.other_groups if spec.has("non-gt") else query.groups
        return [item for group in groups[:m] for item in group]
    return most_similar(query, spec)[:m]


@reference(
    "SR",
    "[m=1]@1", "[m=2]@3", "@10", "[m=2, non-gt]@2", "[m=1, by-image]@2", "[m=2, by-image]@3",
    "[m=1, by-image, non-gt]@1", "[m=2, by-image, non-gt]@3",
)  # fmt: skip
def semantic_recall(order: list[int], query: Query, spec: MetricSpec) -> float | None:
    similar = similar_items(query, spec)
    return len(set(similar) & set(retrieved(order, query, spec))) / len(similar) if similar else None


@reference("SRhit", "[m=1]@1", "[m=2]@2", "[m=2, non-gt]@2", "[m=1, by-image]@2", "[m=2, by-image, non-gt]@2")
def semantic_hit(order: list[int], query: Query, spec: MetricSpec) -> float | None:
    similar = similar_items(query, spec)
    return float(bool(set(similar) & set(retrieved(order, query, spec)))) if similar else None


@reference("DCGcm", "@1", "@3", "[scores_from=other]@2")
def cross_modal_dcg(order: list[int], query: Query, spec: MetricSpec) -> float:
    scores = query.scores if spec.setting("scores_from") == "own" else query.other_scores
    total = 0.0
    for rank, item in enumerate(order[: spec.cutoff], start=1):
        total += (1.0 if item in query.relevant else scores[item]) / log2(rank + 1)
    return total


@reference("nDCG", "@1", "@3", "[exp]@2", "[cider]@2", "[cider, exp]@3")
def normalised_dcg(order: list[int], query: Query, spec: MetricSpec) -> float | None:
    by_phi = any(option != "exp" for option in spec.options)
    gains = [query.phi[item] if by_phi else query.relevant.get(item, 0.0) for item in range(len(query.phi))]
    if spec.has("exp"):
        gains = [2**gain - 1 for gain in gains]
    total = sum(gains[item] / log2(rank + 1) for rank, item in enumerate(order[: spec.cutoff], start=1))
    ideal = sum(gain / log2(rank + 1) for rank, gain in enumerate(sorted(gains)[::-1][: spec.cutoff], start=1))
    return total / ideal if ideal > 0 else None


def value(spec: MetricSpec, query: Query, ties: str = "stable") -> float:
    """The value of one query; NaN where it is skipped."""
    spec = parse_metric(str(spec)).spec
    levels = sorted(set(query.scores), reverse=True)
    tied = [[item for item, score in enumerate(query.scores) if score == level] for level in levels]
    orders = [tied] if ties == "stable" else product(*(permutations(group) for group in tied))
    values = [GRADED[spec.family]([item for group in order for item in group], query, spec) for order in orders]
    if not query.relevant or None in values:
        return float("nan")
    return {"optimistic": max, "pessimistic": min}.get(ties, fmean)(values)
