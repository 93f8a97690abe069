"""Loading a φ: by its name, from a matrix, or from a Python function."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import Dataset, InputError, Progress, UsageError, call_function, wrong_code
from crosslens.similarity.matrix_cache import CacheChoice
from crosslens.similarity.precomputed import MATRIX_SUFFIXES, PrecomputedSimilarity
from crosslens.similarity.protocol import (
    SIMILARITIES,
    Array,
    CaptionFunction,
    IdSimilarity,
    Phi,
    PreparedSimilarity,
    References,
    Similarity,
    Texts,
    references_of,
)


def load_similarity(phi: Phi, *, cache: CacheChoice = None, **options: Any) -> Similarity:
    """Load the φ of a name such as ``cider``, ``spice-object`` or ``embed:sentence:all-MiniLM-L6-v2``.

    A path or a name that ends in .npy, .npz, .safetensors, .pt or .csv is a matrix on disk; an array is a matrix in
    memory (images × captions); a function is called with an image's reference captions and one caption. A similarity
    is returned as it is. ``options`` go to the named φ; see the reference page for what each takes. ``cache`` goes to
    those that keep vectors between runs: a folder, or False for none.
    """
    if isinstance(phi, str):
        kind, _, source = phi.partition(":")
        if kind not in SIMILARITIES and Path(phi).suffix.lower() in MATRIX_SUFFIXES:
            phi = Path(phi)
        else:
            factory = SIMILARITIES[kind].value
            if cache is not None and "cache" in inspect.signature(factory).parameters:
                options["cache"] = cache
            return _call_factory(phi, factory, source, options)
    if options:
        fix = "set them on the object itself, or pass the name of a φ"
        raise UsageError(f"{', '.join(sorted(options))}: only a φ loaded by name takes options", fix=fix)
    if isinstance(phi, Path | np.ndarray):
        return PrecomputedSimilarity(phi)
    if isinstance(phi, Similarity):
        return phi
    if callable(phi):
        return CallableSimilarity(phi)
    raise UsageError(
        f"{phi!r:.60} is no φ", fix="pass a name, a .npy or .csv file, an array, or a function φ(references, caption)"
    )


def prepare_dataset(
    dataset: Dataset, phi: Phi = "cider", *, progress: Progress | None = None, threads: int | None = None
) -> PreparedSimilarity:
    """φ for the images × captions of a dataset; rows and columns are in the order of its ids.

    The references of an image are its captions; of text-only retrieval, the texts of the corpus, as captions only ask.
    A caption that is itself among them is compared with all of them, itself included. An image without captions has no
    references: its row is 0.
    """
    similarity = load_similarity(phi)
    if isinstance(similarity, IdSimilarity):
        return similarity.prepare_ids(dataset)
    return similarity.prepare(references_of(dataset), dataset.texts, progress=progress, threads=threads)


def _call_factory(name: str, factory: Callable[..., Similarity], source: str, options: dict[str, Any]) -> Similarity:
    known = list(inspect.signature(factory).parameters)[1:]
    for option in options:
        if option not in known:
            accepted = f"it takes {', '.join(known)}" if known else "it takes none"
            raise UsageError(f"{name} has no option {option!r}", fix=accepted, option=option)
    similarity = call_function(factory, source, **options)
    if not isinstance(similarity, Similarity) and callable(similarity):
        similarity = CallableSimilarity(similarity)  # a factory may return a plain function φ(references, caption)
    if not isinstance(similarity, Similarity):
        problem = f"the similarity {name!r} gave {similarity!r:.60}"
        raise wrong_code(factory, problem, "return a function φ(references, caption), or a Similarity")
    return similarity


class CallableSimilarity:
    """A Python function as φ. It is called once per cell, so it suits some pairs or a small collection.

    There is no way to know when a function changes: ``revision`` is empty, and its numbers are never reused.
    """

    revision = ""

    def __init__(self, function: CaptionFunction) -> None:
        self.function = function
        self.name = "own:" + (getattr(function, "__qualname__", None) or type(function).__qualname__)

    def prepare(
        self, references: References, captions: Texts, *, progress: Progress | None = None, threads: int | None = None
    ) -> PreparedCallable:
        """Keep the texts: the function is called when numbers are read."""
        return PreparedCallable(self.function, self.name, references, captions)


class PreparedCallable:
    """A function with the texts that it is called with."""

    def __init__(self, function: CaptionFunction, name: str, references: References, captions: Texts) -> None:
        self._function, self._name, self._references, self._captions = function, name, references, captions
        self.shape = (len(references), len(captions))

    def block(self, rows: slice) -> Array:
        images = range(self.shape[0])[rows]
        values = [self._value(image, caption) for image in images for caption in range(self.shape[1])]
        return np.array(values, np.float32).reshape(len(images), self.shape[1])

    def pairs(self, images: Array, captions: Array) -> Array:
        cells = zip(np.asarray(images).tolist(), np.asarray(captions).tolist(), strict=True)
        return np.array([self._value(image, caption) for image, caption in cells], np.float32)

    def _value(self, image: int, caption: int) -> float:
        references = self._references[image]
        value = call_function(self._function, references, self._captions[caption]) if len(references) else 0.0
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            problem = f"{self._name} returned {value!r:.40} for the caption {self._captions[caption]!r:.60}"
            fix = "return a finite number for every pair"
            raise InputError(problem, row=f"image {image}", expected="a finite number", fix=fix)
        return number
