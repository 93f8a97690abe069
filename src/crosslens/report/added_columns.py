"""Columns from a table of one's own, added to the queries of a run: what ``--columns`` reads and ``--by`` names.

A table is keyed by ``caption``, or by ``image`` where it has no captions. A caption's columns group caption queries; an
image's columns group image queries and the captions of those images.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from crosslens.core import BOTH, IMAGE_TO_TEXT, InputError, Run, UnknownNameError, UsageError, split_name
from crosslens.data import existing_file, read_table, typed

_KEYS = ("caption", "image")


@dataclass(frozen=True, eq=False)
class ColumnTable:
    """A row per key; a key that occurs with several values of a column has the list of them."""

    table: pl.DataFrame
    key: str
    file: str

    @property
    def names(self) -> list[str]:
        return [name for name in self.table.columns if name != self.key]

    def of(self, ids: Sequence[str]) -> tuple[pl.DataFrame, int]:
        """The columns in the order of these ids, null where the table does not have one; and how many it has."""
        keys = pl.DataFrame({self.key: list(ids)}, schema={self.key: pl.String})
        known = int(keys[self.key].is_in(self.table[self.key].to_list()).sum())
        return keys.join(self.table, on=self.key, how="left", maintain_order="left").drop(self.key), known

    def groups(self, column: str, ids: Sequence[str], what: str) -> tuple[dict[str, str], list[str]]:
        """The value of one column for each id that has one, and notes; a table that knows none of the ids raises."""
        if column not in self.names:
            raise UnknownNameError("column", column, self.names)
        table, known = self.of(ids)
        note = self.check(known, len(ids), what, ids[0] if len(ids) else "")
        values = table[column]
        if isinstance(values.dtype, pl.List):
            raise UsageError(f"{self.file} has several values of {column} for one {self.key}", fix="keep one of them")
        labels = values.cast(pl.String).to_list()
        return {query: label for query, label in zip(ids, labels, strict=True) if label is not None}, note

    def check(self, known: int, total: int, what: str, example: str) -> list[str]:
        """A note where some ids are not in the table; an error where none is."""
        if not known:
            raise InputError(
                f"none of the {total:,} {what} is in the column {self.key!r}, such as {example!r}",
                file=self.file,
                expected=f"ids of the run's {self.key}s; the table has ids such as {self.table[self.key][0]!r}",
                fix="check that the table is of the same dataset and split",
                code="no-shared-ids",
            )
        if known == total:
            return []
        return [f"{total - known:,} of the {total:,} {what} are not in {self.file}: they have no value of its columns"]


def read_columns(path: str | Path) -> ColumnTable:
    """Read a .parquet, .csv or .tsv table with a column ``caption`` or ``image`` and others."""
    path = existing_file(path)
    table = read_table(path).frame
    key = next((name for name in _KEYS if name in table.columns), None)
    if key is None or not set(table.columns) - set(_KEYS):
        raise InputError(
            f"the columns are {', '.join(table.columns) or 'none'}",
            file=path,
            expected="a column caption or image, and others to group by",
            fix="rename the column that holds the ids" if key is None else "add a column",
        )
    if not table.height:
        raise InputError("the table has no rows", file=path, expected="at least one row", fix="check the path")
    table = table.with_columns(
        pl.col(key).cast(pl.String), *(typed(table[name]) for name in table.columns if name not in _KEYS)
    )
    names = [name for name in table.columns if name not in _KEYS]
    if table[key].n_unique() < table.height:
        table = table.group_by(key, maintain_order=True).agg(
            pl.col(name).drop_nulls().unique(maintain_order=True) for name in names
        )
        single = [name for name in names if (table[name].list.len() <= 1).all()]
        table = table.with_columns(pl.col(name).list.first() for name in single)
    return ColumnTable(table.select(key, *names), key, str(path))


def add_columns(run: Run, added: ColumnTable) -> tuple[Run, list[str]]:
    """The run with the columns beside its own, and notes about queries without a row; nothing shared raises.

    A column that the run has under the same name gives way to the table's, which was named on purpose.
    """
    columns, notes = dict(run.columns), []
    counted = [
        (direction, ids, keys)
        for direction, ids in _queries(run).items()
        if (keys := _keys(run, direction, ids, added.key))
    ]
    matched = {direction: added.of(keys) for direction, _, keys in counted}
    if not any(known for _, known in matched.values()):
        ids = counted[0][2] if counted else ()
        added.check(0, len(ids), f"{added.key}s of the run {run.name!r}", ids[0] if ids else "")
    for direction, _, keys in counted:
        table, known = matched[direction]
        own = columns.get(direction, pl.DataFrame())
        replaced = [name for name in added.names if name in own.columns]
        notes += [f"{name} is that of {added.file}; the run has a {name} of its own" for name in replaced]
        own = own.drop(replaced)
        notes += added.check(known, len(keys), f"{direction} queries", keys[0])
        columns[direction] = pl.concat([own, table], how="horizontal") if own.width else table
    return replace(run, columns=columns), notes


def _queries(run: Run) -> dict[str, tuple[str, ...]]:
    """The ids of the queries of each direction."""
    queries: dict[str, tuple[str, ...]] = {}
    for name, values in run.values.items():
        queries.setdefault(split_name(name)[0], values.query_ids)
    queries.pop(BOTH, None)  # sums over both directions have no queries to group
    return queries


def _keys(run: Run, direction: str, ids: tuple[str, ...], key: str) -> tuple[str, ...]:
    """What the table knows each query by; nothing where it does not apply to the direction."""
    if direction == IMAGE_TO_TEXT:
        return ids if key == "image" else ()
    if key == "caption":
        return ids
    own = run.columns.get(direction, pl.DataFrame())
    return tuple(own["image"].cast(pl.String)) if "image" in own.columns else ()
