"""Judgements: each acknowledged once it is on disk, counted once however often it is sent, never overwritten."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update
from sqlalchemy.orm import Session

from crosslens.core import CrosslensError
from crosslens.encode import Tokens
from crosslens.web.judging.database.engine import Database
from crosslens.web.judging.database.projects import locked_project
from crosslens.web.judging.database.tables import (
    DONE,
    OPEN,
    PERSON,
    AccountRow,
    AssignmentRow,
    ItemRow,
    JudgementHistoryRow,
    JudgementRow,
    ModelRequestsRow,
    ProjectRow,
)
from crosslens.web.judging.tasks import SHARED_KINDS, Answer, check_answer, read_form

LONGEST_SECONDS = 24 * 3600.0


@dataclass(frozen=True)
class Judged:
    """What became of a submitted answer."""

    judgement: int
    is_new: bool
    """False where this assignment had been judged before: the first answer stands."""
    kind: str


_HELD = (
    select(
        AssignmentRow.item,
        AssignmentRow.state,
        AssignmentRow.created,
        ItemRow.kind,
        ProjectRow.labels,
    )
    .join(ItemRow, ItemRow.id == AssignmentRow.item)
    .join(ProjectRow, ProjectRow.id == ItemRow.project)
    .where(AssignmentRow.id == bindparam("assignment"), AssignmentRow.account == bindparam("account"))
    .with_for_update(of=AssignmentRow)
)
NEWEST_JUDGEMENTS = (
    select(JudgementRow)
    .join(ItemRow, ItemRow.id == JudgementRow.item)
    .where(
        JudgementRow.account == bindparam("account"),
        ItemRow.project == bindparam("project"),
        JudgementRow.source == PERSON,
    )
    .order_by(JudgementRow.created.desc(), JudgementRow.id.desc())
)
"""An account's judgements in a project; the first is the one that :func:`undo` would take back."""
_NEWEST = NEWEST_JUDGEMENTS.limit(1).with_for_update(of=JudgementRow)
_EARLIER = select(JudgementRow.id).where(JudgementRow.assignment == bindparam("assignment"))
_ADD = insert(JudgementRow).returning(JudgementRow.id)
_ASSIGN = insert(AssignmentRow).returning(AssignmentRow.id)
_CLOSE = update(AssignmentRow).where(AssignmentRow.id == bindparam("assignment")).values(state=DONE)


def judge(database: Database, assignment: int, account: int, answer: Answer, seconds: float | None = None) -> Judged:
    """Store the answer to an assignment of the account. A second submission changes nothing.

    It took ``seconds``, or else the time since the item was shown last.
    """
    now = database.now()
    with database.writing_rows() as connection:
        row = connection.execute(_HELD, {"assignment": assignment, "account": account}).one_or_none()
        if row is None:
            raise CrosslensError(
                "this item is no longer assigned to you: it was open for too long and went to somebody else",
                fix="go on with the next item",
                code="no-assignment",
            )
        answer = check_answer(read_form(row.labels), answer)
        took = (now - row.created).total_seconds() if seconds is None else seconds
        return _store(
            connection,
            row.state,
            row.kind,
            answer,
            assignment=assignment,
            item=row.item,
            account=account,
            seconds=took,
            created=now,
            source=PERSON,
        )


def record_judgement(
    database: Database, item: int, account: int, answer: Answer, *, source: str, seconds: float = 0.0
) -> Judged:
    """Store an answer that was not asked for by :func:`next_item`: a model's, or one from a file.

    A model's takes no person's turn at the item.
    """
    with database.writing() as session:
        row = session.get(ItemRow, item)
        if row is None:
            raise CrosslensError(f"item {item} does not exist", code="no-item", subject=str(item))
        form = read_form(locked_project(session, row.project).labels)
        return record_within(session, row, account, check_answer(form, answer), source, seconds, session.now)


