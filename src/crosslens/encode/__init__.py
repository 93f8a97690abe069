"""Items → vectors: one adapter per library, one cache, one way to encode a dataset."""

from crosslens.core import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
