"""Changes to a text that leave its grammar whole: articles, capitals and spaces follow what is changed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from crosslens.synth.grammar import a

_ARTICLE = re.compile(r"\b(an?) $", re.IGNORECASE)


class Edit(NamedTuple):
    """Put ``text`` in the place of what stands from ``start`` to ``end``."""

    start: int
    end: int
    text: str


def apply(text: str, edits: Iterable[Edit]) -> str:
    """The text with all edits made; an article right before one is brought into line with what now follows it."""
    made, done = "", 0
    for edit in sorted(edits):
        made += text[done : edit.start]
        begins = not made.strip() or made.rstrip()[-1:] in ".!?"
        new = edit.text[:1].upper() + edit.text[1:] if begins else edit.text
        made = agree(made, (new + text[edit.end :]).lstrip()) + new
        done = edit.end
    return tidy(made + text[done:])


def agree(before: str, follows: str) -> str:
    """``before`` with the ``a`` or ``an`` at its end as the next word asks."""
    found, word = _ARTICLE.search(before), re.match(r"[\w'-]+", follows)
    if not found or not word:
        return before
    right = a(word[0]).split(" ")[0]
    return before[: found.start()] + (right.capitalize() if found[1][0].isupper() else right) + " "


def tidy(text: str) -> str:
    """Single spaces, none before a mark, a capital at the start."""
    text = re.sub(r"\s+", " ", text).strip()
    text = re.sub(r" ([,.;:!?])", r"\1", text)
    return text[:1].upper() + text[1:]
