"""SPICE: how many of a caption's facts the references state, and how many of theirs it states.

Facts are the tuples of scene graphs. A tuple of the caption counts if some tuple of the image's merged reference graph
is similar to it: position by position the same word, or one that shares a WordNet synset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

from crosslens.core import InputError
from crosslens.engine import Progress, shown_progress, stage
from crosslens.language import (
    COLOURS,
    SIZES,
    SceneGraph,
    find_pipeline,
    is_number,
    load_wordnet,
    parse_texts,
    scene_graph,
)
from crosslens.similarity.protocol import SIMILARITIES, References, Texts, group_starts, in_parallel, thread_count
from crosslens.storage import Array


class CandidateTriples(NamedTuple):
    """The distinct triples of all captions, sorted by their first word, each with the captions that say it.

    Words are numbers. The triples of first word ``w`` are ``first[w] … first[w + 1]``; the captions of triple ``t`` are
    ``captions[starts[t] : starts[t + 1]]``.
    """

    first: Array
    words: Array
    others: Array
    starts: Array
    captions: Array


class CandidateTuples(NamedTuple):
    """The distinct tuples of all captions; an attribute is the triple of an object, the attribute and the object again.

    The captions that name the object ``w`` are ``object_captions[object_starts[w] : object_starts[w + 1]]``. ``sizes``
    is the number of tuples of each caption.
    """

    object_starts: Array
    object_captions: Array
    attributes: CandidateTriples
    relations: CandidateTriples
    sizes: Array


class ReferenceTriples(NamedTuple):
    """The triples of every image, those of image ``i`` at ``starts[i] … starts[i + 1]``: a node, a word, a node."""

    starts: Array
    nodes: Array
    words: Array
    others: Array


class ReferenceTuples(NamedTuple):
    """The merged graph of every image.

    A node is the number of its kind; kind ``n`` matches the words ``kind_words[kind_starts[n] : kind_starts[n + 1]]``.
    Image ``i`` has the nodes ``nodes[node_starts[i] : node_starts[i + 1]]``. A word ``w`` is matched by
    ``similar_words[similar_starts[w] : similar_starts[w + 1]]``, itself among them. ``sizes`` is the number of tuples
    of each image.
    """

    kind_starts: Array
    kind_words: Array
    similar_starts: Array
    similar_words: Array
    node_starts: Array
    nodes: Array
    attributes: ReferenceTriples
    relations: ReferenceTriples
    sizes: Array


@dataclass(frozen=True)
class TupleFilter:
    """Which tuples count: those of one word, those of two whose attribute passes, those of three."""

    objects: bool = False
    attributes: Callable[[str], bool] = lambda word: False
    relations: bool = False


class WordIndex:
    """Words ↔ numbers, and which words are similar: the same, or in one synset."""

    def __init__(self, graphs: Iterable[SceneGraph]) -> None:
        self.words = sorted({word for graph in graphs for fact in graph.tuples() for word in fact})
        self.number = {word: number for number, word in enumerate(self.words)}
        rows, columns = load_wordnet().synonym_pairs(self.words)
        numbers = np.arange(len(self.words))  # a word that WordNet does not list is still similar to itself
        pairs = np.unique(np.stack([np.append(rows, numbers), np.append(columns, numbers)]), axis=1)
        self.starts = starts_of(pairs[0], len(self.words))
        self.similar = pairs[1].astype(np.int32)

    def __len__(self) -> int:
        return len(self.words)

    def similar_to(self, word: int) -> Array:
        """All words similar to one, itself among them."""
        similar: Array = self.similar[self.starts[word] : self.starts[word + 1]]
        return similar


def starts_of(owners: Array, count: int) -> Array:
    """Where the entries of each owner start, and one past the last, for owners in ascending order."""
    return np.searchsorted(owners, np.arange(count + 1)).astype(np.int64)


def index_candidates(graphs: Sequence[SceneGraph], words: WordIndex, passing: TupleFilter) -> CandidateTuples:
    """All captions' tuples that count, by their words."""
    number = words.number
    objects = [[(number[noun],) for noun in graph.objects if passing.objects] for graph in graphs]
    attributes = [
        [(number[noun], number[word], number[noun]) for noun, word in graph.attributes if passing.attributes(word)]
        for graph in graphs
    ]
    relations = [
        [tuple(number[word] for word in relation) for relation in graph.relations if passing.relations]
        for graph in graphs
    ]
    object_tuples, object_starts, object_captions = _distinct(objects, 1)
    captions_of_word = np.zeros(len(words) + 1, np.int64)
    captions_of_word[object_tuples[:, 0] + 1] = np.diff(object_starts)
    return CandidateTuples(
        object_starts=np.cumsum(captions_of_word),
        object_captions=object_captions,
        attributes=_candidate_triples(attributes, len(words)),
        relations=_candidate_triples(relations, len(words)),
        sizes=reduce(add, (np.diff(group_starts(tuples)) for tuples in (objects, attributes, relations))),
    )


