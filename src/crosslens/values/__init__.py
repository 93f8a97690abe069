"""The values that flow, from datasets to runs: ids beside arrays, saved and loaded by themselves."""

from crosslens.core import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
