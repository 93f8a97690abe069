"""Ids: unique, non-empty strings, always carried beside the arrays they name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from crosslens.core.errors import InputError, UnknownNameError

Ids = tuple[str, ...]


def as_ids(values: Iterable[Any], what: str) -> Ids:
    """Turn numbers or strings into ids; a missing, empty or repeated one raises."""
    ids = tuple("" if value is None else str(value) for value in values)
    if len(set(ids)) == len(ids) and "" not in ids:
        return ids
    seen: dict[str, int] = {}
    for row, name in enumerate(ids):
        if name == "":
            raise InputError(f"empty {what} id", row=row, fix=f"give every {what} an id")
        if name in seen:
            problem = f"duplicate {what} id {name!r} (first at row {seen[name]})"
            fix = "remove or rename one of the two"
            raise InputError(problem, row=row, expected=f"each {what} once", fix=fix, code="duplicate-id", subject=name)
        seen[name] = row
    return ids


def positions(names: Sequence[str], ids: Ids, what: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The row of each of ``names`` in ``ids``; an unknown one raises, naming its row and near names."""
    row_of = {name: row for row, name in enumerate(ids)}
    rows = np.fromiter((row_of.get(name, -1) for name in names), dtype=np.int64, count=len(names))
    if len(rows) and rows.min() < 0:
        row = int(np.argmax(rows < 0))
        near = UnknownNameError(what, names[row], ids[:100_000]).suggestions
        raise InputError(
            f"unknown {what} id {names[row]!r}",
            row=row,
            expected=f"one of the {len(ids)} {what} ids",
            fix=f"did you mean {near[0]!r}?" if near else f"add it to the {what}s, or remove this row",
            code="unknown-id",
            subject=names[row],
        )
    return rows


def frozen(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A read-only view of ``array``: the values that flow through crosslens do not change."""
    view = array.view()
    view.flags.writeable = False
    return view
