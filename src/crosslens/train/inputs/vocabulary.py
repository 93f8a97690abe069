"""Words as numbers: the vocabulary of the training captions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

PADDING, UNKNOWN, FIRST = 0, 1, 2
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")


def words_of(text: str) -> list[str]:
    """The words of a caption in lower case, without punctuation."""
    return _WORD.findall(text.lower())


@dataclass(frozen=True)
class CaptionVocabulary:
    """Known words; the first has the number 2, after padding (0) and unknown words (1)."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, texts: Iterable[str], least: int = 4) -> CaptionVocabulary:
        """The words that occur at least ``least`` times: the most frequent first, then by the alphabet."""
        counts = Counter(word for text in texts for word in words_of(text))
        kept = [word for word, count in counts.items() if count >= least]
        return cls(tuple(sorted(kept, key=lambda word: (-counts[word], word))))

    def __len__(self) -> int:
        return len(self.words) + FIRST

    def encode(self, texts: Sequence[str], longest: int = 64) -> tuple[Array, Array]:
        """Word numbers, padded by 0 to the longest text, and how many each text has; at least one, an unknown."""
        number_of = {word: number for number, word in enumerate(self.words, FIRST)}
        rows = [[number_of.get(word, UNKNOWN) for word in words_of(text)[:longest]] or [UNKNOWN] for text in texts]
        lengths = np.array([len(row) for row in rows], np.int64)
        words = np.full((len(rows), int(lengths.max(initial=1))), PADDING, np.int64)
        for at, row in enumerate(rows):
            words[at, : len(row)] = row
        return words, lengths
