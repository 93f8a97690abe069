"""A parse: the words of a text, what they are, and which of them hang on which."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

PARSE_COLUMNS = {
    "words": pl.List(pl.String),
    "lemmas": pl.List(pl.String),
    "pos": pl.List(pl.String),
    "tags": pl.List(pl.String),
    "arcs": pl.List(pl.String),
    "heads": pl.List(pl.Int32),
    "chunk_starts": pl.List(pl.Int32),
    "chunk_ends": pl.List(pl.Int32),
}


@dataclass(frozen=True)
class Parse:
    """One text. All but the chunks have one entry per token.

    ``words``         as written
    ``lemmas``        in lower case
    ``pos``           universal parts of speech: ``NOUN``, ``VERB``, …
    ``tags``          Penn Treebank tags: ``NNS``, ``VBG``, …
    ``arcs``          the name of the arc to the head: ``nsubj``, ``amod``, …; ``ROOT`` where there is no head
    ``heads``         the position of the head; a root is its own
    ``chunk_starts``  where the noun chunks begin, and
    ``chunk_ends``    one past where they end
    """

    words: Sequence[str]
    lemmas: Sequence[str]
    pos: Sequence[str]
    tags: Sequence[str]
    arcs: Sequence[str]
    heads: Sequence[int]
    chunk_starts: Sequence[int] = ()
    chunk_ends: Sequence[int] = ()

    def __len__(self) -> int:
        return len(self.words)

    @property
    def noun_chunks(self) -> tuple[str, ...]:
        """The noun chunks as texts, their words joined by spaces."""
        spans = zip(self.chunk_starts, self.chunk_ends, strict=True)
        return tuple(" ".join(self.words[start:end]) for start, end in spans)


@dataclass(frozen=True, eq=False)
class Parses:
    """The parses of many texts, as one Arrow table with a row per text and the columns of ``PARSE_COLUMNS``."""

    table: pl.DataFrame
    pipeline: str

    def __len__(self) -> int:
        return self.table.height

    def __getitem__(self, position: int) -> Parse:
        return Parse(*self.table.row(position))

    def __iter__(self) -> Iterator[Parse]:
        for row in self.table.iter_rows():
            yield Parse(*row)

    def __repr__(self) -> str:
        return f"Parses({len(self)} texts, {self.pipeline})"
