"""How results depend on k, and on how large the gallery is: both exact, from the ranks that a run keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crosslens.core import Chart, Figure, Lines, Ranking, Run
from crosslens.metrics import SubGalleries, parse_metric
from crosslens.pipeline import round_sizes
from crosslens.report.document.context import ReportContext
from crosslens.report.document.parts import ReportSection, series_of, side_by_side
from crosslens.report.forms.page import paragraph

_CUTOFFS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
_FIRST = parse_metric("Hit@1").spec
_ABOUT = (
    "Hit@k is the share of queries with a right item among the first k. The other curve is Hit@1 if the gallery "
    "held only some of the items, drawn at random with the relevant ones kept: the mean over all such draws, "
    "computed from the ranks. Figures on galleries of different size cannot be compared; these curves can."
)


def hit_rate(ranks: Sequence[int] | np.ndarray[Any, Any], k: int) -> float:
    """The share of ranks from 1 to k; a rank of −1 (not listed) is none."""
    own = np.asarray(ranks)
    return float(((own >= 1) & (own <= k)).mean())


def gallery(context: ReportContext) -> ReportSection | None:
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
    charts: list[Chart] = []
    if len(cutoffs) > 1:
        shown = {name: [Figure.percent(hit_rate(ranks, k)) for k in cutoffs] for name, ranks in series.items()}
        charts.append(Lines(
            title=f"Hit@k, {context.direction}", across=tuple(cutoffs), series=series_of(shown), axis="k",
            logarithmic=True, limits=(0, 1),
            about="The share of queries with a right item among the first k; in percent.",
        ))  # fmt: skip
    charts += _size_chart(context, {name: ranking for name, ranking in sizes.items() if ranking is not None})
    return ReportSection("gallery", "Gallery and depth", (paragraph(_ABOUT), side_by_side(charts))) if charts else None


def _complete(context: ReportContext, run: Run) -> Ranking | None:
    """The ranking, where it is over the whole gallery: only then every rank is known."""
    ranking = context.ranking(run)
    if ranking is None or not ranking.complete or (ranking.known < len(ranking.item_ids)).any():
        return None
    return ranking if (ranking.relevant_counts > 0).any() else None


def _size_chart(context: ReportContext, rankings: dict[str, Ranking]) -> list[Chart]:
    galleries = {name: SubGalleries(ranking) for name, ranking in rankings.items()}
    if not galleries:
        return []
    across = round_sizes(max(own.smallest for own in galleries.values()), (own.gallery for own in galleries.values()))
    if len(across) < 2:
        return []
    shown = {
        name: [
            Figure.percent(float(np.nanmean(own.values(_FIRST, size))) if size <= own.gallery else None)
            for size in across
        ]
        for name, own in galleries.items()
    }
    smallest = min(own.gallery for own in galleries.values())
    about = f"The share of queries with a right item first; the whole gallery has {smallest:,} items or more."
    return [Lines(
        title=f"Hit@1 against the size of the gallery, {context.direction}", across=tuple(across),
        series=series_of(shown), axis="items in the gallery", logarithmic=True, limits=(0, 1), about=about,
    )]  # fmt: skip
