"""CIDEr's compiled loops. Both add the same terms in the same order: a cell has one value, however it is asked for."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

Array = np.ndarray[Any, Any]

_compiled = numba.njit(nogil=True, cache=True, error_model="numpy")

ORDERS = 4
SCALE = 10.0


@_compiled
def cider_rows(
    out: Array,
    first_row: int,
    reference_start: Array,
    text_start: Array,
    gram: Array,
    count: Array,
    order: Array,
    square: Array,
    inverse_norm: Array,
    bigrams: Array,
    posting_start: Array,
    posting_place: Array,
    posting_count: Array,
    posting_norm: Array,
    once: Array,
    length_start: Array,
    caption_at: Array,
    falloff: Array,
    clip: bool,
) -> None:
    """Rows of the matrix through the inverted index: each reference visits the captions that share an n-gram.

    Captions stand in the order of their length, so that a reference's penalty is the same all along a stretch.
    ``once`` is what a posting gives to a reference that holds the n-gram once: the common case, without a minimum.
    """
    captions = out.shape[1]
    shared = np.zeros(captions)
    total = np.empty(captions)
    for row in range(out.shape[0]):
        image = first_row + row
        total[:] = 0.0
        for text in range(reference_start[image], reference_start[image + 1]):
            for at in range(text_start[text], text_start[text + 1]):
                g, r = gram[at], count[at]
                weight = r * square[g] * inverse_norm[text, order[g]]
                if weight == 0.0:
                    continue
                if r == 1:
                    for posting in range(posting_start[g], posting_start[g + 1]):
                        shared[posting_place[posting]] += once[posting] * weight
                else:
                    for posting in range(posting_start[g], posting_start[g + 1]):
                        h = min(posting_count[posting], r) if clip else posting_count[posting]
                        shared[posting_place[posting]] += h * posting_norm[posting] * weight
            for length in range(length_start.size - 1):
                factor = falloff[abs(bigrams[text] - length)]
                for place in range(length_start[length], length_start[length + 1]):
                    total[place] += shared[place] * factor
            shared[:] = 0.0
        references = reference_start[image + 1] - reference_start[image]
        scale = SCALE / ORDERS / references if references else 0.0
        for place in range(captions):
            out[row, caption_at[place]] = np.float32(total[place] * scale)


@_compiled
def cider_pairs(
    out: Array,
    images: Array,
    captions: Array,
    reference_start: Array,
    text_start: Array,
    gram: Array,
    count: Array,
    order: Array,
    square: Array,
    inverse_norm: Array,
    bigrams: Array,
    first_caption: int,
    falloff: Array,
    clip: bool,
) -> None:
    """Single cells, by walking down the two texts' sorted n-grams; captions are the texts from ``first_caption`` on."""
    for pair in range(out.size):
        image = images[pair]
        candidate = first_caption + captions[pair]
        total = 0.0
        for text in range(reference_start[image], reference_start[image + 1]):
            shared = 0.0
            other, end = text_start[candidate], text_start[candidate + 1]
            for at in range(text_start[text], text_start[text + 1]):
                g, r = gram[at], count[at]
                while other < end and gram[other] < g:
                    other += 1
                if other == end:
                    break
                n = order[g]
                weight = r * square[g] * inverse_norm[text, n]
                if gram[other] == g and weight != 0.0:
                    h = min(count[other], r) if clip else count[other]
                    shared += h * inverse_norm[candidate, n] * weight
            total += shared * falloff[abs(bigrams[text] - bigrams[candidate])]
        references = reference_start[image + 1] - reference_start[image]
        scale = SCALE / ORDERS / references if references else 0.0
        out[pair] = np.float32(total * scale)
