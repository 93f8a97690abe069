"""Judgements: each acknowledged once it is on disk, counted once however often it is sent, never overwritten."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, delete, select, update
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


_HELD = (
    select(AssignmentRow, ItemRow, ProjectRow.labels)
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
_EARLIER = select(JudgementRow).where(JudgementRow.assignment == bindparam("assignment"))


def judge(database: Database, assignment: int, account: int, answer: Answer, seconds: float | None = None) -> Judged:
    """Store the answer to an assignment of the account. A second submission changes nothing.

    It took ``seconds``, or else the time since the item was shown last.
    """
    with database.writing() as session:
        held = session.execute(_HELD, {"assignment": assignment, "account": account}).one_or_none()
        if held is None:
            raise CrosslensError(
                "this item is no longer assigned to you: it was open for too long and went to somebody else",
                fix="go on with the next item",
                code="no-assignment",
            )
        row, item, labels = held
        took = (database.now() - row.created).total_seconds() if seconds is None else seconds
        return _store(session, row, item, check_answer(read_form(labels), answer), took, PERSON, database.now())


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
        return record_within(session, row, account, check_answer(form, answer), source, seconds, database.now())


def record_within(
    session: Session, item: ItemRow, account: int, answer: Answer, source: str, seconds: float, created: datetime
) -> Judged:
    """The same with an answer that was checked, within a transaction that has locked the project."""
    assignment = session.scalar(
        select(AssignmentRow).where(AssignmentRow.item == item.id, AssignmentRow.account == account)
    )
    if assignment is None:
        assignment = AssignmentRow(item=item.id, account=account, state=OPEN, created=created)
        session.add(assignment)
        session.flush()
        if source == PERSON and item.kind in SHARED_KINDS:
            session.execute(update(ItemRow).where(ItemRow.id == item.id).values(vacancies=ItemRow.vacancies - 1))
    return _store(session, assignment, item, answer, seconds, source, created)


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


def _store(
    session: Session,
    assignment: AssignmentRow,
    item: ItemRow,
    answer: Answer,
    seconds: float,
    source: str,
    created: datetime,
) -> Judged:
    earlier = session.scalar(_EARLIER, {"assignment": assignment.id})
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
        created=created,
        source=source,
    )
    session.add(row)
    assignment.state = DONE
    session.flush()
    return Judged(row.id, True, item.kind, item.expected, is_expected(item.expected, answer))
