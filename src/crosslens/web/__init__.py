"""Pages over run folders: an explorer, a map, live search and judging, served to a browser."""

from crosslens.core import offer

__getattr__, __dir__, __all__ = offer(__name__)
