"""Which item somebody gets next. What they may get is read without a lock; it is given to them under the lock of their
membership, provided that they have got nothing else meanwhile. Between people, the count of vacancies decides.

Every page of an item asks, so its statements are put together once: for a small query that takes longer than to run it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    case,
    delete,
    func,
    literal_column,
    select,
    update,
)
from sqlalchemy.orm import Session

from crosslens.core import CrosslensError
from crosslens.web.judging.database.engine import Database
from crosslens.web.judging.database.judgements import NEWEST_JUDGEMENTS, new_assignment
from crosslens.web.judging.database.projects import JudgingProject, StoredItem, as_item, locked_project
from crosslens.web.judging.database.tables import (
    DONE,
    OPEN,
    PERSON,
    AssignmentRow,
    ItemRow,
    JudgementHistoryRow,
    JudgementRow,
    MembershipRow,
    ProjectRow,
)
from crosslens.web.judging.tasks import SHARED_KINDS, WINDOW, Answer, checks_due, in_order

_RECENT = 50
"""How many of the last judgements say how long one takes."""
_IS_VACANT = ItemRow.vacancies > literal_column("0")
"""Items that need more people; spelled like the partial index, so that the index is used."""
_OWN_COUNTS = (
    select(ItemRow.kind, AssignmentRow.state, func.count(), func.sum(case((_IS_VACANT, 1), else_=0)))
    .join(AssignmentRow, AssignmentRow.item == ItemRow.id)
    # Of the items that the person has had: few, which an index of all items of the project would not find.
    .where(AssignmentRow.account == bindparam("account"), ItemRow.project + literal_column("0") == bindparam("project"))
    .group_by(ItemRow.kind, AssignmentRow.state)
)
"""Kind, state, how many such items the account has been given, and how many of them need more people."""
_OF_PROJECT = select(func.count()).select_from(ItemRow).where(ItemRow.project == bindparam("project"))
GIVEN = (
    select(func.count())
    .select_from(AssignmentRow)
    .where(AssignmentRow.account == bindparam("account"))
    .scalar_subquery()
)
"""How many items the account has been given, in all projects."""
EXPIRED = (
    select(AssignmentRow.id)
    .join(ItemRow, ItemRow.id == AssignmentRow.item)
    .where(
        AssignmentRow.state == OPEN,
        AssignmentRow.created < bindparam("oldest"),
        AssignmentRow.account != bindparam("account"),
        ItemRow.project == bindparam("project"),
    )
)
"""Assignments that others have left open too long."""
_TOTALS = select(
    *(_OF_PROJECT.where(ItemRow.kind == kind).scalar_subquery() for kind in ("practice", "check")),
    _OF_PROJECT.where(_IS_VACANT).scalar_subquery(),
    EXPIRED.exists(),
    GIVEN,
)
"""Practice items, attention checks, items that need more people, whether others left some open too long, and how many
the account has had: each looked up in its own index."""
_NEWEST = NEWEST_JUDGEMENTS.with_only_columns(JudgementRow.id, JudgementRow.seconds).limit(_RECENT)


@dataclass(frozen=True)
class AnnotatorProgress:
    """Where one person stands."""

    done: int
    """Judgements that count: of items that are shared among people."""
    left: int
    """How many more there are for this person at most; fewer where others are faster."""
    practice_done: int
    practice: int
    seconds_left: float | None
    """What is left at the person's own pace; None before the first judgements."""
    last: int | None
    """The judgement that can be taken back."""


@dataclass(frozen=True)
class ProjectProgress:
    """Where a project stands: judgements of people on items that are shared among them."""

    done: int
    open: int
    needed: int


@dataclass(frozen=True)
class AccountCounts:
    """What an account has had of a project, and what that leaves: every page of an item is decided by it."""

    progress: AnnotatorProgress
    had: Counter[str]
    """How many items of each kind the account has been given."""
    has_open: bool
    """Whether one of them waits for an answer."""
    checks: int
    """How many attention checks the project has."""
    others_expired: bool
    """Whether others have left items open too long."""
    given: int
    """How many items the account has been given in all projects."""


