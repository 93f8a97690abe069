"""φ: how much a caption says what an image's captions say."""

from crosslens.core import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
