"""Items → vectors: one adapter per library, one cache, one way to encode a dataset."""

from crosslens.core import offer

__getattr__, __dir__, __all__ = offer(__name__)
