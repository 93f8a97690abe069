"""What scripts, benchmarks, reproductions, trainings and documentation import of the package is there."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.tables import each_row
from tests.test_layers import PACKAGE, ROOT, SOURCE, house, modules_in, public_names

FOLDERS = ("scripts", "benchmarks", "reproduce", "training", "docs")
_BLOCK = re.compile(r"^( *)```(?:python|pycon|py)\b[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)


@cache
def offered(source: Path) -> dict[str, set[str]]:
    """Module → the names that can be imported from it: what it defines or imports, submodules and public names."""
    modules = modules_in(source)
    names = {
        module: {*_defined(ast.parse(file.read_text(encoding="utf-8")).body), *public_names(file.parent)}
        if file.name == "__init__.py"
        else set(_defined(ast.parse(file.read_text(encoding="utf-8")).body))
        for module, file in modules.items()
    }
    for module in modules:
        above, _, name = module.rpartition(".")
        if above:
            names[above].add(name)
    return names


def _defined(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.If | ast.Try | ast.With):
            for part in ("body", "orelse", "handlers", "finalbody"):
                for inner in getattr(node, part, []):
                    yield from _defined(inner.body if isinstance(inner, ast.ExceptHandler) else [inner])
        else:
            yield from (
                name.id for name in ast.walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
            )


def missing(code: str, source: Path = SOURCE) -> list[str]:
    """Dotted names of the package that the code imports, or reads from an imported module, and that are not there."""
    modules, tree, absent = offered(source), ast.parse(code), []
    short: dict[str, str] = {}

    def look_up(module: str, name: str) -> None:
        if module not in modules or name not in modules[module]:
            absent.append(f"{module}.{name}")

    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in (alias for alias in node.names if alias.name.split(".")[0] == PACKAGE):
                if alias.name not in modules:
                    absent.append(alias.name)
                short[alias.asname or PACKAGE] = alias.name if alias.asname else PACKAGE
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == PACKAGE:
            for alias in node.names:
                look_up(node.module, alias.name)
                if f"{node.module}.{alias.name}" in modules:
                    short[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in short:
            look_up(short[node.value.id], node.attr)
    return absent


def pieces(file: Path) -> Iterator[str]:
    """The code of a file: all of a module, the blocks of a page; of a session with a prompt, what is typed."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        yield text
        return
    for block in _BLOCK.finditer(text):
        code = textwrap.dedent(block.group(2))
        if ">>> " in code:
            typed = [line[4:] for line in code.splitlines() if line.startswith((">>> ", "... ")) or line == "..."]
            code = "\n".join(typed)
        yield code


FILES = sorted(
    file
    for folder in FOLDERS
    for file in (ROOT / folder).rglob("*")
    if file.suffix in {".py", ".md"} and "reference" not in file.relative_to(ROOT).parts  # generated, and of signatures
)


@each_row("file", FILES, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_what_is_imported_is_there(file: Path) -> None:
    assert not [name for code in pieces(file) for name in missing(code)]


def test_pages_are_read() -> None:
    assert sum(PACKAGE in code for file in FILES if file.suffix == ".md" for code in pieces(file)) > 20


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("from crosslens.rank.tiles import tile, LARGEST", []),
        ("from crosslens.rank import rank, tiles\ntiles.tile", []),
        ("import crosslens as cl\ncl.evaluate", ["crosslens.evaluate"]),
        ("import crosslens.rank.gone", ["crosslens.rank.gone"]),
        ("def late():\n    from crosslens.rank.gone import tile", ["crosslens.rank.gone.tile"]),
        ("from crosslens.rank.tiles import gone", ["crosslens.rank.tiles.gone"]),
        ("from crosslens.rank import tiles\ntiles.gone()", ["crosslens.rank.tiles.gone"]),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, code: str, names: list[str]) -> None:
    files = {"__init__.py": "", "rank/__init__.py": "", "rank/tiles.py": "LARGEST: int = 3\ndef tile(): ..."}
    source = house(tmp_path, files)
    (source / "rank" / "__init__.pyi").write_text("from crosslens.rank.tiles import tile as rank\n")
    assert missing(code, source) == names
