"""Training: losses, models on stored features, and one trainer for all of them."""

from crosslens.core import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
