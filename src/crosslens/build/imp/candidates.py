"""Candidate captions: those of each image's cluster, cleaned, without near-duplicates; each decision has a reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from crosslens.build.imp.cleaning.captions import clean_captions
from crosslens.build.imp.cleaning.duplicates import near_duplicates
from crosslens.build.imp.cleaning.settings import CleaningSettings
from crosslens.build.imp.clusters import Clusters
from crosslens.build.imp.settings import SamplingSettings
from crosslens.core import Dataset, Progress, UsageError, argument, random_stream
from crosslens.encode import caption_rows

KEPT = "kept"
SMALL_CLUSTER = "cluster too small"
FEW_CANDIDATES = "too few candidates"
NEAR_DUPLICATE = "near-duplicate"
NOT_DRAWN = "not drawn"
"""Verdicts on sampled images, and reasons for dropped captions that are not those of cleaning."""

IMAGE_COLUMNS = {
    "image": pl.String, "file": pl.String, "order": pl.Int64, "cluster": pl.Int64, "nearest": pl.Float64,
    "candidates": pl.Int64, "verdict": pl.String,
}  # fmt: skip
CANDIDATE_COLUMNS = {
    "image": pl.String, "caption": pl.String, "text": pl.String, "original": pl.String, "pool_caption": pl.String,
    "pool_image": pl.String, "cosine": pl.Float64, "reason": pl.String, "changes": pl.List(pl.String),
}  # fmt: skip

CleanText = tuple[str | None, str | None, list[str]]
"""What cleaning makes of a text: the cleaned text or None, the reason or None, the repairs."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """The sampled images with their verdicts, and all captions of their clusters with what became of them."""

    images: pl.DataFrame
    captions: pl.DataFrame

    @property
    def kept(self) -> pl.DataFrame:
        """The captions that people judge, in the order of the images."""
        usable = self.images.filter(verdict=KEPT).select("image")
        return self.captions.filter(pl.col("reason").is_null()).join(usable, on="image", how="semi")


def collect_candidates(
    images: Sequence[tuple[str, str | None]],
    pool: Dataset,
    clusters: Clusters,
    settings: SamplingSettings,
    cleaning: CleaningSettings,
    progress: Progress | None = None,
) -> Candidates:
    """The candidates of ``images``, the ids and files of the sampled ones in the order of their choice."""
    captions = caption_rows(pool)
    usable = clusters.sizes >= settings.cluster_sizes[0]
    rows = [
        [(caption, float(cosine)) for member, cosine in zip(members, cosines, strict=True)
         for caption in captions[member]] if enough else []
        for members, cosines, enough in zip(clusters.members, clusters.cosines, usable, strict=True)
    ]  # fmt: skip
    cleaned = _clean(pool, sorted({caption for own in rows for caption, _ in own}), cleaning, progress)
    image_rows, caption_rows_ = [], []
    for order, ((image, file), own) in enumerate(zip(images, rows, strict=True)):
        reasons = _reasons(image, [cleaned[caption] for caption, _ in own], settings)
        caption_rows_ += [
            (image, f"{image}#{number}", text, pool.texts[caption], pool.caption_ids[caption],
             pool.image_ids[pool.caption_image[caption]], round(cosine, 6), reason, cleaned[caption][2])
            for number, ((caption, cosine), (text, reason)) in enumerate(zip(own, reasons, strict=True))
        ]  # fmt: skip
        kept = sum(reason is None for _, reason in reasons)
        verdict = SMALL_CLUSTER if not usable[order] else KEPT if kept >= settings.captions else FEW_CANDIDATES
        facts = (int(clusters.sizes[order]), round(float(clusters.nearest[order]), 6), kept, verdict)
        image_rows.append((image, file, order, *facts))
    candidates = Candidates(_table(image_rows, IMAGE_COLUMNS), _table(caption_rows_, CANDIDATE_COLUMNS))
    _refuse_none(candidates, settings)
    return candidates


def _clean(
    pool: Dataset, rows: Sequence[int], settings: CleaningSettings, progress: Progress | None
) -> dict[int, CleanText]:
    """Every caption's outcome; equal texts are cleaned once."""
    texts = list(dict.fromkeys(pool.texts[row] for row in rows))
    table = clean_captions(texts, settings, progress=progress).table
    outcomes = dict(zip(texts, table.select("cleaned", "reason", "changes").iter_rows(), strict=True))
    return {row: outcomes[pool.texts[row]] for row in rows}


def _reasons(
    image: str, cleaned: Sequence[CleanText], settings: SamplingSettings
) -> list[tuple[str | None, str | None]]:
    """For each caption of an image its text, and the reason why it is dropped."""
    decided = [(text, reason) for text, reason, _ in cleaned]
    alive = [number for number, (_, reason) in enumerate(decided) if reason is None]
    if settings.near_duplicate <= 1 and alive:
        texts = [decided[number][0] or "" for number in alive]
        groups = near_duplicates(texts, threshold=settings.near_duplicate, seed=settings.seed)
        first: dict[int, int] = {}
        for number, group in zip(alive, groups, strict=True):
            if first.setdefault(int(group), number) != number:
                decided[number] = (decided[number][0], NEAR_DUPLICATE)
        alive = sorted(first.values())
    if settings.candidates is not None and len(alive) > settings.candidates:
        draw = random_stream(settings.seed, "imp candidates", image)
        for at in np.sort(draw.permutation(len(alive))[settings.candidates :]):
            decided[alive[at]] = (decided[alive[at]][0], NOT_DRAWN)
    return decided


def _refuse_none(candidates: Candidates, settings: SamplingSettings) -> None:
    """Raise where nobody would have anything to judge."""
    if candidates.images["verdict"].eq(KEPT).any():
        return
    most = int(candidates.images["candidates"].max() or 0)  # type: ignore[arg-type]
    total, dropped = (
        candidates.captions.height,
        dict(candidates.captions["reason"].drop_nulls().value_counts().iter_rows()),
    )
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in sorted(dropped.items(), key=lambda item: -item[1]))
    raise UsageError(
        f"too few candidates: no image has {settings.captions} captions left to judge, the most are {most}"
        + (f"; of {total:,} captions were dropped: {reasons}" if dropped else ""),
        fix=f"pass a wider {argument('band')}, a larger pool or weaker rules of cleaning",
    )


def _table(rows: Sequence[tuple[Any, ...]], columns: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=columns, orient="row")
