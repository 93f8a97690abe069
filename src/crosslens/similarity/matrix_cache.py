"""φ kept between runs, found by content: the same measure of the same captions is not computed a second time.

A matrix is a ``.npy`` file named by a hash of the measure (its name and revision, the version of crosslens), the
reference captions and the captions. A ``.json`` beside it says what it is and holds a hash of the numbers, so that a
damaged file is noticed and removed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np

from crosslens.core import (
    Dataset,
    InputError,
    atomic_file,
    cache_folder,
    fingerprint,
    frozen,
    read_json_file,
    write_text,
)
from crosslens.similarity.protocol import Array, IdSimilarity, Similarity, references_of

FOLDER = "similarities"
WORTH_KEEPING = 1.0
"""Seconds that a matrix must have taken: what is computed faster than it is read needs no file."""

CacheChoice = str | Path | bool | None
"""A folder; None and True are the default one, False is none."""


def through_cache(dataset: Dataset, similarity: Similarity, cache: CacheChoice, compute: Callable[[], Array]) -> Array:
    """The matrix of a dataset, from the cache or computed; kept if it has a revision and took long."""
    # A matrix that is given has its own file; a function without a revision may have changed unnoticed.
    if cache is False or not similarity.revision or isinstance(similarity, IdSimilarity):
        return compute()
    folder = cache_folder(None if cache is True else cache) / FOLDER
    about = {"phi": similarity.name, "revision": similarity.revision, "crosslens": version("crosslens")}
    key = fingerprint("cached-phi", {**about, "references": references_of(dataset), "captions": tuple(dataset.texts)})
    stored = _read(folder / f"{key}.npy")
    if stored is not None:
        return stored
    start = time.monotonic()
    matrix = compute()
    if time.monotonic() - start >= WORTH_KEEPING:
        _write(folder / f"{key}.npy", matrix, about)
    return matrix


def _read(file: Path) -> Array | None:
    description = file.with_suffix(".json")
    try:
        expected = read_json_file(description)["content"]
        matrix: Array = np.load(file, allow_pickle=False)
        if _hash(matrix) == expected:
            return frozen(matrix)
    except FileNotFoundError:
        return None
    except (OSError, InputError, ValueError, KeyError, TypeError, EOFError):
        pass
    description.unlink(missing_ok=True)
    file.unlink(missing_ok=True)
    return None


def _write(file: Path, matrix: Array, about: dict[str, str]) -> None:
    try:
        with atomic_file(file) as partial, partial.open("wb") as raw:
            np.save(raw, matrix, allow_pickle=False)
        # Written last: without it the matrix does not count.
        facts = {**about, "shape": list(matrix.shape), "content": _hash(matrix)}
        write_text(file.with_suffix(".json"), json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
    except OSError:
        file.unlink(missing_ok=True)  # a full disk costs the time of computing it again, not the result


def _hash(matrix: Array) -> str:
    return fingerprint("similarity-matrix", {"values": matrix})
