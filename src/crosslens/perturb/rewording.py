"""One word for another, as a careful writer would put it: capitals kept, ``a`` and ``an`` made to fit."""

from __future__ import annotations

from crosslens.language.articles import takes_an
from crosslens.perturb.caption import Caption
from crosslens.perturb.edit import Edit
from crosslens.perturb.perturbation import Edits


def replaced(caption: Caption, position: int, replacement: str, last: int | None = None) -> Edits:
    """The edits that put ``replacement`` in the place of token number ``position``, or of all up to ``last``.

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
