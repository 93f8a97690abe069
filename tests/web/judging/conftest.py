"""Databases for tests: a SQLite file, and a PostgreSQL server that runs for as long as the tests do."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path

import pytest
from argon2 import PasswordHasher
from sqlalchemy import make_url

from crosslens.web.judging import accounts
from crosslens.web.judging.database.engine import Database, open_database
from tests.web.judging.owned import Owned
from tests.web.judging.postgresql import NoServer, postgresql
from tests.web.judging.site import Site, Visitor

_numbers = itertools.count()
HASHER = accounts._HASHER
"""With the parameters that hold outside of tests."""


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
        patch.setattr(accounts, "_HASHER", hasher)
        patch.setattr(accounts, "UNUSABLE_PASSWORD", hasher.hash("the password that nobody knows"))
        yield


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[Callable[..., str]]:
    """Makes databases and returns their URLs: empty ones, or (``with_tables``) copies of one with all its tables."""
    with ExitStack() as stack:
        try:
            first = make_url(stack.enter_context(postgresql()))
        except NoServer as problem:
            pytest.skip(str(problem))
        psycopg = pytest.importorskip("psycopg")
        connect = partial(psycopg.connect, first.render_as_string(hide_password=False), autocommit=True)
        with connect() as connection:
            # Nothing here has to survive a power cut: without this, stopping the server takes seconds.
            connection.execute("ALTER SYSTEM SET fsync = off")
            connection.execute("SELECT pg_reload_conf()")

        @cache
        def with_all_tables() -> str:
            address = create()
            open_database(address).close()
            return str(make_url(address).database)

        def create(with_tables: bool = False) -> str:
            name = f"judging{next(_numbers)}"
            template = with_all_tables() if with_tables else "template1"
            with connect() as connection:
                connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
            return first.set(database=name).render_as_string(hide_password=False)

        yield create


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database, of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/judging.sqlite"
    return str(request.getfixturevalue("postgresql_server")())


@pytest.fixture(params=["sqlite", "postgresql"])
def with_tables(request: pytest.FixtureRequest, tmp_path: Path, sqlite_file: Path) -> str:
    """The URL of a database without entries, of each kind: making the tables takes longer than most tests."""
    if request.param == "sqlite":
        return f"sqlite:///{shutil.copy(sqlite_file, tmp_path / 'judging.sqlite')}"
    return str(request.getfixturevalue("postgresql_server")(with_tables=True))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session")
def sqlite_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty SQLite database with all its tables, to be copied."""
    file = tmp_path_factory.mktemp("sqlite") / "judging.sqlite"
    open_database(file).close()
    return file


@pytest.fixture
def database(with_tables: str, clock: Clock) -> Iterator[Database]:
    """An empty database of each kind."""
    opened = open_database(with_tables)
    opened.now = clock
    yield opened
    opened.close()


@pytest.fixture
def sqlite_database(tmp_path: Path, clock: Clock, sqlite_file: Path) -> Iterator[Database]:
    """An empty SQLite database, for what does not depend on the kind."""
    opened = open_database(Path(shutil.copy(sqlite_file, tmp_path / "judging.sqlite")))
    opened.now = clock
    yield opened
    opened.close()


@pytest.fixture
def site(tmp_path: Path, sqlite_file: Path) -> Iterator[Site]:
    """The application, with an owner."""
    (tmp_path / "runs").mkdir()
    shutil.copy(sqlite_file, tmp_path / "runs" / "judging.sqlite")
    opened = Site(tmp_path / "runs", ["judging"])
    opened.owner()
    yield opened
    opened.database.close()


@pytest.fixture(scope="module")
def owned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Owned]:
    """A judged project and its pages, shared by the tests of a module: what one decides it takes back."""
    owned_project = Owned(tmp_path_factory.mktemp("owned") / "runs")
    yield owned_project
    owned_project.site.database.close()


@pytest.fixture
def owner(owned: Owned) -> Visitor:
    return owned.site.visitor(owned.owner)
