"""How sure a figure is: intervals over images, paired tests, corrections for many comparisons."""

from crosslens.core import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
