"""Closed accounts, links for new passwords, the audit log, and which pictures items show."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from crosslens.web.judging.database.migrations import column, number, reference
from crosslens.web.judging.tasks import picture_keys

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the tables; pictures of the items that are there already are entered."""
    op.add_column("account", column("closed", sa.DateTime, nullable=True))
    op.create_table(
        "password_reset",
        column("token_hash", sa.Text, primary_key=True),
        reference("account", index=True),
        column("expires", sa.DateTime),
    )
    op.create_table(
        "audit",
        number(),
        column("created", sa.DateTime),
        reference("account", "actor", nullable=True),
        column("machine_user", sa.Text),
        column("action", sa.String(40)),
        reference("project", nullable=True, index=True),
        reference("account", "subject", nullable=True),
        column("detail", sa.Text),
        sqlite_autoincrement=True,
    )
    pictures = op.create_table(
        "item_picture",
        reference("item", primary_key=True),
        column("picture", sa.String(64), primary_key=True, index=True),
    )
    item = sa.table("item", sa.column("id", sa.Integer), sa.column("content", sa.JSON))
    query, last = sa.select(item).order_by(item.c.id).limit(1000), 0
    while rows := op.get_bind().execute(query.where(item.c.id > last)).all():
        entries = [{"item": row, "picture": key} for row, content in rows for key in picture_keys(content)]
        op.bulk_insert(pictures, entries)
        last = rows[-1][0]
