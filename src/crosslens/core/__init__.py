"""The values that flow through crosslens, and the few things all of them need."""

from crosslens.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
