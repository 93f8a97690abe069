"""The first format: accounts, projects, items, assignments, judgements and what was taken back."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from crosslens.web.judging.database.migrations import column, number, reference

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create all tables."""
    op.create_table(
        "account",
        number(),
        column("name", sa.Text),
        column("name_key", sa.Text, unique=True),
        column("password_hash", sa.Text, nullable=True),
        column("is_owner", sa.Boolean),
        column("created", sa.DateTime),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "project",
        number(),
        *(column(name, sa.Text) for name in ("name", "task")),
        column("labels", sa.JSON),
        column("guidelines", sa.Text),
        column("overlap", sa.Integer),
        column("seed", sa.BigInteger),
        column("settings", sa.JSON),
        column("created", sa.DateTime),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "invitation",
        column("token_hash", sa.Text, primary_key=True),
        reference("project", nullable=True),
        column("role", sa.String(20)),
        column("expires", sa.DateTime),
        *(column(name, sa.Integer) for name in ("uses", "used")),
        column("created", sa.DateTime),
    )
    op.create_table(
        "item",
        number(),
        reference("project"),
        column("position", sa.Integer),
        column("content", sa.JSON),
        column("kind", sa.String(20)),
        column("expected", sa.JSON, nullable=True),
        column("vacancies", sa.Integer),
        sa.UniqueConstraint("project", "position"),
        sqlite_autoincrement=True,
    )
    op.create_index("item_kind", "item", ["project", "kind", "position"])
    vacant = sa.text("vacancies > 0")
    op.create_index("item_vacant", "item", ["project", "position"], sqlite_where=vacant, postgresql_where=vacant)
    op.create_table(
        "login_session",
        column("token_hash", sa.Text, primary_key=True),
        reference("account", index=True),
        *(column(name, sa.DateTime) for name in ("created", "expires")),
    )
    op.create_table(
        "membership",
        reference("project", primary_key=True),
        reference("account", primary_key=True, index=True),
        column("role", sa.String(20)),
        column("created", sa.DateTime),
    )
    op.create_table("adjudication", reference("item", primary_key=True), *_answer())
    op.create_table(
        "assignment",
        number(),
        reference("item", index=True),
        reference("account"),
        column("state", sa.String(10)),
        column("created", sa.DateTime),
        sa.UniqueConstraint("account", "item"),
        sqlite_autoincrement=True,
    )
    op.create_index("assignment_open", "assignment", ["state", "created"])
    op.create_table(
        "judgement_history",
        number(),
        column("assignment", sa.Integer, index=True),
        reference("item", index=True),
        *_answer(column("seconds", sa.Double)),
        column("source", sa.String(10)),
        column("undone", sa.DateTime),
    )
    op.create_table(
        "judgement",
        number(),
        reference("assignment", unique=True),
        reference("item"),
        *_answer(column("seconds", sa.Double)),
        column("source", sa.String(10)),
        sa.UniqueConstraint("item", "account"),
        sqlite_autoincrement=True,
    )
    op.create_index("judgement_account", "judgement", ["account", "created"])


def _answer(*took: sa.Column[Any]) -> tuple[sa.Column[Any], ...]:
    rating, text = column("rating", sa.Integer, nullable=True), column("text", sa.Text)
    return reference("account"), column("labels", sa.JSON), rating, text, *took, column("created", sa.DateTime)
