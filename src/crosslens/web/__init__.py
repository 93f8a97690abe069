"""Pages over run folders: an explorer, a map, live search and judging, served to a browser."""

from crosslens.core import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
