"""What every package speaks in: errors, options, registries, and the parts that results are shown by."""

from crosslens.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
