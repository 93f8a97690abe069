"""What is wrong with a dataset or a model, what an audit could have noticed, and requirements on what was measured."""

from crosslens.core import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
