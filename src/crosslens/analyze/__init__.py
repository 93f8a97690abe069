"""What a dataset is like, one folder per question: granularity, discriminability, label quality, hard negatives, …"""

from crosslens.core import offer

__getattr__, __dir__, __all__ = offer(__name__)
