"""Runs as people and other programs read them: tables, groups, exported files."""

from crosslens.core import offer

__getattr__, __dir__, __all__ = offer(__name__)
