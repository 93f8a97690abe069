"""New benchmarks from candidates: descriptions checked, rewritten, and set beside pictures easy to confuse."""

from crosslens.core import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