def account_counts(connection: Connection, project: JudgingProject, account: int, now: datetime) -> AccountCounts:
    """Few statements, and the count of what was given first: where it is still the same later, so is the rest."""
    whose = {"project": project.id, "account": account, "oldest": now - timedelta(seconds=project.settings.expires)}
    practice, checks, vacant, others_expired, count_given = tuple(connection.execute(_TOTALS, whose).one())
    mine: dict[tuple[str, str], tuple[int, int]] = defaultdict(lambda: (0, 0))
    mine |= {(kind, state): (count, vacant) for kind, state, count, vacant in connection.execute(_OWN_COUNTS, whose)}
    recent = connection.execute(_NEWEST, whose).all()
    had: Counter[str] = Counter()
    for (kind, _), (count, _) in mine.items():
        had[kind] += count
    has_open = any(state == OPEN for _, state in mine)
    done = sum(mine[kind, DONE][0] for kind in SHARED_KINDS)
    under_way = sum(mine[kind, OPEN][0] for kind in SHARED_KINDS)
    remaining = under_way + vacant - sum(still_vacant for _, still_vacant in mine.values())
    if project.settings.per_person is not None:
        remaining = min(remaining, max(project.settings.per_person - done, 0))
    seconds_left = median(seconds for _, seconds in recent) * remaining if recent else None
    last = recent[0][0] if recent else None
    progress = AnnotatorProgress(done, remaining, mine["practice", DONE][0], practice, seconds_left, last)
    return AccountCounts(progress, had, has_open, checks, bool(others_expired), count_given)


def annotator_progress(database: Database, project: JudgingProject, account: int) -> AnnotatorProgress:
    """How much the account has judged, and how much is left for it."""
    with database.reading_rows() as connection:
        return account_counts(connection, project, account, database.now()).progress


def project_progress(database: Database, project: int) -> ProjectProgress:
    """How many judgements there are, are being made, and are wanted."""
    shared = select(func.count()).where(ItemRow.project == project, ItemRow.kind.in_(SHARED_KINDS))
    done = shared.where(JudgementRow.item == ItemRow.id, JudgementRow.source == PERSON)
    under_way = shared.where(AssignmentRow.item == ItemRow.id, AssignmentRow.state == OPEN)
    needed = shared.scalar_subquery() * ProjectRow.overlap
    query = select(done.scalar_subquery(), under_way.scalar_subquery(), needed).where(ProjectRow.id == project)
    with database.reading_rows() as connection:
        return ProjectProgress(*connection.execute(query).one())


@dataclass(frozen=True)
class Assigned:
    """An item that an account has been given."""

    assignment: int
    item: StoredItem
    progress: AnnotatorProgress
    following: StoredItem | None = None
    """What will probably come next, so that its pictures can be loaded already; not given out yet."""
    answer: Answer | None = None
    """What the account last answered and took back."""


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
_VACANT = _positions_where(_IS_VACANT)
_LOCKED_MEMBER = (
    select(MembershipRow.account)
    .where(MembershipRow.project == bindparam("project"), MembershipRow.account == bindparam("account"))
    .with_for_update(key_share=True)
)
_ITEM = (ItemRow.id, ItemRow.project, ItemRow.position, ItemRow.kind, ItemRow.content, ItemRow.expected)
_LEFT_OPEN = (
    select(*_ITEM, AssignmentRow.id.label("assignment"))
    .join(AssignmentRow, AssignmentRow.item == ItemRow.id)
    .where(
        AssignmentRow.account == bindparam("account"),
        AssignmentRow.state == OPEN,
        ItemRow.project == bindparam("project"),
    )
    .order_by(AssignmentRow.created.desc(), AssignmentRow.id.desc())
    .limit(1)
)
"""What was opened last comes first: after an undo, the item to be judged again."""
_TAKEN_BACK = (
    select(JudgementHistoryRow.labels, JudgementHistoryRow.rating, JudgementHistoryRow.text)
    .where(JudgementHistoryRow.assignment == bindparam("assignment"))
    .order_by(JudgementHistoryRow.id.desc())
    .limit(1)
)
_SINCE = select(GIVEN, _LEFT_OPEN.with_only_columns(AssignmentRow.id).order_by(None).scalar_subquery())
"""How many items the account has been given, and one that it has open: whether anything has changed."""
_RENEW = (
    update(AssignmentRow)
    .where(AssignmentRow.id == bindparam("renewed"), AssignmentRow.state == OPEN)
    .values(created=bindparam("now"))
    .returning(AssignmentRow.id)
)
_AT = select(*_ITEM).where(
    ItemRow.project == bindparam("project"), ItemRow.position.in_(bindparam("positions", expanding=True))
)
_TAKE_VACANCY = (
    update(ItemRow)
    .where(ItemRow.id == bindparam("taken"), _IS_VACANT)
    .values(vacancies=ItemRow.vacancies - 1)
    .returning(ItemRow.id)
)


