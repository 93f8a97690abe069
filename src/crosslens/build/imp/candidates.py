"""Candidate captions: an image's own titles and those of its cluster, cleaned, without near-duplicates.

Each decision has a reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

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
POOL, TITLE = "pool", "title"
"""Where a candidate comes from: it is the caption of a similar image, or a title of the image itself."""

IMAGE_COLUMNS = {
    "image": pl.String, "file": pl.String, "order": pl.Int64, "cluster": pl.Int64, "nearest": pl.Float64,
    "candidates": pl.Int64, "verdict": pl.String,
}  # fmt: skip
CANDIDATE_COLUMNS = {
    "image": pl.String, "caption": pl.String, "text": pl.String, "original": pl.String, "pool_caption": pl.String,
    "pool_image": pl.String, "cosine": pl.Float64, "reason": pl.String, "changes": pl.List(pl.String),
    "source": pl.String,
}  # fmt: skip

CleanText = tuple[str | None, str | None, list[str]]
"""What cleaning makes of a text: the cleaned text or None, the reason or None, the repairs."""


class _Caption(NamedTuple):
    """A text before cleaning: its id in the pool or among the titles; ``image`` and ``cosine`` are a pool image's."""

    text: str
    caption: str
    image: str | None = None
    cosine: float | None = None

    @property
    def source(self) -> str:
        return TITLE if self.image is None else POOL


@dataclass(frozen=True, eq=False)
class Candidates:
    """The sampled images with their verdicts, and all their titles and captions with what became of them."""

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
    titles: Mapping[str, Sequence[tuple[str, str]]] = MappingProxyType({}),
) -> Candidates:
    """The candidates of ``images``, the ids and files of the sampled ones in the order of their choice.

    ``titles``: image → ids and texts of the titles that are its own. They come first: of near-duplicates the title
    stays, and no title is left out of a draw for a caption of the pool. A cluster that is too small gives no captions,
    but an image with enough titles needs none.
    """
    captions = caption_rows(pool)
    usable = clusters.sizes >= settings.cluster_sizes[0]
    rows = [
        [_Caption(text, caption) for caption, text in titles.get(image, ())]
        + [_Caption(pool.texts[caption], pool.caption_ids[caption], pool.image_ids[member], round(float(cosine), 6))
           for member, cosine in zip(clusters.members[order], clusters.cosines[order], strict=True) if usable[order]
           for caption in captions[member]]
        for order, (image, _) in enumerate(images)
    ]  # fmt: skip
    texts = list(dict.fromkeys(caption.text for own in rows for caption in own))
    table = clean_captions(texts, cleaning, progress=progress).table.select("cleaned", "reason", "changes")
    cleaned: dict[str, CleanText] = dict(zip(texts, table.iter_rows(), strict=True))
    image_rows, candidate_rows = [], []
    for order, ((image, file), own) in enumerate(zip(images, rows, strict=True)):
        reasons = _reasons(image, own, cleaned, settings)
        candidate_rows += [
            (image, f"{image}#{number}", text, *caption, reason, cleaned[caption.text][2], caption.source)
            for number, (caption, (text, reason)) in enumerate(zip(own, reasons, strict=True))
        ]
        kept = sum(reason is None for _, reason in reasons)
        verdict = KEPT if kept >= settings.captions else FEW_CANDIDATES if usable[order] else SMALL_CLUSTER
        facts = (int(clusters.sizes[order]), round(float(clusters.nearest[order]), 6), kept, verdict)
        image_rows.append((image, file, order, *facts))
    candidates = Candidates(_table(image_rows, IMAGE_COLUMNS), _table(candidate_rows, CANDIDATE_COLUMNS))
    _refuse_none(candidates, settings)
    return candidates


def _reasons(
    image: str, own: Sequence[_Caption], cleaned: Mapping[str, CleanText], settings: SamplingSettings
) -> list[tuple[str | None, str | None]]:
    """For each caption of an image its text, and the reason why it is dropped."""
    decided = [cleaned[caption.text][:2] for caption in own]
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
        order = random_stream(settings.seed, "imp candidates", image).permutation(len(alive))
        drawn = sorted(order, key=lambda at: own[alive[at]].source != TITLE)
        for at in drawn[settings.candidates :]:
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
