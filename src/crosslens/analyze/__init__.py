"""What a dataset is like, one folder per question: granularity, discriminability, label quality, hard negatives, …"""

from crosslens.core import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
