"""What a recipe's model makes of its dataset: the vectors that are evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from crosslens.core.dataset import Dataset
from crosslens.core.embeddings import Embeddings
from crosslens.core.errors import UsageError
from crosslens.core.fingerprint import fingerprint
from crosslens.core.progress import Progress
from crosslens.encode import (
    Cache,
    Encoder,
    PairScorer,
    SecondStage,
    Summariser,
    encode_dataset,
    load_encoder,
    load_pair_scorer,
    load_summariser,
    text_only,
)
from crosslens.encode.encoder import IMAGES, TEXTS, Settings, Tell, demand, to_stderr
from crosslens.encode.text_only import MEAN
from crosslens.pipeline.recipe.values import Model, Rerank
from crosslens.pipeline.sources import TEXT_TO_TEXT

_NAMED = 5  # how many skipped images are named in a note


@dataclass(frozen=True)
class Encoding:
    """How vectors are made, which changes nothing about what they are; so no recipe holds it."""

    device: str | None = None
    batch_size: int | None = None
    cache: str | None = None
    use_cache: bool = True
    offline: bool = False
    tell: Tell = to_stderr


@dataclass(frozen=True)
class Made:
    """Vectors, the dataset they are of, the directions they can be ranked in, and what they came from."""

    dataset: Dataset
    images: Embeddings
    captions: Embeddings
    directions: tuple[str, ...] = ()
    fingerprints: Mapping[str, str] = field(default_factory=dict)


def make(model: Model, dataset: Dataset | None, how: Encoding, progress: Progress | None) -> Made:
    """Encode the dataset with the model."""
    assert model.name is not None
    if dataset is None:
        raise UsageError("a model and nothing to encode", fix="pass --dataset")
    encoder = load_encoder(model.name, device=how.device, precision=model.precision, offline=how.offline, tell=how.tell)
    cache = _cache(how)
    if model.image_text is not None:
        return _from_texts(model, dataset, encoder, cache, how, progress)
    for ability in (IMAGES, TEXTS):
        demand(encoder, ability)
    found = encode_dataset(
        dataset, encoder, image_folder=model.image_folder, cache=cache, batch_size=how.batch_size,
        precision=model.precision, skip_bad=model.skip_bad, progress=progress,
    )  # fmt: skip
    say_skipped(found.skipped, how.tell)
    if found.images is None or found.captions is None:
        raise UsageError("a dataset without captions", fix="evaluation needs both images and captions")
    prints = {"model": encoder.revision, "items": found.content}
    return Made(found.dataset, found.images, found.captions, (), {key: one for key, one in prints.items() if one})


def pair_scorer(rerank: Rerank, model: Model, how: Encoding) -> PairScorer | None:
    """The model that re-orders lists, if one is asked for."""
    if rerank.model is None:
        return None
    return load_pair_scorer(
        rerank.model, device=how.device, precision=model.precision, offline=how.offline, tell=how.tell
    )


def make_second_stage(
    scorer: PairScorer, rerank: Rerank, model: Model, dataset: Dataset, how: Encoding, progress: Progress | None
) -> SecondStage:
    """The scorer over the dataset."""
    return SecondStage.over(
        dataset, scorer, rerank.depth, image_folder=model.image_folder, cache=_cache(how), precision=model.precision,
        batch_size=how.batch_size, progress=progress,
    )  # fmt: skip


def _cache(how: Encoding) -> Cache | None:
    return Cache(how.cache, tell=how.tell) if how.use_cache else None


def say_skipped(skipped: Mapping[str, str], tell: Tell) -> None:
    """Tell which images could not be read."""
    if skipped:
        names = ", ".join(f"{one} ({why})" for one, why in list(skipped.items())[:_NAMED])
        more = f" and {len(skipped) - _NAMED:,} more" if len(skipped) > _NAMED else ""
        tell(f"note: {len(skipped):,} unreadable images are left out, with their captions: {names}{more}")


def _from_texts(
    model: Model, dataset: Dataset, encoder: Encoder, cache: Cache | None, how: Encoding, progress: Progress | None
) -> Made:
    assert model.image_text is not None
    prints = {"model": encoder.revision} if encoder.revision else {}
    image_text: str | Summariser = MEAN
    if model.image_text != MEAN:
        image_text = load_summariser(model.image_text, Settings(how.device, offline=how.offline, tell=how.tell))
        prints["items"] = fingerprint("summaries", {"name": image_text.name, "revision": image_text.revision})
    found = text_only(
        dataset, encoder, query=model.query_caption, image_text=image_text, cache=cache,
        batch_size=how.batch_size, precision=model.precision, progress=progress,
    )  # fmt: skip
    return Made(found.dataset, found.images, found.captions, (TEXT_TO_TEXT,), prints)
