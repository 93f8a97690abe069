"""Items → vectors: one adapter per library, one cache, one way to encode a dataset."""

from __future__ import annotations

from crosslens.core.machine import cache_folder

# Importing an adapter's module registers its encoders; none of them imports a heavy package before it is used.
from crosslens.encode import blip_matching, onnx, open_clip, own, sentence, similarity, tiny, transformers_dual  # noqa: F401
from crosslens.encode.cache import Cache
from crosslens.encode.dataset import Encoded, encode_dataset
from crosslens.encode.encoder import ENCODERS, Encoder, load_encoder
from crosslens.encode.pairs import PAIR_SCORERS, PairCache, PairScorer, load_pair_scorer, rerank
from crosslens.encode.second_stage import SecondStage
from crosslens.encode.stream import encode_images, encode_texts
from crosslens.encode.summaries import SUMMARISERS, Summariser, load_summariser
from crosslens.encode.text_only import TextOnly, text_only

__all__ = [
    "ENCODERS",
    "PAIR_SCORERS",
    "SUMMARISERS",
    "Cache",
    "Encoded",
    "Encoder",
    "PairCache",
    "PairScorer",
    "SecondStage",
    "Summariser",
    "TextOnly",
    "cache_folder",
    "encode_dataset",
    "encode_images",
    "encode_texts",
    "load_encoder",
    "load_pair_scorer",
    "load_summariser",
    "rerank",
    "text_only",
]
