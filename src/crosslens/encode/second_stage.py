"""A pair scorer over a dataset: what an evaluation needs to re-order the top of its lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crosslens.core.dataset import Dataset
from crosslens.core.errors import InputError, UsageError
from crosslens.core.fingerprint import fingerprint
from crosslens.core.progress import Progress, Silent, stage
from crosslens.core.ranking import Ranking
from crosslens.data.inside import read_address
from crosslens.encode.cache import Cache, about_shelf, key_of
from crosslens.encode.encoder import Array
from crosslens.encode.pairs import PairCache, PairScorer, rerank, score_pairs
from crosslens.encode.pictures import image_files, read_ahead

DEPTH = 100
"""How many places of every list a second stage re-orders, unless asked otherwise."""


@dataclass(frozen=True)
class SecondStage:
    """A scorer, how deep it goes, and the images and texts that it looks at, by id.

    ``content`` is a hash of the image files: with the scorer's revision, the precision and the depth it decides what
    comes out.
    """

    scorer: PairScorer
    depth: int
    images: dict[str, str] = field(repr=False)
    texts: dict[str, str] = field(repr=False)
    content: str
    precision: str = "fp32"
    batch_size: int | None = None
    cache: PairCache | None = field(default=None, repr=False)

    @staticmethod
    def over(
        dataset: Dataset,
        scorer: PairScorer,
        depth: int = DEPTH,
        *,
        image_folder: str | Path | None = None,
        cache: Cache | None = None,
        precision: str = "fp32",
        batch_size: int | None = None,
        progress: Progress | None = None,
    ) -> SecondStage:
        """The second stage of an evaluation of this dataset; every image file must be there."""
        if depth < 1:
            raise UsageError(f"re-ranking {depth} places", fix="re-rank 1 or more")
        files = dict(zip(dataset.image_ids, image_files(dataset, image_folder), strict=True))
        keys = _keys(files, progress or Silent())
        shelf = None
        if cache is not None and scorer.revision:
            shelf = cache.shelf(about_shelf(scorer, "pairs", precision))
        return SecondStage(
            scorer,
            depth,
            files,
            dict(zip(dataset.caption_ids, dataset.texts, strict=True)),
            fingerprint("pictures", {"keys": [key.hex() for key in keys.values()]}),
            precision,
            batch_size,
            None if shelf is None else PairCache(shelf, keys),
        )

    @property
    def description(self) -> dict[str, Any]:
        """What the result of re-ranking depends on, beside the lists."""
        return {
            "model": self.scorer.name,
            "revision": self.scorer.revision,
            "precision": self.precision,
            "depth": self.depth,
            "images": self.content,
        }

    def reorder(self, ranking: Ranking, keep: int, progress: Progress) -> Ranking:
        """The ranking with the first places re-ordered; its lists hold at most ``keep`` of them."""
        return rerank(
            ranking, self.scorer, min(self.depth, ranking.depth), keep=keep, images=self.images, texts=self.texts,
            cache=self.cache, batch_size=self.batch_size, progress=progress,
        )  # fmt: skip

    def score(self, pairs: Sequence[tuple[str, str]], progress: Progress | None = None) -> Array:
        """The scores of single pairs of an image's and a caption's id, in their order."""
        return score_pairs(
            pairs, self.scorer, images=self.images, texts=self.texts, cache=self.cache, batch_size=self.batch_size,
            progress=progress,
        )  # fmt: skip


def _keys(files: dict[str, str], progress: Progress) -> dict[str, bytes]:
    def key(file: str) -> bytes:
        try:
            return key_of(read_address(file))
        except OSError as error:
            raise InputError(f"cannot be opened: {error}", file=file, fix="check the file") from error

    keys: dict[str, bytes] = {}
    with stage(progress, "reading images", len(files)):
        for image, found in zip(files, read_ahead(key, files.values()), strict=True):
            keys[image] = found
            progress.advance()
    return keys
