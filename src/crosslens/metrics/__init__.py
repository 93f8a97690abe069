"""Ranking in, one value per query out: classic and graded retrieval metrics, each with a name of its own."""

from crosslens.core import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
