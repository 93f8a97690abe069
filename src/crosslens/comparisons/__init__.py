"""Which of several runs is better, and how sure that is."""

from crosslens.core import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
