"""Lazy exports: a package has the names that its ``__init__.pyi`` states, and loads each when it is first used.

One list serves the type checker, editors and the running program. ``from crosslens.rank import Scorer`` loads the
module that defines ``Scorer`` and nothing else of the package.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of ``package``, from the stub file beside its ``__init__``.

    Packages below it, which the stub imports ``from .``, are listed by ``__dir__`` and are not in ``__all__``.
    """
    module = sys.modules[package]
    # Public name → its module, from lines such as from crosslens.rank.x import A as A.
    statements = ast.parse(Path(str(module.__file__)).with_suffix(".pyi").read_text(encoding="utf-8")).body
    homes = {
        alias.name: statement.module
        for statement in statements
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=module)
        home = homes[name]
        if home is None:
            return import_module(f"{package}.{name}")
        value = getattr(import_module(home), name)
        setattr(module, name, value)
        return value

    return load, lambda: sorted(homes), sorted(name for name, home in homes.items() if home is not None)
