"""φ: how much a caption says what an image's captions say."""

from crosslens.core import offer

__getattr__, __dir__, __all__ = offer(__name__)
