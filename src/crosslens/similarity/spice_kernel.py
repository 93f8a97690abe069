"""The compiled loop behind SPICE: one image against all captions, through an index from tuples to captions."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from crosslens.similarity.spice_index import Candidates, References

Array = np.ndarray[Any, Any]

_compiled = numba.njit(nogil=True, cache=True, error_model="numpy")


@_compiled
def score_rows(candidates: Candidates, references: References, images: Array, out: Array) -> None:
    """``out[r, c]`` = F1 of caption ``c`` against ``images[r]``, each of which occurs once."""
    words = candidates.attribute_of.size - 1
    object_seen = np.full(words, -1, np.int64)
    attribute_seen = np.full(candidates.attribute_words.size, -1, np.int64)
    relation_seen = np.full(candidates.relation_words.size, -1, np.int64)
    middle, last = np.full(words, -1, np.int64), np.full(words, -1, np.int64)
    hits = np.empty(out.shape[1], np.int64)
    for row in range(out.shape[0]):
        image = images[row]
        hits[:] = 0
        _objects(candidates, references, image, object_seen, hits)
        _attributes(candidates, references, image, attribute_seen, middle, hits)
        _relations(candidates, references, image, relation_seen, middle, last, hits)
        size = references.sizes[image]
        for c in range(hits.size):
            out[row, c] = f1(hits[c], candidates.sizes[c], size)


@_compiled
def f1(hits: int, said: int, true: int) -> float:
    """The harmonic mean of ``hits / said`` and ``hits / true``, the second at most 1; 0 where there are no hits."""
    if hits == 0:
        return 0.0
    precision = hits / said
    recall = min(hits, true) / true
    return 2.0 * precision * recall / (precision + recall)


@_compiled
def _count(starts: Array, captions: Array, which: int, hits: Array) -> None:
    for place in range(starts[which], starts[which + 1]):
        hits[captions[place]] += 1


@_compiled
def _mark(starts: Array, words: Array, which: int, stamp: int, marks: Array) -> None:
    for place in range(starts[which], starts[which + 1]):
        marks[words[place]] = stamp


@_compiled
def _objects(candidates: Candidates, references: References, image: int, seen: Array, hits: Array) -> None:
    for place in range(references.node_starts[image], references.node_starts[image + 1]):
        kind = references.nodes[place]
        for at in range(references.kind_starts[kind], references.kind_starts[kind + 1]):
            word = references.kind_words[at]
            if seen[word] != image:
                seen[word] = image
                _count(candidates.object_starts, candidates.object_captions, word, hits)


@_compiled
def _attributes(
    candidates: Candidates, references: References, image: int, seen: Array, middle: Array, hits: Array
) -> None:
    # A mark is the place of the reference tuple: no other tuple of any image has it. Relations use other numbers.
    for place in range(references.attribute_starts[image], references.attribute_starts[image + 1]):
        _mark(references.similar_starts, references.similar_words, references.attribute_words[place], 2 * place, middle)
        kind = references.attribute_nodes[place]
        for at in range(references.kind_starts[kind], references.kind_starts[kind + 1]):
            word = references.kind_words[at]
            for one in range(candidates.attribute_of[word], candidates.attribute_of[word + 1]):
                if seen[one] != image and middle[candidates.attribute_words[one]] == 2 * place:
                    seen[one] = image
                    _count(candidates.attribute_starts, candidates.attribute_captions, one, hits)


@_compiled
def _relations(
    candidates: Candidates, references: References, image: int, seen: Array, middle: Array, last: Array, hits: Array
) -> None:
    for place in range(references.relation_starts[image], references.relation_starts[image + 1]):
        stamp = 2 * place + 1
        _mark(references.similar_starts, references.similar_words, references.relation_words[place], stamp, middle)
        _mark(references.kind_starts, references.kind_words, references.relation_others[place], stamp, last)
        kind = references.relation_nodes[place]
        for at in range(references.kind_starts[kind], references.kind_starts[kind + 1]):
            word = references.kind_words[at]
            for one in range(candidates.relation_of[word], candidates.relation_of[word + 1]):
                if seen[one] == image or middle[candidates.relation_words[one]] != stamp:
                    continue
                if last[candidates.relation_others[one]] == stamp:
                    seen[one] = image
                    _count(candidates.relation_starts, candidates.relation_captions, one, hits)
