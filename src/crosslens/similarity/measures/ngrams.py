"""Measures of shared n-grams: CIDEr-D and plain CIDEr, and for comparison the older BLEU and ROUGE-L.

CIDEr counts the n-grams that an image's captions share with a caption, rare ones more. Both its compiled loops add the
same terms in the same order: a cell has the same value in a block and alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numba
import numpy as np

from crosslens.core import UsageError
from crosslens.engine import Progress
from crosslens.language import tokenize, tokenizer
from crosslens.similarity.protocol import (
    SIMILARITIES,
    References,
    Similarity,
    Texts,
    as_grid,
    group_starts,
    in_cells,
    in_parallel,
    references_of,
    thread_count,
)
from crosslens.storage import Array, fingerprint
from crosslens.values import Dataset

LONGEST = 4


class Grams(NamedTuple):
    """Texts' n-grams: text t holds ``gram[start[t]:start[t + 1]]``, ascending, each ``counts`` times.

    ``order`` is n − 1 of each gram; ``length`` is each text's number of tokens.
    """

    start: Array
    gram: Array
    counts: Array
    order: Array
    length: Array


def count_grams(texts: Sequence[Sequence[str]]) -> Grams:
    """The n-grams of tokenized texts, numbered across all of them."""
    length = np.fromiter(map(len, texts), np.int64, len(texts))
    tokens = number_tokens(texts)
    text = np.repeat(np.arange(len(texts)), length)
    room = np.repeat(np.cumsum(length), length) - np.arange(len(tokens))  # tokens from here to the end of the text
    keys, owners, order = [], [], []
    gram, total = tokens, 0
    for n in range(LONGEST):
        fits = room > n
        if n:
            # A gram of n + 1 tokens is the gram of n that starts here with the token after it.
            gram = np.where(fits, gram * (tokens.max(initial=0) + 1) + np.roll(tokens, -n), -1)
        names, gram = np.unique(gram, return_inverse=True)
        keys.append(gram[fits] + total)
        owners.append(text[fits])
        order.append(np.full(len(names), n, np.int8))
        total += len(names)
    orders = np.concatenate(order)
    width = max(len(orders), 1)
    cells, count = np.unique(np.concatenate(owners) * width + np.concatenate(keys), return_counts=True)
    start = np.searchsorted(cells, np.arange(len(length) + 1) * width)
    return Grams(start, (cells % width).astype(np.int32), count.astype(np.int32), orders, length)


def number_tokens(texts: Sequence[Sequence[str]]) -> Array:
    """All tokens one after the other, each different one by its own number."""
    numbers: dict[str, int] = {}
    return np.fromiter((numbers.setdefault(token, len(numbers)) for text in texts for token in text), np.int64)


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
        documents = references if self.corpus is None else self.corpus
        owner = np.repeat(np.arange(len(documents)), [len(image) for image in documents])
        # For each n-gram, in how many images' texts it occurs.
        first, width = 0 if self.corpus is None else len(texts), max(len(grams.order), 1)
        start = grams.start[first : first + len(owner) + 1]
        cells = np.unique(np.repeat(owner, np.diff(start)) * width + grams.gram[start[0] : start[-1]])
        frequency = np.bincount(cells % width, minlength=len(grams.order))
        images = sum(1 for image in documents if len(image))
        idf = np.log(float(max(images, 1))) - np.log(np.maximum(1.0, frequency))
        cell = np.repeat(np.arange(len(every)), np.diff(grams.start)) * LONGEST + grams.order[grams.gram]
        squares = np.bincount(cell, (grams.counts * idf[grams.gram]) ** 2, len(every) * LONGEST)
        norm = np.sqrt(squares).reshape(len(every), LONGEST)
        # Where a norm is 0 the products are 0 too, so nothing needs dividing.
        inverse_norm = np.divide(1.0, norm, out=np.zeros_like(norm), where=norm != 0)
        bigrams = np.maximum(grams.length - 1, 0)
        weighed = _Texts(group_starts(references), *grams[:4], idf**2, inverse_norm, bigrams)
        return PreparedCider(weighed, len(texts) + len(corpus), not self.plain, thread_count(threads))


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
        # For each image, each n-gram of its references with the most times that one of them holds it.
        owner = np.repeat(np.arange(len(references)), np.diff(start))
        image = np.repeat(owner, np.diff(grams.start[: len(texts) + 1]))
        width = max(len(grams.order), 1)
        cells = image * width + grams.gram[: len(image)]
        order = np.argsort(cells, kind="stable")
        unique, first = np.unique(cells[order], return_index=True)
        count = np.maximum.reduceat(grams.counts[: len(image)][order], first) if len(first) else grams.counts[:0]
        merged = np.searchsorted(unique, np.arange(len(start)) * width), unique % width, count
        return start, merged, grams, len(texts), longest

    return CellSimilarity("bleu" if longest == LONGEST else f"bleu:{longest}", bleu_cells, index)


@SIMILARITIES.register("rouge-l", example="rouge-l")
def load_rouge(source: str = "") -> Similarity:
    """ROUGE-L, 0 to 1: longest common subsequence, best precision and recall over the references, β = 1.2."""
    if source:
        raise UsageError(f"rouge-l:{source}", fix="write rouge-l alone: it takes no source")

    def index(references: References, captions: Texts) -> tuple[Any, ...]:
        texts = [text for image in references for text in image]
        tokens = tokenize([*texts, *captions])
        return group_starts(references), group_starts(tokens), number_tokens(tokens), len(texts)

    return CellSimilarity("rouge-l", rouge_cells, index)


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
