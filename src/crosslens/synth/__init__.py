"""Synthetic scenes: drawn pictures with captions, objects and boxes."""

from crosslens.core import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