def _candidate_triples(triples: Sequence[Sequence[tuple[int, ...]]], words: int) -> CandidateTriples:
    distinct, starts, captions = _distinct(triples, 3)
    first, middle, last = np.ascontiguousarray(distinct.T)
    return CandidateTriples(starts_of(first, words), middle, last, starts, captions)


def _distinct(tuples: Sequence[Sequence[tuple[int, ...]]], width: int) -> tuple[Array, Array, Array]:
    """The distinct tuples in ascending order, and for each the captions that have it, as starts and captions."""
    captions = np.repeat(np.arange(len(tuples), dtype=np.int32), [len(group) for group in tuples])
    table = np.array([row for some in tuples for row in some], np.int32).reshape(-1, width)
    rows, inverse = np.unique(table, axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    order = np.argsort(inverse, kind="stable")
    return rows, starts_of(inverse[order], len(rows)), captions[order]


@dataclass(frozen=True)
class MergedGraph:
    """The graphs of one image's captions as one: ``nodes`` are sets of words, the rest refers to them by place."""

    nodes: tuple[tuple[int, ...], ...]
    attributes: tuple[tuple[int, int], ...]
    relations: tuple[tuple[int, int, int], ...]


def merge(graphs: Sequence[SceneGraph], words: WordIndex) -> MergedGraph:
    """One graph of several: objects equal or synonymous, directly or over others among them, become one node."""
    number = words.number
    groups: list[set[int]] = []
    for word in sorted({number[noun] for graph in graphs for noun in graph.objects}):
        similar = words.similar_to(word).tolist()
        touching = [group for group in groups if not group.isdisjoint(similar)]
        groups = [group for group in groups if group.isdisjoint(similar)]
        groups.append({word}.union(*touching))
    nodes = sorted(tuple(sorted(group)) for group in groups)
    node = {word: number_of_node for number_of_node, group in enumerate(nodes) for word in group}
    attributes = {(node[number[noun]], number[word]) for graph in graphs for noun, word in graph.attributes}
    relations = {
        (node[number[subject]], number[name], node[number[other]])
        for graph in graphs
        for subject, name, other in graph.relations
    }
    return MergedGraph(tuple(nodes), tuple(sorted(attributes)), tuple(sorted(relations)))


def index_references(images: Sequence[MergedGraph], words: WordIndex, passing: TupleFilter) -> ReferenceTuples:
    """All images' merged graphs, as far as their tuples count. Equal nodes of different images share one kind."""
    kinds: dict[tuple[int, ...], int] = {}
    kind_of = [[kinds.setdefault(node, len(kinds)) for node in image.nodes] for image in images]
    nodes = [some if passing.objects else [] for some in kind_of]
    attributes = [
        [(kind[noun], word, kind[noun]) for noun, word in image.attributes if passing.attributes(words.words[word])]
        for kind, image in zip(kind_of, images, strict=True)
    ]
    relations = [
        [(kind[subject], name, kind[other]) for subject, name, other in image.relations if passing.relations]
        for kind, image in zip(kind_of, images, strict=True)
    ]
    node_starts = group_starts(nodes)
    attribute_triples, relation_triples = _reference_triples(attributes), _reference_triples(relations)
    matched = [np.unique(np.concatenate([words.similar_to(word) for word in kind])) for kind in kinds]
    return ReferenceTuples(
        kind_starts=group_starts(matched),
        kind_words=np.concatenate([*matched, np.empty(0, np.int32)]).astype(np.int32),
        similar_starts=words.starts,
        similar_words=words.similar,
        node_starts=node_starts,
        nodes=np.array([kind for some in nodes for kind in some], np.int32),
        attributes=attribute_triples,
        relations=relation_triples,
        sizes=np.diff(node_starts) + np.diff(attribute_triples.starts) + np.diff(relation_triples.starts),
    )


def _reference_triples(triples: Sequence[Sequence[tuple[int, int, int]]]) -> ReferenceTriples:
    table = np.array([row for some in triples for row in some], np.int32).reshape(-1, 3)
    return ReferenceTriples(group_starts(triples), *np.ascontiguousarray(table.T))


_RULES = 1
"""Changes whenever the graph of a parse, or the score of two graphs, may."""
_ROWS_AT_ONCE = 256
"""Rows in memory at once where single cells are computed."""

PARTS = {
    "": TupleFilter(objects=True, attributes=lambda word: True, relations=True),
    "object": TupleFilter(objects=True),
    "attribute": TupleFilter(attributes=lambda word: True),
    "relation": TupleFilter(relations=True),
    "colour": TupleFilter(attributes=COLOURS.__contains__),
    "cardinality": TupleFilter(attributes=is_number),
    "size": TupleFilter(attributes=SIZES.__contains__),
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
        with stage(shown_progress(progress), "scene graphs", len(texts)) as watching:
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
    passing = PARTS[part]
    merged = [merge(graphs, words) for graphs in references]
    return PreparedSpice(
        index_candidates(captions, words, passing), index_references(merged, words, passing), thread_count(threads)
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
        for positions, count, noun in zip((images, captions), self.shape, ("image", "caption"), strict=True):
            if positions.size and (positions.min() < 0 or positions.max() >= count):
                row = int(np.argmax((positions < 0) | (positions >= count)))
                raise InputError(f"{noun} {positions[row]}", row=row, expected=f"a position from 0 to {count - 1}")
        scores = np.empty(images.size, np.float32)
        distinct, group = np.unique(images, return_inverse=True)
        for start in range(0, distinct.size, _ROWS_AT_ONCE):
            rows = self._rows(distinct[start : start + _ROWS_AT_ONCE])
            in_block = (group >= start) & (group < start + len(rows))
            scores[in_block] = rows[group[in_block] - start, captions[in_block]]
        return scores

    def _rows(self, images: Array) -> Array:
        out = np.empty((images.size, self.shape[1]), np.float32)
        score = partial(score_rows, self.candidates, self.references)
        in_parallel(lambda start, stop: score(images[start:stop], out[start:stop]), images.size, self.threads)
        return out


@SIMILARITIES.register("spice", extra="language")
def load_spice(source: str = "", *, pipeline: str | None = None, cache: str | Path | bool = True) -> Spice:
    """SPICE: F1 of scene-graph tuples (objects, attributes, relations), synonyms by WordNet."""
    return Spice("", source or pipeline, cache)


def _register_part(part: str, summary: str) -> None:
    def load(source: str = "", *, pipeline: str | None = None, cache: str | Path | bool = True) -> Spice:
        return Spice(part, source or pipeline, cache)

    load.__doc__ = f"SPICE over {summary} alone."
    SIMILARITIES.register(f"spice-{part}", extra="language")(load)


for _part, _summary in {
    "object": "objects",
    "attribute": "attributes",
    "relation": "relations",
    "colour": "attributes that are colours",
    "cardinality": "attributes that count",
    "size": "attributes that are sizes",
}.items():
    _register_part(_part, _summary)


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
