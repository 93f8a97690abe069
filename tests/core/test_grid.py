"""Plain text in columns, and content as JSON can hold it."""

from __future__ import annotations

import json
import math

import numpy as np

from crosslens.core.grid import Grid, two_columns
from crosslens.core.json_form import json_form


def test_wide_tables_continue_below() -> None:
    grid = Grid(("group", "one", "two", "three"), (("a", "x" * 20, "y" * 20, "z" * 20),), "llll")
    assert grid.text(60).splitlines() == [
        "group   one                    two",
        f"a       {'x' * 20}   {'y' * 20}",
        "",
        "group   three",
        f"a       {'z' * 20}",
    ]
    assert len(grid.text().splitlines()) == 2


def test_alignment() -> None:
    grid = Grid(("name", "n"), (("a", "1"), ("long one", "1,000")), "lr")
    assert grid.text().splitlines() == ["name           n", "a              1", "long one   1,000"]


def test_names_with_their_texts() -> None:
    text = two_columns([("a", "one two three four five six seven"), ("longer", "")], width=40, indent=2)
    assert text.splitlines() == ["  a        one two three four five six", "           seven", "  longer"]


def test_json_has_no_nan() -> None:
    content = json_form({1: (1.5, math.nan, np.float64("inf")), "text": "text", "more": {"none": None, "yes": True}})
    assert content == {"1": [1.5, None, None], "text": "text", "more": {"none": None, "yes": True}}
    assert json.dumps(content, allow_nan=False)
