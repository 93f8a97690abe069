"""BLEU's and ROUGE-L's compiled loops, cell by cell."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

Array = np.ndarray[Any, Any]

_compiled = numba.njit(nogil=True, cache=True, error_model="numpy")

# Added above and below each fraction, as the captioning package does: a share of 0 is not quite 0.
TINY, SMALL = 1e-15, 1e-9
BETA = 1.2


@_compiled
def bleu_cells(
    out: Array,
    images: Array,
    captions: Array,
    reference_start: Array,
    length: Array,
    set_start: Array,
    set_gram: Array,
    set_count: Array,
    caption_start: Array,
    gram: Array,
    count: Array,
    order: Array,
    first_caption: int,
    longest: int,
) -> None:
    """Clipped n-gram precision against an image's merged references, times the penalty for brevity."""
    matched = np.empty(longest)
    for cell in range(out.size):
        image, text = images[cell], first_caption + captions[cell]
        if reference_start[image] == reference_start[image + 1]:
            out[cell] = 0.0
            continue
        matched[:] = 0.0
        other, end = set_start[image], set_start[image + 1]
        for at in range(caption_start[text], caption_start[text + 1]):
            while other < end and set_gram[other] < gram[at]:
                other += 1
            if other == end or order[gram[at]] >= longest:
                break  # grams are numbered by their length
            if set_gram[other] == gram[at]:
                matched[order[gram[at]]] += min(count[at], set_count[other])
        size = length[text]
        closest = length[reference_start[image]]
        for reference in range(reference_start[image], reference_start[image + 1]):
            one = length[reference]
            nearer = abs(one - size) - abs(closest - size)
            if nearer < 0 or (nearer == 0 and one < closest):
                closest = one
        product = 1.0
        for n in range(longest):
            product *= (matched[n] + TINY) / (max(size - n, 0) + SMALL)
        ratio = (size + TINY) / (closest + SMALL)
        penalty = np.exp(1.0 - 1.0 / ratio) if ratio < 1.0 else 1.0
        out[cell] = np.float32(product ** (1.0 / longest) * penalty)


@_compiled
def rouge_cells(
    out: Array,
    images: Array,
    captions: Array,
    reference_start: Array,
    start: Array,
    token: Array,
    first_caption: int,
) -> None:
    """The longest common subsequence: the best precision and the best recall over the references, combined."""
    row = np.empty(np.max(np.diff(start)) + 1, np.int64)
    for cell in range(out.size):
        image, text = images[cell], first_caption + captions[cell]
        size = start[text + 1] - start[text]
        precision, recall = 0.0, 0.0
        for reference in range(reference_start[image], reference_start[image + 1]):
            other = start[reference + 1] - start[reference]
            if size == 0 or other == 0:
                continue
            row[: size + 1] = 0
            for j in range(start[reference], start[reference + 1]):
                corner = 0
                for i in range(size):
                    above = row[i + 1]
                    if token[start[text] + i] == token[j]:
                        row[i + 1] = corner + 1
                    elif row[i] > above:
                        row[i + 1] = row[i]
                    corner = above
            precision = max(precision, row[size] / size)
            recall = max(recall, row[size] / other)
        whole = recall + BETA**2 * precision
        out[cell] = np.float32((1.0 + BETA**2) * precision * recall / whole) if whole > 0.0 else np.float32(0.0)
