"""Alembic migrations of the judging database; run at start (``database/migrate.py``)."""
