from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import crosslens.cli
from tests.tables import each_row

MODULES = sorted(Path(crosslens.cli.__file__).parent.rglob("*.py"))


@each_row("module", MODULES, ids=lambda file: file.stem)
def test_rooms_imported_whole_are_used_through_their_doors(module: Path) -> None:
    tree = ast.parse(module.read_text(encoding="utf-8"))
    imports = [alias for node in tree.body if isinstance(node, ast.Import) for alias in node.names]
    rooms = {alias.asname: alias.name for alias in imports if alias.asname and alias.name.startswith("crosslens.")}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in rooms:
            assert node.attr in import_module(rooms[node.value.id]).__all__, f"line {node.lineno}"
