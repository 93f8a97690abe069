"""Two images, object by object: every concept metric of one failure, with the matched pairs behind it.

Concepts, boxes and attributes are matched optimally, by rules under which a tie never changes a value. Two boxes of an
image are related by left, right, above, below, inside, around, or at the same position.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from crosslens.core import InputError, UsageError
from crosslens.explanations.lexicon import (
    ATTRIBUTE_FAMILIES,
    attribute_values,
    canonical_synset,
    plain_name,
    synset_of_name,
)
from crosslens.explanations.objects import ImageObjects
from crosslens.language import load_wordnet
from crosslens.storage import Array

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


class _Member(NamedTuple):
    """An object that counts: its number within the image, and what of it is compared."""

    number: int
    area: float
    box: Array
    values: tuple[frozenset[str], ...]


_Concepts = Mapping[str, Sequence[_Member]]


def _by_concept(objects: ImageObjects, image: int, mentioned: Collection[str] | None) -> tuple[_Concepts, set[int]]:
    """The objects of an image that count, by synset; and the keys of all of them, those without a synset too."""
    inside = objects.inside(image)
    members: dict[str, list[_Member]] = {}
    keys = set()
    for index in inside:
        synset = objects.synset(index)
        if mentioned is not None and synset not in mentioned:
            continue
        keys.add(int(objects.keys[index]))
        if synset is not None:
            area, values = float(objects.areas[index]), attribute_values(objects.attributes[index])
            member = _Member(index - inside.start, area, objects.boxes[index], values)
            members.setdefault(synset, []).append(member)
    return members, keys


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
    (left, keys), (right, other_keys) = (_by_concept(objects, image, only) for image in (ground_truth, retrieved))
    common = sorted(left.keys() & right.keys())
    missing = sorted(left.keys() - right.keys())
    extra = sorted(right.keys() - left.keys())
    pairs = []
    if missing and extra:
        similar = load_wordnet().path_similarities(missing, extra)
        pairs = [(missing[row], extra[column], float(similar[row, column])) for row, column in most_similar(similar)]
    counts = {synset: (len(left[synset]), len(right[synset])) for synset in common}
    boxes, size_difference = _box_pairs(left, right, common, sizes)
    attributes = [row for synset in common for row in _attributes(synset, left[synset], right[synset])]
    relations = _relations(left, right, common)
    return {
        "CA": _share(len(common), len(left)),
        "NonCommonSimilarity": _share(sum(pair[2] for pair in pairs), len(pairs)),
        "CE": float(sum(abs(mine - theirs) for mine, theirs in counts.values())),
        "SD": size_difference,
        "SD[binary]": _share(sum(pair[5] >= sizes.threshold for pair in boxes), len(boxes)),
        "object_hit": float(len(keys & other_keys)),
        "object_miss": float(len(keys - other_keys)),
        "object_extra": float(len(other_keys - keys)),
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


def _box_pairs(
    left: _Concepts, right: _Concepts, common: list[str], sizes: SizeComparison
) -> tuple[list[tuple[str, int, int, float, float, float]], float | None]:
    """The boxes of common concepts, matched so that their differences are smallest, and the sum over concepts of their
    mean difference."""
    matched, total = [], None
    for synset in common:
        # Smallest first: their order in the annotation must not matter.
        members, others = (
            sorted((item for item in side[synset] if item.area > 0), key=lambda item: (item.area, item.number))
            for side in (left, right)
        )
        if not (members and others):
            continue
        areas, other_areas = (np.array([item.area for item in side]) for side in (members, others))
        differences = sizes.differences(areas[:, None], other_areas[None, :])
        pairs = _assign(differences + TIE * (differences >= sizes.threshold))
        for row, column in pairs:
            mine, theirs = members[row], others[column]
            difference = float(differences[row, column])
            matched.append((synset, mine.number, theirs.number, mine.area, theirs.area, difference))
        total = (total or 0.0) + float(sum(differences[pair] for pair in pairs)) / len(pairs)
    return matched, total


def _attributes(synset: str, left: Sequence[_Member], right: Sequence[_Member]) -> list[dict[str, Any]]:
    """The colours, sizes and materials that can be compared between matched objects of a common concept."""
    members, others = ([item for item in side if any(item.values)] for side in (left, right))
    if not (members and others):
        return []
    comparable, agreement = np.zeros((2, len(members), len(others)))
    for row, mine in enumerate(members):
        for column, theirs in enumerate(others):
            shared = [pair for pair in zip(mine.values, theirs.values, strict=True) if all(pair)]
            comparable[row, column] = len(shared)
            agreement[row, column] = sum(overlap(*pair) for pair in shared)
    # Most can be compared and, among those ways, most agrees.
    pairs = _assign(-((3.0 * min(comparable.shape) + 1) * comparable + agreement))
    return [
        {
            "synset": synset,
            "ground_truth": members[row].number,
            "retrieved": others[column].number,
            "family": family,
            "values": [sorted(values), sorted(other_values)],
            "agreement": overlap(values, other_values),
        }
        for row, column in pairs
        for family, values, other_values in zip(
            ATTRIBUTE_FAMILIES, members[row].values, others[column].values, strict=True
        )
        if values and other_values
    ]


def overlap(values: frozenset[str], others: frozenset[str]) -> float:
    """The Jaccard index of two sets of values."""
    return len(values & others) / len(values | others)


def _relations(left: _Concepts, right: _Concepts, common: list[str]) -> list[dict[str, Any]]:
    """The spatial relations of each two common concepts in both images, each two once: the share of all pairs of their
    boxes that are in each relation; relations without a pair are left out."""
    boxes = {
        synset: [[item.box for item in side[synset] if not np.isnan(item.box).any()] for side in (left, right)]
        for synset in common
    }
    relations = []
    for first, second in combinations((synset for synset in common if all(boxes[synset])), 2):
        shares = []
        for mine, theirs in zip(boxes[first], boxes[second], strict=True):
            counts = Counter(relation(box, other) for box in mine for other in theirs)
            shares.append({name: counts[name] / counts.total() for name in RELATIONS if name in counts})
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


def most_similar(similarities: Array) -> list[tuple[int, int]]:
    """All of the smaller side matched so that the sum of similarities is largest."""
    return _assign(-similarities)


def _assign(costs: Array) -> list[tuple[int, int]]:
    from scipy.optimize import linear_sum_assignment

    if not costs.size:
        return []
    rows, columns = linear_sum_assignment(costs)
    return [(int(row), int(column)) for row, column in zip(rows, columns, strict=True)]


Objects = Iterable[Mapping[str, Any]]
Size = tuple[float, float]

METRICS = (
    *("CA", "NonCommonSimilarity", "CE", "SD", "SD[binary]", "object_hit", "object_miss", "object_extra"),
    *("matched_synsets", "wrong_count", "attribute_agreement", "spatial_agreement"),
)
"""The float columns of a table and keys of one comparison; null (None) where a metric is undefined."""

TALLIES = (
    *("synsets_ground_truth", "synsets_retrieved", "common", "missing", "extra", "concept_pairs", "wrong_counts"),
    *("box_pairs", "box_pairs_over", "attribute_pairs", "relation_pairs"),
)
"""The integer columns of a table: how many of each are behind the metrics, for shares over all failures together."""

_KEYS = ("name", "synset", "box", "attributes")
_SIDES = ("ground_truth", "retrieved")


def concept_metrics(
    ground_truth: Objects,
    retrieved: Objects,
    *,
    threshold: float = 1.0,
    base: str = "ground_truth",
    sizes: tuple[Size, Size] | None = None,
    mentioned: Iterable[str] | None = None,
) -> dict[str, Any]:
    """Every concept metric of one failure, from plain values.

    Undefined values are None. Beside the metrics: ``common``, ``missing``, ``extra`` (synsets), ``concept_pairs``
    [(missing, extra, similarity)], ``counts`` {synset: (ground truth, retrieved)}, ``box_pairs`` [(synset, object of
    the ground truth, object retrieved, area, area, difference)], ``attributes`` and ``relations``; objects are numbered
    in the order of their list.

    Args:
        ground_truth: Objects, each ``{"synset": …}`` or ``{"name": …}``, optionally with ``"box": [x, y, w, h]`` and
            ``"attributes": [word, …]``.
        retrieved: Objects, likewise.
        threshold: The T of ``SD[binary]``.
        base: What a difference of areas is divided by: ``ground_truth`` or ``min``.
        sizes: Width and height of both images, which makes the areas of boxes shares of the image; without, boxes are
            taken as they are.
        mentioned: Restricts everything to these synsets: the query-informed variants.
    """
    objects = plain_objects(ground_truth, retrieved, sizes)
    return compare_images(objects, 0, 1, mentioned=mentioned, sizes=SizeComparison(threshold, base))


_PlainObject = tuple[str, str | None, tuple[float, ...], tuple[str, ...]]
"""Name, synset, box, attributes."""


def plain_objects(ground_truth: Objects, retrieved: Objects, sizes: tuple[Size, Size] | None = None) -> ImageObjects:
    """Two lists of objects as the images ``ground_truth`` and ``retrieved``; ``sizes`` as in ``concept_metrics``."""
    pixels = [1.0, 1.0]
    if sizes is not None:
        try:
            pairs = [(float(width), float(height)) for width, height in sizes]
        except (TypeError, ValueError):
            pairs = []
        if len(pairs) != 2 or not np.isfinite(pairs).all() or np.min(pairs) <= 0:
            fix = "pass (width, height) of the ground truth's and of the retrieved image"
            raise UsageError(f"sizes {sizes!r:.60}", fix=fix, option="sizes")
        pixels = [width * height for width, height in pairs]
    sides = []
    for objects, side in zip((ground_truth, retrieved), _SIDES, strict=True):
        if isinstance(objects, str | Mapping) or not isinstance(objects, Iterable):
            problem = f"{side} is {objects!r:.60}"
            raise InputError(problem, expected="a list of objects", fix="put the objects into a list")
        sides.append([_checked_object(item, f"{side}[{number}]") for number, item in enumerate(objects)])
    counts = [len(objects) for objects in sides]
    rows = [row for objects in sides for row in objects]
    names, synsets, boxes, attributes = (list(column) for column in zip(*rows, strict=True)) if rows else ([],) * 4
    box_array = np.array(boxes, dtype=np.float64).reshape(-1, 4)
    areas = box_array[:, 2] * box_array[:, 3] / np.repeat(pixels, counts)
    return ImageObjects.of(_SIDES, counts, names, synsets, box_array, areas, attributes)


def _checked_object(item: Any, row: str) -> _PlainObject:
    if not isinstance(item, Mapping):
        raise InputError(
            f"{item!r:.60} is not an object",
            row=row,
            expected='a mapping such as {"synset": "zebra.n.01", "box": [x, y, w, h]}',
            fix='write {"name": …} or {"synset": …}',
        )
    if unknown := [key for key in item if key not in _KEYS]:
        raise InputError(f"unknown key {unknown[0]!r}", row=row, expected=f"the keys {', '.join(_KEYS)}")
    name, synset, box, words = (item.get(key) for key in _KEYS)
    for key, value in (("name", name), ("synset", synset)):
        if value is not None and (not isinstance(value, str) or not value.strip()):
            fix = f"write the {key}, or leave it out"
            raise InputError(f"{key} {value!r:.60}", row=row, expected="a text", fix=fix)
    if name is None and synset is None:
        raise InputError("neither a synset nor a name", row=row, expected="one of the two", fix="add a name")
    if synset is not None:
        try:
            synset = canonical_synset(synset)
        except InputError as error:
            raise InputError(error.problem, row=row, expected="a synset of WordNet 3.0", fix=error.fix) from None
    elif name is not None:
        synset = synset_of_name(name)
    numbers = [np.nan] * 4
    if box is not None:
        sides = list(box) if isinstance(box, Sequence | np.ndarray) and not isinstance(box, str) else []
        numbers = [float(side) for side in sides if isinstance(side, Real) and not isinstance(side, bool)]
        valid = len(sides) == len(numbers) == 4 and bool(np.isfinite(numbers).all())
        if not valid or min(numbers[2:]) <= 0:
            raise InputError(
                f"box {box!r:.60}",
                row=row,
                expected="[x, y, width, height], finite, width and height above 0",
                fix="correct the box, or leave it out for an object without a box",
            )
    words = () if words is None else words
    if isinstance(words, str) or not isinstance(words, Sequence) or not all(isinstance(word, str) for word in words):
        problem = f"attributes {words!r:.60}"
        raise InputError(problem, row=row, expected="a list of texts", fix='write ["brown", "small"]')
    return plain_name(name or synset or ""), synset, tuple(numbers), tuple(words)
