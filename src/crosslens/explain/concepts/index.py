"""The objects of many images in the order that compiled loops want: by image, then concept, then size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from crosslens.explain.concepts.attributes import attribute_bits
from crosslens.explain.concepts.objects import ImageObjects
from crosslens.language.wordnet import wordnet

Array = np.ndarray[Any, Any]

_ROWS_AT_ONCE = 512


class Index(NamedTuple):
    """Objects with a synset, in runs of one image and one concept.

    ``run_offsets``  the runs of image i are ``run_offsets[i]:run_offsets[i + 1]``, by concept
    ``concepts``     per run
    ``starts``       the objects of run j are ``starts[j]:starts[j + 1]``, those with an area first, smallest first
    ``sized``        per run, how many have an area; ``described``: a colour, size or material
    ``areas``, ``boxes``, ``bits``  per object (bits: see :func:`~crosslens.explain.concepts.attributes.attribute_bits`)
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


def index_of(objects: ImageObjects, images: Array) -> Index:
    """The index over some images, given and numbered by their place in ``images``."""
    counts = objects.offsets[images + 1] - objects.offsets[images]
    image = np.repeat(np.arange(images.size), counts)
    things = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + objects.offsets[images][image]
    width = int(objects.keys.max(initial=0)) + 1
    pairs = np.unique(image * width + objects.keys[things])
    things, image = things[objects.concepts[things] >= 0], image[objects.concepts[things] >= 0]
    bits = attribute_bits([objects.attributes[thing] for thing in things])
    areas, boxes, concepts = objects.areas[things], objects.boxes[things], objects.concepts[things]
    # All that tells objects apart is in the order: that of the annotation must not matter, not even for rounding.
    order = np.lexsort((*boxes.T[::-1], *bits.T[::-1], areas, concepts, image))
    image, concepts, areas, boxes, bits = (one[order] for one in (image, concepts, areas, boxes, bits))
    new = np.ones(image.size, dtype=bool)
    new[1:] = (image[1:] != image[:-1]) | (concepts[1:] != concepts[:-1])
    firsts = np.flatnonzero(new)
    run = np.cumsum(new) - 1
    return Index(
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

    There always is a path: nouns share a top, and for other words one is simulated.
    """
    wn = wordnet()
    rows = wn.ids(synsets)
    steps = np.empty((rows.size, rows.size), dtype=np.uint8)
    for start in range(0, rows.size, _ROWS_AT_ONCE):
        some = slice(start, start + _ROWS_AT_ONCE)
        steps[some] = np.rint(1.0 / wn.path_similarities(rows[some], rows) - 1.0)
    return steps


def _offsets(groups: Array, count: int) -> Array:
    return np.concatenate([[0], np.cumsum(np.bincount(groups, minlength=count))]).astype(np.int64)
