"""What was changed in a caption, and where: enough to make the new text from the old one; and words replaced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from crosslens.language import takes_an
from crosslens.perturbations.caption import Caption


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
    parts, done = [], 0
    for edit in edits:
        if edit.start < done or text[edit.start : edit.end] != edit.before:
            raise ValueError(f"{edit} does not fit {text!r} after character {done}")
        parts += [text[done : edit.start], edit.after]
        done = edit.end
    return "".join([*parts, text[done:]])


def replaced(caption: Caption, position: int, replacement: str, last: int | None = None) -> Edits:
    """The edits that replace token number ``position``, or all up to ``last``, by ``replacement``.

    The capitals of the old word go over to the new one, and an ``a`` or ``an`` right before it follows the new sound.
    """
    tokens = caption.tokens
    start, end = tokens[position].start, tokens[position if last is None else last].end
    old = caption.text[start:end]
    new = cased_like(old, replacement)
    edits: Edits = (Edit(start, end, old, new),)
    if position:
        article = tokens[position - 1]
        fitting = fitting_article(article.text, new)
        if fitting != article.text:
            edits = (Edit(article.start, article.end, article.text, fitting), *edits)
    return edits


def fitting_article(article: str, word: str) -> str:
    """``a`` or ``an`` as the word asks, in the capitals of the article at hand; any other word as it is."""
    if article.lower() not in ("a", "an"):
        return article
    return cased_like(article, "an" if takes_an(word) else "a") if word else article


def cased_like(model: str, word: str) -> str:
    """The word with the capitals of another: all of them, the first, or its own."""
    if len(model) > 1 and model.isupper():
        return word.upper()
    if model[:1].isupper():
        return word[:1].upper() + word[1:]
    return word
