"""Concept metrics: what a wrongly retrieved image has and lacks in objects, counts, sizes, attributes, positions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import InputError, UsageError
from crosslens.explanations.concepts.comparison import SizeComparison, compare_images
from crosslens.explanations.concepts.lexicon import Array, canonical_synset, plain_name, synset_of_name
from crosslens.explanations.concepts.objects import ImageObjects

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

_KEYS = ("synset", "name", "box", "attributes")
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

    ``ground_truth`` and ``retrieved`` are lists of objects, each ``{"synset": …}`` or ``{"name": …}``, optionally with
    ``"box": [x, y, w, h]`` and ``"attributes": [word, …]``. ``sizes``, width and height of both images, makes the
    areas of boxes shares of the image; without, boxes are taken as they are. ``threshold`` is the T of
    ``SD[binary]``; ``base`` what a difference of areas is divided by: ``"ground_truth"`` or ``"min"``. ``mentioned``
    restricts everything to these synsets: the query-informed variants.

    Undefined values are None. Beside the metrics: ``common``, ``missing``, ``extra`` (synsets), ``concept_pairs``
    [(missing, extra, similarity)], ``counts`` {synset: (ground truth, retrieved)}, ``box_pairs`` [(synset, object of
    the ground truth, object retrieved, area, area, difference)], ``attributes`` and ``relations``; objects are numbered
    in the order of their list.
    """
    objects = plain_objects(ground_truth, retrieved, sizes)
    return compare_images(objects, 0, 1, mentioned=mentioned, sizes=SizeComparison(threshold, base))


def concept_table(
    objects: ImageObjects,
    ground_truth_rows: Sequence[int] | Array,
    retrieved_rows: Sequence[int] | Array,
    *,
    mentioned: Sequence[Iterable[str]] | None = None,
    threshold: float = 1.0,
    base: str = "ground_truth",
    threads: int | None = None,
) -> pl.DataFrame:
    """Many failures: one row each with the columns ``METRICS`` (null where undefined) and ``TALLIES``.

    ``mentioned``: per failure the synsets that its query mentions, which restricts every column to them.
    """
    from crosslens.explanations.concepts.batch_metrics import concept_sums, metric_columns  # compiled code loads slowly

    rows = _checked_rows(ground_truth_rows, objects, "ground_truth_rows")
    others = _checked_rows(retrieved_rows, objects, "retrieved_rows")
    lengths = {"retrieved_rows": others.size, "mentioned": rows.size if mentioned is None else len(mentioned)}
    for name, length in lengths.items():
        if length != rows.size:
            fix = "pass one of each per failure"
            raise UsageError(f"{rows.size} ground_truth_rows, but {length} {name}", fix=fix, option=name)
    sums = concept_sums(objects, rows, others, mentioned, SizeComparison(threshold, base), threads)
    columns = metric_columns(sums)
    return pl.DataFrame({name: columns[name] for name in (*METRICS, *TALLIES)})


def _checked_rows(rows: Sequence[int] | Array, objects: ImageObjects, name: str) -> Array:
    array = np.asarray(rows)
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        problem = f"{name} are {array.dtype} of shape {array.shape}"
        raise UsageError(problem, fix="pass a list of the row numbers of images", option=name)
    bad = np.flatnonzero((array < 0) | (array >= objects.images))
    if bad.size:
        raise InputError(
            f"no image has the row {int(array[bad[0]])}",
            row=int(bad[0]),
            expected=f"0 to {objects.images - 1}",
            fix="objects.rows(ids) finds the rows of images",
        )
    return array.astype(np.int64)


_PlainObject = tuple[str, str | None, tuple[float, ...], tuple[str, ...]]
"""Name, synset, box, attributes."""


def plain_objects(ground_truth: Objects, retrieved: Objects, sizes: tuple[Size, Size] | None = None) -> ImageObjects:
    """Two lists of objects as the images ``ground_truth`` and ``retrieved``; ``sizes`` as in ``concept_metrics``."""
    pixels = [1.0, 1.0] if sizes is None else _pixels(sizes)
    sides = [_checked_list(objects, side) for objects, side in zip((ground_truth, retrieved), _SIDES, strict=True)]
    counts = [len(objects) for objects in sides]
    rows = [row for objects in sides for row in objects]
    names, synsets, boxes, attributes = (list(column) for column in zip(*rows, strict=True)) if rows else ([],) * 4
    box_array = np.array(boxes, dtype=np.float64).reshape(-1, 4)
    areas = box_array[:, 2] * box_array[:, 3] / np.repeat(pixels, counts)
    return ImageObjects.of(_SIDES, counts, names, synsets, box_array, areas, attributes)


def _checked_list(objects: Objects, side: str) -> list[_PlainObject]:
    if isinstance(objects, str | Mapping) or not isinstance(objects, Iterable):
        raise InputError(f"{side} is {objects!r:.60}", expected="a list of objects", fix="put the objects into a list")
    return [_checked_object(item, f"{side}[{number}]") for number, item in enumerate(objects)]


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
    name, synset = _text(item, "name", row), _text(item, "synset", row)
    if name is None and synset is None:
        raise InputError("neither a synset nor a name", row=row, expected="one of the two", fix="add a name")
    if synset is not None:
        try:
            synset = canonical_synset(synset)
        except InputError as error:
            raise InputError(error.problem, row=row, expected="a synset of WordNet 3.0", fix=error.fix) from None
    elif name is not None:
        synset = synset_of_name(name)
    return plain_name(name or synset or ""), synset, _box(item.get("box"), row), _words(item.get("attributes"), row)


def _text(item: Mapping[str, Any], key: str, row: str) -> str | None:
    value = item.get(key)
    if value is not None and (not isinstance(value, str) or not value.strip()):
        raise InputError(f"{key} {value!r:.60}", row=row, expected="a text", fix=f"write the {key}, or leave it out")
    return value


def _box(box: Any, row: str) -> tuple[float, ...]:
    if box is None:
        return (np.nan,) * 4
    sides = list(box) if isinstance(box, Sequence | np.ndarray) and not isinstance(box, str) else []
    numbers = [float(side) for side in sides if isinstance(side, Real) and not isinstance(side, bool)]
    valid = len(sides) == len(numbers) == 4 and bool(np.isfinite(numbers).all())
    if not valid or numbers[2] <= 0 or numbers[3] <= 0:
        raise InputError(
            f"box {box!r:.60}",
            row=row,
            expected="[x, y, width, height], finite, width and height above 0",
            fix="correct the box, or leave it out for an object without a box",
        )
    return tuple(numbers)


def _words(words: Any, row: str) -> tuple[str, ...]:
    if words is None:
        return ()
    if isinstance(words, str) or not isinstance(words, Sequence) or not all(isinstance(word, str) for word in words):
        problem = f"attributes {words!r:.60}"
        raise InputError(problem, row=row, expected="a list of texts", fix='write ["brown", "small"]')
    return tuple(words)


def _pixels(sizes: Any) -> list[float]:
    try:
        pairs = [(float(width), float(height)) for width, height in sizes]
    except (TypeError, ValueError):
        pairs = []
    if len(pairs) != 2 or not np.isfinite(pairs).all() or np.min(pairs) <= 0:
        fix = "pass (width, height) of the ground truth's and of the retrieved image"
        raise UsageError(f"sizes {sizes!r:.60}", fix=fix, option="sizes")
    return [width * height for width, height in pairs]
