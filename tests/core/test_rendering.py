"""Plain text in columns."""

from __future__ import annotations

from typing import Any

import pytest

from crosslens.core import Grid, merged_notes, percent, two_columns


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
    text = two_columns([("a", "the same model and budget as flickr8k-vse-triplet")], width=46)
    assert text.splitlines()[1] == "    flickr8k-vse-triplet", "names stay whole"


@pytest.mark.parametrize(
    ("value", "options", "expected"),
    [
        (0.58251, {}, "58.3"),
        (-0.0001, {}, "0.0"),
        (0.021, {"signed": True}, "+2.1"),
        (0.5, {"unit": "%"}, "50.0%"),
        (None, {"unit": "%"}, "–"),
        (float("nan"), {}, "–"),
    ],
)
def test_shares_in_percent(value: float | None, options: dict[str, Any], expected: str) -> None:
    assert percent(value, **options) == expected


def test_notes_that_say_the_same_are_one() -> None:
    assert merged_notes([]) == []
    assert merged_notes([("i2t", "3 queries are empty")]) == ["i2t: 3 queries are empty"]
    assert merged_notes([("i2t", "a rule"), ("t2i", "a rule"), ("t2t", "a rule")]) == ["i2t, t2i and t2t: a rule"]
    assert merged_notes([("a", "in 3 of 10 lists"), ("b", "in 3 of 10 lists"), ("c", "in 5 of 12 lists")]) == [
        "in 3 of 10 (a), 3 of 10 (b) and 5 of 12 (c) lists"
    ]
    assert merged_notes([("a", "query 'x y' is tied"), ("b", "query 'z' is tied")]) == [
        "query 'x y' (a) and 'z' (b) is tied"
    ]
    far = [("a", "1 of all the queries that were asked is 2"), ("b", "3 of all the queries that were asked is 4")]
    assert merged_notes(far) == [f"{subject}: {text}" for subject, text in far]
    assert merged_notes([("a", "a rule"), ("b", "another rule")]) == ["a: a rule", "b: another rule"]
