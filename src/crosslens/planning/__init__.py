"""What an evaluation will cost on this machine, and what is installed on it."""

from crosslens.core import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
