"""Which item somebody gets next. Decisions about one person are taken one after another, under the lock of their
membership; between people, the count of vacancies decides.

Every page of an item asks, so its statements are put together once: for a small query that takes longer than to run it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Select, and_, bindparam, delete, func, literal_column, select, update
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


def is_vacant() -> ColumnElement[bool]:
    """Items that need more people; spelled like the partial index, so that the index is used."""
    return ItemRow.vacancies > literal_column("0")


def in_project(project: ColumnElement[int]) -> ColumnElement[bool]:
    """Items of a project among those that a person has had: few, which an index of all its items would not find."""
    return ItemRow.project + literal_column("0") == project


_NOT_HAD = ~(
    select(AssignmentRow.id)
    .where(and_(AssignmentRow.item == ItemRow.id, AssignmentRow.account == bindparam("account")))
    .correlate(ItemRow)
    .exists()
)
"""Items that the account has never had."""


def _positions_where(condition: ColumnElement[bool]) -> Select[int]:
    of_project = select(ItemRow.position).where(ItemRow.project == bindparam("project"), condition, _NOT_HAD)
    return of_project.order_by(ItemRow.position).limit(bindparam("most"))


_PRACTICE, _CHECKS = (_positions_where(ItemRow.kind == kind) for kind in ("practice", "check"))
_VACANT = _positions_where(is_vacant())
_MEMBER = (
    select(ProjectRow)
    .join(MembershipRow, MembershipRow.project == ProjectRow.id)
    .where(ProjectRow.id == bindparam("project"), MembershipRow.account == bindparam("account"))
    .with_for_update(key_share=True, of=MembershipRow)
)
_EXPIRED = (
    select(AssignmentRow.id)
    .join(ItemRow, ItemRow.id == AssignmentRow.item)
    .where(
        AssignmentRow.state == OPEN,
        AssignmentRow.created < bindparam("moment"),
        AssignmentRow.account != bindparam("account"),
        ItemRow.project == bindparam("project"),
    )
)
"""Assignments that others have left open too long."""
_LEFT_OPEN = (
    select(AssignmentRow, ItemRow)
    .join(ItemRow, ItemRow.id == AssignmentRow.item)
    .where(
        AssignmentRow.account == bindparam("account"),
        AssignmentRow.state == OPEN,
        ItemRow.project == bindparam("project"),
    )
    .order_by(AssignmentRow.created.desc(), AssignmentRow.id.desc())
    .limit(1)
)
"""What was opened last comes first: after an undo, the item to be judged again."""
_COUNTS = (
    select(ItemRow.kind, func.count())
    .join(AssignmentRow, AssignmentRow.item == ItemRow.id)
    .where(AssignmentRow.account == bindparam("account"), in_project(bindparam("project")))
    .group_by(ItemRow.kind)
)
"""How many items of each kind the account has been given."""
_AT = select(ItemRow).where(
    ItemRow.project == bindparam("project"), ItemRow.position.in_(bindparam("positions", expanding=True))
)
_TAKE_VACANCY = (
    update(ItemRow)
    .where(ItemRow.id == bindparam("taken"), is_vacant())
    .values(vacancies=ItemRow.vacancies - 1)
    .returning(ItemRow.id)
    .execution_options(synchronize_session=False)
)


def next_item(database: Database, project: int, account: int) -> Assigned | None:
    """The item that the account is to judge now: what it left open, or a new one; None where nothing is left.

    Calling it again without judging gives the same item.
    """
    now = database.now()
    with database.writing() as session:
        settings = _locked_member(session, project, account)
        oldest = now - timedelta(seconds=settings.settings.expires)
        whose = {"project": project, "account": account, "moment": oldest}
        expired = session.scalars(_EXPIRED, whose).all()
        if not expired:
            return _next(session, settings, account, now)
    _release(database, project, expired)
    with database.writing() as session:
        return _next(session, _locked_member(session, project, account), account, now)


def _locked_member(session: Session, project: int, account: int) -> JudgingProject:
    """The project; other transactions that look for an item for this account in it wait until this one ends."""
    row = session.scalar(_MEMBER, {"project": project, "account": account})
    if row is None:
        raise CrosslensError("this account is not a member of the project", code="no-member")
    return as_project(row)


def _next(session: Session, project: JudgingProject, account: int, now: datetime) -> Assigned | None:
    left_open = session.execute(_LEFT_OPEN, {"project": project.id, "account": account}).one_or_none()
    rows = _at(session, project.id, _candidates(session, project, account))
    if left_open is not None:
        assignment, item = left_open
        assignment.created = now
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
    return session.scalar(_TAKE_VACANCY, {"taken": item.id}) is not None


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


def _release(database: Database, project: int, assignments: Sequence[int]) -> None:
    """Take items back, in a transaction of its own: one that also waits for a vacancy could wait for ever."""
    with database.writing() as session:
        locked_project(session, project)
        release(session, AssignmentRow.id.in_(assignments))


def release(session: Session, *conditions: ColumnElement[bool]) -> None:
    """Take back open items; the caller has locked their project.

    Their owner may be answering at this very moment: that they are open is looked at again under the row's lock.
    """
    taken = delete(AssignmentRow).where(AssignmentRow.state == OPEN, *conditions).returning(AssignmentRow.item)
    for item in session.scalars(taken, execution_options={"synchronize_session": False}).all():
        shared = (ItemRow.id == item, ItemRow.kind.in_(SHARED_KINDS))
        session.execute(update(ItemRow).where(*shared).values(vacancies=ItemRow.vacancies + 1))


def _candidates(session: Session, project: JudgingProject, account: int) -> list[int]:
    """Positions of the next item and of the one that will probably follow it.

    Practice first; then items that still need people, with an attention check when one is due.
    """
    whose = {"project": project.id, "account": account}
    practice = list(session.scalars(_PRACTICE, {**whose, "most": 2}))
    if practice:
        return practice
    had = dict(session.execute(_COUNTS, whose).all())
    shared = sum(had.get(kind, 0) for kind in SHARED_KINDS)
    candidates = []
    if checks_due(project.seed, account, shared, project.settings.check_every) > had.get("check", 0):
        checks = session.scalars(_CHECKS, {**whose, "most": WINDOW}).all()
        candidates += in_order(project.seed, account, checks)[:1]
    quota = project.settings.per_person
    if quota is None or shared < quota:
        vacant = session.scalars(_VACANT, {**whose, "most": WINDOW}).all()
        candidates += in_order(project.seed, account, vacant)[: 2 if quota is None else quota - shared]
    return candidates[:2]


def _at(session: Session, project: int, positions: Sequence[int]) -> list[ItemRow]:
    """The items at these positions, in this order."""
    if not positions:
        return []
    rows = session.scalars(_AT, {"project": project, "positions": positions})
    return sorted(rows, key=lambda row: positions.index(row.position))
