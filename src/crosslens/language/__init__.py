"""Words: tokens, tags, lemmas, WordNet, colours, scene graphs."""

from crosslens.core import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
