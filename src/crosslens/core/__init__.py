"""The values that flow through crosslens, and the few things all of them need."""

from crosslens.core.lazy import offer

__getattr__, __dir__, __all__ = offer(__name__)
