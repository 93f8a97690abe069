"""BLEU and ROUGE-L: older measures of shared words, for comparison."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from crosslens.core import Progress, UsageError
from crosslens.language import tokenize
from crosslens.similarity.measures.ngrams import LONGEST, Grams, count_grams, number_tokens
from crosslens.similarity.protocol import SIMILARITIES, Array, References, Similarity, Texts, group_starts
from crosslens.similarity.threads import in_cells, thread_count

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
    merged: tuple[Array, Array, Array],
    grams: Grams,
    first_caption: int,
    longest: int,
) -> None:
    """Clipped n-gram precision against an image's merged references, times the penalty for brevity."""
    set_start, set_gram, set_count = merged
    caption_start, gram, count, order, length = grams
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
            candidate = length[reference]
            nearer = abs(candidate - size) - abs(closest - size)
            if nearer < 0 or (nearer == 0 and candidate < closest):
                closest = candidate
        product = 1.0
        for n in range(longest):
            product *= (matched[n] + TINY) / (max(size - n, 0) + SMALL)
        ratio = (size + TINY) / (closest + SMALL)
        penalty = np.exp(1.0 - 1.0 / ratio) if ratio < 1.0 else 1.0
        out[cell] = np.float32(product ** (1.0 / longest) * penalty)


@_compiled
def rouge_cells(
    out: Array, images: Array, captions: Array, reference_start: Array, start: Array, token: Array, first_caption: int
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


@SIMILARITIES.register("bleu", example="bleu:2")
def load_bleu(source: str = "") -> Similarity:
    """BLEU of one caption, 0 to 1: clipped precision of n-grams up to 4, penalty for brevity (closest reference).

    source: the longest n-gram, 1 to 4 (default 4)
    """
    if source not in ("", "1", "2", "3", "4"):
        raise UsageError(f"bleu:{source}", fix="name the longest n-gram: bleu:1 to bleu:4")
    longest = int(source or LONGEST)

    def index(references: References, captions: Texts) -> tuple[Any, ...]:
        """Count n-grams, and merge each image's references."""
        texts = [text for image in references for text in image]
        grams = count_grams(tokenize([*texts, *captions]))
        start = group_starts(references)
        return start, _merged(grams, start, len(texts)), grams, len(texts), longest

    return CellSimilarity("bleu" if longest == LONGEST else f"bleu:{longest}", bleu_cells, index)


@SIMILARITIES.register("rouge-l", example="rouge-l")
def load_rouge(source: str = "") -> Similarity:
    """ROUGE-L, 0 to 1: longest common subsequence, best precision and recall over the references, β = 1.2."""
    if source:
        raise UsageError(f"rouge-l:{source}", fix="write rouge-l alone: it takes no source")
    return CellSimilarity("rouge-l", rouge_cells, _rouge_index)


def _rouge_index(references: References, captions: Texts) -> tuple[Any, ...]:
    texts = [text for image in references for text in image]
    tokens = tokenize([*texts, *captions])
    return group_starts(references), group_starts(tokens), number_tokens(tokens), len(texts)


@dataclass(frozen=True)
class CellSimilarity:
    """A φ as in pycocoevalcap whose kernel computes single cells, from what ``index`` makes of the texts."""

    name: str
    kernel: Callable[..., None]
    index: Callable[[References, Texts], tuple[Any, ...]]
    revision: str = "1"

    def prepare(
        self, references: References, captions: Texts, *, progress: Progress | None = None, threads: int | None = None
    ) -> PreparedCells:
        """Index the texts."""
        shape = len(references), len(captions)
        return PreparedCells(self.kernel, self.index(references, captions), shape, thread_count(threads))


@dataclass(frozen=True)
class PreparedCells:
    """A kernel with its arguments: the texts, indexed."""

    kernel: Callable[..., None]
    arguments: tuple[Any, ...]
    shape: tuple[int, int]
    threads: int

    def block(self, rows: slice) -> Array:
        images = np.arange(self.shape[0])[rows]
        cells = self.pairs(np.repeat(images, self.shape[1]), np.tile(np.arange(self.shape[1]), len(images)))
        return cells.reshape(len(images), self.shape[1])

    def pairs(self, images: Array, captions: Array) -> Array:
        return in_cells(self.kernel, images, captions, self.arguments, self.threads)


def _merged(grams: Grams, reference_start: Array, texts: int) -> tuple[Array, Array, Array]:
    """For each image, each n-gram of its references with the most times that one of them holds it."""
    owner = np.repeat(np.arange(len(reference_start) - 1), np.diff(reference_start))
    image = np.repeat(owner, np.diff(grams.start[: texts + 1]))
    width = max(len(grams.order), 1)
    cells = image * width + grams.gram[: len(image)]
    order = np.argsort(cells, kind="stable")
    unique, first = np.unique(cells[order], return_index=True)
    count = np.maximum.reduceat(grams.counts[: len(image)][order], first) if len(first) else grams.counts[:0]
    start = np.searchsorted(unique, np.arange(len(reference_start)) * width)
    return start, unique % width, count
