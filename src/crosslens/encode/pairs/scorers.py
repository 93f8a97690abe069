"""Models that score an image and a text together: too slow for every pair, fit to re-rank the top of every list."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from crosslens.core import (
    Dataset,
    InputError,
    Progress,
    Ranking,
    Registry,
    SilentProgress,
    UsageError,
    fingerprint,
    stage,
)
from crosslens.data import image_files, read_image_bytes
from crosslens.encode.batches import PAIRS
from crosslens.encode.cache import Cache, EmbeddingStore, key_of, open_store
from crosslens.encode.encoder import Array, FeatureReader, note_origin, split_model
from crosslens.encode.images import read_ahead
from crosslens.encode.options import EncodeOptions
from crosslens.encode.pairs.tasks import PairBatch, run_pair_batches
from crosslens.encode.stream import feature_key
from crosslens.rank import rerank

DEPTH = 100
"""How many ranks of every list a second stage re-orders by default."""


class PairScorer(Protocol):
    """Scores pairs of an image and a text; higher fits better.

    ``revision`` changes whenever the scores do. Empty means unknown, and then none is ever taken from a cache.
    """

    name: str
    revision: str

    def score_pairs(self, images: Sequence[Any], texts: Sequence[str]) -> Array:
        """n images (pictures or paths) and n texts → n scores."""


PAIR_SCORERS: Registry[Callable[[str, EncodeOptions], PairScorer]] = Registry(
    "pair scorer", "pair_scorers", ("crosslens.encode.adapters",), declared=("path",)
)


def load_pair_scorer(model: str, options: EncodeOptions | None = None, **changes: Any) -> PairScorer:
    """The pair scorer that a name such as ``blip:Salesforce/blip-itm-base-coco`` stands for.

    ``options`` or single keywords say how it is loaded, as in :func:`load_encoder`.
    """
    kind, source = split_model(model, PAIR_SCORERS)
    options = options or EncodeOptions.of(changes)
    scorer = PAIR_SCORERS[kind].value(source, options)
    note_origin(scorer, model, options)
    return scorer


@dataclass(frozen=True)
class PairCache:
    """Scores kept between runs, found by the content of image and text; ``images`` holds the images' keys by id."""

    store: EmbeddingStore
    images: Mapping[str, bytes]

    def key(self, image: str, text: str) -> bytes:
        """Both keys have one length, so that no two pairs share a key."""
        return key_of(_by_id(self.images, image, "image") + key_of(text.encode()))


def score_pairs(
    pairs: Sequence[tuple[str, str]],
    scorer: PairScorer,
    *,
    images: Mapping[str, Any],
    texts: Mapping[str, str],
    cache: PairCache | None = None,
    batch_size: int | None = None,
    progress: Progress | None = None,
) -> Array:
    """The scores of these pairs of an image's and a text's id, in their order."""
    scores = np.zeros(len(pairs), np.float32)
    keys = [] if cache is None else [cache.key(image, _by_id(texts, text, "text")) for image, text in pairs]

    def content(rows: Sequence[int]) -> PairBatch:
        part = [pairs[row] for row in rows]
        return PairBatch(
            [_by_id(images, image, "image") for image, _ in part], [_by_id(texts, text, "text") for _, text in part]
        )

    with stage(progress or SilentProgress(), "scoring pairs", len(pairs)) as shown:
        missing = _fill_from_cache(scores, keys, cache, shown)
        # Pairs of one image together: a scorer can then look at it once.
        missing.sort(key=lambda row: pairs[row])
        for batch, values in run_pair_batches(scorer, batch_size, missing, content, load_pair_scorer):
            scores[batch] = values
            if cache is not None:
                cache.store.add([keys[row] for row in batch], values[:, None])
            shown.advance(len(batch))
    if cache is not None:
        cache.store.flush()
    return scores


def _fill_from_cache(scores: Array, keys: Sequence[bytes], cache: PairCache | None, progress: Progress) -> list[int]:
    """Fill in the scores that are cached; the rows of the others."""
    if cache is None:
        return list(range(len(scores)))
    rows_of: dict[bytes, list[int]] = {}
    for row, key in enumerate(keys):
        rows_of.setdefault(key, []).append(row)
    cached = np.zeros(len(scores), bool)
    for stored_keys, values in cache.store.fetch(rows_of):
        for key, value in zip(stored_keys, values[:, 0], strict=True):
            scores[rows_of[key]] = value
            cached[rows_of[key]] = True
    progress.advance(int(cached.sum()))
    return [int(row) for row in np.flatnonzero(~cached)]


def _by_id(values: Mapping[str, Any], key: str, what: str) -> Any:
    if key not in values:
        raise InputError(f"no {what} for id {key!r}", expected=f"every {what} that occurs in a list", subject=key)
    return values[key]


@dataclass(frozen=True)
class SecondStage:
    """A pair scorer over a dataset: what an evaluation needs to re-rank the top of its lists.

    ``content`` is a hash of the images: with the scorer's revision, the precision and the depth it decides the
    result.
    """

    scorer: PairScorer
    depth: int
    images: dict[str, Any] = field(repr=False)
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
        """The second stage of an evaluation of this dataset; every image must have its file, or its features."""
        if depth < 1:
            raise UsageError(f"a re-ranking depth of {depth}", fix="re-rank 1 or more")
        images: dict[str, Any]
        if isinstance(scorer, FeatureReader):
            images = dict(zip(dataset.image_ids, scorer.features_of(dataset.image_ids), strict=True))
            keys = {image: feature_key(features) for image, features in images.items()}
        else:
            images = dict(zip(dataset.image_ids, image_files(dataset, image_folder), strict=True))
            keys = _image_keys(images, progress or SilentProgress())
        store = open_store(cache, scorer, PAIRS, precision)
        return SecondStage(
            scorer,
            depth,
            images,
            dict(zip(dataset.caption_ids, dataset.texts, strict=True)),
            fingerprint("pictures", {"keys": [key.hex() for key in keys.values()]}),
            precision,
            batch_size,
            None if store is None else PairCache(store, keys),
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
        """The ranking with its first ranks re-ordered; its lists hold at most ``keep`` items."""
        return rerank(ranking, lambda pairs: self.score(pairs, progress), min(self.depth, ranking.depth), keep=keep)

    def score(self, pairs: Sequence[tuple[str, str]], progress: Progress | None = None) -> Array:
        """The scores of pairs of an image's and a caption's id, in their order."""
        return score_pairs(
            pairs, self.scorer, images=self.images, texts=self.texts, cache=self.cache, batch_size=self.batch_size,
            progress=progress,
        )  # fmt: skip


def _image_keys(files: dict[str, str], progress: Progress) -> dict[str, bytes]:
    def key(file: str) -> bytes:
        try:
            return key_of(read_image_bytes(file))
        except OSError as error:
            raise InputError(f"cannot be opened: {error}", file=file, fix="check the file") from error

    keys: dict[str, bytes] = {}
    with stage(progress, "reading images", len(files)):
        for image, image_key in zip(files, read_ahead(key, files.values()), strict=True):
            keys[image] = image_key
            progress.advance()
    return keys
