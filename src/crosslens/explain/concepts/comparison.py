"""Two images, object by object: every concept metric of one failure, with the pairs behind it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from crosslens.core.errors import UsageError
from crosslens.explain.concepts.attributes import FAMILIES, described, overlap
from crosslens.explain.concepts.matching import least_different, most_agreeing, most_similar
from crosslens.explain.concepts.naming import canonical_synset
from crosslens.explain.concepts.objects import ImageObjects
from crosslens.explain.concepts.spatial import common_share, relation_shares
from crosslens.language.wordnet import wordnet

BASES = ("ground_truth", "min")


@dataclass(frozen=True)
class Rules:
    """What the definitions leave open."""

    threshold: float = 1.0
    base: str = "ground_truth"

    def __post_init__(self) -> None:
        if self.base not in BASES:
            raise UsageError(f"base {self.base!r}", fix=f"use one of: {', '.join(BASES)}")
        if not (np.isfinite(self.threshold) and self.threshold > 0):
            raise UsageError(f"threshold {self.threshold!r}", fix="use a number above 0; the usual one is 1")

    def differences(self, ground_truth: Any, retrieved: Any) -> Any:
        """How far areas lie apart, in multiples of the ground truth's (or of the smaller one)."""
        base = ground_truth if self.base == "ground_truth" else np.minimum(ground_truth, retrieved)
        return np.abs(ground_truth - retrieved) / base


@dataclass(frozen=True)
class _Picture:
    """The objects of one image that count, by concept; members are numbered within the image."""

    objects: ImageObjects
    first: int
    things: dict[str, list[int]] = field(default_factory=dict)
    keys: frozenset[int] = frozenset()

    @staticmethod
    def of(objects: ImageObjects, image: int, mentioned: Collection[str] | None) -> _Picture:
        inside = objects.inside(image)
        things: dict[str, list[int]] = {}
        keys = set()
        for thing in inside:
            synset = objects.synset(thing)
            if mentioned is not None and synset not in mentioned:
                continue
            keys.add(int(objects.keys[thing]))
            if synset is not None:
                things.setdefault(synset, []).append(thing - inside.start)
        return _Picture(objects, inside.start, things, frozenset(keys))

    def area(self, thing: int) -> float:
        return float(self.objects.areas[self.first + thing])

    def sized(self, synset: str) -> list[int]:
        """The objects of a concept that have an area, smallest first: their order in the annotation must not matter."""
        having = [one for one in self.things[synset] if self.area(one) > 0]
        return sorted(having, key=lambda one: (self.area(one), one))

    def boxes(self, synset: str) -> Any:
        boxes = self.objects.boxes[[self.first + one for one in self.things[synset]]]
        return boxes[~np.isnan(boxes).any(axis=1)]

    def described(self, thing: int) -> tuple[frozenset[str], ...]:
        return described(self.objects.attributes[self.first + thing])


def compare_images(
    objects: ImageObjects,
    ground_truth: int,
    retrieved: int,
    *,
    mentioned: Iterable[str] | None = None,
    rules: Rules | None = None,
) -> dict[str, Any]:
    """Every concept metric of one failure; ``concept_metrics`` says what the keys mean."""
    rules = rules or Rules()
    only = None if mentioned is None else frozenset(map(canonical_synset, mentioned))
    one, other = _Picture.of(objects, ground_truth, only), _Picture.of(objects, retrieved, only)
    common = sorted(one.things.keys() & other.things.keys())
    missing, extra = sorted(one.things.keys() - other.things.keys()), sorted(other.things.keys() - one.things.keys())
    pairs = _concept_pairs(missing, extra)
    counts = {synset: (len(one.things[synset]), len(other.things[synset])) for synset in common}
    wrong = sum(left != right for left, right in counts.values())
    boxes, size = _box_pairs(one, other, common, rules)
    attributes = [row for synset in common for row in _attributes(one, other, synset)]
    relations = _relations(one, other, common)
    return {
        "CA": _share(len(common), len(one.things)),
        "NonCommonSimilarity": _share(sum(pair[2] for pair in pairs), len(pairs)),
        "CE": float(sum(abs(left - right) for left, right in counts.values())),
        "SD": size,
        "SD[binary]": _share(sum(pair[5] >= rules.threshold for pair in boxes), len(boxes)),
        "object_hit": float(len(one.keys & other.keys)),
        "object_miss": float(len(one.keys - other.keys)),
        "object_extra": float(len(other.keys - one.keys)),
        "matched_synsets": _share(len(pairs), len(missing) + len(extra)),
        "wrong_count": _share(wrong, len(common)),
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
    similarities = wordnet().path_similarities(missing, extra)
    return [(missing[row], extra[at], float(similarities[row, at])) for row, at in most_similar(similarities)]


def _box_pairs(
    one: _Picture, other: _Picture, common: list[str], rules: Rules
) -> tuple[list[tuple[str, int, int, float, float, float]], float | None]:
    """The matched boxes of all common concepts, and the sum over concepts of their mean difference."""
    found, total = [], None
    for synset in common:
        left, right = one.sized(synset), other.sized(synset)
        if not (left and right):
            continue
        areas = np.array([one.area(thing) for thing in left]), np.array([other.area(thing) for thing in right])
        differences = rules.differences(areas[0][:, None], areas[1][None, :])
        pairs = least_different(differences, rules.threshold)
        found += [
            (synset, left[row], right[at], float(areas[0][row]), float(areas[1][at]), float(differences[row, at]))
            for row, at in pairs
        ]
        total = (total or 0.0) + float(sum(differences[pair] for pair in pairs)) / len(pairs)
    return found, total


def _attributes(one: _Picture, other: _Picture, synset: str) -> list[dict[str, Any]]:
    """The colours, sizes and materials that can be compared between matched objects of a common concept."""
    left = [(thing, words) for thing in one.things[synset] if any(words := one.described(thing))]
    right = [(thing, words) for thing in other.things[synset] if any(words := other.described(thing))]
    if not (left and right):
        return []
    comparable, agreement = np.zeros((len(left), len(right))), np.zeros((len(left), len(right)))
    for row, (_, words) in enumerate(left):
        for at, (_, others) in enumerate(right):
            both = [(mine, theirs) for mine, theirs in zip(words, others, strict=True) if mine and theirs]
            comparable[row, at] = len(both)
            agreement[row, at] = sum(overlap(*pair) for pair in both)
    return [
        {
            "synset": synset,
            "ground_truth": left[row][0],
            "retrieved": right[at][0],
            "family": family,
            "values": [sorted(mine), sorted(theirs)],
            "agreement": overlap(mine, theirs),
        }
        for row, at in most_agreeing(comparable, agreement)
        for family, mine, theirs in zip(FAMILIES, left[row][1], right[at][1], strict=True)
        if mine and theirs
    ]


def _relations(one: _Picture, other: _Picture, common: list[str]) -> list[dict[str, Any]]:
    """How each two common concepts stand to each other in both images, each two once."""
    boxes = {synset: (one.boxes(synset), other.boxes(synset)) for synset in common}
    placed = [synset for synset in common if len(boxes[synset][0]) and len(boxes[synset][1])]
    found = []
    for place, first in enumerate(placed):
        for second in placed[place + 1 :]:
            sides = [relation_shares(mine, theirs) for mine, theirs in zip(boxes[first], boxes[second], strict=True)]
            found.append(
                {
                    "synsets": (first, second),
                    "ground_truth": sides[0],
                    "retrieved": sides[1],
                    "agreement": common_share(*sides),
                }
            )
    return found
