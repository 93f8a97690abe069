"""The judging database: its format, its version, what it refuses."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import inspect, select, text
from sqlalchemy.exc import IntegrityError

from crosslens.core import CrosslensError, InputError, UnknownNameError
from crosslens.web import members
from crosslens.web.judging.database.engine import Database, open_database
from crosslens.web.judging.database.projects import ProjectSettings, change_project, create_project, join, projects
from crosslens.web.judging.database.tables import AssignmentRow, ItemRow, JudgementRow, JudgingTable
from crosslens.web.judging.tasks import ItemContent, NewItem
from tests.web.judging.samples import add_items, item, items, person, project

COLUMNS = {
    "account": {"id", "name", "password_hash", "is_owner", "created"},
    "project": {"id", "name", "task", "labels", "guidelines", "overlap", "seed", "created"},
    "membership": {"project", "account", "role"},
    "invitation": {"token_hash", "project", "role", "expires", "used"},
    "item": {"id", "project", "position", "content", "kind", "expected"},
    "assignment": {"id", "item", "account", "state", "created"},
    "judgement": {
        "id", "assignment", "item", "account", "labels", "rating", "text", "seconds", "created", "source",
    },
    "judgement_history": {"id", "item", "account", "labels", "rating", "text", "undone"},
}  # fmt: skip


def test_a_new_database_has_the_tables_of_the_code(database: Database) -> None:
    with database.engine.connect() as connection:
        stored = inspect(connection)
        of_code = {name: set(table.columns.keys()) for name, table in JudgingTable.metadata.tables.items()}
        assert {name: {column["name"] for column in stored.get_columns(name)} for name in of_code} == of_code
        for table, columns in COLUMNS.items():
            assert columns <= {column["name"] for column in stored.get_columns(table)}, table


def rights(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in sorted(folder.iterdir())}


def test_the_file_and_its_log_are_for_its_owner_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        opened = open_database(tmp_path / "judging.sqlite")
        project(opened)
        names = ("judging.sqlite", "judging.sqlite-shm", "judging.sqlite-wal")
        assert rights(tmp_path) == dict.fromkeys(names, 0o600)
        for name in names:
            (tmp_path / name).chmod(0o666)
        open_database(f"sqlite:///{tmp_path}/judging.sqlite").close()
        assert rights(tmp_path) == dict.fromkeys(names, 0o600), "of a file with wider rights, these are taken away"
        opened.close()
        (tmp_path / "links").mkdir()
        (tmp_path / "links" / "judging.sqlite").symlink_to(tmp_path / "new.sqlite")
        open_database(tmp_path / "links" / "judging.sqlite").close()
        assert rights(tmp_path)["new.sqlite"] == 0o600
    finally:
        os.umask(before)


def test_opening_again_keeps_everything(address: str) -> None:
    first = open_database(address)
    new_project = project(first)
    first.close()
    again = open_database(address)
    assert projects(again) == [new_project]
    again.close()


_TWO_SERVERS = """
import os, sys, traceback
from crosslens.web.judging.database.engine import open_database

processes = [process := os.fork()]
if process:
    processes.append(process := os.fork())
