"""Captions → tokens, by the name of a tokenizer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from crosslens.core.errors import UnknownNameError
from crosslens.language.tokens_ptb import ptb_tokens


def split_tokens(text: str) -> list[str]:
    """Lowercase, cut at white space; punctuation stays where it is."""
    return text.lower().split()


TOKENIZERS: Mapping[str, Callable[[str], list[str]]] = {"ptb": ptb_tokens, "split": split_tokens}
"""``ptb``: Penn-Treebank-like, lowercase, without punctuation (what caption scores are defined with); ``split``."""


def tokenizer(name: str = "ptb") -> Callable[[str], list[str]]:
    """The tokenizer of that name."""
    if name not in TOKENIZERS:
        raise UnknownNameError("tokenizer", name, TOKENIZERS)
    return TOKENIZERS[name]


def tokenize(texts: Iterable[str], name: str = "ptb") -> list[list[str]]:
    """The tokens of each text. A text may have none: punctuation alone is left out."""
    return list(map(tokenizer(name), texts))
