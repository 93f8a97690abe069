"""The database: SQLite in a file (write-ahead log) or PostgreSQL by URL, behind two kinds of transaction."""

from __future__ import annotations

import getpass
import logging
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, insert, inspect, make_url, select, text
from sqlalchemy.exc import ArgumentError, DatabaseError
from sqlalchemy.orm import Session

from crosslens.core import CrosslensError, needs_extra
from crosslens.storage import permit_host, require_own
from crosslens.web.judging.database.tables import VERSION, AuditRow, JudgingTable, VersionRow

BUSY_SECONDS = 30
"""How long a transaction waits for another process that writes to the same SQLite file."""
MOST_CONNECTIONS = 60
_ACCOUNTS_LOCK = 2_073_616_842
_TABLES_LOCK = 2_073_616_841
"""Arbitrary numbers by which PostgreSQL knows the lock of transactions that are alone, and that of new tables."""
_LOG = logging.getLogger("crosslens.web")


class Transaction(Session):
    """A session that writes: everything in it happens at one moment, and it notes in the log what it does."""

    now: datetime

    def note(
        self, action: str, by: int | None, *, project: int | None = None, subject: int | None = None, detail: str = ""
    ) -> None:
        """Add an entry to the log; ``by`` nobody: the command line. ``detail`` names no people."""
        user = ""
        if by is None:
            try:
                user = getpass.getuser()
            except (KeyError, OSError):  # a user without a name, as in some containers
                user = "unknown"
        self.add(
            AuditRow(
                created=self.now, actor=by, machine_user=user, action=action, project=project, subject=subject,
                detail=detail,
            )
        )  # fmt: skip


class Database:
    """Transactions of one database. ``now`` says what time it is (tests move it)."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.now: Callable[[], datetime] = lambda: datetime.now(UTC)
        self.is_sqlite = engine.dialect.name == "sqlite"
        # SQLite has one writer at a time; waiting here is fair, polling for its lock is not.
        self._turn = threading.Lock() if self.is_sqlite else nullcontext()
        # PostgreSQL's transactions see each other's commits anyway, and cost two exchanges with the server.
        self._reader = engine if self.is_sqlite else engine.execution_options(isolation_level="AUTOCOMMIT")
        self._writer = engine.execution_options(begin="IMMEDIATE")

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Queries that change nothing; never wait for a writer. On SQLite they all see the same moment."""
        with Session(self._reader) as session, session.begin():
            yield session

    @contextmanager
    def reading_rows(self) -> Iterator[Connection]:
        """:meth:`reading` for what every page asks: rows instead of objects take half the time."""
        with self._reader.begin() as connection:
            yield connection

    @contextmanager
    def writing(self, *, alone: bool = False) -> Iterator[Transaction]:
        """A transaction that is on disk when the block is left, or has changed nothing.

        Those that are ``alone`` come one after another, on PostgreSQL too: what one of them counted (owners, accounts
        of a name) stays so until it ends.
        """
        with self._turn, Transaction(self._writer, expire_on_commit=False) as session, session.begin():
            if alone and not self.is_sqlite:
                session.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _ACCOUNTS_LOCK})
            session.now = self.now()
            yield session

    @contextmanager
    def writing_rows(self) -> Iterator[Connection]:
        """:meth:`writing` for what every answer changes: rows instead of objects take half the time."""
        with self._turn, self._writer.begin() as connection:
            yield connection

    def forget_deleted(self) -> None:
        """Let go of what SQLite's log still holds of rows that were changed; PostgreSQL does so by itself, later."""
        if self.is_sqlite:
            with self._turn, self.engine.connect() as connection:
                driver: Any = connection.connection.driver_connection
                # Somebody who is reading may keep the log; the next writers wait here, so not for long.
                driver.execute("PRAGMA busy_timeout = 2000")
                driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                driver.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")

    def close(self) -> None:
        self.engine.dispose()


