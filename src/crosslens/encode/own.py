"""Encoders of the person's own: any Python object that encodes, and vectors that are ready."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core.embeddings import Embeddings
from crosslens.core.errors import InputError, UsageError
from crosslens.encode.encoder import ENCODERS, IMAGES, TEXTS, Array, Encoder, Settings
from crosslens.encode.pairs import PAIR_SCORERS, PairScorer
from crosslens.encode.pictures import as_pictures

_METHODS = {IMAGES: "encode_images", TEXTS: "encode_texts"}


@ENCODERS.register("callable", example="my_model.py:encoder", extra=None)
def load_callable(source: str, settings: Settings) -> Encoder:
    """Your own Python object: ``module:attribute`` or ``file.py:attribute``, with encode_images, encode_texts or both.

    An attribute that is a class or a function is called without arguments first. Give the object a ``revision`` (any
    text that changes with the weights) to have its vectors cached.
    """
    return OwnEncoder(*_named(source, _METHODS.values()))


@PAIR_SCORERS.register("callable", example="my_model.py:scorer", extra=None)
def load_own_scorer(source: str, settings: Settings) -> PairScorer:
    """Your own Python object with ``score_pairs(images, texts)``: ``module:attribute`` or ``file.py:attribute``.

    An attribute that is a class or a function is called without arguments first. Images come as pictures. Give the
    object a ``revision`` (any text that changes with the weights) to have its scores cached.
    """
    return OwnScorer(*_named(source, ("score_pairs",)))


def _named(source: str, methods: Collection[str]) -> tuple[Any, str]:
    """The object that ``module:attribute`` names, and what it is called."""
    module, mark, attribute = source.rpartition(":")
    if not mark or not module or not attribute:
        raise UsageError(
            f"{source!r} names no object", fix="write callable:module:attribute or callable:file.py:attribute"
        )
    found = getattr(_module(module), attribute, None)
    if found is None:
        raise UsageError(f"{module} has no {attribute!r}", fix="check the name")
    if isinstance(found, type) or (callable(found) and not any(hasattr(found, method) for method in methods)):
        found = found()
    return found, f"callable:{Path(module).name}:{attribute}"


class OwnEncoder:
    """Any object with ``encode_images``, ``encode_texts`` or both, seen as an encoder."""

    def __init__(self, model: Any, name: str | None = None) -> None:
        self.abilities = frozenset(kind for kind, method in _METHODS.items() if callable(getattr(model, method, None)))
        if not self.abilities:
            raise UsageError(
                f"{type(model).__name__} is no encoder",
                fix="give it encode_images(pictures) or encode_texts(texts), each returning n×d numbers",
            )
        self._model = model
        self.name = name or str(getattr(model, "name", "") or type(model).__name__)
        self.revision = str(getattr(model, "revision", "") or "")
        self.preprocessing = str(getattr(model, "preprocessing", "") or "")
        self.dimension: int | None = getattr(model, "dimension", None)
        self.logit_scale: float | None = getattr(model, "logit_scale", None)

    def encode_images(self, images: Sequence[Any]) -> Array:
        """What the object makes of the pictures."""
        return _array(self._model.encode_images(list(images)))

    def encode_texts(self, texts: Sequence[str]) -> Array:
        """What the object makes of the texts."""
        return _array(self._model.encode_texts(list(texts)))


class OwnScorer:
    """Any object with ``score_pairs``, seen as a pair scorer."""

    def __init__(self, model: Any, name: str) -> None:
        if not callable(getattr(model, "score_pairs", None)):
            raise UsageError(
                f"{type(model).__name__} is no pair scorer",
                fix="give it score_pairs(images, texts), returning one number per pair",
            )
        self._model = model
        self.name = name
        self.revision = str(getattr(model, "revision", "") or "")

    def score_pairs(self, images: Sequence[Any], texts: Sequence[str]) -> Array:
        """What the object makes of the pairs."""
        return _array(self._model.score_pairs(as_pictures(images), list(texts)))


@ENCODERS.register("file", example="embeddings/", extra=None)
def load_file(source: str, settings: Settings) -> Encoder:
    """Vectors that are ready: a folder that ``crosslens encode`` wrote, with ``images`` and ``captions`` in it."""
    return StoredEncoder(source)


class StoredEncoder:
    """Vectors by id. Nothing can be encoded; :func:`crosslens.encode.encode_dataset` looks its items up."""

    preprocessing = ""
    logit_scale: float | None = None

    def __init__(self, folder: str | Path) -> None:
        folder = Path(folder).expanduser()
        parts = {IMAGES: folder / "images", TEXTS: folder / "captions"}
        self.stored = {kind: Embeddings.load(part, mmap=True) for kind, part in parts.items() if part.is_dir()}
        if not self.stored:
            raise InputError(
                "no embeddings here", file=folder, expected="folders images and captions", fix="crosslens encode -o …"
            )
        self.abilities = frozenset(self.stored)
        one = next(iter(self.stored.values()))
        self.dimension: int | None = one.dimension
        self.name = one.model or f"file:{folder}"
        self.revision = "+".join(one.fingerprint for one in self.stored.values())

    def encode_images(self, images: Sequence[Any]) -> Array:
        """Not possible: vectors are found by id."""
        raise UsageError(f"{self.name} holds vectors, not a model", fix="name the model that made them")

    def encode_texts(self, texts: Sequence[str]) -> Array:
        """Not possible: vectors are found by id."""
        raise UsageError(f"{self.name} holds vectors, not a model", fix="name the model that made them")


def _array(values: Any) -> Array:
    if hasattr(values, "detach"):  # a torch tensor, wherever it lies
        values = values.detach().float().cpu()
    return np.asarray(values)


def _module(name: str) -> Any:
    path = Path(name).expanduser()
    if path.suffix != ".py":
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise UsageError(
                f"cannot import {name!r}: {error}", fix="check the name, or write the path of a .py file"
            ) from (error)
    if not path.is_file():
        raise InputError("no such file", file=path, expected="a Python file", fix="check the path")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    return module
