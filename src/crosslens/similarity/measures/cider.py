"""CIDEr-D and plain CIDEr: n-grams that an image's captions share with a caption, rare ones counting more.

Both compiled loops add the same terms in the same order: a cell has the same value in a block and alone.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numba
import numpy as np

from crosslens.core import Dataset, Progress, fingerprint
from crosslens.language import tokenize, tokenizer
from crosslens.similarity.grid import as_grid
from crosslens.similarity.measures.ngrams import LONGEST, Grams, count_grams, image_frequency
from crosslens.similarity.protocol import (
    SIMILARITIES,
    Array,
    References,
    Similarity,
    Texts,
    group_starts,
    references_of,
)
from crosslens.similarity.threads import in_cells, in_parallel, thread_count

_compiled = numba.njit(nogil=True, cache=True, error_model="numpy")

ORDERS = 4
SCALE = 10.0


class _Texts(NamedTuple):
    """All texts as n-grams, with the weights of the n-grams and the norms of the texts."""

    reference_start: Array
    start: Array
    gram: Array
    counts: Array
    order: Array
    square: Array
    inverse_norm: Array
    bigrams: Array


class _Postings(NamedTuple):
    """For each n-gram, the captions that hold it, sorted by length (``caption_at``)."""

    start: Array
    slot: Array
    counts: Array
    norm: Array
    once: Array
    length_start: Array
    caption_at: Array


@_compiled
def cider_rows(out: Array, images: Array, texts: _Texts, postings: _Postings, falloff: Array, clip: bool) -> None:
    """Rows of the matrix, those of ``images``: each reference visits the captions that share an n-gram with it.

    Captions are sorted by length, so that a reference's penalty is the same along a range of them.
    ``once`` is what a posting gives to a reference that holds the n-gram once: the common case, without a minimum.
    """
    reference_start, text_start, gram, count, order, square, inverse_norm, bigrams = texts
    posting_start, posting_slot, posting_count, posting_norm, once, length_start, caption_at = postings
    captions = out.shape[1]
    shared = np.zeros(captions)
    total = np.empty(captions)
    for row in range(out.shape[0]):
        image = images[row]
        total[:] = 0.0
        for text in range(reference_start[image], reference_start[image + 1]):
            for at in range(text_start[text], text_start[text + 1]):
                g, r = gram[at], count[at]
                weight = r * square[g] * inverse_norm[text, order[g]]
                if weight == 0.0:
                    continue
                if r == 1:
                    for posting in range(posting_start[g], posting_start[g + 1]):
                        shared[posting_slot[posting]] += once[posting] * weight
                else:
                    for posting in range(posting_start[g], posting_start[g + 1]):
                        h = min(posting_count[posting], r) if clip else posting_count[posting]
                        shared[posting_slot[posting]] += h * posting_norm[posting] * weight
            for length in range(length_start.size - 1):
                factor = falloff[abs(bigrams[text] - length)]
                for slot in range(length_start[length], length_start[length + 1]):
                    total[slot] += shared[slot] * factor
            shared[:] = 0.0
        references = reference_start[image + 1] - reference_start[image]
        scale = SCALE / ORDERS / references if references else 0.0
        for slot in range(captions):
            out[row, caption_at[slot]] = np.float32(total[slot] * scale)


@_compiled
def cider_pairs(
    out: Array, images: Array, captions: Array, texts: _Texts, first_caption: int, falloff: Array, clip: bool
) -> None:
    """Single cells, by walking down the two texts' sorted n-grams; captions are the texts from ``first_caption`` on."""
    reference_start, text_start, gram, count, order, square, inverse_norm, bigrams = texts
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


SIGMA = 6.0
"""Width of CIDEr-D's penalty for a difference in length."""

Corpus = Dataset | References


@SIMILARITIES.register("cider", example="cider:split")
def load_cider(source: str = "", *, df: Corpus | None = None) -> Similarity:
    """CIDEr-D, what captioning papers report as CIDEr: clipped n-gram counts, penalty for unequal length, 0 to 10.

    source: the tokenizer, `ptb` (default) or `split` (lowercase, cut at white space)
    df: a dataset (or lists of captions) whose images n-grams are counted in; by default the images compared
    """
    return Cider(source or "ptb", df)


@SIMILARITIES.register("cider-plain", example="cider-plain:split")
def load_plain_cider(source: str = "", *, df: Corpus | None = None) -> Similarity:
    """CIDEr without clipping and without the penalty for unequal length, 0 to 10.

    source: the tokenizer, `ptb` (default) or `split` (lowercase, cut at white space)
    df: a dataset (or lists of captions) whose images n-grams are counted in; by default the images compared
    """
    return Cider(source or "ptb", df, plain=True)


