"""Two images, object by object: every concept metric of one failure, with the matched pairs behind it.

Concepts, boxes and attributes are matched optimally, by rules under which a tie never changes a value. Two boxes of an
image are related by left, right, above, below, inside, around, or at the same position.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from crosslens.core import UsageError
from crosslens.explanations.concepts.lexicon import ATTRIBUTE_FAMILIES, Array, attribute_values, canonical_synset
from crosslens.explanations.concepts.objects import ImageObjects
from crosslens.language import load_wordnet

BASES = ("ground_truth", "min")
RELATIONS = ("left", "right", "above", "below", "inside", "around", "at")
INSIDE = 0.9
"""A box lies inside a larger one that covers at least this share of it."""
TIE = 1e-9
"""Matchings of boxes whose differences sum to the same, but for about this, are tied; the one with the fewest pairs
over the threshold is taken, so that what is reported does not depend on which of them a solver meets first."""


@dataclass(frozen=True)
class SizeComparison:
    """How areas are compared: the divisor of a difference, and from which difference on sizes count as different."""

    threshold: float = 1.0
    base: str = "ground_truth"

    def __post_init__(self) -> None:
        if self.base not in BASES:
            raise UsageError(f"base {self.base!r}", fix=f"use one of: {', '.join(BASES)}", option="base")
        if not (np.isfinite(self.threshold) and self.threshold > 0):
            fix = "use a number above 0; the usual one is 1"
            raise UsageError(f"threshold {self.threshold!r}", fix=fix, option="threshold")

    def differences(self, ground_truth: Any, retrieved: Any) -> Any:
        """How far areas lie apart, in multiples of the ground truth's (or of the smaller one)."""
        base = ground_truth if self.base == "ground_truth" else np.minimum(ground_truth, retrieved)
        return np.abs(ground_truth - retrieved) / base


@dataclass(frozen=True)
class _ConceptIndex:
    """The objects of one image that count, by concept; members are numbered within the image."""

    objects: ImageObjects
    first: int
    concepts: dict[str, list[int]] = field(default_factory=dict)
    keys: frozenset[int] = frozenset()

    @staticmethod
    def of(objects: ImageObjects, image: int, mentioned: Collection[str] | None) -> _ConceptIndex:
        inside = objects.inside(image)
        concepts: dict[str, list[int]] = {}
        keys = set()
        for index in inside:
            synset = objects.synset(index)
            if mentioned is not None and synset not in mentioned:
                continue
            keys.add(int(objects.keys[index]))
            if synset is not None:
                concepts.setdefault(synset, []).append(index - inside.start)
        return _ConceptIndex(objects, inside.start, concepts, frozenset(keys))

    def area(self, member: int) -> float:
        return float(self.objects.areas[self.first + member])

    def sized(self, synset: str) -> list[int]:
        """The objects of a concept that have an area, smallest first: their order in the annotation must not matter."""
        members = [member for member in self.concepts[synset] if self.area(member) > 0]
        return sorted(members, key=lambda member: (self.area(member), member))

    def boxes(self, synset: str) -> Any:
        boxes = self.objects.boxes[[self.first + member for member in self.concepts[synset]]]
        return boxes[~np.isnan(boxes).any(axis=1)]

    def described(self, synset: str) -> list[tuple[int, tuple[frozenset[str], ...]]]:
        """The objects of a concept that have a colour, size or material, with their values by family."""
        members = self.concepts[synset]
        described = [(member, attribute_values(self.objects.attributes[self.first + member])) for member in members]
        return [(member, values) for member, values in described if any(values)]


def compare_images(
    objects: ImageObjects,
    ground_truth: int,
    retrieved: int,
    *,
    mentioned: Iterable[str] | None = None,
    sizes: SizeComparison | None = None,
) -> dict[str, Any]:
    """Every concept metric of one failure; ``concept_metrics`` says what the keys mean."""
    sizes = sizes or SizeComparison()
    only = None if mentioned is None else frozenset(map(canonical_synset, mentioned))
    left, right = (_ConceptIndex.of(objects, image, only) for image in (ground_truth, retrieved))
    common = sorted(left.concepts.keys() & right.concepts.keys())
    missing = sorted(left.concepts.keys() - right.concepts.keys())
    extra = sorted(right.concepts.keys() - left.concepts.keys())
    pairs = _concept_pairs(missing, extra)
    counts = {synset: (len(left.concepts[synset]), len(right.concepts[synset])) for synset in common}
    boxes, size_difference = _box_pairs(left, right, common, sizes)
    attributes = [row for synset in common for row in _attributes(left, right, synset)]
    relations = _relations(left, right, common)
    return {
        "CA": _share(len(common), len(left.concepts)),
        "NonCommonSimilarity": _share(sum(pair[2] for pair in pairs), len(pairs)),
        "CE": float(sum(abs(mine - theirs) for mine, theirs in counts.values())),
        "SD": size_difference,
        "SD[binary]": _share(sum(pair[5] >= sizes.threshold for pair in boxes), len(boxes)),
        "object_hit": float(len(left.keys & right.keys)),
        "object_miss": float(len(left.keys - right.keys)),
        "object_extra": float(len(right.keys - left.keys)),
        "matched_synsets": _share(len(pairs), len(missing) + len(extra)),
        "wrong_count": _share(sum(mine != theirs for mine, theirs in counts.values()), len(common)),
        "attribute_agreement": _share(sum(row["agreement"] for row in attributes), len(attributes)),
        "spatial_agreement": _share(sum(row["agreement"] for row in relations), len(relations)),
        "common": common,
        "missing": missing,
        "extra": extra,
        "concept_pairs": pairs,
        "counts": counts,
        "box_pairs": boxes,
        "attributes": attributes,
        "relations": relations,
    }


