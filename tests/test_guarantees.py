"""Every promise on the page of guarantees names tests, and every test that it names exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.tables import each_row

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "explanation" / "guarantees.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| promise")]
NAMED = sorted(set(re.findall(r"`(tests/[\w/.:]+)`", PAGE)))


def test_every_promise_names_a_test() -> None:
    assert ROWS
    for row in ROWS:
        assert re.search(r"`tests/[\w/]+\.py", row), f"no test holds: {row}"


@each_row("name", NAMED)
def test_named_test_exists(name: str) -> None:
    path, *inside = name.split("::")
    function = inside[-1] if inside else ""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    functions = [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert function in functions if function else any(name.startswith("test_") for name in functions)


def test_tests_that_the_page_on_security_names_exist() -> None:
    page = (ROOT / "docs" / "explanation" / "security.md").read_text(encoding="utf-8")
    trees = [ast.parse((ROOT / path).read_text("utf-8")) for path in set(re.findall(r"tests/[\w/]+\.py", page))]
    functions = {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert set(re.findall(r"\b(test_\w+)(?!\.py)\b`", page)) <= functions
