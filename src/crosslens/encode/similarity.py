"""``embed`` and ``embed-max``: any text encoder as φ. Registered from here, for encoders stand above similarities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from crosslens.core.errors import UsageError
from crosslens.core.progress import Progress
from crosslens.encode.cache import Cache
from crosslens.encode.encoder import TEXTS, Array, Encoder, demand, load_encoder
from crosslens.encode.semantic import load_semantic as load_semantic  # registers it: this module is the entry point
from crosslens.encode.stream import encode_texts
from crosslens.similarity.embedding import EmbeddingSimilarity
from crosslens.similarity.similarity import SIMILARITIES, Similarity


@SIMILARITIES.register("embed", example="embed:sentence:all-MiniLM-L6-v2", extra="sentence")
def load_mean(source: str = "", *, device: str | None = None, offline: bool = False, cache: bool = True) -> Similarity:
    """The mean cosine between a caption and an image's captions under a text encoder, −1 to 1.

    source: the encoder, as `KIND:SOURCE`: `sentence:all-MiniLM-L6-v2`, `clip:openai/clip-vit-base-patch32`
    device: where it computes; by default a GPU if there is one
    offline: never use the network
    cache: keep vectors between runs
    """
    return _loaded("embed", source, "mean", device, offline, cache)


@SIMILARITIES.register("embed-max", example="embed-max:sentence:all-MiniLM-L6-v2", extra="sentence")
def load_max(source: str = "", *, device: str | None = None, offline: bool = False, cache: bool = True) -> Similarity:
    """The largest cosine between a caption and any of an image's captions under a text encoder, −1 to 1.

    A caption among the image's own captions finds itself: 1.

    source: the encoder, as `KIND:SOURCE`: `sentence:all-MiniLM-L6-v2`, `clip:openai/clip-vit-base-patch32`
    device: where it computes; by default a GPU if there is one
    offline: never use the network
    cache: keep vectors between runs
    """
    return _loaded("embed-max", source, "max", device, offline, cache)


def embedding_similarity(
    encoder: str | Encoder | Any, over: Literal["mean", "max"] = "mean", *, cache: Cache | None = None
) -> EmbeddingSimilarity:
    """φ under an encoder: its name, or an object with ``encode_texts``."""
    model = load_encoder(encoder)
    demand(model, TEXTS)

    def vectors(texts: Sequence[str], progress: Progress | None) -> Array:
        return encode_texts(model, texts, cache=cache, progress=progress).rows

    kind = "embed" if over == "mean" else "embed-max"
    return EmbeddingSimilarity(f"{kind}:{model.name}", model.revision, vectors, over)


def _loaded(
    kind: str, source: str, over: Literal["mean", "max"], device: str | None, offline: bool, cache: bool
) -> EmbeddingSimilarity:
    if not source:
        raise UsageError(f"{kind} without an encoder", fix=f"say which: for example {kind}:sentence:all-MiniLM-L6-v2")
    encoder = load_encoder(source, device=device, offline=offline)
    return embedding_similarity(encoder, over, cache=Cache() if cache else None)
