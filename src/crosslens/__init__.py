"""crosslens: how good is an image–text retrieval system, really?"""

__version__ = "0.1.0"
