"""crosslens: how good is an image–text retrieval system, really?

What most programs need is here (``cl.evaluate``), the rest in the packages (``cl.analyze.score_hard_negatives``). Both
are listed in ``__init__.pyi`` and imported when first used, so that ``import crosslens`` stays fast and never loads an
optional package.
"""

from crosslens.core import lazy_names

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_names(__name__)
del lazy_names
