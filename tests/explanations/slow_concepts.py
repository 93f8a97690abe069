"""Concept metrics written a second time, slowly and from the definitions: the reference that ours are compared with.

Shares nothing with crosslens but WordNet's hypernyms. Matchings are networkx's, or tried one by one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, permutations
from typing import Any

import networkx as nx

from crosslens.language import load_wordnet

Object = dict[str, Any]
Similarity = Callable[[str, str], float]
WORDS = {
    "colour": {"red": "red", "green": "green", "grey": "grey", "gray": "grey", "white": "white"},
    "size": {"small": "small", "tiny": "small", "large": "large", "big": "large"},
    "material": {"wooden": "wood", "wood": "wood", "metal": "metal"},
}
"""The attributes that random objects are given, and what they mean."""


def steps_up(synset: int) -> dict[int, int]:
    """Everything above a synset, and the fewest steps to it."""
    distances, level, steps = {synset: 0}, [synset], 0
    while level:
        steps += 1
        level = [
            above for node in level for above in map(int, load_wordnet().hypernyms(node)) if above not in distances
        ]
        distances |= {node: min(steps, distances.get(node, steps)) for node in level}
    return distances


def path_similarity(synset: str, second_synset: str) -> float:
    """1 / (1 + steps over the common hypernym that makes the way shortest), between nouns."""
    left, right = steps_up(load_wordnet().synset(synset)), steps_up(load_wordnet().synset(second_synset))
    return 1 / (1 + min(left[above] + right[above] for above in left.keys() & right.keys()))


def matched_concepts(missing: set[str], extra: set[str], similarity: Similarity) -> list[tuple[str, str, float]]:
    graph = nx.Graph()
    graph.add_nodes_from(("g", concept) for concept in missing)
    for concept in missing:
        for extra_concept in extra:
            graph.add_edge(("g", concept), ("r", extra_concept), weight=similarity(concept, extra_concept))
    pairs = [sorted(pair) for pair in nx.max_weight_matching(graph)]
    return [(left[1], reference[1], graph.edges[left, reference]["weight"]) for left, reference in pairs]


def difference(area: float, second_area: float, base: str) -> float:
    return abs(area - second_area) / (area if base == "ground_truth" else min(area, second_area))


def matched_areas(left: list[float], right: list[float], base: str) -> list[float]:
    """The differences of the pairs of a minimum-weight full matching."""
    graph = nx.Graph()
    tops = [("g", number) for number in range(len(left))]
    for number, area in enumerate(left):
        for column, extra_area in enumerate(right):
            graph.add_edge(("g", number), ("r", column), weight=difference(area, extra_area, base))
    matching = nx.bipartite.minimum_weight_full_matching(graph, top_nodes=tops)
    return [graph.edges[top, matching[top]]["weight"] for top in tops if top in matching]


def all_matchings(left: Sequence[Any], right: Sequence[Any]) -> Iterator[list[tuple[Any, Any]]]:
    """Every way to match the smaller side fully."""
    if len(left) <= len(right):
        for some in permutations(right, len(left)):
            yield list(zip(left, some, strict=True))
    else:
        for some in permutations(left, len(right)):
            yield list(zip(some, right, strict=True))


def meanings(item: Object) -> dict[str, set[str]]:
    words = item.get("attributes") or ()
    return {
        family: {words_of_family[word] for word in words if word in words_of_family}
        for family, words_of_family in WORDS.items()
    }


def compared(item: Object, second_object: Object) -> list[float]:
    """The agreement of each family that both objects have a value of."""
    sets = [(meanings(item)[family], meanings(second_object)[family]) for family in WORDS]
    return [len(a & b) / len(a | b) for a, b in sets if a and b]


def best_attributes(left: list[Object], right: list[Object]) -> tuple[int, float]:
    """Most comparisons, then most agreement, over all matchings."""
    values = {
        (i, j): compared(item, retrieved_object)
        for i, item in enumerate(left)
        for j, retrieved_object in enumerate(right)
    }
    ways = [
        [value for pair in pairs for value in values[pair]]
        for pairs in all_matchings(range(len(left)), range(len(right)))
    ]
    return max((len(way), math.fsum(way)) for way in ways)


def standing(box: Sequence[float], second_box: Sequence[float]) -> str:
    """How a box stands to another."""
    (x, y, w, h), (u, v, k, m) = box, second_box
    width = max(0.0, min(x + w, u + k) - max(x, u))
    height = max(0.0, min(y + h, v + m) - max(y, v))
    if w * h < k * m and width * height >= 0.9 * w * h:
        return "inside"
    if k * m < w * h and width * height >= 0.9 * k * m:
        return "around"
    east, south = (x + w / 2) - (u + k / 2), (y + h / 2) - (v + m / 2)
    if east == south == 0:
        return "at"
    if abs(east) >= abs(south):
        return "left" if east < 0 else "right"
    return "above" if south < 0 else "below"


def spatial(ground_truth: list[Object], retrieved: list[Object], common: set[str]) -> float | None:
    """Over pairs of common concepts that both images have boxes of, the mean overlap of how these stand."""
    agreements = []
    for a, b in combinations(sorted(common), 2):
        sides = []
        for objects in (ground_truth, retrieved):
            boxes = {
                c: [item["box"] for item in objects if item.get("synset") == c and item.get("box")] for c in (a, b)
            }
            sides.append(Counter(standing(box, second_box) for box in boxes[a] for second_box in boxes[b]))
        if all(sides):
            shares = [{name: count / side.total() for name, count in side.items()} for side in sides]
            agreements.append(math.fsum(min(shares[0][name], shares[1].get(name, 0)) for name in shares[0]))
    return math.fsum(agreements) / len(agreements) if agreements else None


def slow_metrics(
    ground_truth: list[Object],
    retrieved: list[Object],
    *,
    threshold: float = 1.0,
    base: str = "ground_truth",
    similarity: Similarity = path_similarity,
    mentioned: set[str] | None = None,
) -> dict[str, float | None]:
    """All metrics of one failure; boxes count by their own area."""
    if mentioned is not None:
        ground_truth = [item for item in ground_truth if item.get("synset") in mentioned]
        retrieved = [item for item in retrieved if item.get("synset") in mentioned]
    kept = [[item["synset"] for item in some if item.get("synset")] for some in (ground_truth, retrieved)]
    counts = [Counter(some) for some in kept]
    mine, theirs = set(kept[0]), set(kept[1])
    common, missing, extra = mine & theirs, mine - theirs, theirs - mine
    names = [{item.get("synset") or "name " + item["name"] for item in some} for some in (ground_truth, retrieved)]
    pairs = matched_concepts(missing, extra, similarity) if missing and extra else []
    differences, means, compared_values = [], [], []
    for concept in common:
        members = [[item for item in some if item.get("synset") == concept] for some in (ground_truth, retrieved)]
        areas = [[item["box"][2] * item["box"][3] for item in some if item.get("box")] for some in members]
        if all(areas):
            matched = matched_areas(areas[0], areas[1], base)
            differences += matched
            means.append(math.fsum(matched) / len(matched))
        compared_values.append(best_attributes(members[0], members[1]))
    comparisons = sum(count for count, _ in compared_values)
    agreement = math.fsum(value for _, value in compared_values)
    return {
        "CA": len(common) / len(mine) if mine else None,
        "NonCommonSimilarity": math.fsum(pair[2] for pair in pairs) / len(pairs) if pairs else None,
        "CE": sum(abs(counts[0][synset] - counts[1][synset]) for synset in common),
        "SD": math.fsum(means) if means else None,
        "SD[binary]": sum(value >= threshold for value in differences) / len(differences) if differences else None,
        "object_hit": len(names[0] & names[1]),
        "object_miss": len(names[0] - names[1]),
        "object_extra": len(names[1] - names[0]),
        "matched_synsets": len(pairs) / len(missing | extra) if missing | extra else None,
        "wrong_count": sum(counts[0][synset] != counts[1][synset] for synset in common) / len(common)
        if common
        else None,
        "attribute_agreement": agreement / comparisons if comparisons else None,
        "spatial_agreement": spatial(ground_truth, retrieved, common),
    }
