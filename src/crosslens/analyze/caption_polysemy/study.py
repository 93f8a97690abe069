"""The polysemy of datasets side by side: curves, how diverse co-captions are, and clusters with their captions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import floor, isfinite, log10
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from crosslens.analyze.caption_polysemy.clusters import ImageCluster, PolysemyClusters
from crosslens.analyze.caption_polysemy.measure import CaptionDiversity, Polysemy, curve_sections, interval_figure
from crosslens.core import (
    ABSENT,
    Cards,
    Cell,
    Cloud,
    Figure,
    Lines,
    Part,
    PictureCard,
    Presented,
    Row,
    Scatter,
    Section,
    Series,
    Table,
    Text,
)
from crosslens.metrics import format_count
from crosslens.similarity import references_of
from crosslens.storage import Array, json_form, random_stream
from crosslens.values import Dataset

CO_CAPTION_QUANTITIES = {
    "co_caption_cosine": "co-captions, cosine",
    "co_caption_sentence": "co-captions, sentence cosine",
    "co_caption_words": "co-captions, word matching F",
    "co_caption_cider": "co-captions, CIDEr",
    "pair_cosine": "image and caption, cosine",
}
"""How the quantities of :func:`measure_caption_diversity` are called."""
_CLUSTERS_READING = (
    "The most polysemous clusters first: polysemy is similarity (the mean cosine of two images) times diversity (the "
    "mean angle in radians between captions of different images)."
)
_MOST_POINTS = 5_000
"""Of a map: a page must stay small."""
_COLOURED, _DRAWN, _EXAMPLES = 5, 12, 6
"""Clusters with a colour on the map, clusters with cards, and images of each."""
_CAPTIONS, _MOST_CAPTIONS = 2, 5
"""Captions that are shown of an image with a picture, and of one without."""
_BINS, _POINTS, _REACH = 4_096, 256, 5.0
_PEAK = 0.01
"""The bandwidth where all values are equal, as a share of their size."""


@dataclass(frozen=True, eq=False)
class MeasuredDataset:
    """One dataset and what was measured of it; ``pictures`` are files by image."""

    dataset: Dataset
    curves: Polysemy
    diversity: CaptionDiversity
    clusters: PolysemyClusters | None = None
    pictures: Mapping[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        clusters = {} if self.clusters is None else {"clusters": self.clusters.as_dict()}
        return {**self.curves.as_dict(), "diversity": self.diversity.as_dict(), **clusters}

    def per_image(self) -> pl.DataFrame:
        """One row per image: its curves, its co-captions, and the number of its cluster."""
        table = self.curves.per_image.hstack(self.diversity.per_image.drop("image"))
        if self.clusters is None:
            return table
        labels = pl.Series("cluster", self.clusters.labels)
        return table.with_columns(pl.when(labels > 0).then(labels).alias("cluster"))


@dataclass(frozen=True, eq=False)
class PolysemyStudy(Presented):
    """Datasets side by side; of each the table has ``shown`` clusters."""

    datasets: tuple[MeasuredDataset, ...]
    shown: int = 10

    @property
    def title(self) -> str:
        return f"Polysemy: {', '.join(entry.dataset.name for entry in self.datasets)}"

    def sections(self) -> Iterator[Section]:
        """Curves, co-captions, then the clusters of each dataset."""
        yield from curve_sections([entry.curves for entry in self.datasets])
        yield from diversity_sections([entry.diversity for entry in self.datasets])
        for entry in self.datasets:
            if entry.clusters is not None:
                yield from cluster_sections(entry.clusters, entry.dataset, entry.pictures, self.shown)

    def as_dict(self) -> dict[str, Any]:
        return json_form({"datasets": self.datasets})


def diversity_sections(results: Sequence[CaptionDiversity]) -> Iterator[Section]:
    """The density of each quantity over pairs, and its mean over images: a row per quantity, a column per dataset."""
    names = [name for name in CO_CAPTION_QUANTITIES if any(name in result.estimates for result in results)]
    charts = []
    for name in names:
        densities = [
            (result, density)
            for result in results
            if name in result.pairs and (density := kernel_density(result.pairs[name].values)) is not None
        ]
        if not densities:
            continue
        at = np.concatenate([density.at[:: len(densities)] for _, density in densities])
        at = np.unique(at.round(2 + max(2, -floor(log10(np.ptp(at))))))
        means = ", ".join(f"{result.name} {interval_figure(result.estimates[name]).number}" for result, _ in densities)
        series = []
        for result, density in densities:
            heights = np.interp(at, density.at, density.density, left=0, right=0)
            series.append(Series(result.name, tuple(Figure(height, digits=3) for height in heights.tolist())))
        chart = Lines(
            title=f"Density over pairs: {CO_CAPTION_QUANTITIES[name]}",
            about=f"mean over images: {means}",
            across=tuple(at.tolist()),
            series=tuple(series),
            axis="CIDEr" if name.endswith("cider") else "F" if name.endswith("words") else "cosine",
        )
        charts.append(chart)
    rows: list[tuple[Cell, ...]] = [
        (CO_CAPTION_QUANTITIES[name],
         *(interval_figure(result.estimates[name]) if name in result.estimates else ABSENT for result in results))
        for name in names
    ]  # fmt: skip
    header = ("similarity of", *(result.name for result in results))
    note = "Each image is the mean of its pairs. The lower two co-captions score, the more diverse they are."
    yield Section(
        "Captions of one image against each other, and against the image",
        (Row(tuple(charts)), Table(header, tuple(rows), "l" * (len(results) + 1)), Text.of(note)),
    )


def cluster_sections(
    result: PolysemyClusters, dataset: Dataset, pictures: Mapping[str, str], shown: int = 10
) -> Iterator[Section]:
    """The map, the first clusters in a table, and of the most polysemous ones pictures and captions."""
    outside = int((result.labels == 0).sum())
    counts = f"{format_count(len(result.clusters), 'cluster')}, {format_count(outside, 'image')} in none of them"
    if isfinite(result.purity):
        counts += f"; {100 * result.purity:.0f} % of the clustered images have their cluster's {result.purity_by}"
    parts: list[Part] = [cluster_map(result)]
    if result.clusters:
        hidden = len(result.clusters) - shown
        more = f"{format_count(hidden, 'more cluster')} not shown. " if hidden > 0 else ""
        parts += [_clusters_table(result, result.clusters[:shown]), Text.of(f"{counts}. {more}{_CLUSTERS_READING}")]
        if hidden > 0:
            parts.append(_clusters_table(result, result.clusters, title="All clusters", folded=True))
        captions = references_of(dataset)
        for cluster in result.clusters[:_DRAWN]:
            cards = []
            for row in cluster.rows[:_EXAMPLES]:  # nearest to the middle; without a picture more captions
                image = result.image_ids[row]
                most = _CAPTIONS if image in pictures else _MOST_CAPTIONS
                cards.append(PictureCard(image, tuple(captions[row][:most]), image))
            category = f", {100 * cluster.purity:.0f} % {cluster.category}" if cluster.category else ""
            heading = (
                f"Cluster {cluster.number}: {format_count(cluster.size, 'image')}, image similarity "
                f"{cluster.image_similarity:.3f}, caption diversity {cluster.caption_diversity:.3f}{category}"
            )
            parts.append(Cards(heading, tuple(cards), pictures, most=0))
    else:
        parts.append(Text.of(f"{counts}."))
    yield Section(f"Clusters of similar images: {result.name}", tuple(parts))


def cluster_map(result: PolysemyClusters) -> Scatter:
    """UMAP's map: the first clusters in colours, the others grey, images of none of them faint."""
    rows = np.arange(len(result.labels))
    if len(rows) > _MOST_POINTS:
        rows = np.sort(random_stream(0, "points of the map").choice(rows, _MOST_POINTS, replace=False))
    labels = result.labels[rows]
    coloured = min(_COLOURED, len(result.clusters))
    groups = [(f"cluster {number}", labels == number) for number in range(1, coloured + 1)]
    groups += [("other clusters", labels > coloured), ("in no cluster", labels == 0)]
    fewer = f"; {len(rows):,} of {len(result.labels):,} images" if len(rows) < len(result.labels) else ""
    return Scatter(
        title=f"Map of the images: {result.name}",
        about="drawn by UMAP, its dense parts found by HDBSCAN; all figures come from the vectors themselves" + fewer,
        clouds=tuple(
            Cloud(
                name, tuple(map(tuple, result.map[rows[members]].round(3).tolist())),
                tuple(f"{result.image_ids[row]}, cluster {result.labels[row]}" if result.labels[row]
                      else f"{result.image_ids[row]}, in no cluster" for row in rows[members]),
                look="rest" if name == "in no cluster" else "",
            )
            for name, members in groups
            if members.any()
        ),
        axis="", up="", bare=True,
    )  # fmt: skip


