"""Where tasks run, in this process or on Ray; and long work: its progress, its threads."""

from crosslens.core import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
