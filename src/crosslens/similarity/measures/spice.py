"""SPICE: how many of a caption's facts the references state, and how many of theirs it states.

Facts are the tuples of scene graphs. A tuple of the caption counts if some tuple of the image's merged reference graph
is similar to it: position by position the same word, or one that shares a WordNet synset.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np

from crosslens.core import InputError, Progress, SilentProgress, stage
from crosslens.language import COLOURS, SIZES, SceneGraph, find_pipeline, is_number, parse_texts, scene_graph
from crosslens.similarity.measures.spice_index import (
    CandidateTriples,
    CandidateTuples,
    ReferenceTriples,
    ReferenceTuples,
    TupleFilter,
    WordIndex,
    index_candidates,
    index_references,
    merge,
)
from crosslens.similarity.protocol import SIMILARITIES, Array, References, Texts
from crosslens.similarity.threads import in_parallel, thread_count

_RULES = 1
"""Changes whenever the graph of a parse, or the score of two graphs, may."""
_ROWS_AT_ONCE = 256
"""Rows in memory at once where single cells are computed."""

PARTS = {
    "": TupleFilter(objects=True, attributes=lambda word: True, relations=True),
    "object": TupleFilter(objects=True, attributes=lambda word: False, relations=False),
    "attribute": TupleFilter(objects=False, attributes=lambda word: True, relations=False),
    "relation": TupleFilter(objects=False, attributes=lambda word: False, relations=True),
    "colour": TupleFilter(objects=False, attributes=COLOURS.__contains__, relations=False),
    "cardinality": TupleFilter(objects=False, attributes=is_number, relations=False),
    "size": TupleFilter(objects=False, attributes=SIZES.__contains__, relations=False),
}
"""The score itself, and its sub-scores: the same over some of the tuples."""


@dataclass(frozen=True)
class Spice:
    """SPICE or one of its sub-scores; ``pipeline`` and ``cache`` are those of :func:`parse_texts`."""

    part: str = ""
    pipeline: str | None = None
    cache: str | Path | bool = True

    @property
    def name(self) -> str:
        return f"spice-{self.part}" if self.part else "spice"

    @property
    def revision(self) -> str:
        """The rules and the pipeline: another parser, other graphs."""
        return f"{_RULES}, {find_pipeline(self.pipeline)}"

    def prepare(
        self, references: References, captions: Texts, *, progress: Progress | None = None, threads: int | None = None
    ) -> PreparedSpice:
        """Parse every text once, build the graphs, merge those of each image."""
        texts = list(dict.fromkeys([*captions, *(text for some in references for text in some)]))
        parses = parse_texts(texts, pipeline=self.pipeline, cache=self.cache, threads=threads, progress=progress)
        graph_of = {}
        with stage(progress or SilentProgress(), "scene graphs", len(texts)) as watching:
            for text, parse in zip(texts, parses, strict=True):
                graph_of[text] = scene_graph(parse)
                watching.advance()
        graphs = [[graph_of[text] for text in some] for some in references]
        return prepare_graphs(graphs, [graph_of[text] for text in captions], part=self.part, threads=threads)


def prepare_graphs(
    references: Sequence[Sequence[SceneGraph]],
    captions: Sequence[SceneGraph],
    *,
    part: str = "",
    threads: int | None = None,
) -> PreparedSpice:
    """SPICE over existing graphs: the reference graphs of each image, and one graph per caption."""
    words = WordIndex([*captions, *(graph for some in references for graph in some)])
    counted = PARTS[part]
    merged = [merge(graphs, words) for graphs in references]
    return PreparedSpice(
        index_candidates(captions, words, counted), index_references(merged, words, counted), thread_count(threads)
    )


@dataclass(frozen=True, eq=False)
class PreparedSpice:
    """SPICE of a collection, its graphs indexed."""

    candidates: Any
    references: Any
    threads: int

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.references.sizes), len(self.candidates.sizes)

    def block(self, rows: slice) -> Array:
        first, last, _ = rows.indices(self.shape[0])
        return self._rows(np.arange(first, max(first, last)))

    def pairs(self, images: Array, captions: Array) -> Array:
        """Costs a row for every distinct image."""
        images, captions = np.asarray(images, np.int64), np.asarray(captions, np.int64)
        _check_range(images, self.shape[0], "image")
        _check_range(captions, self.shape[1], "caption")
        scores = np.empty(images.size, np.float32)
        distinct, group = np.unique(images, return_inverse=True)
        for start in range(0, distinct.size, _ROWS_AT_ONCE):
            rows = self._rows(distinct[start : start + _ROWS_AT_ONCE])
            here = (group >= start) & (group < start + len(rows))
            scores[here] = rows[group[here] - start, captions[here]]
        return scores

    def _rows(self, images: Array) -> Array:
        out = np.empty((images.size, self.shape[1]), np.float32)
        score = partial(score_rows, self.candidates, self.references)
        in_parallel(lambda start, stop: score(images[start:stop], out[start:stop]), images.size, self.threads)
        return out


def _check_range(positions: Array, count: int, what: str) -> None:
    if positions.size and (positions.min() < 0 or positions.max() >= count):
        row = int(np.argmax((positions < 0) | (positions >= count)))
        raise InputError(f"{what} {positions[row]}", row=row, expected=f"a position from 0 to {count - 1}")


@SIMILARITIES.register("spice", extra="language")
def load_spice(source: str = "", *, pipeline: str | None = None, cache: str | Path | bool = True) -> Spice:
    """SPICE: F1 of scene-graph tuples (objects, attributes, relations), synonyms by WordNet."""
    return Spice("", source or pipeline, cache)


def _register_part(part: str, summary: str) -> None:
    def load(source: str = "", *, pipeline: str | None = None, cache: str | Path | bool = True) -> Spice:
        return Spice(part, source or pipeline, cache)

    load.__doc__ = f"SPICE over {summary} alone."
    SIMILARITIES.register(f"spice-{part}", extra="language")(load)


_register_part("object", "objects")
_register_part("attribute", "attributes")
_register_part("relation", "relations")
_register_part("colour", "attributes that are colours")
_register_part("cardinality", "attributes that count")
_register_part("size", "attributes that are sizes")


_compiled = numba.njit(nogil=True, cache=True, error_model="numpy")


@_compiled
def score_rows(candidates: CandidateTuples, references: ReferenceTuples, images: Array, out: Array) -> None:
    """``out[r, c]`` = F1 of caption ``c`` against ``images[r]``, each of which occurs once."""
    words = candidates.object_starts.size - 1
    object_seen = np.full(words, -1, np.int64)
    attribute_seen = np.full(candidates.attributes.words.size, -1, np.int64)
    relation_seen = np.full(candidates.relations.words.size, -1, np.int64)
    attribute_marks, relation_marks = np.full((2, words), -1, np.int64), np.full((2, words), -1, np.int64)
    hits = np.empty(out.shape[1], np.int64)
    for row in range(out.shape[0]):
        image = images[row]
        hits[:] = 0
        _objects(candidates, references, image, object_seen, hits)
        _triples(candidates.attributes, references.attributes, references, image, attribute_seen, attribute_marks, hits)
        _triples(candidates.relations, references.relations, references, image, relation_seen, relation_marks, hits)
        size = references.sizes[image]
        for c in range(hits.size):
            out[row, c] = f1(hits[c], candidates.sizes[c], size)


@_compiled
def f1(hits: int, candidate_size: int, reference_size: int) -> float:
    """The harmonic mean of precision and recall, the recall at most 1; 0 where there are no hits."""
    if hits == 0:
        return 0.0
    precision = hits / candidate_size
    recall = min(hits, reference_size) / reference_size
    return 2.0 * precision * recall / (precision + recall)


@_compiled
def _count(starts: Array, captions: Array, which: int, hits: Array) -> None:
    for at in range(starts[which], starts[which + 1]):
        hits[captions[at]] += 1


@_compiled
def _mark(starts: Array, words: Array, which: int, stamp: int, marks: Array) -> None:
    for at in range(starts[which], starts[which + 1]):
        marks[words[at]] = stamp


@_compiled
def _objects(candidates: CandidateTuples, references: ReferenceTuples, image: int, seen: Array, hits: Array) -> None:
    for node in range(references.node_starts[image], references.node_starts[image + 1]):
        kind = references.nodes[node]
        for at in range(references.kind_starts[kind], references.kind_starts[kind + 1]):
            word = references.kind_words[at]
            if seen[word] != image:
                seen[word] = image
                _count(candidates.object_starts, candidates.object_captions, word, hits)


@_compiled
def _triples(
    candidates: CandidateTriples,
    triples: ReferenceTriples,
    references: ReferenceTuples,
    image: int,
    seen: Array,
    marks: Array,
    hits: Array,
) -> None:
    # A mark is the position of the reference triple, unique over all images.
    middle, last = marks[0], marks[1]
    for at in range(triples.starts[image], triples.starts[image + 1]):
        _mark(references.similar_starts, references.similar_words, triples.words[at], at, middle)
        _mark(references.kind_starts, references.kind_words, triples.others[at], at, last)
        kind = triples.nodes[at]
        for first in references.kind_words[references.kind_starts[kind] : references.kind_starts[kind + 1]]:
            for candidate in range(candidates.first[first], candidates.first[first + 1]):
                if seen[candidate] == image or middle[candidates.words[candidate]] != at:
                    continue
                if last[candidates.others[candidate]] == at:
                    seen[candidate] = image
                    _count(candidates.starts, candidates.captions, candidate, hits)
