"""Which item somebody gets next. Decisions about one person are taken one after another, under the lock of their
membership; between people, the count of vacancies decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Select, and_, delete, func, literal_column, select, update
from sqlalchemy.orm import Session

from crosslens.core import CrosslensError
from crosslens.web.judging.database.engine import Database
from crosslens.web.judging.database.judging import answer_taken_back
from crosslens.web.judging.database.projects import JudgingProject, StoredItem, as_item, as_project, locked_project
from crosslens.web.judging.database.tables import OPEN, AssignmentRow, ItemRow, MembershipRow, ProjectRow
from crosslens.web.judging.tasks.answers import Answer
from crosslens.web.judging.tasks.content import SHARED_KINDS
from crosslens.web.judging.tasks.order import WINDOW, checks_due, in_order


@dataclass(frozen=True)
class Assigned:
    """An item that an account has been given."""

    assignment: int
    item: StoredItem
    following: StoredItem | None = None
    """What will probably come next, so that its pictures can be loaded already; not given out yet."""
    taken_back: Answer | None = None
    """What the account last answered and took back."""


def next_item(database: Database, project: int, account: int) -> Assigned | None:
    """The item that the account is to judge now: what it left open, or a new one; None where nothing is left.

    Calling it again without judging gives the same item.
    """
    now = database.now()
    with database.writing() as session:
        settings = _locked_member(session, project, account)
        expired = _expired(session, settings, account, now)
        if not expired:
            return _next(session, settings, account, now)
    _release(database, project, expired)
    with database.writing() as session:
        return _next(session, _locked_member(session, project, account), account, now)


def _locked_member(session: Session, project: int, account: int) -> JudgingProject:
    """The project; other transactions that look for an item for this account in it wait until this one ends."""
    row = session.get(ProjectRow, project)
    if row is None or session.get(MembershipRow, (project, account), with_for_update={"key_share": True}) is None:
        raise CrosslensError("this account is not a member of the project", code="no-member")
    return as_project(row)


def _next(session: Session, project: JudgingProject, account: int, now: datetime) -> Assigned | None:
    assignment = _left_open(session, project.id, account)
    rows = _at(session, project.id, _candidates(session, project, account))
    if assignment is not None:
        assignment.created = now
        item = session.get_one(ItemRow, assignment.item)
        return _assigned(assignment, item, rows, answer_taken_back(session, assignment.id))
    while rows:
        item = rows.pop(0)
        if _take_vacancy(session, item):
            assignment = AssignmentRow(item=item.id, account=account, state=OPEN, created=now)
            session.add(assignment)
            session.flush()
            return _assigned(assignment, item, rows)
        # Somebody else was faster, so the item is no candidate any more.
        rows = rows or _at(session, project.id, _candidates(session, project, account))
    return None


def _assigned(
    assignment: AssignmentRow, item: ItemRow, others: Sequence[ItemRow], taken_back: Answer | None = None
) -> Assigned:
    return Assigned(assignment.id, as_item(item), as_item(others[0]) if others else None, taken_back)


def _take_vacancy(session: Session, item: ItemRow) -> bool:
    """Count one more person at the item; False where it has enough of them by now."""
    if item.kind not in SHARED_KINDS:
        return True
    taken = (
        update(ItemRow)
        .where(ItemRow.id == item.id, is_vacant())
        .values(vacancies=ItemRow.vacancies - 1)
        .returning(ItemRow.id)
    )
    return session.scalar(taken, execution_options={"synchronize_session": False}) is not None


def assigned_item(database: Database, assignment: int, account: int) -> tuple[StoredItem, str] | None:
    """The item of one of the account's assignments, and the assignment's state."""
    query = (
        select(ItemRow, AssignmentRow.state)
        .join(AssignmentRow, AssignmentRow.item == ItemRow.id)
        .where(AssignmentRow.id == assignment, AssignmentRow.account == account)
    )
    with database.reading() as session:
        row = session.execute(query).one_or_none()
        return None if row is None else (as_item(row[0]), row[1])


def _expired(session: Session, project: JudgingProject, account: int, now: datetime) -> Sequence[int]:
    """Assignments that others have left open too long."""
    query = (
        select(AssignmentRow.id)
        .join(ItemRow, ItemRow.id == AssignmentRow.item)
        .where(
            AssignmentRow.state == OPEN,
            AssignmentRow.created < now - timedelta(seconds=project.settings.expires),
            AssignmentRow.account != account,
            ItemRow.project == project.id,
        )
    )
    return session.scalars(query).all()


def _release(database: Database, project: int, assignments: Sequence[int]) -> None:
    """Take items back, in a transaction of its own: one that also waits for a vacancy could wait for ever."""
    with database.writing() as session:
        locked_project(session, project)
        for assignment in assignments:
            # Its owner may be answering at this very moment: the condition is looked at again under the row's lock.
            item = session.scalar(
                delete(AssignmentRow)
                .where(AssignmentRow.id == assignment, AssignmentRow.state == OPEN)
                .returning(AssignmentRow.item)
            )
            if item is not None:
                shared = (ItemRow.id == item, ItemRow.kind.in_(SHARED_KINDS))
                session.execute(update(ItemRow).where(*shared).values(vacancies=ItemRow.vacancies + 1))


def _left_open(session: Session, project: int, account: int) -> AssignmentRow | None:
    """What was opened last comes first: after an undo, the item to be judged again."""
    return session.scalar(
        select(AssignmentRow)
        .join(ItemRow, ItemRow.id == AssignmentRow.item)
        .where(AssignmentRow.account == account, AssignmentRow.state == OPEN, ItemRow.project == project)
        .order_by(AssignmentRow.created.desc(), AssignmentRow.id.desc())
        .limit(1)
    )


def _candidates(session: Session, project: JudgingProject, account: int) -> list[int]:
    """Positions of the next item and of the one that will probably follow it.

    Practice first; then items that still need people, with an attention check when one is due.
    """
    practice = _positions(session, project.id, account, ItemRow.kind == "practice", most=2)
    if practice:
        return practice
    had = dict(session.execute(_counts(project.id, account)).all())
    shared = sum(had.get(kind, 0) for kind in SHARED_KINDS)
    candidates = []
    if checks_due(project.seed, account, shared, project.settings.check_every) > had.get("check", 0):
        checks = _positions(session, project.id, account, ItemRow.kind == "check")
        candidates += in_order(project.seed, account, checks)[:1]
    quota = project.settings.per_person
    if quota is None or shared < quota:
        vacant = _positions(session, project.id, account, is_vacant())
        candidates += in_order(project.seed, account, vacant)[: 2 if quota is None else quota - shared]
    return candidates[:2]


def _counts(project: int, account: int) -> Select[str, int]:
    """How many items of each kind the account has been given."""
    return (
        select(ItemRow.kind, func.count())
        .join(AssignmentRow, AssignmentRow.item == ItemRow.id)
        .where(AssignmentRow.account == account, ItemRow.project == project)
        .group_by(ItemRow.kind)
    )


def _positions(
    session: Session, project: int, account: int, condition: ColumnElement[bool], most: int = WINDOW
) -> list[int]:
    """Positions of the first items that the account has not had."""
    query = select(ItemRow.position).where(ItemRow.project == project, condition, not_given_to(account))
    return list(session.scalars(query.order_by(ItemRow.position).limit(most)))


def _at(session: Session, project: int, positions: Sequence[int]) -> list[ItemRow]:
    """The items at these positions, in this order."""
    if not positions:
        return []
    query = select(ItemRow).where(ItemRow.project == project, ItemRow.position.in_(positions))
    return sorted(session.scalars(query), key=lambda row: positions.index(row.position))


def is_vacant() -> ColumnElement[bool]:
    """Items that need more people; spelled like the partial index, so that the index is used."""
    return ItemRow.vacancies > literal_column("0")


def not_given_to(account: int) -> ColumnElement[bool]:
    """Items that the account has never had."""
    return ~(
        select(AssignmentRow.id)
        .where(and_(AssignmentRow.item == ItemRow.id, AssignmentRow.account == account))
        .correlate(ItemRow)
        .exists()
    )
