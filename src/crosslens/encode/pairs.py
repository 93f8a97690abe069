"""Models that score pairs of an image and a text: given pairs, or every image with every text; also in tasks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Unpack

import numpy as np

from crosslens.core import CrosslensError, InputError, Registry, UsageError, accepts_options
from crosslens.data import image_files, outer_file
from crosslens.encode.batches import PAIRS, Batches, ModelToLoad, file_key, in_groups, read_ahead, uses_gpu
from crosslens.encode.cache import Cache, EmbeddingStore, key_of
from crosslens.encode.encoder import DivisibleScorer, FeatureReader, MatrixScorer, note_origin, open_store, split_model
from crosslens.encode.options import EncodeOptions, StreamKeywords
from crosslens.encode.stream import encode_images, feature_key
from crosslens.engine import Progress, current_engine, missing_on_node, shown_progress, stage
from crosslens.rank import rerank
from crosslens.storage import Array, fingerprint, offline
from crosslens.values import Dataset, Ranking

if TYPE_CHECKING:
    from crosslens.encode.keywords import EncodeKeywords

_Pair = tuple[Any, str]
"""An image (a picture, a path or features), and a text."""


def score_batches(model: ModelToLoad, batches: Sequence[Sequence[_Pair]]) -> list[Array]:
    """The scores of each batch, in a task."""
    scorer = model.load()
    for image in (image for batch in batches for image, _ in batch if isinstance(image, str)):
        if not outer_file(image).exists():
            raise missing_on_node(f"{image} does not exist")
    return [_scored(scorer, Batches(PAIRS, scorer, len(batch)), batch) for batch in batches]


def _scored(scorer: Any, batches: Batches, batch: Sequence[_Pair]) -> Array:
    def score(pairs: Sequence[_Pair]) -> Array:
        values = scorer.score_pairs([image for image, _ in pairs], [text for _, text in pairs])
        scores = np.asarray(values, np.float32).reshape(-1)
        if len(scores) != len(pairs):
            problem = f"{scorer.name} gave {len(scores)} scores for {len(pairs)} pairs"
            raise InputError(problem, expected="one score per pair")
        if not np.isfinite(scores).all():
            raise InputError(f"{scorer.name} gave NaN or infinite scores for pairs", expected="finite numbers")
        return scores

    return np.concatenate(batches.run(score, batch))


_Block = tuple[slice, Array]
"""Some images and some texts, by their positions."""


def score_block(work: tuple[ModelToLoad, Sequence[Any], Sequence[str]], block: _Block) -> Array:
    """The scores of a block, in a task."""
    (model, features, texts), (rows, columns) = work, block
    return np.asarray(model.load().score_matrix(features[rows], [texts[text] for text in columns]), np.float32)


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


@accepts_options(EncodeOptions)
def load_pair_scorer(model: str, options: EncodeOptions | None = None, **changes: Unpack[EncodeKeywords]) -> PairScorer:
    """The pair scorer that a name such as ``blip:Salesforce/blip-itm-base-coco`` stands for.

    ``options`` or single keywords say how it is loaded, as in :func:`load_encoder`.
    """
    kind, source = split_model(model, PAIR_SCORERS)
    options = options or EncodeOptions.of(changes)
    with offline(options.offline):
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
    scores, cached = np.zeros(len(pairs), np.float32), np.zeros(len(pairs), bool)
    keys = [] if cache is None else [cache.key(image, _by_id(texts, text, "text")) for image, text in pairs]
    rows_of: dict[bytes, list[int]] = {}
    for row, key in enumerate(keys):
        rows_of.setdefault(key, []).append(row)

    def content(row: int) -> _Pair:
        return _by_id(images, pairs[row][0], "image"), _by_id(texts, pairs[row][1], "text")

    def lasting(pair: _Pair) -> _Pair:
        """With an absolute path: a task may have another working directory."""
        return os.path.abspath(pair[0]) if isinstance(pair[0], str | Path) else pair[0], pair[1]

    def scored(rows: list[int]) -> Iterator[tuple[Sequence[int], Array]]:
        """Batches of rows with their scores, in order."""
        batches, engine = Batches(PAIRS, scorer, batch_size), current_engine()
        if not engine.distributed:
            for batch in batches.of(rows):
                yield batch, _scored(scorer, batches, [content(row) for row in batch])
            return
        groups = in_groups(list(batches.of(rows)), engine)
        requests = ([[lasting(content(row)) for row in batch] for batch in group] for group in groups)
        model = ModelToLoad.of(scorer, load_pair_scorer)
        results = engine.run(score_batches, model, requests, gpu=uses_gpu(scorer))
        for group, of_group in zip(groups, results, strict=True):
            yield from zip(group, of_group, strict=True)

    with stage(shown_progress(progress), "scoring pairs", len(pairs)) as bar:
        for stored_keys, values in () if cache is None else cache.store.fetch(rows_of):
            for key, value in zip(stored_keys, values[:, 0], strict=True):
                scores[rows_of[key]], cached[rows_of[key]] = value, True
        bar.advance(int(cached.sum()))
        # Pairs of one image together: a scorer can then look at it once.
        missing = sorted(np.flatnonzero(~cached).tolist(), key=lambda row: pairs[row])
        for batch, values in scored(missing):
            scores[batch] = values
            if cache is not None:
                cache.store.add([keys[row] for row in batch], values[:, None])
            bar.advance(len(batch))
    if cache is not None:
        cache.store.flush()
    return scores


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
            images, keys = dict(zip(dataset.image_ids, image_files(dataset, image_folder), strict=True)), {}
            with stage(shown_progress(progress), "reading images", len(images)) as bar:
                for image, key in zip(images, read_ahead(file_key, images.values()), strict=True):
                    keys[image] = key
                    bar.advance()
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
        return score_pairs(
            pairs, self.scorer, images=self.images, texts=self.texts, cache=self.cache, batch_size=self.batch_size,
            progress=progress,
        )  # fmt: skip


@dataclass(frozen=True)
class ReadImages:
    """What a model sees of a dataset's images: ``features`` row by row; ``dataset`` is without those in ``skipped``.

    ``content`` is a hash of the features.
    """

    dataset: Dataset
    features: Sequence[Any]
    skipped: dict[str, str]
    content: str


def read_features(
    dataset: Dataset,
    scorer: MatrixScorer,
    *,
    image_folder: str | Path | None = None,
    skip_bad: bool = False,
    **how: Unpack[StreamKeywords],
) -> ReadImages:
    """The features of all images: found by id, or made from their pixels (and cached) by the encoder that the model
    was trained on.
    """
    if isinstance(scorer, FeatureReader):
        features, skipped = list(scorer.features_of(dataset.image_ids)), {}
    else:
        assert scorer.pixels is not None
        files = image_files(dataset, image_folder, skip_bad=skip_bad)
        vectors = encode_images(scorer.pixels, files, names=dataset.image_ids, skip_bad=skip_bad, **how)
        skipped = {dataset.image_ids[row]: problem for row, problem in vectors.bad.items()}
        readable = [row for row in range(len(files)) if row not in vectors.bad]
        features = [(vectors.rows[row],) for row in readable]
        dataset = dataset.select(dataset.image_ids[row] for row in readable) if skipped else dataset
    keys = np.frombuffer(b"".join(map(feature_key, features)), np.uint8)
    return ReadImages(dataset, features, skipped, fingerprint("features", {"keys": keys}))


def score_texts(
    scorer: MatrixScorer, images: ReadImages, texts: Sequence[str], progress: Progress | None = None
) -> Array:
    """Images × texts, checked."""
    engine, features, expected = current_engine(), images.features, (len(images.features), len(texts))
    if engine.distributed and isinstance(scorer, DivisibleScorer) and features and texts:
        parts, columns = scorer.divide(features, texts)
        blocks: list[_Block] = [(rows, part) for rows in parts for part in columns]
        scores, bar = np.empty(expected, np.float32), shown_progress(progress)
        size = 4 * max((rows.stop - rows.start) * len(part) for rows, part in blocks)
        with stage(bar, "scoring pairs", len(parts) * len(texts)):
            computed = engine.run(
                score_block, (ModelToLoad.of(scorer), features, texts), blocks, size=size, gpu=uses_gpu(scorer),
                done=lambda block: bar.advance(len(block[1])),
            )  # fmt: skip
            for block, values in zip(blocks, computed, strict=True):
                scores[block] = values
    else:
        scores = np.asarray(scorer.score_matrix(features, texts, progress), np.float32)
    if scores.shape != expected:
        raise CrosslensError(
            f"{scorer.name} gave scores of shape {scores.shape} for images × texts of {expected}",
            fix="return a row per image and a column per text",
        )
    if not np.isfinite(scores).all():
        raise InputError(f"{scorer.name} gave NaN or infinite scores", expected="finite numbers")
    return scores
