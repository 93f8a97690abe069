"""The few functions that put stages together."""

from crosslens.core import offer

__getattr__, __dir__, __all__ = offer(__name__)
