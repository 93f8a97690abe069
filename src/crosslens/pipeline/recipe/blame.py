"""Errors about values name the file that the values were read from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from crosslens.core.embeddings import Embeddings
from crosslens.core.errors import InputError
from crosslens.pipeline.recipe.inputs import Loaded
from crosslens.pipeline.recipe.values import Inputs

_BLOCK = 65_536


@contextmanager
def naming_files(inputs: Inputs, loaded: Loaded) -> Iterator[None]:
    """Name a file, and the row in it, in an error that names none: evaluating sees arrays, a person has files."""
    try:
        yield
    except InputError as error:
        if error.file is None:
            error.file, error.row = _culprit(inputs, loaded, error)
        raise


def _culprit(inputs: Inputs, loaded: Loaded, error: InputError) -> tuple[str | None, int | str | None]:
    if inputs.scores is not None:
        return inputs.scores, error.row
    sides = ((inputs.image_embeddings, loaded.images), (inputs.caption_embeddings, loaded.captions))
    if "zero" in error.problem:
        for path, vectors in sides:
            row = None if vectors is None else _first_zero(vectors)
            if path is not None and row is not None:
                return path, row  # where it stands in the file, which may have another order than the dataset
    files = [path for path in (*(path for path, _ in sides), *inputs.runs) if path is not None]
    return (" and ".join(files) or None), (error.row if len(files) == 1 else None)


def _first_zero(embeddings: Embeddings) -> int | None:
    """The first item with a vector of nothing but zeros."""
    for start in range(0, len(embeddings.vectors), _BLOCK):
        block = embeddings.vectors[start : start + _BLOCK]
        rows = np.flatnonzero((block == 0).all(axis=-1).reshape(len(block), -1).any(axis=1))
        if len(rows):
            return start + int(rows[0])
    return None
