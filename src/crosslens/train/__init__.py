"""Training: losses, models on stored features, and one trainer for all of them."""

from crosslens.core import offer

__getattr__, __dir__, __all__ = offer(__name__)
