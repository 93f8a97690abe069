"""What models were asked: requests and tokens of each run of ``crosslens judge``."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "model_requests",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("project", sa.Integer(), nullable=False),
        sa.Column("account", sa.Integer(), nullable=False),
        sa.Column("requests", sa.BigInteger(), nullable=False),
        sa.Column("sent", sa.BigInteger(), nullable=False),
        sa.Column("received", sa.BigInteger(), nullable=False),
        sa.Column("uncounted", sa.BigInteger(), nullable=False),
        sa.Column("cost", sa.Double(), nullable=True),
        sa.Column("created", sa.DateTime(), nullable=False),
        sa.ForeignKeyConstraint(["account"], ["account.id"]),
        sa.ForeignKeyConstraint(["project"], ["project.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_model_requests_project"), "model_requests", ["project"], unique=False)
