"""The keywords of functions that accept options, for editors and type checkers: ``keywords.pyi`` of each package."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import FunctionType

from crosslens.core.options import AcceptedKeyword

_ACCEPTED = "accepted_keywords"
SOURCE = Path(__file__).resolve().parents[2] / "src" / "crosslens"
NOTE = "# Written by scripts/generate_reference.py from what @accepts_options names: change that, run `make docs`.\n\n"


def keyword_stubs() -> dict[Path, str]:
    """File → its text: a ``TypedDict`` for each name in ``Unpack[…]`` of a function that accepts options."""
    stubs = {}
    for package in sorted(path for path in SOURCE.iterdir() if path.is_dir()):
        kinds = dict(sorted(_kinds(package)))
        if kinds:
            stubs[package / "keywords.pyi"] = _stub(kinds)
    return stubs


def _kinds(package: Path) -> Iterator[tuple[str, tuple[AcceptedKeyword, ...]]]:
    for file in sorted(package.rglob("*.py")):
        if "@accepts_options(" not in file.read_text(encoding="utf-8"):
            continue
        module = import_module(".".join(("crosslens", *file.relative_to(SOURCE).with_suffix("").parts)))
        for value in vars(module).values():
            if (
                isinstance(value, FunctionType)
                and value.__module__ == module.__name__
                and "accepted_keywords" in vars(value)
            ):
                annotation, keywords = vars(value)["accepted_keywords"]
                yield annotation.removeprefix("Unpack[").removesuffix("]"), keywords


def _stub(kinds: dict[str, tuple[AcceptedKeyword, ...]]) -> str:
    homes: dict[str, set[str]] = {"typing": {"TypedDict"}}
    classes = []
    for name, keywords in kinds.items():
        lines = [f"class {name}(TypedDict, total=False):"]
        for keyword in keywords:
            lines.append(f"    {keyword.parameter.name}: {keyword.parameter.annotation}")
            for word in set(re.findall(r"[A-Za-z_]\w*", keyword.parameter.annotation)) - vars(builtins).keys():
                homes.setdefault(_home_of(word, keyword.home), set()).add(word)
        classes.append("\n".join(lines))
    imports = [f"from {home} import {', '.join(sorted(names))}" for home, names in sorted(homes.items())]
    outside = [line for line in imports if not line.startswith("from crosslens")]
    inside = [line for line in imports if line not in outside]
    blocks = ["\n".join(block) for block in (outside, inside) if block]
    return NOTE + "\n\n".join([*blocks, *classes]) + "\n"


def _home_of(name: str, module: str) -> str:
    """What a name is imported from where ``module`` writes it, for its types too: a package where it is public."""
    home = "collections.abc" if name == "Sequence" else module
    for node in ast.walk(ast.parse(Path(str(sys.modules[module].__file__)).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and any((alias.asname or alias.name) == name for alias in node.names):
            home = str(node.module)
    package = ".".join(home.split(".")[:2])
    return package if name in dir(import_module(package)) else home
