"""Diverse captions of an image: those with the lowest pairwise similarity, or one of each K-means cluster.

The paper states both: section 4.1 the first, appendix C.5 the second, whose map is its figure 11.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Any

import numpy as np

from crosslens.analyze import unit_vectors
from crosslens.build.imp.benchmark import Imp, good_captions
from crosslens.build.imp.people import Verdict
from crosslens.build.imp.sampling import FEWEST, planar_map
from crosslens.build.settings import LOWEST
from crosslens.core import Cloud, Presented, Scatter, Section, Table, UnknownNameError, UsageError, needs_extra
from crosslens.storage import Array, random_stream

MOST_SUBSETS = 200_000
"""Up to this many subsets are all compared; beyond, captions are added one by one and then exchanged."""
_BLOCK = 20_000
_GAIN = 1e-12


def select_diverse(vectors: Array, count: int, how: str, *, seed: int, image: str) -> list[int]:
    """The rows of ``count`` diverse captions, in ascending order; there must be as many."""
    if len(vectors) == count:
        return list(range(count))
    if how == LOWEST:
        return lowest_similarity(vectors, count)
    return one_of_each_cluster(cluster_captions(vectors, count, seed)[1], count, seed=seed, image=image)


@dataclass(frozen=True, eq=False)
class CaptionMap(Presented):
    """The good captions of an image in a plane, the K-means cluster of each, and whether it was chosen."""

    image: str
    texts: tuple[str, ...]
    points: Array
    clusters: Array
    chosen: Array
    diverse: str
    """How they were chosen."""

    @property
    def title(self) -> str:
        return f"Captions of {self.image}"

    def sections(self) -> Iterator[Section]:
        """The map, a colour per cluster and rings around the chosen captions; then their texts."""
        where = "UMAP map" if len(self.texts) >= FEWEST else "first two principal axes"
        label = f"{len(self.texts)} good captions, {where}; {int(self.chosen.sum())} chosen by {self.diverse}, in rings"
        groups = [(f"cluster {number + 1}", self.clusters == number) for number in range(int(self.clusters.max()) + 1)]
        clouds = [
            Cloud(
                name, tuple(map(tuple, self.points[members].round(3).tolist())),
                tuple(self.texts[row] for row in np.flatnonzero(members)), look="ring" if name == "chosen" else "",
            )
            for name, members in (*groups, ("chosen", self.chosen))
        ]  # fmt: skip
        order = np.lexsort((~self.chosen, self.clusters))
        rows = [(self.clusters[row] + 1, self.chosen[row], self.texts[row]) for row in order]
        selected_rows = tuple((int(cluster), text) for cluster, selected, text in rows if selected)
        every = tuple((int(cluster), "yes" if selected else "", text) for cluster, selected, text in rows)
        yield Section(
            "",
            (
                Scatter(title=self.title, about=label, clouds=tuple(clouds), axis="", up="", bare=True),
                Table(("cluster", "chosen caption"), selected_rows, "rl", title=self.title),
                Table(("cluster", "chosen", "caption"), every, "rll", title="All captions", folded=True),
            ),
        )

    def as_dict(self) -> dict[str, Any]:
        columns = self.texts, self.points.tolist(), self.clusters.tolist(), self.chosen.tolist()
        captions = [
            {"text": text, "point": point, "cluster": cluster + 1, "chosen": selected}
            for text, point, cluster, selected in zip(*columns, strict=True)
        ]
        return {"image": self.image, "diverse": self.diverse, "captions": captions}


def map_captions(imp: Imp, image: str | None = None) -> CaptionMap:
    """The map of an image's good captions; by default of the image that has the most."""
    if imp.dataset is None or imp.encode is None:
        raise UsageError(
            "captions are mapped when they are chosen, and the benchmark is not finished",
            fix="fill in the sheets first",
        )
    selected = {entry["image"]: entry for entry in imp.log.of("selected") if "captions" in entry}
    if image is None:
        image = max(selected, key=lambda name: selected[name]["good"])
    elif image not in selected:
        error = UnknownNameError("image of the benchmark", image, list(selected))
        error.option = "map_image"
        raise error
    verdicts = {entry["caption"]: Verdict(*entry["verdict"]) for entry in imp.log.of("verdict")}
    leaks = imp.leaks if imp.log.head["selection"]["drop_leaks"] else None
    good = [row for row in good_captions(imp.candidates, verdicts, leaks) if row[0] == image]
    texts, settings = tuple(text for _, _, text in good), imp.log.head["settings"]
    vectors = imp.encode(list(texts))
    points, clusters = cluster_captions(vectors, settings["captions"], settings["seed"])
    if points.shape[1] > 2:  # too few captions for UMAP: their first two principal axes
        centred = vectors - vectors.mean(axis=0)
        points = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
    mask = np.array([caption in selected[image]["captions"] for _, caption, _ in good])
    return CaptionMap(image, texts, points, clusters, mask, imp.log.head["selection"]["diverse"])


