"""A second stage: models that look at an image and a text together re-order the top of every list."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from crosslens.core.errors import InputError, UsageError
from crosslens.core.progress import Progress, Silent, stage
from crosslens.core.ranking import UNRANKED, Ranking
from crosslens.core.registry import Registry
from crosslens.core.relevance import IMAGE_TO_TEXT, TEXT_TO_IMAGE
from crosslens.encode.batches import BatchSize, batches, within_memory
from crosslens.encode.cache import Shelf, key_of
from crosslens.encode.encoder import Array, Settings, Tell, split_model, to_stderr


class PairScorer(Protocol):
    """Scores pairs of an image and a text; higher fits better.

    ``revision`` changes whenever the scores do. Empty means unknown, and then none is ever taken from a cache.
    """

    name: str
    revision: str

    def score_pairs(self, images: Sequence[Any], texts: Sequence[str]) -> Array:
        """n images (pictures or paths) and n texts → n scores."""


PAIR_SCORERS: Registry[Callable[[str, Settings], PairScorer]] = Registry("pair scorer", "pair_scorers")


def load_pair_scorer(
    model: str,
    *,
    device: str | None = None,
    precision: str = "fp32",
    offline: bool = False,
    tell: Tell = to_stderr,
) -> PairScorer:
    """The pair scorer that a name such as ``blip:Salesforce/blip-itm-base-coco`` stands for."""
    kind, source = split_model(model, PAIR_SCORERS)
    return PAIR_SCORERS[kind].value(source, Settings(device, precision, offline, tell))


@dataclass(frozen=True)
class PairCache:
    """Scores kept between runs, found by the content of image and text; ``images`` holds the images' keys by id."""

    shelf: Shelf
    images: Mapping[str, bytes]

    def key(self, image: str, text: str) -> bytes:
        """Both keys have one length, so that no two pairs share a key."""
        return key_of(_known(self.images, image, "image") + key_of(text.encode()))


def rerank(
    ranking: Ranking,
    scorer: PairScorer,
    k: int,
    *,
    images: Mapping[str, Any],
    texts: Mapping[str, str],
    keep: int | None = None,
    cache: PairCache | None = None,
    batch_size: int | None = None,
    progress: Progress | None = None,
) -> Ranking:
    """The ranking with the first ``k`` places of every list put into the order of the scorer.

    ``images`` (pictures or paths) and ``texts`` are found by id. What stood below place k stays below, in its order;
    the lists that are kept end at k (or at ``keep``, if that is less), so that their scores are all of one kind. Equal
    scores are ties, as everywhere; where the first stage has a tie across place k, the lower gallery index is inside.
    """
    if ranking.direction not in (IMAGE_TO_TEXT, TEXT_TO_IMAGE):
        raise UsageError(f"direction {ranking.direction!r}", fix="rerank i2t or t2i")
    if not 1 <= k <= ranking.depth:
        raise UsageError(f"k is {k}, the lists hold {ranking.depth} places", fix=f"rank with depth={max(k, 1)} or more")
    items = ranking.top_items[:, :k]
    rows, places = np.nonzero(items != UNRANKED)
    pairs = [
        (ranking.query_ids[row], ranking.item_ids[item]) for row, item in zip(rows, items[rows, places], strict=True)
    ]
    if ranking.direction == TEXT_TO_IMAGE:
        pairs = [(image, text) for text, image in pairs]
    scores = np.full(items.shape, -np.inf, np.float32)
    with stage(progress or Silent(), f"re-ranking {ranking.direction}", len(pairs)) as told:
        scores[rows, places] = _Scoring(pairs, scorer, images, texts, cache).run(
            BatchSize(batch_size, largest=256), told
        )
    # Equal scores: the lower gallery index first, which is the tie rule of every ranking.
    order = np.lexsort((np.where(items == UNRANKED, np.iinfo(np.int64).max, items), -scores))
    placed = _placed(ranking, np.take_along_axis(items, order, 1), np.take_along_axis(scores, order, 1))
    return replace(placed, top_items=placed.top_items[:, :keep], top_scores=placed.top_scores[:, :keep])


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
    with stage(progress or Silent(), "scoring pairs", len(pairs)) as told:
        return _Scoring(pairs, scorer, images, texts, cache).run(BatchSize(batch_size, largest=256), told)


