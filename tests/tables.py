"""Tables of cases: every row in one test, whose failures are reported together; few rows that cover the others."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import pytest

Test = Callable[..., None]


def each_row(
    names: str | Sequence[str],
    values: Iterable[Any] | Callable[[], Iterable[Any]],
    *,
    ids: Callable[[Any], object] | Sequence[object] | None = None,
) -> Callable[[Test], Test]:
    """``pytest.mark.parametrize`` within one case, for rows that can share their fixtures.

    Rows that take time to make are a function's: it is called by the process that runs the test.
    """
    columns = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    rows = values if callable(values) else list(values)
    single = isinstance(names, str) and len(columns) == 1

    def decorated(test: Test) -> Test:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def every_row(*args: Any, **fixtures: Any) -> None:
            table, failures = list(rows() if callable(rows) else rows), list[Exception]()
            for number, row in enumerate(table):
                cells = (row,) if single else row
                try:
                    test(*args, **dict(zip(columns, cells, strict=True)), **fixtures)
                except (Exception, pytest.fail.Exception) as error:  # a skip is one of neither
                    label = [ids(value) for value in cells] if callable(ids) else ids[number] if ids else row
                    failure = error if isinstance(error, Exception) else AssertionError(str(error))
                    failure.add_note(f"in the row {label!r:.200}")
                    failures.append(failure)
            assert table, "a table without rows proves nothing"
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(table)} rows fail", failures)

        kept = [parameter for name, parameter in signature.parameters.items() if name not in columns]
        every_row.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        del every_row.__wrapped__
        return every_row

    return decorated


def covering(choices: Mapping[str, Iterable[str]]) -> set[str]:
    """The names of few rows, in which every two choices meet that meet in any row."""
    pairs = {name: set(combinations(sorted(set(numbers)), 2)) for name, numbers in choices.items()}
    missing, few = set[tuple[str, ...]]().union(*pairs.values()), set[str]()
    while missing:
        few.add(best := max(pairs, key=lambda name: len(pairs[name] & missing)))
        missing -= pairs[best]
    return few


def rest_slow(values: Iterable[Any], fast: int = 1) -> list[Any]:
    """Cases that take the same way through the code: the first ``fast`` always run, the others with the slow tests."""
    rows = [value if isinstance(value, tuple) else (value,) for value in values]
    return [pytest.param(*row, marks=() if number < fast else pytest.mark.slow) for number, row in enumerate(rows)]
