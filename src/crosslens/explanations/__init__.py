"""Why a retrieval failed, and what would have fixed it."""

from crosslens.core import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