def _clusters_table(
    result: PolysemyClusters, clusters: Sequence[ImageCluster], *, title: str = "", folded: bool = False
) -> Table:
    """A row per cluster."""
    pure = result.purity_by is not None
    rows: list[tuple[Cell, ...]] = [
        (cluster.number, cluster.size,
         *(Figure(value, digits=3) for value in
           (cluster.image_similarity, cluster.caption_diversity, cluster.polysemy)),
         *((Figure(cluster.purity, scale=100, digits=0, unit=" %"), cluster.category or ABSENT) if pure else ()))
        for cluster in clusters
    ]  # fmt: skip
    header = ("cluster", "images", "similarity", "diversity", "polysemy", *(("purity",) if pure else ()))
    header += (result.purity_by,) if result.purity_by is not None else ()
    return Table(header, tuple(rows), "rrrrr" + "rl" * pure, title=title, folded=folded)


class Density(NamedTuple):
    """Where the density was taken, and its value there; the area under it is 1."""

    at: Array
    density: Array


def kernel_density(values: Array) -> Density | None:
    """The density of the values (NaN: not counted), with Scott's bandwidth σ · n^(−1/5); None where there are none."""
    from scipy.ndimage import gaussian_filter1d

    present = np.asarray(values, np.float64)
    present = present[~np.isnan(present)]
    if not len(present):
        return None
    spread = float(present.std(ddof=1)) if len(present) > 1 else 0.0
    bandwidth = spread * len(present) ** -0.2 or _PEAK * max(1.0, abs(float(present[0])))
    low, high = present.min() - _REACH * bandwidth, present.max() + _REACH * bandwidth
    counts, edges = np.histogram(present, _BINS, (low, high))
    width = (high - low) / _BINS
    smooth = gaussian_filter1d(counts / (len(present) * width), bandwidth / width, mode="constant", truncate=_REACH)
    middles = (edges[:-1] + edges[1:]) / 2
    at = np.linspace(middles[0], middles[-1], _POINTS)
    return Density(at, np.interp(at, middles, smooth))