def open_database(address: str | Path) -> Database:
    """The database at a URL (``sqlite:///…``, ``postgresql://…``) or in a file, made where it is not there."""
    try:
        is_file = isinstance(address, Path) or "://" not in address
        url = URL.create("sqlite", database=str(address)) if is_file else make_url(str(address))
    except ArgumentError as error:
        raise CrosslensError(
            "the database's URL cannot be read", fix="write sqlite:///FILE or postgresql://…"
        ) from error
    kind = url.get_backend_name()
    if kind == "sqlite":
        if not url.database or url.database == ":memory:" or url.query:
            problem = "judgements need a file to be kept in"
            if url.query:
                problem = "an address of a SQLite file has no options"
            raise CrosslensError(problem, fix="write sqlite:///FILE", code="no-file")
        _make_private(Path(url.database).resolve())
        engine = create_engine(url, pool_size=MOST_CONNECTIONS, max_overflow=0, connect_args={"timeout": BUSY_SECONDS})
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    elif kind == "postgresql":
        with needs_extra("a PostgreSQL database", "psycopg", "postgres"):
            import psycopg  # noqa: F401
        url = url.set(drivername="postgresql+psycopg")
        permit_host(url.host)
        engine = create_engine(url, pool_size=20, max_overflow=20, pool_timeout=60, pool_pre_ping=True)
    else:
        problem, fix = f"databases of the kind {kind!r} are not supported", "write sqlite:///FILE or postgresql://…"
        raise CrosslensError(problem, fix=fix, code="unknown-database")
    _make_tables(engine)
    return Database(engine)


def _make_private(file: Path) -> None:
    """Names, answers and hashes of passwords are for the user who runs the server; SQLite's log has the same rights."""
    logs = [file.with_name(file.name + ending) for ending in ("-wal", "-shm", "-journal")]
    for log in logs:  # SQLite would write over what a link leads to
        require_own(log)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except OSError as error:
        raise CrosslensError(
            f"the database {file} cannot be made: {error.strerror}", fix="check the folder", code="database"
        ) from error
    for path in (file, *logs):
        try:
            if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO) and path.is_file():
                path.chmod(0o600)
        except FileNotFoundError:
            continue
        except OSError:
            _LOG.warning("warning: others can read %s, and it belongs to somebody else: chmod 600", path)


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    # The driver opens transactions too late for our purposes: BEGIN is sent by `_begin_sqlite`.
    connection.isolation_level = None
    connection.execute("PRAGMA foreign_keys = ON")
    # The name of a closed account is to leave the file, too.
    connection.execute("PRAGMA secure_delete = ON")
    # Several processes may open a new file at once, and this statement does not wait by itself.
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
    # NORMAL would lose acknowledged judgements when the power fails.
    connection.execute("PRAGMA synchronous = FULL")


def _begin_sqlite(connection: Connection) -> None:
    begin = f"BEGIN {connection.get_execution_options().get('begin', 'DEFERRED')}"
    connection.connection.dbapi_connection.execute(begin)  # type: ignore[union-attr]


def _make_tables(engine: Engine) -> None:
    """The tables of a new database, all in one transaction; those of another version of crosslens are refused."""
    address = engine.url.database if engine.dialect.name == "sqlite" else engine.url.render_as_string()
    try:
        with engine.execution_options(begin="IMMEDIATE").begin() as connection:
            if engine.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _TABLES_LOCK})
            if not inspect(connection).has_table(VersionRow.__tablename__):
                JudgingTable.metadata.create_all(connection, checkfirst=False)
                connection.execute(insert(VersionRow).values(version_num=VERSION))
            elif (current := connection.scalar(select(VersionRow.version_num))) != VERSION:
                problem = f"the database {address} is of another version of crosslens: {current}, not {VERSION}"
                fix = "export its judgements with that version, or name another file, which is then made anew"
                raise CrosslensError(problem, fix=fix, code="other-database")
    except DatabaseError as error:
        raise CrosslensError(
            f"the database {address} cannot be used: {error.orig}",
            fix="check that it is a database, that it can be written, and that the server is running",
            code="database",
        ) from error