class Cider:
    """CIDEr with one tokenizer and one source of document frequencies: the references themselves, or ``df``.

    An n-gram weighs ln(number of images) − ln(number of images whose captions hold it), so a collection of one image
    gives 0 everywhere.
    """

    def __init__(self, tokens: str = "ptb", df: Corpus | None = None, *, plain: bool = False) -> None:
        tokenizer(tokens)
        self.tokens, self.plain = tokens, plain
        self.corpus = references_of(df) if isinstance(df, Dataset) else df
        self.name = ("cider-plain" if plain else "cider") + ("" if tokens == "ptb" else f":{tokens}")

    @property
    def revision(self) -> str:
        """Changes with the corpus that n-grams are counted in."""
        if self.corpus is None:
            return "1"
        return "1+" + fingerprint("corpus", {str(n): tuple(texts) for n, texts in enumerate(self.corpus)})[:12]

    def prepare(
        self, references: References, captions: Texts, *, progress: Progress | None = None, threads: int | None = None
    ) -> PreparedCider:
        """Count the n-grams of all texts, weigh them, and index the captions by them."""
        texts = [text for image in references for text in image]
        corpus = [] if self.corpus is None else [text for image in self.corpus for text in image]
        every = [*texts, *corpus, *captions]
        unique = list(dict.fromkeys(every))  # captions are their own images' references: each is tokenized once
        tokens = dict(zip(unique, tokenize(unique, self.tokens), strict=True))
        grams = count_grams([tokens[text] for text in every])
        frequency, images = self._frequency(grams, references, len(texts))
        idf = np.log(float(max(images, 1))) - np.log(np.maximum(1.0, frequency))
        weighed = _weighed(grams, idf, group_starts(references))
        return PreparedCider(weighed, len(texts) + len(corpus), not self.plain, thread_count(threads))

    def _frequency(self, grams: Grams, references: References, texts: int) -> tuple[Array, int]:
        """In how many images each n-gram occurs, and how many images there are (those with captions)."""
        counted = references if self.corpus is None else self.corpus
        owner = np.repeat(np.arange(len(counted)), [len(image) for image in counted])
        frequency = image_frequency(grams, owner, 0 if self.corpus is None else texts)
        return frequency, sum(1 for image in counted if len(image))


def _weighed(grams: Grams, idf: Array, reference_start: Array) -> _Texts:
    texts = len(grams.length)
    text = np.repeat(np.arange(texts), np.diff(grams.start))
    cell = text * LONGEST + grams.order[grams.gram]
    norm = np.sqrt(np.bincount(cell, (grams.counts * idf[grams.gram]) ** 2, texts * LONGEST)).reshape(texts, LONGEST)
    # Where a norm is 0 the products are 0 too, so nothing needs dividing.
    inverse_norm = np.divide(1.0, norm, out=np.zeros_like(norm), where=norm != 0)
    bigrams = np.maximum(grams.length - 1, 0)
    return _Texts(reference_start, grams.start, grams.gram, grams.counts, grams.order, idf**2, inverse_norm, bigrams)


def _postings(texts: _Texts, captions: Array, clip: bool) -> _Postings:
    """The inverted index of these texts, as columns in their order."""
    length = texts.bigrams[captions]
    caption_at = np.argsort(length, kind="stable")
    slot = np.empty_like(caption_at)
    slot[caption_at] = np.arange(len(caption_at))
    sizes = np.diff(texts.start)[captions]
    column = np.repeat(np.arange(len(captions)), sizes)
    at = np.arange(len(column)) + np.repeat(texts.start[captions] - np.cumsum(sizes) + sizes, sizes)
    gram, counts = texts.gram[at], texts.counts[at]
    by_gram = np.lexsort((slot[column], gram))
    counts, norm = counts[by_gram], texts.inverse_norm[captions[column], texts.order[gram]][by_gram]
    return _Postings(
        np.concatenate([[0], np.cumsum(np.bincount(gram, minlength=len(texts.order)))]),
        slot[column][by_gram].astype(np.int32),
        counts,
        norm,
        norm if clip else counts * norm,
        np.searchsorted(length[caption_at], np.arange(int(length.max(initial=0)) + 2)),
        caption_at,
    )


class PreparedCider:
    """CIDEr of one collection, through an inverted index."""

    def __init__(self, texts: _Texts, first_caption: int, clip: bool, threads: int) -> None:
        self._texts, self._first_caption, self._clip, self._threads = texts, first_caption, clip, threads
        away = np.arange(int(texts.bigrams.max(initial=0)) + 1, dtype=np.float64)
        self._falloff = np.exp(-(away**2) / (2 * SIGMA**2)) if clip else np.ones_like(away)
        self.shape = (len(texts.reference_start) - 1, len(texts.bigrams) - first_caption)

    @cached_property
    def _postings(self) -> _Postings:
        return _postings(self._texts, np.arange(self._first_caption, len(self._texts.bigrams)), self._clip)

    def __getstate__(self) -> dict[str, Any]:
        """With the index: processes of one machine then share it, and none has to make its own."""
        return {**vars(self), "_postings": self._postings}

    def block(self, rows: slice) -> Array:
        first, last, _ = rows.indices(self.shape[0])
        return self._rows(np.arange(first, max(last, first)), self._postings)

    def pairs(self, images: Array, captions: Array) -> Array:
        images, captions = np.asarray(images, np.int64), np.asarray(captions, np.int64)
        grid = as_grid(images, captions, self.shape)
        if grid is not None:
            postings = _postings(self._texts, self._first_caption + grid.captions, self._clip)
            values: Array = self._rows(grid.images, postings)[grid.row, grid.column]
            return values
        arguments = (self._texts, self._first_caption, self._falloff, self._clip)
        return in_cells(cider_pairs, images, captions, arguments, self._threads)

    def _rows(self, images: Array, postings: _Postings) -> Array:
        out = np.empty((len(images), len(postings.caption_at)), np.float32)

        def work(start: int, stop: int) -> None:
            cider_rows(out[start:stop], images[start:stop], self._texts, postings, self._falloff, self._clip)

        in_parallel(work, len(out), self._threads)
        return out
