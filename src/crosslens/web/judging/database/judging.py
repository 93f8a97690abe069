"""Judgements: each acknowledged once it is on disk, counted once however often it is sent, never overwritten."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, delete, select, update
from sqlalchemy.orm import Session

from crosslens.core import CrosslensError
from crosslens.web.judging.database.engine import Database
from crosslens.web.judging.database.projects import StoredItem, as_item, locked_project
from crosslens.web.judging.database.tables import (
    DONE,
    OPEN,
    PERSON,
    AssignmentRow,
    ItemRow,
    JudgementHistoryRow,
    JudgementRow,
    ProjectRow,
)
from crosslens.web.judging.tasks.answers import Answer, check_answer, is_expected
from crosslens.web.judging.tasks.content import SHARED_KINDS
from crosslens.web.judging.tasks.form import read_form

LONGEST_SECONDS = 24 * 3600.0


@dataclass(frozen=True)
class Judged:
    """What became of a submitted answer."""

    judgement: int
    is_new: bool
    """False where this assignment had been judged before: the first answer stands."""
    kind: str
    expected: dict[str, Any] | None
    is_right: bool | None
    """Whether the answer is the known one; None where none is known."""


def judge(database: Database, assignment: int, account: int, answer: Answer, seconds: float | None = None) -> Judged:
    """Store the answer to an assignment of the account. A second submission changes nothing.

    It took ``seconds``, or else the time since the item was shown last.
    """
    with database.writing() as session:
        row = session.get(AssignmentRow, assignment, with_for_update=True)
        if row is None or row.account != account:
            raise CrosslensError(
                "this item is no longer assigned to you: it was open for too long and went to somebody else",
                fix="go on with the next item",
                code="no-assignment",
            )
        item = session.get_one(ItemRow, row.item)
        form = read_form(session.get_one(ProjectRow, item.project).labels)
        took = (database.now() - row.created).total_seconds() if seconds is None else seconds
        return _store(database, session, row, item, check_answer(form, answer), took, PERSON)


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
        assignment = session.scalar(
            select(AssignmentRow).where(AssignmentRow.item == item, AssignmentRow.account == account)
        )
        if assignment is None:
            assignment = AssignmentRow(item=item, account=account, state=OPEN, created=database.now())
            session.add(assignment)
            session.flush()
            if source == PERSON and row.kind in SHARED_KINDS:
                session.execute(update(ItemRow).where(ItemRow.id == item).values(vacancies=ItemRow.vacancies - 1))
        return _store(database, session, assignment, row, check_answer(form, answer), seconds, source)


def undo(database: Database, project: int, account: int, judgement: int | None = None) -> int | None:
    """Take back the account's last judgement in the project: its item is open again, the answer moves to the history.

    Returns the assignment, or None where there is nothing to take back. With ``judgement``, nothing happens unless
    that is the last one: a button pressed twice takes back one judgement.
    """
    with database.writing() as session:
        last = session.scalar(newest_judgements(project, account).limit(1).with_for_update(of=JudgementRow))
        if last is None or judgement not in (None, last.id):
            return None
        copied = ("assignment", "item", "account", "labels", "rating", "text", "seconds", "created", "source")
        session.add(
            JudgementHistoryRow(**{name: getattr(last, name) for name in copied}, undone=database.now()),
        )
        session.execute(delete(JudgementRow).where(JudgementRow.id == last.id))
        session.execute(
            update(AssignmentRow).where(AssignmentRow.id == last.assignment).values(state=OPEN, created=database.now())
        )
        return last.assignment


def own_judgement(database: Database, judgement: int, account: int) -> tuple[StoredItem, Answer] | None:
    """A judgement of the account and its item; None for a judgement of somebody else."""
    query = select(JudgementRow, ItemRow).join(ItemRow, ItemRow.id == JudgementRow.item)
    with database.reading() as session:
        row = session.execute(query.where(JudgementRow.id == judgement, JudgementRow.account == account)).one_or_none()
        return None if row is None else (as_item(row[1]), Answer(tuple(row[0].labels), row[0].rating, row[0].text))


def answer_taken_back(session: Session, assignment: int) -> Answer | None:
    """What was last answered to an assignment and taken back, as a start for the new answer."""
    query = select(JudgementHistoryRow).where(JudgementHistoryRow.assignment == assignment)
    row = session.scalar(query.order_by(JudgementHistoryRow.id.desc()).limit(1))
    return None if row is None else Answer(tuple(row.labels), row.rating, row.text)


def newest_judgements(project: int, account: int) -> Select[JudgementRow]:
    """The account's judgements in the project; the first is the one that :func:`undo` would take back."""
    return (
        select(JudgementRow)
        .join(ItemRow, ItemRow.id == JudgementRow.item)
        .where(JudgementRow.account == account, ItemRow.project == project, JudgementRow.source == PERSON)
        .order_by(JudgementRow.created.desc(), JudgementRow.id.desc())
    )


def _store(
    database: Database,
    session: Session,
    assignment: AssignmentRow,
    item: ItemRow,
    answer: Answer,
    seconds: float,
    source: str,
) -> Judged:
    earlier = session.scalar(select(JudgementRow).where(JudgementRow.assignment == assignment.id))
    if earlier is not None:
        first = Answer(tuple(earlier.labels), earlier.rating, earlier.text)
        return Judged(earlier.id, False, item.kind, item.expected, is_expected(item.expected, first))
    row = JudgementRow(
        assignment=assignment.id,
        item=item.id,
        account=assignment.account,
        labels=list(answer.labels),
        rating=answer.rating,
        text=answer.text,
        seconds=min(max(seconds, 0.0), LONGEST_SECONDS),
        created=database.now(),
        source=source,
    )
    session.add(row)
    assignment.state = DONE
    session.flush()
    return Judged(row.id, True, item.kind, item.expected, is_expected(item.expected, answer))
