"""From scene graphs to the arrays that the SPICE kernel walks: words become numbers, references become one graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import NamedTuple

import numpy as np

from crosslens.language import SceneGraph, load_wordnet
from crosslens.similarity.protocol import Array, group_starts


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

    objects: bool
    attributes: Callable[[str], bool]
    relations: bool


class WordIndex:
    """Words ↔ numbers, and which words are similar: the same, or in one synset."""

    def __init__(self, graphs: Iterable[SceneGraph]) -> None:
        self.words = sorted({word for graph in graphs for fact in graph.tuples() for word in fact})
        self.number = {word: number for number, word in enumerate(self.words)}
        rows, columns = load_wordnet().synonym_pairs(self.words)
        own = np.arange(len(self.words))  # a word that WordNet does not list is still similar to itself
        pairs = np.unique(np.stack([np.append(rows, own), np.append(columns, own)]), axis=1)
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


def index_candidates(graphs: Sequence[SceneGraph], words: WordIndex, counted: TupleFilter) -> CandidateTuples:
    """All captions' tuples that count, by their words."""
    number = words.number
    objects = [[(number[noun],) for noun in graph.objects if counted.objects] for graph in graphs]
    attributes = [
        [(number[noun], number[word], number[noun]) for noun, word in graph.attributes if counted.attributes(word)]
        for graph in graphs
    ]
    relations = [
        [tuple(number[word] for word in relation) for relation in graph.relations if counted.relations]
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


def index_references(images: Sequence[MergedGraph], words: WordIndex, counted: TupleFilter) -> ReferenceTuples:
    """All images' merged graphs, as far as their tuples count. Equal nodes of different images share one kind."""
    kinds: dict[tuple[int, ...], int] = {}
    kind_of = [[kinds.setdefault(node, len(kinds)) for node in image.nodes] for image in images]
    nodes = [some if counted.objects else [] for some in kind_of]
    attributes = [
        [(kind[noun], word, kind[noun]) for noun, word in image.attributes if counted.attributes(words.words[word])]
        for kind, image in zip(kind_of, images, strict=True)
    ]
    relations = [
        [(kind[subject], name, kind[other]) for subject, name, other in image.relations if counted.relations]
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