if not process:
    try:
        open_database(sys.argv[1])
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in processes))
"""


def test_several_servers_may_start_at_once(address: str) -> None:
    done = subprocess.run([sys.executable, "-c", _TWO_SERVERS, address], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_sqlite_waits_and_writes_through(sqlite_database: Database) -> None:
    with sqlite_database.reading() as session:
        values = {
            name: session.scalar(text(f"PRAGMA {name}")) for name in ("journal_mode", "synchronous", "foreign_keys")
        }
        assert values == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}
        assert session.scalar(text("PRAGMA busy_timeout")) >= 10_000


@pytest.mark.parametrize("version", ["0003", "9999"])
def test_a_database_of_another_version_is_refused_and_stays_as_it_is(address: str, version: str) -> None:
    opened = open_database(address)
    new_project = project(opened)
    with opened.writing() as session:
        (current,) = session.execute(text("SELECT version_num FROM alembic_version")).scalars()
        session.execute(text(f"UPDATE alembic_version SET version_num = '{version}'"))
    with pytest.raises(CrosslensError, match=f"another version of crosslens: {version}, not {current}") as refused:
        open_database(address)
    name = address.partition("?")[0].rpartition("/")[2]
    assert name in refused.value.problem, "it says which file or database"
    assert "export its judgements with that version, or name another file" in str(refused.value.fix)
    with opened.writing() as session:
        session.execute(text(f"UPDATE alembic_version SET version_num = '{current}'"))
    opened.close()
    again = open_database(address)
    assert projects(again) == [new_project]
    again.close()


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("mysql://a/b", "databases of the kind 'mysql' are not supported"),
        ("sqlite://", "judgements need a file to be kept in"),
        ("sqlite:///:memory:", "judgements need a file to be kept in"),
        ("postgresql://", "cannot be used: connection"),
    ],
)
def test_unusable_addresses(address: str, problem: str) -> None:
    with pytest.raises(CrosslensError, match=problem):
        open_database(address)


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a database, but long enough to be taken for one" * 30)
    with pytest.raises(CrosslensError, match="cannot be used"):
        open_database(tmp_path / "notes.txt")


def test_a_password_in_a_url_is_not_printed() -> None:
    with pytest.raises(CrosslensError) as caught:
        open_database("postgresql://me:secret@127.0.0.1:1/none")
    assert "secret" not in str(caught.value)


def test_a_failed_transaction_changes_nothing(database: Database) -> None:
    new_project = project(database, 3)
    before = items(database, new_project.id)

    def fail() -> None:
        with database.writing() as session:
            session.execute(text("UPDATE project SET name = 'changed'"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert projects(database) == [new_project]
    with pytest.raises(InputError):
        add_items(database, new_project.id, [item("fine"), NewItem(ItemContent())])
    assert items(database, new_project.id) == before


def test_the_database_refuses_a_second_judgement(database: Database) -> None:
    new_project = project(database, 1)
    who = person(database, "ann", project=new_project.id)
    with database.reading() as session:
        number = session.scalar(select(ItemRow.id))

    def add(session: object, assignment: int) -> JudgementRow:
        return JudgementRow(
            assignment=assignment, item=number, account=who, labels=["good"], rating=None, text="", seconds=0,
            created=database.now(), source="person",
        )  # fmt: skip

    with database.writing() as session:
        given = AssignmentRow(item=number, account=who, state="done", created=database.now())
        session.add(given)
        session.flush()
        session.add(add(session, given.id))
    with pytest.raises(IntegrityError), database.writing() as session:
        session.add(add(session, given.id))
    with pytest.raises(IntegrityError), database.writing() as session:
        session.add(AssignmentRow(item=number, account=who, state="open", created=database.now()))
    with pytest.raises(IntegrityError), database.writing() as session:
        session.add(AssignmentRow(item=number + 99, account=who, state="open", created=database.now()))


def test_projects_items_and_members(database: Database) -> None:
    owner = person(database, "olga")
    failures = create_project(database, " Failures ", "failures", overlap=2, seed=7, owner=owner)
    assert (failures.name, failures.overlap, failures.seed, failures.form.several) == ("Failures", 2, 7, True)
    numbers = add_items(database, failures.id, [item(f"{n}") for n in range(20)])
    assert [entry.id for entry in items(database, failures.id)] == numbers
    assert [entry.content.texts[0].text for entry in items(database, failures.id)] == [str(n) for n in range(20)]
    who = person(database, "ann", project=failures.id)
    join(database, failures.id, owner, "annotator")
    assert members(database, failures.id) == [(who, "ann", "annotator"), (owner, "olga", "owner")]
    other_project = project(database)
    assert projects(database, who) == [failures]
    assert projects(database) == [failures, other_project]


def test_positions_are_drawn_from_the_seed(sqlite_database: Database) -> None:
    def order(seed: int) -> list[str]:
        new_project = project(sqlite_database, 30, practice=3, seed=seed)
        with sqlite_database.reading() as session:
            rows = session.scalars(select(ItemRow).where(ItemRow.project == new_project.id).order_by(ItemRow.position))
            return [row.content["texts"][0]["text"] for row in rows]

    first, same, other_seed = order(1), order(1), order(2)
    assert first == same != other_seed
    assert first[:3] == other_seed[:3] == ["practice 0", "practice 1", "practice 2"]
    assert sorted(first) == sorted(other_seed)
    assert first[3:] != [f"real {n}" for n in range(30)]


def test_overlap_can_be_raised(sqlite_database: Database) -> None:
    new_project = project(sqlite_database, 3, practice=1, overlap=2)
    change_project(sqlite_database, new_project.id, 5)
    with sqlite_database.reading() as session:
        assert sorted(session.scalars(select(ItemRow.vacancies))) == [0, 5, 5, 5]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [({"overlap": 0}, "overlap is 0"), ({"settings": ProjectSettings(expires=0)}, "expires is 0")],
)
def test_numbers_too_small(sqlite_database: Database, settings: dict[str, object], problem: str) -> None:
    with pytest.raises(CrosslensError, match=problem):
        create_project(sqlite_database, "x", "pairs", **settings)  # type: ignore[arg-type]


def test_unknown_task(sqlite_database: Database) -> None:
    with pytest.raises(UnknownNameError, match="did you mean pairs"):
        create_project(sqlite_database, "x", "pair")


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (item("x", "odd"), "unknown kind of item 'odd'"),
        (item("x", "practice"), "a practice item has no known answer"),
        (item("x", "check", ("nice",)), "expected label 'nice' is not a label"),
    ],
)
def test_items_that_cannot_be_used(sqlite_database: Database, bad: NewItem, problem: str) -> None:
    new_project = project(sqlite_database, 0)
    with pytest.raises(InputError, match=problem):
        add_items(sqlite_database, new_project.id, [item("fine"), bad])


def test_items_of_a_project_that_does_not_exist(sqlite_database: Database) -> None:
    with pytest.raises(CrosslensError, match="project 5 does not exist"):
        add_items(sqlite_database, 5, [item("x")])


def test_ids_are_never_used_again(sqlite_database: Database) -> None:
    """A form opened before its item went to somebody else must not answer another item."""
    new_project = project(sqlite_database, 2)
    who = person(sqlite_database, "ann", project=new_project.id)
    numbers = []
    for _ in range(2):
        with sqlite_database.writing() as session:
            row = AssignmentRow(item=1, account=who, state="open", created=sqlite_database.now())
            session.add(row)
            session.flush()
            numbers.append(row.id)
            session.delete(row)
    assert numbers[0] != numbers[1]


def test_the_file_is_a_plain_sqlite_database(sqlite_database: Database, tmp_path: Path) -> None:
    project(sqlite_database, 3)
    with sqlite3.connect(tmp_path / "judging.sqlite") as connection:
        assert connection.execute("SELECT count(*) FROM item").fetchone() == (3,)
