"""Words: tokens, tags, lemmas, WordNet, colours, scene graphs."""

from crosslens.core import offer

__getattr__, __dir__, __all__ = offer(__name__)
