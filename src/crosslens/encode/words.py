"""Vectors of words from those of a tokenizer's pieces."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from crosslens.encode.encoder import Array
from crosslens.rank import unit_rows


def word_vectors(
    pieces: Iterable[int | None], offsets: Iterable[tuple[int, int]], text: str, vectors: Array
) -> tuple[list[str], Array]:
    """The words of a text, and for each the sum of the directions of its pieces.

    ``pieces`` says of each piece which word it belongs to, or None for marks that are not in the text.
    """
    spans: dict[int, tuple[int, int]] = {}
    kept: list[int] = []
    owner: list[int] = []
    for at, (word, (start, end)) in enumerate(zip(pieces, offsets, strict=True)):
        if word is not None:
            spans[word] = (spans[word][0] if word in spans else start, end)
            kept.append(at)
            owner.append(len(spans) - 1)
    sums = np.zeros((len(spans), vectors.shape[1]), np.float32)
    if kept:
        np.add.at(sums, owner, unit_rows(np.asarray(vectors, np.float32)[kept]))
    return [text[start:end] for start, end in spans.values()], sums
