"""A second stage: models that look at an image and a text together re-order the top of every list."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from crosslens.core.errors import InputError, UsageError
from crosslens.core.progress import Progress, Silent, stage
from crosslens.core.ranking import UNRANKED, Ranking
from crosslens.core.registry import Registry
from crosslens.core.relevance import IMAGE_TO_TEXT, TEXT_TO_IMAGE
from crosslens.encode.batches import BatchSize, batches, within_memory
from crosslens.encode.encoder import Array, Settings, Tell, name_of, to_stderr
from crosslens.encode.hub import find_model
from crosslens.encode.pictures import as_pictures
from crosslens.encode.torch_model import Compute
from crosslens.encode.transformers_dual import check_type, loading, longest_text, transformers_or_raise


class PairScorer(Protocol):
    """Scores pairs of an image and a text; higher fits better."""

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
    kind, _, source = model.partition(":")
    return PAIR_SCORERS[kind].value(source, Settings(device, precision, offline, tell))


def rerank(
    ranking: Ranking,
    scorer: PairScorer,
    k: int,
    *,
    images: Mapping[str, Any],
    texts: Mapping[str, str],
    batch_size: int | None = None,
    progress: Progress | None = None,
) -> Ranking:
    """The ranking with the first ``k`` places of every list put into the order of the scorer.

    ``images`` (pictures or paths) and ``texts`` are found by id. What stood below place k stays below, in its order;
    the lists that are kept end at k, so that their scores are all of one kind. Equal scores are ties, as everywhere.
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
    scores[rows, places] = _score(pairs, scorer, images, texts, batch_size, progress or Silent())
    # Equal scores: the lower gallery index first, which is the tie rule of every ranking.
    order = np.lexsort((np.where(items == UNRANKED, np.iinfo(np.int64).max, items), -scores))
    return _placed(ranking, np.take_along_axis(items, order, 1), np.take_along_axis(scores, order, 1))


def _score(
    pairs: Sequence[tuple[str, str]],
    scorer: PairScorer,
    images: Mapping[str, Any],
    texts: Mapping[str, str],
    batch_size: int | None,
    progress: Progress,
) -> Array:
    def score(part: Sequence[int]) -> Array:
        found = scorer.score_pairs(
            [_known(images, pairs[one][0], "image") for one in part],
            [_known(texts, pairs[one][1], "text") for one in part],
        )
        values = np.asarray(found, np.float32).reshape(-1)
        if len(values) != len(part) or not np.isfinite(values).all():
            raise InputError(
                f"{scorer.name} gave {len(values)} scores for {len(part)} pairs, or some that are no numbers",
                expected="one finite number per pair",
            )
        return values

    # Pairs of one image together: a scorer can then look at it once.
    order = sorted(range(len(pairs)), key=lambda one: pairs[one][0])
    scores = np.zeros(len(pairs), np.float32)
    size = BatchSize(batch_size, largest=256) if batch_size is None else BatchSize(batch_size)
    with stage(progress, "scoring pairs", len(pairs)):
        for batch in batches(order, size):
            scores[batch] = np.concatenate(within_memory(score, batch, size))
            progress.advance(len(batch))
    return scores


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


@PAIR_SCORERS.register("blip")
def load_blip(source: str, settings: Settings) -> PairScorer:
    """BLIP's matching head (ITM): the log-odds that the text describes the image."""
    return BlipMatcher(source, settings)


class BlipMatcher:
    """BLIP as a fusion model: the text is read while looking at the image."""

    def __init__(self, source: str, settings: Settings) -> None:
        self.name = name_of("blip", source)
        self._compute = Compute(settings, "a pair scorer")
        library = transformers_or_raise("a pair scorer")
        place = find_model(source, settings)
        self.revision = place.revision
        check_type(place.folder, ("blip",), "blip")
        with loading(place.folder):
            model = library.BlipForImageTextRetrieval.from_pretrained(place.folder, local_files_only=True)
            self.model = self._compute.moved(model)
            self._prepare = library.AutoImageProcessor.from_pretrained(
                place.folder, local_files_only=True, backend="pil"
            )
            self._tokenizer = library.AutoTokenizer.from_pretrained(place.folder, local_files_only=True)
        self._longest = longest_text(self._tokenizer, self.model.config)

    def score_pairs(self, images: Sequence[Any], texts: Sequence[str]) -> Array:
        """Logit of "matches" minus logit of "does not"; an image that occurs again is looked at once."""
        keys = [str(one) if isinstance(one, str | Path) else id(one) for one in images]
        distinct = list(dict(zip(keys, images, strict=True)).items())
        row_of = {key: row for row, (key, _) in enumerate(distinct)}
        pixels = self._prepare(images=as_pictures([image for _, image in distinct]), return_tensors="pt")
        words = self._tokenizer(
            list(texts), padding=True, truncation=True, max_length=self._longest, return_tensors="pt"
        )
        taken = self._compute.inputs({name: words[name] for name in ("input_ids", "attention_mask")})
        with self._compute.torch.inference_mode():
            seen = self.model.vision_model(**self._compute.inputs(dict(pixels))).last_hidden_state
            seen = seen[[row_of[key] for key in keys]]
            mask = seen.new_ones(seen.shape[:2]).long()
            read = self.model.text_encoder(**taken, encoder_hidden_states=seen, encoder_attention_mask=mask)
            logits = self.model.itm_head(read.last_hidden_state[:, 0])
            return self._compute.numpy(logits[:, 1] - logits[:, 0])
