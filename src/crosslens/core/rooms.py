"""Rooms that are called like their main verb: ``crosslens.perturb`` is a package, and ``crosslens.perturb(…)`` works.

Python binds a package to its name as soon as anything in it is imported, so a function of the same name beside it would
be there or not, depending on who imported what before. A package that can be called is always the same.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """A package that, when called, calls the function of its own name."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        return getattr(self, self.__name__.rpartition(".")[2])(*args, **options)


def make_callable(room: str) -> None:
    """Let the imported package ``room`` be called; its ``__init__`` holds a function of the same short name."""
    sys.modules[room].__class__ = _Callable
