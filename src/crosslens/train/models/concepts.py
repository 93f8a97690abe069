"""The concepts of a collection: its most frequent content words, and which of them bring along which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crosslens.language import STOP_WORDS
from crosslens.train.inputs.vocabulary import FIRST, CaptionVocabulary, words_of

Array = np.ndarray[Any, Any]

SCALE, SHIFT, THRESHOLD = 5.0, 0.02, 0.3
"""s, u and ε of CVSE: an edge where s^(P − u) − s^(−u) ≥ ε."""
_AT_ONCE = 10_000


def concept_graph(texts: Sequence[str], *, concepts: int = 300) -> dict[str, Any]:
    """What CVSE is built from: the numbers of the concepts in the vocabulary, and edges between them.

    There is an edge from concept i to j where P = (captions with both) ÷ (captions with i), rescaled, is large enough.
    Captions with fewer content words have fewer concepts. Vocabularies list frequent words first, so a word's number
    does not depend on how rare a word they leave out.
    """
    numbers = [
        (number, word)
        for number, word in enumerate(CaptionVocabulary.of(texts, 1).words, FIRST)
        if word not in STOP_WORDS and not word.isdigit()
    ][:concepts]
    together = _captions_with_both(texts, {word: at for at, (_, word) in enumerate(numbers)})
    given = together / np.diag(together)[:, None]
    edges = SCALE ** (given - SHIFT) - SCALE**-SHIFT >= THRESHOLD
    np.fill_diagonal(edges, False)  # a concept is its own neighbour without saying
    return {"concept_numbers": [number for number, _ in numbers], "concept_edges": np.argwhere(edges).tolist()}


def _captions_with_both(texts: Sequence[str], row_of: dict[str, int]) -> Array:
    """Concepts × concepts: in how many captions both occur; on the diagonal, in how many the one does."""
    total = np.zeros((len(row_of), len(row_of)))
    for start in range(0, len(texts), _AT_ONCE):
        part = texts[start : start + _AT_ONCE]
        occurs = np.zeros((len(part), len(row_of)), np.float32)
        for row, text in enumerate(part):
            occurs[row, [row_of[word] for word in words_of(text) if word in row_of]] = 1
        total += occurs.T @ occurs
    return total
