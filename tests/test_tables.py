"""The tests themselves: no folder and no row is left out, and few rows cover what all of them combine."""

from __future__ import annotations

from fnmatch import fnmatch
from itertools import combinations, product
from pathlib import Path

import pytest

from tests.tables import covering, each_row


def test_every_folder_of_tests_is_collected(pytestconfig: pytest.Config) -> None:
    here = Path(__file__).parent
    folders = {part for file in here.rglob("test_*.py") for part in file.parent.relative_to(here).parts}
    assert "build" in folders
    left_out = pytestconfig.getini("norecursedirs")
    assert not [folder for folder in folders if any(fnmatch(folder, pattern) for pattern in left_out)]


def test_every_row_is_tried_and_all_that_fail_are_named() -> None:
    tried: list[int] = []

    @each_row(("number", "limit"), [(1, 2), (3, 2), (2, 2), (5, 4)], ids=["low", "over", "at", "far over"])
    def within(number: int, limit: int) -> None:
        tried.append(number)
        assert number <= limit

    with pytest.raises(ExceptionGroup, match="2 of 4 rows fail") as caught:
        within()
    assert tried == [1, 3, 2, 5]
    assert [error.__notes__ for error in caught.value.exceptions] == [["in the row 'over'"], ["in the row 'far over'"]]


def test_an_expected_error_that_does_not_come_fails_its_row() -> None:
    @each_row("text", ["1", "x"])
    def refused(text: str) -> None:
        with pytest.raises(ValueError, match="x"):
            int(text)

    with pytest.raises(ExceptionGroup, match="1 of 2 rows fail"):
        refused()


def test_a_table_without_rows_fails() -> None:
    with pytest.raises(AssertionError, match="without rows"):
        each_row("value", [])(lambda value: None)()


def test_few_rows_have_every_pair_of_choices() -> None:
    rows = {"".join(row): row for row in product("ab", "cd", "ef", "gh")}
    few = covering(rows)
    assert len(few) < len(rows) / 2
    every = {pair for row in rows.values() for pair in combinations(row, 2)}
    assert {pair for name in few for pair in combinations(rows[name], 2)} == every
