"""The versions of the database, and how their columns are written: each must have a value unless it says otherwise."""

from typing import Any

import sqlalchemy as sa


def column(name: str, kind: Any, *constraints: Any, nullable: bool = False, **options: Any) -> sa.Column[Any]:
    """A column of a new table."""
    return sa.Column(name, kind, *constraints, nullable=nullable, **options)


def number() -> sa.Column[Any]:
    """The number that a row is known by."""
    return column("id", sa.Integer, primary_key=True)


def reference(table: str, name: str = "", **options: Any) -> sa.Column[Any]:
    """A column that holds the number of a row of another table; called like the table where no name is given."""
    return column(name or table, sa.Integer, sa.ForeignKey(f"{table}.id"), **options)