def next_item(database: Database, project: JudgingProject, account: int) -> Assigned | None:
    """The item that the account is to judge now: what it left open, or a new one; None where nothing is left.

    Calling it again without judging gives the same item.
    """
    now, whose = database.now(), {"project": project.id, "account": account}
    while True:
        with database.reading_rows() as connection:
            counts = account_counts(connection, project, account, now)
            left_open = connection.execute(_LEFT_OPEN, whose).one_or_none() if counts.has_open else None
            earlier = None  # what was last answered to it and taken back, as a start for the new answer
            if left_open is not None:
                earlier = connection.execute(_TAKEN_BACK, {"assignment": left_open.assignment}).one_or_none()
            positions = _candidates(connection, project, account, counts)
            items = connection.execute(_AT, {"project": project.id, "positions": positions}) if positions else ()
            rows = sorted(items, key=lambda row: positions.index(row.position))
        if counts.others_expired:
            # In a transaction of its own: one that also waits for a vacancy could wait for ever.
            with database.writing() as session:
                locked_project(session, project.id)
                oldest = now - timedelta(seconds=project.settings.expires)
                release(session, AssignmentRow.id.in_(session.scalars(EXPIRED, {**whose, "oldest": oldest}).all()))
            continue
        with database.writing_rows() as connection:
            if connection.scalar(_LOCKED_MEMBER, whose) is None:
                raise CrosslensError("this account is not a member of the project", code="no-member")
            # Another window of the same person may have changed what was read: then everything is looked at again.
            if left_open is not None:
                if connection.scalar(_RENEW, {"renewed": left_open.assignment, "now": now}) is None:
                    continue
                following = as_item(rows[0]) if rows else None
                answer = None if earlier is None else Answer(tuple(earlier.labels), earlier.rating, earlier.text)
                return Assigned(left_open.assignment, as_item(left_open), counts.progress, following, answer)
            if connection.execute(_SINCE, whose).one() != (counts.given, None):
                continue
            if not rows:
                return None
            while rows:
                item = rows.pop(0)
                # Not where somebody else was faster, and the item has enough people by now.
                if item.kind not in SHARED_KINDS or connection.scalar(_TAKE_VACANCY, {"taken": item.id}) is not None:
                    assignment = new_assignment(connection, item.id, account, now)
                    following = as_item(rows[0]) if rows else None
                    return Assigned(assignment, as_item(item), counts.progress, following)


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


def release(session: Session, *conditions: ColumnElement[bool]) -> None:
    """Take back open items; the caller has locked their project.

    Their owner may be answering at this very moment: that they are open is looked at again under the row's lock.
    """
    released = delete(AssignmentRow).where(AssignmentRow.state == OPEN, *conditions).returning(AssignmentRow.item)
    for item in session.scalars(released, execution_options={"synchronize_session": False}).all():
        shared = (ItemRow.id == item, ItemRow.kind.in_(SHARED_KINDS))
        session.execute(update(ItemRow).where(*shared).values(vacancies=ItemRow.vacancies + 1))


def _candidates(connection: Connection, project: JudgingProject, account: int, counts: AccountCounts) -> list[int]:
    """Positions of the next item and of the one that will probably follow it.

    Practice first; then items that still need people, with an attention check when one is due.
    """
    whose, had = {"project": project.id, "account": account}, counts.had
    if counts.progress.practice > had["practice"]:
        return list(connection.scalars(_PRACTICE, {**whose, "most": 2}))
    shared = sum(had[kind] for kind in SHARED_KINDS)
    candidates = []
    due = checks_due(project.seed, account, shared, project.settings.check_every)
    if min(due, counts.checks) > had["check"]:
        checks = connection.scalars(_CHECKS, {**whose, "most": WINDOW}).all()
        candidates += in_order(project.seed, account, checks)[:1]
    quota = project.settings.per_person
    if quota is None or shared < quota:
        vacant = connection.scalars(_VACANT, {**whose, "most": WINDOW}).all()
        candidates += in_order(project.seed, account, vacant)[: 2 if quota is None else quota - shared]
    return candidates[:2]