def record_within(
    session: Session, item: ItemRow, account: int, answer: Answer, source: str, seconds: float, created: datetime
) -> Judged:
    """:func:`record_judgement` of an answer that was checked, in a transaction that has locked the project."""
    connection, state = session.connection(), OPEN
    of_account = select(AssignmentRow.id, AssignmentRow.state).where(AssignmentRow.account == account)
    assigned = connection.execute(of_account.where(AssignmentRow.item == item.id)).one_or_none()
    if assigned is not None:
        assignment, state = assigned
    else:
        assignment = new_assignment(connection, item.id, account, created)
        if source == PERSON and item.kind in SHARED_KINDS:
            session.execute(update(ItemRow).where(ItemRow.id == item.id).values(vacancies=ItemRow.vacancies - 1))
    return _store(
        connection, state, item.kind, answer, assignment=assignment, item=item.id, account=account, seconds=seconds,
        created=created, source=source,
    )  # fmt: skip


def new_assignment(connection: Connection, item: int, account: int, created: datetime) -> int:
    """Give an item to an account; returns the assignment."""
    row = {"item": item, "account": account, "state": OPEN, "created": created}
    return connection.execute(_ASSIGN, row).scalar_one()


def undo(database: Database, project: int, account: int, judgement: int | None = None) -> int | None:
    """Take back the account's last judgement in the project: its item is open again, the answer moves to the history.

    Returns the assignment, or None where there is nothing to take back. With ``judgement``, nothing happens unless
    that is the last one: a button pressed twice takes back one judgement.
    """
    with database.writing() as session:
        last = session.scalar(_NEWEST, {"project": project, "account": account})
        if last is None or judgement not in (None, last.id):
            return None
        copied = ("assignment", "item", "account", "labels", "rating", "text", "seconds", "created", "source")
        session.add(JudgementHistoryRow(**{name: getattr(last, name) for name in copied}, undone=session.now))
        session.execute(delete(JudgementRow).where(JudgementRow.id == last.id))
        session.execute(
            update(AssignmentRow).where(AssignmentRow.id == last.assignment).values(state=OPEN, created=session.now)
        )
        return last.assignment


def _store(connection: Connection, state: str, kind: str, answer: Answer, **row: Any) -> Judged:
    """Store a judgement, and close its assignment, which is in this state: only one that is done has been judged."""
    whose = {"assignment": row["assignment"]}
    if state == DONE and (earlier := connection.scalar(_EARLIER, whose)) is not None:
        return Judged(earlier, False, kind)
    row["seconds"] = min(max(row["seconds"], 0.0), LONGEST_SECONDS)
    stored = connection.execute(_ADD, row | asdict(answer) | {"labels": list(answer.labels)}).scalar_one()
    connection.execute(_CLOSE, whose)
    return Judged(stored, True, kind)


def judgements(session: Session, project: int) -> list[dict[str, Any]]:
    """All judgements of a project, oldest first: the columns of a table of judgements."""
    query = (
        select(
            JudgementRow.item, AccountRow.name.label("account"), JudgementRow.labels, JudgementRow.rating,
            JudgementRow.text, ItemRow.kind, JudgementRow.source, JudgementRow.created, JudgementRow.seconds,
        )
        .join(ItemRow, ItemRow.id == JudgementRow.item)
        .join(AccountRow, AccountRow.id == JudgementRow.account)
        .where(ItemRow.project == project)
        .order_by(JudgementRow.id)
    )  # fmt: skip
    return [dict(row) for row in session.execute(query).mappings()]


@dataclass(frozen=True)
class ModelRequests:
    """Requests to a model and their tokens; no ``cost`` where no price was given."""

    requests: int
    tokens: Tokens
    cost: float | None


def requests_by_model(database: Database, project: int) -> dict[str, ModelRequests]:
    """Model → what asking it about the project took in all."""
    row = ModelRequestsRow
    counts = (row.requests, row.sent, row.received, row.uncounted)
    query = (
        select(AccountRow.name, func.sum(row.cost), *map(func.sum, counts))
        .join(AccountRow, AccountRow.id == row.account)
        .where(row.project == project)
        .group_by(AccountRow.name)
    )
    with database.reading() as session:
        return {
            name: ModelRequests(int(requests), Tokens(*map(int, tokens)), cost)
            for name, cost, requests, *tokens in session.execute(query)
        }
