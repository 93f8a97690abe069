"""Files: opened, parsed and limited, written whole, hashed, resumed, fetched from stores, and trusted."""

from crosslens.core import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
