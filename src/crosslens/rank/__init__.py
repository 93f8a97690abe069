"""Scores → exact ranks: tiles, ties, backends, ready-made lists."""

from crosslens.core import offer

__getattr__, __dir__, __all__ = offer(__name__)
