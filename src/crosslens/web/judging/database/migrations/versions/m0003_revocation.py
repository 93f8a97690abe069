"""Closed accounts, links for new passwords, the audit log, and which pictures items show."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from crosslens.web.judging.tasks import picture_keys

revision = "0003"
down_revision = "0002"
_ROWS = 1000


def upgrade() -> None:
    """Add the tables; pictures of the items that are there already are entered."""
    op.add_column("account", sa.Column("closed", sa.DateTime(), nullable=True))
    op.create_table(
        "password_reset",
        sa.Column("token_hash", sa.Text(), nullable=False),
        sa.Column("account", sa.Integer(), nullable=False),
        sa.Column("expires", sa.DateTime(), nullable=False),
        sa.ForeignKeyConstraint(["account"], ["account.id"]),
        sa.PrimaryKeyConstraint("token_hash"),
    )
    op.create_index(op.f("ix_password_reset_account"), "password_reset", ["account"], unique=False)
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("created", sa.DateTime(), nullable=False),
        sa.Column("actor", sa.Integer(), nullable=True),
        sa.Column("machine_user", sa.Text(), nullable=False),
        sa.Column("action", sa.String(length=40), nullable=False),
        sa.Column("project", sa.Integer(), nullable=True),
        sa.Column("subject", sa.Integer(), nullable=True),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["actor"], ["account.id"]),
        sa.ForeignKeyConstraint(["project"], ["project.id"]),
        sa.ForeignKeyConstraint(["subject"], ["account.id"]),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_audit_project"), "audit", ["project"], unique=False)
    pictures = op.create_table(
        "item_picture",
        sa.Column("item", sa.Integer(), nullable=False),
        sa.Column("picture", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(["item"], ["item.id"]),
        sa.PrimaryKeyConstraint("item", "picture"),
    )
    op.create_index(op.f("ix_item_picture_picture"), "item_picture", ["picture"], unique=False)
    item = sa.table("item", sa.column("id", sa.Integer), sa.column("content", sa.JSON))
    last = 0
    while (
        rows := op.get_bind()
        .execute(sa.select(item.c.id, item.c.content).where(item.c.id > last).order_by(item.c.id).limit(_ROWS))
        .all()
    ):
        shown = [{"item": number, "picture": key} for number, content in rows for key in picture_keys(content)]
        op.bulk_insert(pictures, shown)
        last = rows[-1][0]
