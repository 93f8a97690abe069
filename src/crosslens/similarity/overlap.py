"""BLEU and ROUGE-L: older measures of shared words, for comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from crosslens.core.errors import UsageError
from crosslens.core.progress import Progress
from crosslens.language.tokens import tokenize
from crosslens.similarity.ngrams import LONGEST, Grams, count_grams, number_tokens
from crosslens.similarity.overlap_kernels import bleu_cells, rouge_cells
from crosslens.similarity.similarity import SIMILARITIES, Array, Similarity
from crosslens.similarity.threads import in_parallel, thread_count


@SIMILARITIES.register("bleu", example="bleu:2")
def load_bleu(source: str = "") -> Similarity:
    """BLEU of one caption, 0 to 1: clipped precision of n-grams up to 4, penalty for brevity (closest reference).

    source: the longest n-gram, 1 to 4 (default 4)
    """
    if source not in ("", "1", "2", "3", "4"):
        raise UsageError(f"bleu:{source}", fix="give the longest n-gram, bleu:1 to bleu:4")
    return Bleu(int(source or LONGEST))


@SIMILARITIES.register("rouge-l", example="rouge-l")
def load_rouge(source: str = "") -> Similarity:
    """ROUGE-L, 0 to 1: longest common subsequence, best precision and recall over the references, β = 1.2."""
    if source:
        raise UsageError(f"rouge-l:{source}", fix="rouge-l stands by itself")
    return RougeL()


class Bleu:
    """Sentence BLEU with n-grams up to ``longest``, smoothed as in pycocoevalcap."""

    revision = "1"

    def __init__(self, longest: int = LONGEST) -> None:
        self.longest = longest
        self.name = "bleu" if longest == LONGEST else f"bleu:{longest}"

    def prepare(
        self,
        references: Sequence[Sequence[str]],
        captions: Sequence[str],
        *,
        progress: Progress | None = None,
        threads: int | None = None,
    ) -> Cells:
        """Count n-grams, and merge each image's references."""
        texts = [text for image in references for text in image]
        grams = count_grams(tokenize([*texts, *captions]))
        start = _starts(references)
        merged = _merged(grams, start, len(texts))
        arguments = (start, grams.length, *merged, grams.start, grams.gram, grams.count, grams.order, len(texts))
        return Cells(bleu_cells, (*arguments, self.longest), (len(references), len(captions)), thread_count(threads))


class RougeL:
    """ROUGE-L as in pycocoevalcap."""

    name, revision = "rouge-l", "1"

    def prepare(
        self,
        references: Sequence[Sequence[str]],
        captions: Sequence[str],
        *,
        progress: Progress | None = None,
        threads: int | None = None,
    ) -> Cells:
        """Number the tokens."""
        texts = [text for image in references for text in image]
        tokens = tokenize([*texts, *captions])
        start = np.concatenate([[0], np.cumsum([len(one) for one in tokens])]).astype(np.int64)
        arguments = (_starts(references), start, number_tokens(tokens), len(texts))
        return Cells(rouge_cells, arguments, (len(references), len(captions)), thread_count(threads))


class Cells:
    """A φ whose kernel fills cells one by one."""

    def __init__(
        self, kernel: Callable[..., None], arguments: tuple[Any, ...], shape: tuple[int, int], threads: int
    ) -> None:
        self._kernel, self._arguments, self.shape, self._threads = kernel, arguments, shape, threads

    def block(self, rows: slice) -> Array:
        """Whole rows: float32, (rows, captions)."""
        images = np.arange(self.shape[0])[rows]
        cells = self.pairs(np.repeat(images, self.shape[1]), np.tile(np.arange(self.shape[1]), len(images)))
        return cells.reshape(len(images), self.shape[1])

    def pairs(self, images: Array, captions: Array) -> Array:
        """Single cells: float32, one per pair of positions."""
        images, captions = np.asarray(images, np.int64), np.asarray(captions, np.int64)
        out = np.empty(len(images), np.float32)

        def work(start: int, stop: int) -> None:
            part = slice(start, stop)
            if start < stop:
                self._kernel(out[part], images[part], captions[part], *self._arguments)

        in_parallel(work, len(out), self._threads)
        return out


def _merged(grams: Grams, reference_start: Array, texts: int) -> tuple[Array, Array, Array]:
    """For each image, each n-gram of its references with the most times that one of them holds it."""
    owner = np.repeat(np.arange(len(reference_start) - 1), np.diff(reference_start))
    image = np.repeat(owner, np.diff(grams.start[: texts + 1]))
    width = max(len(grams.order), 1)
    cells = image * width + grams.gram[: len(image)]
    order = np.argsort(cells, kind="stable")
    unique, first = np.unique(cells[order], return_index=True)
    count = np.maximum.reduceat(grams.count[: len(image)][order], first) if len(first) else grams.count[:0]
    start = np.searchsorted(unique, np.arange(len(reference_start)) * width)
    return start, unique % width, count


def _starts(references: Sequence[Sequence[str]]) -> Array:
    return np.concatenate([[0], np.cumsum([len(image) for image in references])]).astype(np.int64)
