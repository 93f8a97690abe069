"""The few functions that put stages together."""

from crosslens.core import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
