"""How results depend on k, and on how large the gallery is: both exact, from the ranks that a run keeps."""

from __future__ import annotations

from collections.abc import Sequence
from math import lgamma
from typing import Any

import numpy as np

from crosslens.core import Ranking, Run
from crosslens.explanations import first_relevant
from crosslens.report.charts.drawing import Point
from crosslens.report.charts.lines import line_chart
from crosslens.report.document.context import ReportContext
from crosslens.report.document.parts import Section, paragraph, percent, side_by_side

_CUTOFFS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
_SIZES = (2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 1_000_000)
_ABOUT = (
    "Hit@k is the share of queries with a right item among the first k. The other curve is Hit@1 if the gallery "
    "held only some of the items, drawn at random with the relevant ones kept: the mean over all such draws, "
    "computed from the ranks. Figures on galleries of different size cannot be compared; these curves can."
)


def hit_rate(ranks: Sequence[int] | np.ndarray[Any, Any], k: int) -> float:
    """The share of ranks from 1 to k; a rank of −1 (not listed) is none."""
    own = np.asarray(ranks)
    return float(((own >= 1) & (own <= k)).mean())


def first_in_sample(rank: int, relevant: int, gallery: int, size: int) -> float:
    """The chance that a relevant item is first among ``size`` items: the relevant ones, and others drawn at random.

    In the whole gallery the first relevant item has this rank, so ``rank − 1`` of the others are before it; none of
    them may be drawn.
    """
    others, drawn, before = gallery - relevant, size - relevant, rank - 1
    if drawn <= 0 or before <= 0:
        return 1.0
    if drawn > others - before:
        return 0.0
    return float(np.exp(_choices(others - before, drawn) - _choices(others, drawn)))


def _choices(items: int, drawn: int) -> float:
    """The logarithm of how many ways there are to draw."""
    return lgamma(items + 1) - lgamma(drawn + 1) - lgamma(items - drawn + 1)


def gallery_curve(ranking: Ranking, sizes: Sequence[int]) -> list[float]:
    """The hit rate at 1 for galleries of these sizes; queries with the same rank and relevant items share the work."""
    best, ranks = first_relevant(ranking)
    rows = best >= 0
    counts = np.diff(ranking.offsets)[rows]
    kinds, numbers = np.unique(np.stack([ranks[rows], counts]), axis=1, return_counts=True)
    gallery = len(ranking.item_ids)
    return [
        float(
            np.average(
                [first_in_sample(int(rank), int(relevant), gallery, size) for rank, relevant in kinds.T],
                weights=numbers,
            )
        )
        for size in sizes
    ]


def gallery(context: ReportContext) -> Section | None:
    """Both curves, for every run that keeps its ranks."""
    series, sizes = {}, {}
    for name, run in context.inputs.runs.items():
        ranks = context.first_ranks(run)
        if ranks is not None and len(ranks):
            series[name] = ranks
            sizes[name] = _complete(context, run)
    if not series:
        return None
    deepest = max(len(items.item_ids) for run in context.inputs.runs.values() if (items := context.ranking(run)))
    cutoffs = [k for k in _CUTOFFS if k <= deepest]
    charts: list[str] = []
    if len(cutoffs) > 1:
        shown = {name: [Point(hit_rate(ranks, k)) for k in cutoffs] for name, ranks in series.items()}
        charts.append(line_chart(
            f"Hit@k, {context.direction}", cutoffs, shown, axis="k", number=percent, logarithmic=True, limits=(0, 1),
            about="The share of queries with a right item among the first k; in percent.",
        ))  # fmt: skip
    charts += _size_chart(context, {name: ranking for name, ranking in sizes.items() if ranking is not None})
    return Section("gallery", "Gallery and depth", (paragraph(_ABOUT), side_by_side(charts))) if charts else None


def _complete(context: ReportContext, run: Run) -> Ranking | None:
    """The ranking, where it is over the whole gallery: only then every rank is known."""
    ranking = context.ranking(run)
    return ranking if ranking is not None and ranking.complete else None


def _size_chart(context: ReportContext, rankings: dict[str, Ranking]) -> list[str]:
    largest = max((len(ranking.item_ids) for ranking in rankings.values()), default=0)
    smallest = min((len(ranking.item_ids) for ranking in rankings.values()), default=0)
    across = [size for size in _SIZES if size < largest] + ([largest] if largest else [])
    if len(across) < 2:
        return []
    shown = {}
    for name, ranking in rankings.items():
        own = [size for size in across if size <= len(ranking.item_ids)]
        values = gallery_curve(ranking, own)
        shown[name] = [Point(value) for value in values] + [Point(float("nan"))] * (len(across) - len(own))
    about = f"The share of queries with a right item first; the whole gallery has {smallest:,} items or more."
    return [line_chart(
        f"Hit@1 against the size of the gallery, {context.direction}", across, shown, axis="items in the gallery",
        number=percent, logarithmic=True, limits=(0, 1), about=about,
    )]  # fmt: skip
