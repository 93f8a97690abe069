"""How far somebody, and a whole project, has come."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import median

from sqlalchemy import ColumnElement, bindparam, case, func, select
from sqlalchemy.orm import Session

from crosslens.web.judging.database.assigning import in_project, is_vacant
from crosslens.web.judging.database.engine import Database
from crosslens.web.judging.database.judging import NEWEST_JUDGEMENTS
from crosslens.web.judging.database.projects import JudgingProject
from crosslens.web.judging.database.tables import DONE, OPEN, PERSON, AssignmentRow, ItemRow, JudgementRow, ProjectRow
from crosslens.web.judging.tasks.content import SHARED_KINDS

_RECENT = 50
"""How many of the last judgements say how long one takes."""


_OWN_COUNTS = (
    select(ItemRow.kind, AssignmentRow.state, func.count(), func.sum(case((is_vacant(), 1), else_=0)))
    .join(AssignmentRow, AssignmentRow.item == ItemRow.id)
    .where(AssignmentRow.account == bindparam("account"), in_project(bindparam("project")))
    .group_by(ItemRow.kind, AssignmentRow.state)
)
"""Kind, state, how many such items the account has been given, and how many of them need more people."""
_OF_PROJECT = select(func.count()).select_from(ItemRow).where(ItemRow.project == bindparam("project"))
_ITEM_COUNTS = select(
    _OF_PROJECT.where(ItemRow.kind == "practice").scalar_subquery(), _OF_PROJECT.where(is_vacant()).scalar_subquery()
)
"""Practice items, and items that need more people; each counted in its own index."""
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


def annotator_progress(database: Database, project: JudgingProject, account: int) -> AnnotatorProgress:
    """How much the account has judged, and how much is left for it. Few queries: every page of an item asks."""
    with database.reading() as session:
        whose = {"project": project.id, "account": account}
        mine: dict[tuple[str, str], tuple[int, int]] = defaultdict(lambda: (0, 0))
        mine |= {(kind, state): (count, vacant) for kind, state, count, vacant in session.execute(_OWN_COUNTS, whose)}
        practice, vacant = session.execute(_ITEM_COUNTS, whose).one()
        recent = session.execute(_NEWEST, whose).all()
    done = sum(mine[kind, DONE][0] for kind in SHARED_KINDS)
    held = sum(mine[kind, OPEN][0] for kind in SHARED_KINDS)
    left = held + vacant - sum(still_vacant for _, still_vacant in mine.values())
    if project.settings.per_person is not None:
        left = min(left, max(project.settings.per_person - done, 0))
    seconds_left = median(seconds for _, seconds in recent) * left if recent else None
    last = recent[0][0] if recent else None
    return AnnotatorProgress(done, left, mine["practice", DONE][0], practice, seconds_left, last)


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
