"""crosslens: how good is an image–text retrieval system, really?

The public names are in ``__init__.pyi``. Each is imported when first used, so that ``import crosslens`` stays fast and
never loads an optional package.
"""

from crosslens.core import offer

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = offer(__name__)
del offer
