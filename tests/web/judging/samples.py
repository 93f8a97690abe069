"""Projects, people and items for tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sqlalchemy import select

from crosslens.web.judging.accounts import Account, add_account, hash_password
from crosslens.web.judging.database.engine import Database, open_database
from crosslens.web.judging.database.judgements import judgements as stored_judgements, record_judgement
from crosslens.web.judging.database.projects import (
    JudgingProject,
    ProjectSettings,
    StoredItem,
    add_items as add_to_project,
    create_project,
    items as stored_items,
    join,
    locked_project,
)
from crosslens.web.judging.database.tables import AccountRow, ItemRow, JudgementHistoryRow
from crosslens.web.judging.results import adjudicate
from crosslens.web.judging.tasks import Answer, ItemContent, NewItem, ShownText


def person(database: Database, name: str, *, project: int | None = None, role: str = "annotator") -> int:
    """An account without password (a hash takes its time), as a member of a project."""
    with database.writing() as session:
        row = AccountRow(name=name, name_key=name, password_hash=None, is_owner=False, created=database.now())
        session.add(row)
        session.flush()
        account = row.id
    if project is not None:
        join(database, project, account, role)
    return account


def create_account(database: Database, name: str, password: str | None, *, is_owner: bool = False) -> Account:
    """A new account, made by nobody in particular."""
    hashed = None if password is None else hash_password(password)
    with database.writing() as session:
        return add_account(session, name, hashed, is_owner=is_owner)


def add_items(database: Database, project: int, items: Sequence[NewItem]) -> list[int]:
    with database.writing() as session:
        return add_to_project(session, locked_project(session, project), items)


def items(database: Database, project: int) -> list[StoredItem]:
    with database.reading() as session:
        return stored_items(session, project)


def judgements(database: Database, project: int) -> list[Any]:
    with database.reading() as session:
        rows = stored_judgements(session, project)
    return [SimpleNamespace(**row | {"labels": tuple(row["labels"])}) for row in rows]


def item(text: str, kind: str = "real", labels: tuple[str, ...] = ()) -> NewItem:
    expected = {"labels": list(labels), "why": f"because of {text}"} if labels else None
    return NewItem(ItemContent(texts=(ShownText(text),)), kind, expected)


def project(
    database: Database,
    real: int = 5,
    *,
    task: str = "pairs",
    overlap: int = 1,
    practice: int = 0,
    checks: int = 0,
    seed: int = 0,
    settings: ProjectSettings | None = None,
) -> JudgingProject:
    new_project = create_project(database, "Survey", task, overlap=overlap, seed=seed, settings=settings)
    label = (new_project.form.labels[0].name,)
    add_items(
        database,
        new_project.id,
        [
            *(item(f"real {n}") for n in range(real)),
            *(item(f"practice {n}", "practice", label) for n in range(practice)),
            *(item(f"check {n}", "check", label) for n in range(checks)),
        ],
    )
    return new_project


def taken_back(database: Database, project: int) -> list[tuple[tuple[str, ...], int | None]]:
    """Labels and rating of every judgement that was undone, oldest first."""
    query = (
        select(JudgementHistoryRow.labels, JudgementHistoryRow.rating)
        .join(ItemRow, ItemRow.id == JudgementHistoryRow.item)
        .where(ItemRow.project == project)
        .order_by(JudgementHistoryRow.id)
    )
    with database.reading() as session:
        return [(tuple(labels), rating) for labels, rating in session.execute(query)]


def two_people_judge(file: Path) -> int:
    """They agree on most failures; of the first, one says that it fits and one that it does not. The owner decides."""
    database = open_database(file)
    people = [person(database, name, project=1) for name in ("ann", "bob")]
    stored = items(database, 1)
    for at, item in enumerate(stored):
        for who, account in enumerate(people):
            fits = at % 3 == 0 if at else bool(who)
            labels = ("successful_alternative",) if fits else ("colour", "count") if at % 2 else ("details",)
            rating = min(10, max(1, (8 if fits else 3) + at % 3 + who))
            record_judgement(database, item.id, account, Answer(labels, rating), source="person", seconds=3 + who)
    adjudicate(database, 1, stored[0].id, people[0], Answer(("successful_alternative",), 9))
    database.close()
    return len(stored)
