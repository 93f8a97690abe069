"""Brings a database to the newest format, once, however many servers start at the same time."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DatabaseError

from crosslens.core import CrosslensError

_LOCK = 2_073_616_841
"""An arbitrary number by which PostgreSQL knows the lock."""


def migrate(engine: Engine) -> None:
    """Run the migrations that are missing, all in one transaction."""
    try:
        with engine.execution_options(begin="IMMEDIATE").begin() as connection:
            if engine.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
            config = _config(connection)
            _refuse_newer(connection, config)
            command.upgrade(config, "head")
    except DatabaseError as error:
        shown = engine.url.render_as_string(hide_password=True)
        raise CrosslensError(
            f"the database {shown} cannot be used: {error.orig}",
            fix="check that it is a database, that it can be written, and that the server is running",
            code="database",
        ) from error


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _refuse_newer(connection: Connection, config: Config) -> None:
    current = MigrationContext.configure(connection).get_current_revision()
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if current is not None and current not in known:
        raise CrosslensError(
            f"the database was written by a newer version of crosslens (format {current})",
            fix="update crosslens",
            code="newer-database",
        )
