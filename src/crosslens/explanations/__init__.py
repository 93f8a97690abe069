"""Why a retrieval failed, and what would have fixed it."""

from crosslens.core import offer

__getattr__, __dir__, __all__ = offer(__name__)
