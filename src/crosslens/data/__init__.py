"""One reader and writer per format, rankings and judgements in and out, and what a dataset is like in numbers."""

from crosslens.core import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
