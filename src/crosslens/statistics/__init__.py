"""How sure a figure is: intervals over images, paired tests, corrections for many comparisons."""

from crosslens.core import offer

__getattr__, __dir__, __all__ = offer(__name__)
