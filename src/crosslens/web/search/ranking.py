"""One query against all items, exactly; and how much each word of a sentence contributes to a score."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from crosslens.core import Embeddings, InputError
from crosslens.rank import InnerProduct, Scorer, default_score, scorer_of, top_lists, unit_rows

Array = np.ndarray[Any, Any]

MOST_WORDS = 24
"""Words whose effect is measured: each takes one more encoding."""
_FEW = 100_000


class Hit(NamedTuple):
    """An item of the list: its rank from 1, its row in the gallery, its score."""

    rank: int
    row: int
    score: float


class WordEffect(NamedTuple):
    """What leaving out one word does: ``effect`` is the score of the first hit minus its score without the word.

    ``lead`` is the same for the distance between the first hit and the second; None where there is no second.
    """

    word: str
    start: int
    end: int
    effect: float
    lead: float | None


class SearchGallery:
    """The vectors of all items of one kind, brought to length 1 once where they are single vectors."""

    def __init__(self, embeddings: Embeddings) -> None:
        self.embeddings = embeddings
        self._unit = unit_rows(embeddings.vectors) if embeddings.kind == "single" else None

    def scorer(self, queries: Embeddings) -> Scorer:
        """Scores of the queries (rows) with all items (columns), by the score function of such vectors."""
        if queries.dimension != self.embeddings.dimension:
            problem = f"vectors of {queries.dimension} numbers for a gallery of {self.embeddings.dimension}"
            raise InputError(problem, fix="use one encoder for both")
        if self._unit is not None and queries.kind == "single":
            return InnerProduct(unit_rows(queries.vectors), self._unit, unit=True)
        return scorer_of(queries, self.embeddings, default_score(queries.kind, self.embeddings.kind))

    def search(self, query: Embeddings, depth: int) -> list[Hit]:
        """The items of highest score, best first; equal scores in the order of the gallery."""
        count = len(self.embeddings.ids)
        threads = 1 if count < _FEW else None  # starting threads takes longer than a short list
        items, scores = top_lists(self.scorer(query), min(depth, count), threads=threads)
        pairs = zip(items[0].tolist(), scores[0].tolist(), strict=True)
        return [Hit(rank, int(row), float(score)) for rank, (row, score) in enumerate(pairs, start=1) if row >= 0]

    def scores(self, queries: Embeddings, rows: Sequence[int]) -> Array:
        """The exact scores of several queries with some items: queries × rows."""
        count = len(queries.ids)
        left, right = np.repeat(np.arange(count), len(rows)), np.tile(np.asarray(rows, np.int64), count)
        return np.asarray(self.scorer(queries).exact(left, right)).reshape(count, len(rows))


def words_of(text: str) -> list[re.Match[str]]:
    """The words of a sentence, where they stand in it."""
    return list(re.finditer(r"[^\W_]+(?:['’-][^\W_]+)*", text))


def without(text: str, word: re.Match[str]) -> str:
    """The sentence without one of its words."""
    return re.sub(r"\s+", " ", text[: word.start()] + text[word.end() :]).strip()


def word_effects(
    text: str, hits: Sequence[Hit], gallery: SearchGallery, encode: Callable[[Sequence[str]], Embeddings]
) -> list[WordEffect]:
    """What each word of a sentence contributes to the score of the first hit, and to its lead over the second."""
    words = words_of(text)[:MOST_WORDS]
    shortened = [without(text, word) for word in words]
    kept = [(word, rest) for word, rest in zip(words, shortened, strict=True) if re.search(r"\w", rest)]
    if not kept or not hits:
        return []
    rows = [hit.row for hit in hits[:2]]
    changed = gallery.scores(encode([rest for _, rest in kept]), rows)
    lead = hits[0].score - hits[1].score if len(rows) > 1 else None
    return [
        WordEffect(
            word[0], word.start(), word.end(), hits[0].score - float(own[0]),
            None if lead is None else lead - float(own[0] - own[1]),
        )
        for (word, _), own in zip(kept, changed, strict=True)
    ]  # fmt: skip
