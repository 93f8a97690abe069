"""The registry of dataset readers: every format is one function, registered under the name people load it by."""

from __future__ import annotations

from collections.abc import Callable

from crosslens.core.dataset import Dataset
from crosslens.core.registry import Registry

READERS: Registry[Callable[..., Dataset]] = Registry("dataset reader", "readers")
