"""How far somebody, and a whole project, has come."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

from sqlalchemy import ColumnElement, Connection, bindparam, case, func, literal_column, select
from sqlalchemy.orm import Session

from crosslens.web.judging.database.engine import Database
from crosslens.web.judging.database.judging import NEWEST_JUDGEMENTS
from crosslens.web.judging.database.projects import JudgingProject
from crosslens.web.judging.database.tables import DONE, OPEN, PERSON, AssignmentRow, ItemRow, JudgementRow, ProjectRow
from crosslens.web.judging.tasks.content import SHARED_KINDS

_RECENT = 50
"""How many of the last judgements say how long one takes."""


def is_vacant() -> ColumnElement[bool]:
    """Items that need more people; spelled like the partial index, so that the index is used."""
    return ItemRow.vacancies > literal_column("0")


_OWN_COUNTS = (
    select(ItemRow.kind, AssignmentRow.state, func.count(), func.sum(case((is_vacant(), 1), else_=0)))
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
    _OF_PROJECT.where(is_vacant()).scalar_subquery(),
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
class AccountStanding:
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


def standing(connection: Connection, project: JudgingProject, account: int, now: datetime) -> AccountStanding:
    """Few statements, and the count of what was given first: where it is still the same later, so is the rest."""
    whose = {"project": project.id, "account": account, "oldest": now - timedelta(seconds=project.settings.expires)}
    practice, checks, vacant, others_expired, given = tuple(connection.execute(_TOTALS, whose).one())
    mine: dict[tuple[str, str], tuple[int, int]] = defaultdict(lambda: (0, 0))
    mine |= {(kind, state): (count, vacant) for kind, state, count, vacant in connection.execute(_OWN_COUNTS, whose)}
    recent = connection.execute(_NEWEST, whose).all()
    had: Counter[str] = Counter()
    for (kind, _), (count, _) in mine.items():
        had[kind] += count
    has_open = any(state == OPEN for _, state in mine)
    done = sum(mine[kind, DONE][0] for kind in SHARED_KINDS)
    held = sum(mine[kind, OPEN][0] for kind in SHARED_KINDS)
    left = held + vacant - sum(still_vacant for _, still_vacant in mine.values())
    if project.settings.per_person is not None:
        left = min(left, max(project.settings.per_person - done, 0))
    seconds_left = median(seconds for _, seconds in recent) * left if recent else None
    last = recent[0][0] if recent else None
    progress = AnnotatorProgress(done, left, mine["practice", DONE][0], practice, seconds_left, last)
    return AccountStanding(progress, had, has_open, checks, bool(others_expired), given)


def annotator_progress(database: Database, project: JudgingProject, account: int) -> AnnotatorProgress:
    """How much the account has judged, and how much is left for it."""
    with database.reading_rows() as connection:
        return standing(connection, project, account, database.now()).progress


def project_progress(database: Database, project: int) -> ProjectProgress:
    """How many judgements there are, are being made, and are wanted."""
    with database.reading() as session:
        row = session.get_one(ProjectRow, project)
        shared = _count(session, ItemRow.project == project, ItemRow.kind.in_(SHARED_KINDS))
        done = session.scalar(
            select(func.count())
            .select_from(JudgementRow)
            .join(ItemRow, ItemRow.id == JudgementRow.item)
            .where(ItemRow.project == project, ItemRow.kind.in_(SHARED_KINDS), JudgementRow.source == PERSON)
        )
        held = session.scalar(
            select(func.count())
            .select_from(AssignmentRow)
            .join(ItemRow, ItemRow.id == AssignmentRow.item)
            .where(ItemRow.project == project, ItemRow.kind.in_(SHARED_KINDS), AssignmentRow.state == OPEN)
        )
        return ProjectProgress(done or 0, held or 0, shared * row.overlap)


def _count(session: Session, *conditions: ColumnElement[bool]) -> int:
    return session.scalar(select(func.count()).select_from(ItemRow).where(*conditions)) or 0
