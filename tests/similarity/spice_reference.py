"""SPICE as slowly and obviously as it can be written: one image, one caption, words as words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache

from crosslens.language import SceneGraph, load_wordnet

Node = frozenset[str]


@cache
def synsets(word: str) -> frozenset[int]:
    return frozenset(load_wordnet().synsets(word).tolist())


def similar(word: str, second_word: str) -> bool:
    return word == second_word or bool(synsets(word) & synsets(second_word))


def merged_nodes(words: Iterable[str]) -> list[Node]:
    """Join any two nodes that hold similar words, until none are left."""
    nodes: list[Node] = [frozenset({word}) for word in set(words)]
    while True:
        joined = next(
            (
                (a, b)
                for i, a in enumerate(nodes)
                for b in nodes[i + 1 :]
                if any(similar(word, second_word) for word in a for second_word in b)
            ),
            None,
        )
        if joined is None:
            return nodes
        nodes = [node for node in nodes if node not in joined] + [joined[0] | joined[1]]


def reference_tuples(graphs: Sequence[SceneGraph]) -> set[tuple[object, ...]]:
    """The merged graph's tuples: nodes in the places of objects, words elsewhere."""
    nodes = merged_nodes(word for graph in graphs for word in graph.objects)
    node_of = {word: node for node in nodes for word in node}
    tuples: set[tuple[object, ...]] = {(node,) for node in nodes}
    for graph in graphs:
        tuples |= {(node_of[noun], word) for noun, word in graph.attributes}
        tuples |= {(node_of[subject], name, node_of[object_]) for subject, name, object_ in graph.relations}
    return tuples


def tuple_matches(candidate: tuple[str, ...], true: tuple[object, ...]) -> bool:
    if len(candidate) != len(true):
        return False
    for word, node in zip(candidate, true, strict=True):
        options = node if isinstance(node, frozenset) else [node]
        if not any(similar(word, option) for option in options):
            return False
    return True


def spice(
    references: Sequence[SceneGraph],
    caption: SceneGraph,
    counts: Callable[[tuple[object, ...]], bool] = lambda fact: True,
) -> float:
    candidates = {fact for fact in caption.tuples() if counts(fact)}
    true = {fact for fact in reference_tuples(references) if counts(fact)}
    hits = sum(any(tuple_matches(candidate, tuple_of_graph) for tuple_of_graph in true) for candidate in candidates)
    if hits == 0:
        return 0.0
    precision, recall = hits / len(candidates), min(hits, len(true)) / len(true)
    return 2 * precision * recall / (precision + recall)
