"""Runs as people and other programs read them: tables, groups, exported files."""

from crosslens.core import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
