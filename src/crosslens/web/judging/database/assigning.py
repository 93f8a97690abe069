"""Which item somebody gets next. All decisions about a project are taken one after another, under its lock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Select, and_, delete, func, literal_column, select, update
from sqlalchemy.orm import Session

from crosslens.core import CrosslensError
from crosslens.web.judging.database.engine import Database
from crosslens.web.judging.database.projects import JudgingProject, StoredItem, as_item, as_project, locked_project
from crosslens.web.judging.database.tables import OPEN, AssignmentRow, ItemRow, MembershipRow
from crosslens.web.judging.tasks.content import SHARED_KINDS
from crosslens.web.judging.tasks.order import WINDOW, checks_due, in_order


@dataclass(frozen=True)
class Assigned:
    """An item that an account has been given."""

    assignment: int
    item: StoredItem
    following: StoredItem | None = None
    """What will probably come next, so that its pictures can be loaded already; not given out yet."""


def next_item(database: Database, project: int, account: int) -> Assigned | None:
    """The item that the account is to judge now: what it left open, or a new one; None where nothing is left.

    Calling it again without judging gives the same item.
    """
    now = database.now()
    with database.writing() as session:
        settings = as_project(locked_project(session, project))
        if session.get(MembershipRow, (project, account)) is None:
            raise CrosslensError("this account is not a member of the project", code="no-member")
        _release_expired(session, settings, account, now)
        assignment = _left_open(session, project, account)
        candidates = _candidates(session, settings, account)
        if assignment is not None:
            assignment.created = now
            item = session.get_one(ItemRow, assignment.item)
        elif candidates:
            item = _at(session, project, candidates.pop(0))
            assignment = _give(session, item, account, now)
        else:
            return None
        following = as_item(_at(session, project, candidates[0])) if candidates else None
        return Assigned(assignment.id, as_item(item), following)


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


def _release_expired(session: Session, project: JudgingProject, account: int, now: datetime) -> None:
    """Take items back from others who have left them open too long."""
    expired = session.execute(
        select(AssignmentRow.id, AssignmentRow.item, ItemRow.kind)
        .join(ItemRow, ItemRow.id == AssignmentRow.item)
        .where(
            AssignmentRow.state == OPEN,
            AssignmentRow.created < now - timedelta(seconds=project.settings.expires),
            AssignmentRow.account != account,
            ItemRow.project == project.id,
        )
    ).all()
    for assignment, item, kind in expired:
        # Its owner may be answering at this very moment: the condition is looked at again under the row's lock.
        released = session.scalar(
            delete(AssignmentRow)
            .where(AssignmentRow.id == assignment, AssignmentRow.state == OPEN)
            .returning(AssignmentRow.id)
        )
        if released is not None and kind in SHARED_KINDS:
            session.execute(update(ItemRow).where(ItemRow.id == item).values(vacancies=ItemRow.vacancies + 1))


def _left_open(session: Session, project: int, account: int) -> AssignmentRow | None:
    """What was opened last comes first: after an undo, the item to be judged again."""
    return session.scalar(
        select(AssignmentRow)
        .join(ItemRow, ItemRow.id == AssignmentRow.item)
        .where(AssignmentRow.account == account, AssignmentRow.state == OPEN, ItemRow.project == project)
        .order_by(AssignmentRow.created.desc(), AssignmentRow.id.desc())
        .limit(1)
    )


def _give(session: Session, item: ItemRow, account: int, now: datetime) -> AssignmentRow:
    assignment = AssignmentRow(item=item.id, account=account, state=OPEN, created=now)
    session.add(assignment)
    if item.kind in SHARED_KINDS:
        item.vacancies -= 1
    session.flush()
    return assignment


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


def _at(session: Session, project: int, position: int) -> ItemRow:
    return session.scalars(select(ItemRow).where(ItemRow.project == project, ItemRow.position == position)).one()


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
