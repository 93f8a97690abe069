"""Regions of a map, each named by the words that its captions use more than the others."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import polars as pl

from crosslens.core import Dataset, random_stream
from crosslens.language import STOP_WORDS

Array = np.ndarray[Any, Any]

MOST_CLUSTERS = 12
_SAMPLE = 50_000
_BLOCK = 65_536
_WORDS = 3
_TEXTS = 200_000
"""Captions whose words are counted; of more, every k-th."""
_WORD = r"\p{L}{3,}"


class Cluster(NamedTuple):
    """A region: its number, its name, how many images and captions, where its centre is."""

    number: int
    name: str
    images: int
    captions: int
    centre: tuple[float, float]


def assign_clusters(points: Array, seed: int = 0) -> tuple[Array, Array]:
    """The number of every point's cluster, and the clusters' centres: k-means on the map, the largest cluster first."""
    from scipy.cluster.vq import kmeans2

    distinct = np.unique(points[:: max(1, len(points) // _SAMPLE)], axis=0)
    count = min(MOST_CLUSTERS, max(1, int(np.sqrt(len(points) / 2))), len(distinct))
    stream = random_stream(seed, "map clusters")
    rows = np.sort(stream.permutation(len(points))[:_SAMPLE])
    sample = points[rows].astype(np.float64)
    centres, _ = kmeans2(sample, count, minit="++", seed=stream, missing="raise" if count == 1 else "warn")
    numbers = nearest_centres(points, centres)
    sizes = np.bincount(numbers, minlength=count)
    order = np.lexsort((np.arange(count), -sizes))
    order = order[sizes[order] > 0]
    rank = np.zeros(count, np.uint8)
    rank[order] = np.arange(len(order), dtype=np.uint8)
    return rank[numbers], centres[order]


def nearest_centres(points: Array, centres: Array) -> Array:
    """For every point the number of the nearest centre."""
    numbers = np.empty(len(points), np.int64)
    for start in range(0, len(points), _BLOCK):
        block = points[start : start + _BLOCK].astype(np.float64)
        numbers[start : start + _BLOCK] = ((block[:, None] - centres[None]) ** 2).sum(axis=2).argmin(axis=1)
    return numbers


def describe_clusters(numbers: Array, centres: Array, images: int, texts: list[str] | None) -> list[Cluster]:
    """The clusters with their names; ``texts`` are those of the captions, whose points come after the ``images``."""
    count = len(centres)
    names = [""] * count if texts is None else characteristic_words(numbers[images:], texts, count)
    sides = [np.bincount(part, minlength=count) for part in (numbers[:images], numbers[images:])]
    return [
        Cluster(
            number, names[number] or f"region {number + 1}", int(sides[0][number]), int(sides[1][number]),
            (float(centres[number][0]), float(centres[number][1])),
        )
        for number in range(count)
    ]  # fmt: skip


def characteristic_words(numbers: Array, texts: list[str], count: int) -> list[str]:
    """Per cluster the words whose share of captions is highest, weighed by how much it exceeds that of all captions."""
    step = max(1, len(texts) // _TEXTS)
    table = pl.DataFrame({"cluster": numbers[::step].astype(np.int64), "text": texts[::step]})
    words = (
        table.with_columns(word=pl.col("text").str.to_lowercase().str.extract_all(_WORD).list.unique())
        .select("cluster", "word")
        .explode("word")
        .filter(pl.col("word").is_not_null() & ~pl.col("word").is_in(list(STOP_WORDS)))
    )
    sizes = table.group_by("cluster").agg(size=pl.len())
    overall = words.group_by("word").agg(overall=pl.len() / table.height)
    shares = words.group_by("cluster", "word").agg(uses=pl.len()).join(sizes, on="cluster").join(overall, on="word")
    shares = shares.with_columns(share=pl.col("uses") / pl.col("size"))
    shares = shares.with_columns(weight=pl.col("share") * (pl.col("share") / pl.col("overall")).log())
    best = shares.filter(pl.col("weight") > 0).sort(["weight", "word"], descending=[True, False])
    grouped = best.group_by("cluster", maintain_order=True).agg(pl.col("word").head(_WORDS))
    named = {int(number): ", ".join(words) for number, words in grouped.iter_rows()}
    return [named.get(number, "") for number in range(count)]


def caption_texts(dataset: Dataset | None, captions: tuple[str, ...]) -> list[str] | None:
    """The texts of these captions; None where the dataset does not have them all."""
    if dataset is None:
        return None
    known = dict(zip(dataset.caption_ids, dataset.texts, strict=True))
    texts = [known.get(caption) for caption in captions]
    return None if any(text is None for text in texts) else [str(text) for text in texts]
