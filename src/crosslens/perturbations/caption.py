"""A caption as a perturbation sees it: its words with their positions and, where it is parsed, its tokens."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from crosslens.language import Parse


class CaptionWord(NamedTuple):
    """A word as written: from its first letter or digit to its last, between blanks."""

    start: int
    end: int
    text: str


class Token(NamedTuple):
    """A token of the parser, with its position in the caption; ``head`` is the position of the token it hangs on."""

    start: int
    end: int
    text: str
    lemma: str
    pos: str
    tag: str
    arc: str
    head: int


class Caption:
    """One caption: its text, its id (the text itself where it has none), and its words.

    Punctuation around a word does not belong to it: of ``"Two men (one of them smiling)."`` the words are *Two*, *men*,
    *one*, *of*, *them*, *smiling*. ``tokens`` are there for perturbations registered with tags.
    """

    def __init__(self, text: str, id: str | None = None, parse: Parse | None = None) -> None:
        self.text = text
        self.id = text if id is None else id
        self._parse = parse

    @cached_property
    def words(self) -> tuple[CaptionWord, ...]:
        return tuple(words_of(self.text))

    @property
    def parse(self) -> Parse:
        """The parse, for perturbations registered with tags."""
        if self._parse is None:
            raise LookupError("this caption was not parsed: register the perturbation with tags=True")
        return self._parse

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        parse = self.parse
        spans = token_spans(self.text, parse.words)
        return tuple(
            Token(start, end, *fields)
            for (start, end), *fields in zip(
                spans, parse.words, parse.lemmas, parse.pos, parse.tags, parse.arcs, parse.heads, strict=True
            )
        )

    def __repr__(self) -> str:
        return f"Caption({self.text!r}, id={self.id!r})"


_ASCII_WORD = re.compile(r"[A-Za-z0-9](?:\S*[A-Za-z0-9])?")
_CHUNK = re.compile(r"\S+")


def words_of(text: str) -> list[CaptionWord]:
    """The words of a text, left to right."""
    if text.isascii():
        return [CaptionWord(*match.span(), match.group()) for match in _ASCII_WORD.finditer(text)]
    words = []
    for match in _CHUNK.finditer(text):
        start, end = match.span()
        while start < end and not _in_word(text[start]):
            start += 1
        while end > start and not _in_word(text[end - 1]):
            end -= 1
        if start < end:
            words.append(CaptionWord(start, end, text[start:end]))
    return words


def _in_word(character: str) -> bool:
    """Letters, digits, and the marks that some scripts write around their letters."""
    return unicodedata.category(character)[0] in "LNM"


def token_spans(text: str, tokens: Sequence[str]) -> list[tuple[int, int]]:
    """Start and end of each token: tokens cover a text from left to right, with nothing but blanks between them."""
    spans, end = [], 0
    for token in tokens:
        start = text.index(token, end)
        end = start + len(token)
        spans.append((start, end))
    return spans
