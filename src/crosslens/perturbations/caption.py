"""A caption as a perturbation sees it, its words and tokens with their positions; and what was changed in it, where."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cached_property
from hashlib import blake2b
from struct import unpack
from typing import NamedTuple, TypeVar

from crosslens.language import Parse, takes_an

T = TypeVar("T")


class Draws:
    """A stream of random draws for one purpose, named by ``keys``."""

    __slots__ = ("_block", "_key", "_pool")

    def __init__(self, seed: int, *keys: str) -> None:
        self._key = "\x1f".join((str(seed), *keys)).encode("utf-8", "surrogatepass")
        self._block = 0
        self._pool: list[int] = []

    def below(self, count: int) -> int:
        """One of 0 … ``count`` − 1, each as likely (to within 2⁻⁶⁴)."""
        pool = self._pool or self._refilled()
        return (pool.pop() * count) >> 64

    def choice(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[self.below(len(options))]

    def favourite(self, options: Iterable[T]) -> T:
        """The option that comes first in an order of all that could be: another option changes it only by beating it.

        Unlike :meth:`choice` it uses up no draw: the same stream likes the same options (told apart by ``str``).
        """
        return min(options, key=lambda option: blake2b(self._key + f"\x1e{option}".encode(), digest_size=16).digest())

    def shuffled(self, values: Sequence[T]) -> list[T]:
        """The values in a random order."""
        order = list(values)
        pool = self._pool
        for last in range(len(order) - 1, 0, -1):
            pool = pool or self._refilled()
            other = (pool.pop() * (last + 1)) >> 64  # as below() draws, without the call
            order[last], order[other] = order[other], order[last]
        return order

    def fraction(self) -> float:
        """A number from 0 up to, but below, 1."""
        return self.below(1 << 53) / (1 << 53)

    def _refilled(self) -> list[int]:
        """The next eight words of the stream."""
        digest = blake2b(self._key, salt=self._block.to_bytes(8, "little")).digest()
        self._block += 1
        self._pool = list(unpack("<8Q", digest))
        return self._pool


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


_NO_TOKEN = Token(-1, -1, "", "", "", "", "", -1)


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
        parse, end = self.parse, 0
        tokens = []
        fields = zip(parse.words, parse.lemmas, parse.pos, parse.tags, parse.arcs, parse.heads, strict=True)
        for word, *others in fields:  # they cover the text from left to right, with nothing but blanks between them
            start = self.text.index(word, end)
            end = start + len(word)
            tokens.append(Token(start, end, word, *others))
        return tuple(tokens)

    def token(self, position: int) -> Token:
        """The token at a position; before the first and behind the last, an empty one."""
        return self.tokens[position] if 0 <= position < len(self.tokens) else _NO_TOKEN

    @cached_property
    def _children(self) -> list[list[int]]:
        children: list[list[int]] = [[] for _ in self.tokens]
        for position, token in enumerate(self.tokens):
            if token.head != position:
                children[token.head].append(position)
        return children

    def below(self, position: int, *arcs: str) -> list[int]:
        """The tokens that hang on a token, by one of these arcs if any are named."""
        return [child for child in self._children[position] if not arcs or self.tokens[child].arc in arcs]

    def __repr__(self) -> str:
        return f"Caption({self.text!r}, id={self.id!r})"


_ASCII_WORD = re.compile(r"[A-Za-z0-9](?:\S*[A-Za-z0-9])?")
_CHUNK = re.compile(r"\S+")


_DETACHED = re.compile(r"\s+(?:['’](?:s|re|ve|ll|d|m)|n['’]t)(?!\S*\w)", re.IGNORECASE)
"""An ending that a tokeniser has cut off: *the man 's hat*, *it is n't*."""


def words_of(text: str) -> list[CaptionWord]:
    """The words of a text, left to right; an ending that stands by itself belongs to the word before it."""
    if text.isascii():
        words = [CaptionWord(*match.span(), match.group()) for match in _ASCII_WORD.finditer(text)]
    else:
        words = []
        for chunk in _CHUNK.finditer(text):
            # Letters, digits, and the marks that some scripts write around their letters.
            inside = [at for at in range(*chunk.span()) if unicodedata.category(text[at])[0] in "LNM"]
            if inside:
                start, end = inside[0], inside[-1] + 1
                words.append(CaptionWord(start, end, text[start:end]))
    for ending in _DETACHED.finditer(text):
        stem = next((at for at, word in enumerate(words) if word.end == ending.start()), None)
        if stem is not None:
            start = words[stem].start
            words[stem : stem + 2] = [CaptionWord(start, ending.end(), text[start : ending.end()])]
    return words


# Tuples, and not dataclasses, because a run makes them by the hundred thousand: a frozen dataclass takes three times as
# long to make.
class Edit(NamedTuple):
    """The characters ``start`` to ``end`` (excluded) of the original, ``before``, became ``after``.

    An insertion has an empty ``before``, a deletion an empty ``after``.
    """

    start: int
    end: int
    before: str
    after: str

    @property
    def span(self) -> tuple[int, int]:
        """Its position in the original: the first character, and one past the last."""
        return self.start, self.end


Edits = tuple[Edit, ...]


class Perturbed(NamedTuple):
    """One caption after a perturbation.

    ``applied`` is False where the perturbation found nothing to change; ``text`` is then the original, and ``reason``
    says why in a few words. ``edits`` are in the order of the text and do not overlap.
    """

    original: str
    text: str
    applied: bool
    reason: str = ""
    edits: tuple[Edit, ...] = ()


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """The text with every edit made; raises ValueError where an edit does not fit the text or the one before it."""
    parts, position = [], 0
    for edit in edits:
        if edit.start < position or text[edit.start : edit.end] != edit.before:
            raise ValueError(f"{edit} does not fit {text!r} after character {position}")
        parts += [text[position : edit.start], edit.after]
        position = edit.end
    return "".join([*parts, text[position:]])


def diff_spans(text: str, edits: Sequence[Edit]) -> tuple[tuple[str, str], ...]:
    """The text from left to right, before and after: what stayed, what was changed, what stayed, …"""
    spans, position = [], 0
    for edit in edits:
        spans += [(text[position : edit.start],) * 2, (edit.before, edit.after)]
        position = edit.end
    return tuple(span for span in (*spans, (text[position:],) * 2) if any(span))


def replaced(caption: Caption, position: int, replacement: str, last: int | None = None) -> Edits:
    """The edits that replace token number ``position``, or all up to ``last``, by ``replacement``.

    The capitals of the old word go over to the new one, and an ``a`` or ``an`` right before it follows the new sound.
    """
    tokens = caption.tokens
    start, end = tokens[position].start, tokens[position if last is None else last].end
    old = caption.text[start:end]
    new = cased_like(old, replacement)
    edit = Edit(start, end, old, new)
    article = tokens[position - 1] if position else None
    if article is None or article.text.lower() not in ("a", "an"):
        return (edit,)
    fitting = cased_like(article.text, "an" if takes_an(new) else "a")
    return (edit,) if fitting == article.text else (Edit(article.start, article.end, article.text, fitting), edit)


def cased_like(model: str, word: str) -> str:
    """The word with the capitals of another: all of them, the first, or its own."""
    if len(model) > 1 and model.isupper():
        return word.upper()
    if model[:1].isupper():
        return word[:1].upper() + word[1:]
    return word