def cluster_captions(vectors: Array, count: int, seed: int) -> tuple[Array, Array]:
    """Captions in a UMAP map, or as they are where these are too few for one; and the K-means cluster of each."""
    points = planar_map(vectors, seed) if len(vectors) >= FEWEST else vectors
    return points, k_means(points, count, seed)


def k_means(points: Array, count: int, seed: int) -> Array:
    """The cluster of each point, from 0; fewer than ``count`` where points coincide."""
    with needs_extra("K-means", "scikit-learn", "polysemy"):
        from sklearn.cluster import KMeans
    clusters = min(count, len(np.unique(points, axis=0)))
    return np.asarray(KMeans(n_clusters=clusters, n_init=10, random_state=seed % 2**32).fit_predict(points))


def lowest_similarity(vectors: Array, count: int) -> list[int]:
    """The rows with the lowest mean cosine over all their pairs; of equal subsets the first in the order of rows.

    Exact up to ``MOST_SUBSETS`` subsets. Beyond that greedy: the least similar pair, then again and again the caption
    with the lowest sum of cosines with the chosen ones, and at the end exchanges of a chosen caption for another one
    as long as that lowers the sum.
    """
    unit = unit_vectors(vectors)
    cosines = np.einsum("id,jd->ij", unit, unit)
    if count == 1:
        return [0]
    if math.comb(len(vectors), count) <= MOST_SUBSETS:
        pairs = np.array(list(combinations(range(count), 2)))
        best, subset = np.inf, np.arange(count)
        subsets = combinations(range(len(cosines)), count)
        while some := list(islice(subsets, _BLOCK)):
            block = np.array(some)
            sums = cosines[block[:, pairs[:, 0]], block[:, pairs[:, 1]]].sum(axis=1)
            at = int(np.argmax(sums <= sums.min() + _GAIN))  # equal ones differ by rounding
            if sums[at] < best - _GAIN:
                best, subset = sums[at], block[at]
        return [int(row) for row in subset]
    return _exchanged(cosines, count)


def pairwise_mean(vectors: Array) -> float:
    """The mean cosine over all pairs of these vectors; NaN for one."""
    unit = unit_vectors(vectors)
    pairs = list(combinations(range(len(unit)), 2))
    return float(np.mean([float(unit[left] @ unit[right]) for left, right in pairs])) if pairs else float("nan")


def one_of_each_cluster(labels: Array, count: int, *, seed: int, image: str) -> list[int]:
    """A row of each cluster drawn at random; where there are fewer than ``count``, the other rows from all the rest."""
    draw = random_stream(seed, "imp diverse", image)
    rows = [int(draw.choice(np.flatnonzero(labels == label))) for label in dict.fromkeys(labels.tolist())]
    rest = np.setdiff1d(np.arange(len(labels)), rows)
    rows += draw.permutation(rest)[: count - len(rows)].tolist()
    return sorted(rows)


def _exchanged(cosines: Array, count: int) -> list[int]:
    """A greedy subset after exchanges, each the one that lowers the sum of cosines most."""
    upper = np.where(np.triu(np.ones_like(cosines, bool), 1), cosines, np.inf)
    subset = [int(row) for row in np.unravel_index(np.argmin(upper), upper.shape)]
    while len(subset) < count:
        sums = cosines[:, subset].sum(axis=1)
        sums[subset] = np.inf
        subset.append(int(np.argmin(sums)))
    while True:
        best, exchange = -_GAIN, (-1, -1)
        for at, row in enumerate(subset):
            others = [other for other in subset if other != row]
            sums = cosines[:, others].sum(axis=1)
            gains = sums - sums[row]
            gains[subset] = np.inf
            new = int(np.argmin(gains))
            if gains[new] < best:
                best, exchange = float(gains[new]), (at, new)
        if exchange[0] < 0:
            return sorted(subset)
        subset[exchange[0]] = exchange[1]
