"""CIDEr-D and plain CIDEr: n-grams that an image's captions share with a caption, rare ones counting more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from crosslens.core.dataset import Dataset
from crosslens.core.fingerprint import fingerprint
from crosslens.core.progress import Progress
from crosslens.language.tokens import tokenize, tokenizer
from crosslens.similarity.cider_kernels import cider_pairs, cider_rows
from crosslens.similarity.ngrams import LONGEST, Grams, count_grams, image_frequency
from crosslens.similarity.similarity import SIMILARITIES, Array, Similarity, references_of
from crosslens.similarity.threads import in_parallel, thread_count

SIGMA = 6.0
"""Width of CIDEr-D's penalty for a difference in length."""

Corpus = Dataset | Sequence[Sequence[str]]


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
        self,
        references: Sequence[Sequence[str]],
        captions: Sequence[str],
        *,
        progress: Progress | None = None,
        threads: int | None = None,
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
        weighed = _weighed(grams, idf, _starts(references))
        return PreparedCider(weighed, len(texts) + len(corpus), not self.plain, thread_count(threads))

    def _frequency(self, grams: Grams, references: Sequence[Sequence[str]], texts: int) -> tuple[Array, int]:
        """In how many images each n-gram occurs, and how many images there are (those with captions)."""
        counted = references if self.corpus is None else self.corpus
        owner = np.repeat(np.arange(len(counted)), [len(image) for image in counted])
        frequency = image_frequency(grams, owner, 0 if self.corpus is None else texts)
        return frequency, sum(1 for image in counted if len(image))


@dataclass(frozen=True)
class _Texts:
    """All texts as n-grams, with the weights of the n-grams and the norms of the texts."""

    reference_start: Array
    start: Array
    gram: Array
    count: Array
    order: Array
    square: Array
    inverse_norm: Array
    bigrams: Array

    def arguments(self) -> tuple[Any, ...]:
        """In the order in which both kernels take them."""
        return tuple(getattr(self, field.name) for field in fields(self))


@dataclass(frozen=True)
class _Postings:
    """For each n-gram, the captions that hold it; captions stand in the order of their length (``caption_at``)."""

    start: Array
    place: Array
    count: Array
    norm: Array
    once: Array
    length_start: Array
    caption_at: Array

    def arguments(self) -> tuple[Any, ...]:
        """In the order in which the kernel takes them."""
        return tuple(getattr(self, field.name) for field in fields(self))


def _weighed(grams: Grams, idf: Array, reference_start: Array) -> _Texts:
    texts = len(grams.length)
    text = np.repeat(np.arange(texts), np.diff(grams.start))
    cell = text * LONGEST + grams.order[grams.gram]
    norm = np.sqrt(np.bincount(cell, (grams.count * idf[grams.gram]) ** 2, texts * LONGEST)).reshape(texts, LONGEST)
    # Where a norm is 0 the products are 0 too, so nothing needs dividing.
    inverse_norm = np.divide(1.0, norm, out=np.zeros_like(norm), where=norm != 0)
    bigrams = np.maximum(grams.length - 1, 0)
    return _Texts(reference_start, grams.start, grams.gram, grams.count, grams.order, idf**2, inverse_norm, bigrams)


def _postings(texts: _Texts, first_caption: int, clip: bool) -> _Postings:
    length = texts.bigrams[first_caption:]
    caption_at = np.argsort(length, kind="stable")
    place = np.empty_like(caption_at)
    place[caption_at] = np.arange(len(caption_at))
    caption = np.repeat(np.arange(len(length)), np.diff(texts.start[first_caption:]))
    own = slice(texts.start[first_caption], None)
    gram, count = texts.gram[own], texts.count[own]
    by_gram = np.lexsort((place[caption], gram))
    count, norm = count[by_gram], texts.inverse_norm[first_caption + caption, texts.order[gram]][by_gram]
    return _Postings(
        np.searchsorted(gram[by_gram], np.arange(len(texts.order) + 1)),
        place[caption][by_gram].astype(np.int32),
        count,
        norm,
        norm if clip else count * norm,
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
        return _postings(self._texts, self._first_caption, self._clip)

    def block(self, rows: slice) -> Array:
        """Whole rows: float32, (rows, captions)."""
        first, last, _ = rows.indices(self.shape[0])
        out = np.empty((max(last - first, 0), self.shape[1]), np.float32)
        index: tuple[Any, ...] = (*self._texts.arguments(), *self._postings.arguments(), self._falloff, self._clip)

        def work(start: int, stop: int) -> None:
            cider_rows(out[start:stop], first + start, *index)

        in_parallel(work, len(out), self._threads)
        return out

    def pairs(self, images: Array, captions: Array) -> Array:
        """Single cells: float32, one per pair of positions."""
        images, captions = np.asarray(images, np.int64), np.asarray(captions, np.int64)
        out = np.empty(len(images), np.float32)
        index: tuple[Any, ...] = (*self._texts.arguments(), self._first_caption, self._falloff, self._clip)

        def work(start: int, stop: int) -> None:
            part = slice(start, stop)
            cider_pairs(out[part], images[part], captions[part], *index)

        in_parallel(work, len(out), self._threads)
        return out


def _starts(references: Sequence[Sequence[str]]) -> Array:
    return np.concatenate([[0], np.cumsum([len(image) for image in references], dtype=np.int64)]).astype(np.int64)
