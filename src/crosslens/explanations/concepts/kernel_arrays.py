"""The arrays that the compiled loops behind the table of concept metrics read and write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from crosslens.explanations.concepts.lexicon import attribute_bits
from crosslens.explanations.concepts.objects import ImageObjects
from crosslens.language import load_wordnet

Array = np.ndarray[Any, Any]

CONCEPTS, BOXES, ATTRIBUTES = 0, 1, 2
"""What an assignment problem matches."""
_ROWS_AT_ONCE = 512


class FailureRows(NamedTuple):
    """Rows of the index, and per failure the sorted concepts that its query mentions, if only these count."""

    ground_truth: Array
    retrieved: Array
    restricted: bool
    mention_offsets: Array
    mentions: Array


class Weights(NamedTuple):
    """Similarity of concepts by their distance in steps, and how boxes are compared."""

    steps: Array
    similarities: Array
    threshold: float
    by_smaller: bool


class Assignments(NamedTuple):
    """Assignment problems, one after the other; the cells of problem p start at ``cells[p]``, rows ≤ columns."""

    failure: Array
    kind: Array
    rows: Array
    columns: Array
    cells: Array
    costs: Array
    values: Array
    comparable: Array


class MetricSums(NamedTuple):
    """Per failure: counts and sums."""

    missing: Array
    extra: Array
    common: Array
    wrong: Array
    count_error: Array
    hit: Array
    miss: Array
    more: Array
    relation_pairs: Array
    relation_sum: Array
    concept_pairs: Array
    concept_sum: Array
    box_pairs: Array
    box_over: Array
    size_sum: Array
    attribute_pairs: Array
    attribute_sum: Array


class ObjectIndex(NamedTuple):
    """Objects with a synset, in runs of one image and one concept: by image, then concept, then size.

    ``run_offsets``  the runs of image i are ``run_offsets[i]:run_offsets[i + 1]``, by concept
    ``concepts``     per run
    ``starts``       the objects of run j are ``starts[j]:starts[j + 1]``, those with an area first, smallest first
    ``sized``        per run, how many have an area; ``described``: a colour, size or material
    ``areas``, ``boxes``, ``bits``  per object (bits: see ``attribute_bits``)
    ``key_offsets``  the distinct keys of image i, synsets and names without one, are ``keys[key_offsets[i]:…]``, sorted
    """

    run_offsets: Array
    concepts: Array
    starts: Array
    sized: Array
    described: Array
    areas: Array
    boxes: Array
    bits: Array
    key_offsets: Array
    keys: Array


def empty_assignments(count: int, cells: int) -> Assignments:
    """Arrays for so many problems with so many cells in all."""
    failure, kind, rows, columns, first = (np.empty(count, np.int64) for _ in range(5))
    return Assignments(failure, kind, rows, columns, first, np.empty(cells), np.empty(cells), np.zeros(cells, np.int8))


def index_objects(objects: ImageObjects, images: Array) -> ObjectIndex:
    """The index over the images of these rows, numbered by their position in ``images``."""
    counts = objects.offsets[images + 1] - objects.offsets[images]
    image = np.repeat(np.arange(images.size), counts)
    rows = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + objects.offsets[images][image]
    width = int(objects.keys.max(initial=0)) + 1
    pairs = np.unique(image * width + objects.keys[rows])
    rows, image = rows[objects.concepts[rows] >= 0], image[objects.concepts[rows] >= 0]
    bits = attribute_bits([objects.attributes[row] for row in rows])
    areas, boxes, concepts = objects.areas[rows], objects.boxes[rows], objects.concepts[rows]
    # All that tells objects apart is in the order: that of the annotation must not matter, not even for rounding.
    order = np.lexsort((*boxes.T[::-1], *bits.T[::-1], areas, concepts, image))
    image, concepts, areas, boxes, bits = (column[order] for column in (image, concepts, areas, boxes, bits))
    new = np.ones(image.size, dtype=bool)
    new[1:] = (image[1:] != image[:-1]) | (concepts[1:] != concepts[:-1])
    firsts = np.flatnonzero(new)
    run = np.cumsum(new) - 1
    return ObjectIndex(
        _offsets(image[firsts], images.size),
        concepts[firsts].astype(np.int64),
        np.append(firsts, image.size).astype(np.int64),
        np.bincount(run[areas > 0], minlength=firsts.size),
        np.bincount(run[bits.any(axis=1)], minlength=firsts.size),
        areas,
        np.ascontiguousarray(boxes),
        np.ascontiguousarray(bits),
        _offsets(pairs // width, images.size),
        pairs % width,
    )


def path_steps(synsets: Sequence[str]) -> Array:
    """Steps between every two synsets, as bytes: a matrix of similarities is eight times as large.

    There always is a path: nouns share a root, and for other words one is simulated.
    """
    wn = load_wordnet()
    rows = wn.ids(synsets)
    steps = np.empty((rows.size, rows.size), dtype=np.uint8)
    for start in range(0, rows.size, _ROWS_AT_ONCE):
        block = slice(start, start + _ROWS_AT_ONCE)
        steps[block] = np.rint(1.0 / wn.path_similarities(rows[block], rows) - 1.0)
    return steps


def _offsets(groups: Array, count: int) -> Array:
    return np.concatenate([[0], np.cumsum(np.bincount(groups, minlength=count))]).astype(np.int64)
