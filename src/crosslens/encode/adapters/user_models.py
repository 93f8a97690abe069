"""Models of the user: Python objects that encode or score, and folders of vectors that exist already."""

from __future__ import annotations

import importlib.util
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from crosslens.core import UsageError, call_function, load_module, require_trust
from crosslens.encode.batches import as_pictures
from crosslens.encode.encoder import ENCODERS, METHODS, Array, CallableEncoder, Encoder, as_array
from crosslens.encode.options import EncodeOptions
from crosslens.encode.pairs import PAIR_SCORERS, PairScorer
from crosslens.encode.stream import StoredEmbeddings

_PATH = r"(?P<path>.*):[^:]*"


@ENCODERS.register("callable", example="my_model.py:encoder", extra=None, path=_PATH)
def load_callable(source: str, options: EncodeOptions) -> Encoder:
    """Your own Python object: ``module:attribute`` or ``file.py:attribute``, with encode_images, encode_texts or both.

    An attribute that is a class or a function is called without arguments first. Give the object a ``revision`` (any
    text that changes with the weights) to have its vectors cached.
    """
    return CallableEncoder(*_named_object(source, METHODS.values()))


@PAIR_SCORERS.register("callable", example="my_model.py:scorer", extra=None, path=_PATH)
def load_callable_scorer(source: str, options: EncodeOptions) -> PairScorer:
    """Your own Python object with ``score_pairs(images, texts)``: ``module:attribute`` or ``file.py:attribute``.

    An attribute that is a class or a function is called without arguments first. Images come as pictures. Give the
    object a ``revision`` (any text that changes with the weights) to have its scores cached.
    """
    return CallableScorer(*_named_object(source, ("score_pairs",)))


def _named_object(source: str, methods: Collection[str]) -> tuple[Any, str]:
    """The object that ``module:attribute`` names, and what it is called."""
    module, colon, attribute = source.rpartition(":")
    # Where the code is; nothing is executed to find out.
    location = str(Path(module).expanduser().absolute()) if module.endswith(".py") else module
    with suppress(ImportError, ValueError):
        spec = None if module.endswith(".py") else importlib.util.find_spec(module.partition(".")[0])
        location = f"{module} in {spec.origin}" if spec and spec.origin else location
    require_trust(f"callable:{source}", location)
    if not colon or not module or not attribute:
        raise UsageError(
            f"{source!r} names no object", fix="write callable:module:attribute or callable:file.py:attribute"
        )
    model = getattr(load_module(module), attribute, None)
    if model is None:
        raise UsageError(f"{module} has no {attribute!r}", fix="check the name")
    if isinstance(model, type) or (callable(model) and not any(hasattr(model, method) for method in methods)):
        model = call_function(model)
    return model, f"callable:{Path(module).name}:{attribute}"


class CallableScorer:
    """Any object with ``score_pairs``, seen as a pair scorer."""

    def __init__(self, model: Any, name: str) -> None:
        if not callable(getattr(model, "score_pairs", None)):
            raise UsageError(
                f"{type(model).__name__} is not a pair scorer: it has no score_pairs",
                fix="give it score_pairs(images, texts), returning one number per pair",
            )
        self._model = model
        self.name = name
        self.revision = str(getattr(model, "revision", "") or "")

    def score_pairs(self, images: Sequence[Any], texts: Sequence[str]) -> Array:
        return as_array(call_function(self._model.score_pairs, as_pictures(images), list(texts)))


@ENCODERS.register("file", example="embeddings/", extra=None)
def load_file(source: str, options: EncodeOptions) -> Encoder:
    """Vectors that exist already: a folder that ``crosslens encode`` wrote, with ``images`` and ``captions`` in it."""
    return StoredEmbeddings(source)
