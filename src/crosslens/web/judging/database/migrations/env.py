"""What Alembic runs: the migrations, on the connection that ``engine.py`` opened and locked."""

from __future__ import annotations

from alembic import context

from crosslens.web.judging.database.tables import JudgingTable

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=JudgingTable.metadata,
    render_as_batch=True,
)
context.run_migrations()
