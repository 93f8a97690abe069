"""Polysemy in a terminal: both curves as tables, how diverse co-captions are, and the clusters."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from math import isfinite

import numpy as np

from crosslens.analyze import (
    CAPTION_DISTANCE,
    CO_CAPTION_QUANTITIES,
    IMAGE_SIMILARITY,
    NEIGHBOURHOOD_SIZES,
    CaptionDiversity,
    ImageCluster,
    Polysemy,
    PolysemyClusters,
)
from crosslens.core import PAGE_WIDTH, RENDERERS, Grid
from crosslens.metrics import format_count
from crosslens.statistics import Estimate

CURVE_TITLES = {
    IMAGE_SIMILARITY: "Image similarity: mean cosine to the R nearest images",
    CAPTION_DISTANCE: "Caption distance: mean angle (radians) to the captions of these R images",
}
READING = (
    "A dataset is polysemous where the first table stays high while the second one is high or rises with R: images "
    "remain similar, and the captions of similar images are far away."
)
DIVERSITY_TITLE = "Captions of one image against each other, and against the image"
CLUSTERS_READING = (
    "The most polysemous clusters first: polysemy is similarity (the mean cosine of two images) times diversity (the "
    "mean angle in radians between captions of different images)."
)
_MOST_ROWS = 12


@RENDERERS.register("Polysemy")
def polysemy_text(result: Polysemy, width: int | None = PAGE_WIDTH) -> str:
    """The curves of one dataset."""
    return curves_text([result], width)


def curves_text(results: Sequence[Polysemy], width: int | None = PAGE_WIDTH) -> str:
    """A table per curve: a row per R (some of them, if there are many), a column per dataset; and how to read them."""
    tables = [f"{title}\n\n{polysemy_grid(results, name).text(width)}" for name, title in CURVE_TITLES.items()]
    estimates = [estimate for result in results for estimate in result.estimates[IMAGE_SIMILARITY]]
    notes = [READING, _sizes(results) + _brackets(estimates, results), *_recalls(results)]
    return "\n\n".join([*tables, "\n".join(line for note in notes for line in textwrap.wrap(note, PAGE_WIDTH))])


def polysemy_grid(results: Sequence[Polysemy], name: str, most: int | None = _MOST_ROWS) -> Grid:
    """One of the two curves of every dataset; of more than ``most`` sizes, which all share, those of the paper."""
    sizes = results[0].sizes
    rows: Sequence[int] = range(len(sizes))
    if most is not None and len(rows) > most:
        shown = {*NEIGHBOURHOOD_SIZES, sizes[0], sizes[-1]}
        rows = [at for at, size in enumerate(sizes) if size in shown]
    cells = tuple((str(sizes[at]), *(cell(result.estimates[name][at]) for result in results)) for at in rows)
    return Grid(("R", *(result.name for result in results)), cells, "r" + "l" * len(results))


def diversity_text(results: Sequence[CaptionDiversity], width: int | None = PAGE_WIDTH) -> str:
    """A row per quantity, a column per dataset."""
    note = "Each image is the mean of its pairs. The lower two co-captions score, the more diverse they are."
    return f"{DIVERSITY_TITLE}\n\n{diversity_grid(results).text(width)}\n\n{textwrap.fill(note, PAGE_WIDTH)}"


def diversity_grid(results: Sequence[CaptionDiversity]) -> Grid:
    """The mean of each quantity over images, with its interval."""
    names = [name for name in CO_CAPTION_QUANTITIES if any(name in result.estimates for result in results)]
    rows = tuple(
        (CO_CAPTION_QUANTITIES[name], *(cell(r.estimates[name]) if name in r.estimates else "–" for r in results))
        for name in names
    )
    return Grid(("similarity of", *(result.name for result in results)), rows, "l" * (len(results) + 1))


def clusters_text(result: PolysemyClusters, width: int | None = PAGE_WIDTH, shown: int = 10) -> str:
    """The first clusters of a dataset."""
    outside = int((result.labels == 0).sum())
    title = f"Clusters of similar images: {result.name}"
    counts = f"{format_count(len(result.clusters), 'cluster')}, {format_count(outside, 'image')} in none of them"
    if isfinite(result.purity):
        counts += f"; {100 * result.purity:.0f} % of the clustered images have their cluster's {result.purity_by}"
    if not result.clusters:
        return f"{title}\n\n{counts}."
    more = (
        f"{format_count(len(result.clusters) - shown, 'more cluster')} not shown. "
        if len(result.clusters) > shown
        else ""
    )
    note = textwrap.fill(f"{counts}. {more}{CLUSTERS_READING}", PAGE_WIDTH)
    return f"{title}\n\n{clusters_grid(result, shown).text(width)}\n\n{note}"


def clusters_grid(result: PolysemyClusters, shown: int) -> Grid:
    """A row per cluster."""
    columns: dict[str, tuple[str, Callable[[ImageCluster], str]]] = {
        "cluster": ("r", lambda cluster: str(cluster.number)),
        "images": ("r", lambda cluster: f"{cluster.size:,}"),
        "similarity": ("r", lambda cluster: _number(cluster.image_similarity)),
        "diversity": ("r", lambda cluster: _number(cluster.caption_diversity)),
        "polysemy": ("r", lambda cluster: _number(cluster.polysemy)),
    }
    if result.purity_by is not None:
        columns["purity"] = ("r", lambda cluster: f"{100 * cluster.purity:.0f} %" if cluster.category else "–")
        columns[result.purity_by] = ("l", lambda cluster: cluster.category or "–")
    rows = tuple(tuple(write(cluster) for _, write in columns.values()) for cluster in result.clusters[:shown])
    return Grid(tuple(columns), rows, "".join(align for align, _ in columns.values()))


def cell(estimate: Estimate) -> str:
    """``0.634 [0.629, 0.640]``."""
    ends = f" [{estimate.low:.3f}, {estimate.high:.3f}]" if isfinite(estimate.low) else ""
    return _number(estimate.mean) + ends


def _number(value: float) -> str:
    return f"{value:.3f}" if isfinite(value) else "–"


def _sizes(results: Sequence[Polysemy]) -> str:
    parts = [f"{result.name}: {format_count(len(result.image_ids), 'image')}" for result in results]
    gaps = [result.name for result in results if np.isnan(result.caption_distance).any()]
    left_out = (
        f" Images whose R neighbours have no caption are not in the second table ({', '.join(gaps)})." if gaps else ""
    )
    return f"{', '.join(parts)}.{left_out}"


def _recalls(results: Sequence[Polysemy]) -> list[str]:
    """How good approximate neighbours are; nothing where they are exact."""
    return [
        f"{result.name}: approximate neighbours, recall@{result.sizes[-1]} {100 * result.recall:.1f} % (measured)."
        for result in results
        if result.recall is not None
    ]


def _brackets(estimates: Sequence[Estimate], results: Sequence[Polysemy]) -> str:
    if not any(isfinite(estimate.low) for estimate in estimates):
        return ""
    return f" In brackets: {100 * results[0].level:g}% intervals from resampling images."