def _share(part: float, whole: int) -> float | None:
    return part / whole if whole else None


def _concept_pairs(missing: list[str], extra: list[str]) -> list[tuple[str, str, float]]:
    if not (missing and extra):
        return []
    similarities = load_wordnet().path_similarities(missing, extra)
    return [
        (missing[row], extra[column], float(similarities[row, column])) for row, column in most_similar(similarities)
    ]


def _box_pairs(
    left: _ConceptIndex, right: _ConceptIndex, common: list[str], sizes: SizeComparison
) -> tuple[list[tuple[str, int, int, float, float, float]], float | None]:
    """The boxes of common concepts, matched so that their differences are smallest, and the sum over concepts of their
    mean difference."""
    matched, total = [], None
    for synset in common:
        members, others = left.sized(synset), right.sized(synset)
        if not (members and others):
            continue
        areas, other_areas = [left.area(member) for member in members], [right.area(member) for member in others]
        differences = sizes.differences(np.array(areas)[:, None], np.array(other_areas)[None, :])
        pairs = _assign(differences + TIE * (differences >= sizes.threshold))
        matched += [
            (synset, members[row], others[column], areas[row], other_areas[column], float(differences[row, column]))
            for row, column in pairs
        ]
        total = (total or 0.0) + float(sum(differences[pair] for pair in pairs)) / len(pairs)
    return matched, total


def _attributes(left: _ConceptIndex, right: _ConceptIndex, synset: str) -> list[dict[str, Any]]:
    """The colours, sizes and materials that can be compared between matched objects of a common concept."""
    members, others = left.described(synset), right.described(synset)
    if not (members and others):
        return []
    comparable, agreement = np.zeros((2, len(members), len(others)))
    for row, (_, values) in enumerate(members):
        for column, (_, other_values) in enumerate(others):
            both = [pair for pair in zip(values, other_values, strict=True) if all(pair)]
            comparable[row, column] = len(both)
            agreement[row, column] = sum(overlap(*pair) for pair in both)
    # Most can be compared and, among those ways, most agrees.
    pairs = _assign(-((3.0 * min(comparable.shape) + 1) * comparable + agreement))
    return [
        {
            "synset": synset,
            "ground_truth": members[row][0],
            "retrieved": others[column][0],
            "family": family,
            "values": [sorted(mine), sorted(theirs)],
            "agreement": overlap(mine, theirs),
        }
        for row, column in pairs
        for family, mine, theirs in zip(ATTRIBUTE_FAMILIES, members[row][1], others[column][1], strict=True)
        if mine and theirs
    ]


def overlap(values: frozenset[str], others: frozenset[str]) -> float:
    """The Jaccard index of two sets of values."""
    return len(values & others) / len(values | others)


def _relations(left: _ConceptIndex, right: _ConceptIndex, common: list[str]) -> list[dict[str, Any]]:
    """The spatial relations of each two common concepts in both images, each two once."""
    boxes = {synset: (left.boxes(synset), right.boxes(synset)) for synset in common}
    with_boxes = [synset for synset in common if len(boxes[synset][0]) and len(boxes[synset][1])]
    relations = []
    for first, second in combinations(with_boxes, 2):
        shares = [relation_shares(mine, theirs) for mine, theirs in zip(boxes[first], boxes[second], strict=True)]
        agreement = sum(min(share.get(name, 0.0) for share in shares) for name in RELATIONS)
        relations.append(
            {"synsets": (first, second), "ground_truth": shares[0], "retrieved": shares[1], "agreement": agreement}
        )
    return relations


def relation_number(box: Array, other: Array) -> int:
    """How ``box`` is positioned to ``other``, as an index of ``RELATIONS``; x, y, width, height each.

    Inside where the larger box covers nine tenths of the smaller; otherwise the direction from centre to centre, along
    the axis on which they are further apart (across, where both are equal). Seen from the other box it is always the
    opposite relation.
    """
    across = min(box[0] + box[2], other[0] + other[2]) - max(box[0], other[0])
    down = min(box[1] + box[3], other[1] + other[3]) - max(box[1], other[1])
    area, other_area = box[2] * box[3], other[2] * other[3]
    shared = across * down if across > 0 and down > 0 else 0.0
    if area != other_area and shared >= INSIDE * min(area, other_area):
        return 4 if area < other_area else 5
    right = (2 * box[0] + box[2]) - (2 * other[0] + other[2])
    below = (2 * box[1] + box[3]) - (2 * other[1] + other[3])
    if right == 0 and below == 0:
        return 6
    if abs(right) >= abs(below):
        return 0 if right < 0 else 1
    return 2 if below < 0 else 3


def relation(box: Array, other: Array) -> str:
    """How ``box`` is positioned to ``other``."""
    return RELATIONS[relation_number(box, other)]


def relation_shares(boxes: Array, others: Array) -> dict[str, float]:
    """Of all pairs of a box and another, the share in each relation; relations without a pair are left out."""
    counts = Counter(relation(box, other) for box in boxes for other in others)
    return {name: counts[name] / (len(boxes) * len(others)) for name in RELATIONS if name in counts}


def most_similar(similarities: Array) -> list[tuple[int, int]]:
    """All of the smaller side matched so that the sum of similarities is largest."""
    return _assign(-similarities)


def _assign(costs: Array) -> list[tuple[int, int]]:
    from scipy.optimize import linear_sum_assignment

    if not costs.size:
        return []
    rows, columns = linear_sum_assignment(costs)
    return [(int(row), int(column)) for row, column in zip(rows, columns, strict=True)]
