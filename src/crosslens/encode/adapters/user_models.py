"""Models of the user: Python objects that encode or score, and folders of vectors that exist already."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from crosslens.core import UsageError, call_function, load_module
from crosslens.encode.batches import as_pictures
from crosslens.encode.encoder import ENCODERS, METHODS, CallableEncoder, Encoder, as_array
from crosslens.encode.options import EncodeOptions
from crosslens.encode.pairs import PAIR_SCORERS, PairScorer
from crosslens.encode.stream import StoredEmbeddings
from crosslens.storage import Array, require_trust

_PATH = r"(?P<path>.*):[^:]*"
_NAMES = {r".*\.py:\w+": r"callable:\g<0>", r".*\.py": r"callable:\g<0>:NAME, with the name of your object"}


@ENCODERS.register("callable", example="my_model.py:encoder", extra=None, path=_PATH, names=_NAMES)
def load_callable(source: str, options: EncodeOptions) -> Encoder:
    """Your own Python object: ``module:attribute`` or ``file.py:attribute``, with encode_images, encode_texts or both.

    An attribute that is a class or a function is called without arguments first. Give the object a ``revision`` (any
    text that changes with the weights) to have its vectors cached.
    """
    return CallableEncoder(*_named_object(source, METHODS.values()))


@PAIR_SCORERS.register("callable", example="my_model.py:scorer", extra=None, path=_PATH, names=_NAMES)
def load_callable_scorer(source: str, options: EncodeOptions) -> PairScorer:
    """Your own Python object with ``score_pairs(images, texts)``: ``module:attribute`` or ``file.py:attribute``.

    An attribute that is a class or a function is called without arguments first. Images come as pictures. Give the
    object a ``revision`` (any text that changes with the weights) to have its scores cached.
    """
    return CallableScorer(*_named_object(source, ("score_pairs",)))


def _named_object(source: str, methods: Collection[str]) -> tuple[Any, str]:
    """The object that ``module:attribute`` names, and what it is called."""
    require_trusted_model(f"callable:{source}")
    module, colon, attribute = source.rpartition(":")
    if not colon or not module or not attribute:
        raise UsageError(
            f"{source!r} names no object", fix="write callable:module:attribute or callable:file.py:attribute"
        )
    model = getattr(load_module(module), attribute, None)
    if model is None:
        raise UsageError(f"{module} has no {attribute!r}", fix="check the name")
    name = f"callable:{Path(module).name}:{attribute}"
    if isinstance(model, type) or (callable(model) and not any(hasattr(model, method) for method in methods)):
        with suppress(ValueError):  # some of those written in C do not say what they take
            try:
                inspect.signature(model).bind()
            except TypeError as error:
                kind = "class" if isinstance(model, type) else "function"
                raise _no_factory(f"{name} is a {kind} with arguments ({error})", methods) from error
        model = call_function(model)
        if not any(callable(getattr(model, method, None)) for method in methods):
            raise _no_factory(f"{name} returns {type(model).__name__}, which has no {' or '.join(methods)}", methods)
    return model, name


def _no_factory(problem: str, methods: Collection[str]) -> UsageError:
    return UsageError(
        f"{problem}; a factory is expected",
        fix=f"name a function or class without arguments that gives an object with {' or '.join(methods)}, or such an "
        "object itself",
    )


def require_trusted_model(model: str) -> None:
    """Raise where a model is code that may not run; nothing is executed to find out where that code is."""
    kind, _, source = model.partition(":")
    if kind.strip().lower() != "callable":  # case is no error in names
        return
    module = source.rpartition(":")[0]
    location = str(Path(module).expanduser().absolute()) if module.endswith(".py") else module
    with suppress(ImportError, ValueError):
        spec = None if module.endswith(".py") else importlib.util.find_spec(module.partition(".")[0])
        location = f"{module} in {spec.origin}" if spec and spec.origin else location
    require_trust(model, location)


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