class _Scoring:
    """Pairs on their way through a scorer; what the cache knows does not go."""

    def __init__(
        self,
        pairs: Sequence[tuple[str, str]],
        scorer: PairScorer,
        images: Mapping[str, Any],
        texts: Mapping[str, str],
        cache: PairCache | None,
    ) -> None:
        self._pairs, self._scorer, self._images, self._texts, self._cache = pairs, scorer, images, texts, cache
        self._scores = np.zeros(len(pairs), np.float32)
        self._keys = [] if cache is None else [cache.key(one, _known(texts, two, "text")) for one, two in pairs]

    def run(self, size: BatchSize, progress: Progress) -> Array:
        waiting = self._from_cache(progress)
        # Pairs of one image together: a scorer can then look at it once.
        waiting.sort(key=lambda one: self._pairs[one][0])
        for batch in batches(waiting, size):
            start = time.perf_counter()
            found = np.concatenate(within_memory(self._score, batch, size))
            size.observe(len(batch), len(batch), time.perf_counter() - start)
            self._scores[batch] = found
            if self._cache is not None:
                self._cache.shelf.add([self._keys[one] for one in batch], found[:, None])
            progress.advance(len(batch))
        if self._cache is not None:
            self._cache.shelf.flush()
        return self._scores

    def _from_cache(self, progress: Progress) -> list[int]:
        """Fill in what is known; the places of the rest."""
        places: dict[bytes, list[int]] = {}
        for place, key in enumerate(self._keys):
            places.setdefault(key, []).append(place)
        known = np.zeros(len(self._pairs), bool)
        for keys, scores in () if self._cache is None else self._cache.shelf.fetch(places):
            for key, score in zip(keys, scores[:, 0], strict=True):
                self._scores[places[key]] = score
                known[places[key]] = True
        progress.advance(int(known.sum()))
        return [int(place) for place in np.flatnonzero(~known)]

    def _score(self, part: Sequence[int]) -> Array:
        pairs = [self._pairs[one] for one in part]
        found = self._scorer.score_pairs(
            [_known(self._images, image, "image") for image, _ in pairs],
            [_known(self._texts, text, "text") for _, text in pairs],
        )
        values = np.asarray(found, np.float32).reshape(-1)
        if len(values) != len(part) or not np.isfinite(values).all():
            raise InputError(
                f"{self._scorer.name} gave {len(values)} scores for {len(part)} pairs, or some that are no numbers",
                expected="one finite number per pair",
            )
        return values


def _known(found: Mapping[str, Any], one: str, what: str) -> Any:
    if one not in found:
        raise InputError(f"no {what} for id {one!r}", expected=f"every {what} that stands in a list")
    return found[one]


def _placed(ranking: Ranking, items: Array, scores: Array) -> Ranking:
    """The ranking with these lists on top, and every relevant item's new place."""
    k = items.shape[1]
    above, tied, before = (np.array(getattr(ranking, name)) for name in ("above", "tied", "tied_before"))
    rows = ranking.rows
    listed = items[rows] == ranking.relevant[:, None]
    inside = listed.any(axis=1)
    place = listed.argmax(axis=1)
    own = scores[rows, place]
    higher, equal = scores[rows] > own[:, None], scores[rows] == own[:, None]
    earlier = equal & (np.arange(k) < place[:, None])
    # Below k nothing moves, but who was tied with an item inside the first k now stands below it.
    passed = np.where((above != UNRANKED) & ~inside, np.clip(np.minimum(ranking.known[rows], k) - above, 0, None), 0)
    return replace(
        ranking,
        top_items=items,
        top_scores=np.where(items == UNRANKED, np.nan, scores).astype(np.float32),
        above=np.where(inside, higher.sum(axis=1), above + passed),
        tied=np.where(inside, equal.sum(axis=1) - 1, tied - passed),
        tied_before=np.where(inside, earlier.sum(axis=1), before - passed),
    )
