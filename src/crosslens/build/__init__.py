"""New benchmarks from candidates: descriptions checked, rewritten, and set beside pictures easy to confuse."""

from crosslens.core import offer

__getattr__, __dir__, __all__ = offer(__name__)
