"""Synthetic scenes: drawn pictures with captions, objects and boxes."""

from crosslens.core import offer

__getattr__, __dir__, __all__ = offer(__name__)
