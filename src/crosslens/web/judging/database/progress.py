"""How far somebody, and a whole project, has come."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from crosslens.web.judging.database.assigning import is_vacant
from crosslens.web.judging.database.engine import Database
from crosslens.web.judging.database.tables import DONE, OPEN, PERSON, AssignmentRow, ItemRow, JudgementRow, ProjectRow
from crosslens.web.judging.tasks.content import SHARED_KINDS

_RECENT = 50
"""How many of the last judgements say how long one takes."""


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


@dataclass(frozen=True)
class ProjectProgress:
    """Where a project stands: judgements of people on items that are shared among them."""

    done: int
    open: int
    needed: int


def annotator_progress(database: Database, project: int, account: int) -> AnnotatorProgress:
    """How much the account has judged, and how much is left for it."""
    with database.reading() as session:
        return progress_within(session, project, account)


def progress_within(session: Session, project: int, account: int) -> AnnotatorProgress:
    """The same, within a transaction."""
    settings = session.scalar(select(ProjectRow.settings).where(ProjectRow.id == project)) or {}
    mine = _own_counts(session, project, account)
    done = sum(mine.get((kind, DONE), 0) for kind in SHARED_KINDS)
    held = sum(mine.get((kind, OPEN), 0) for kind in SHARED_KINDS)
    left = held + _vacant_for(session, project, account)
    if settings.get("per_person") is not None:
        left = min(left, max(settings["per_person"] - done, 0))
    recent = session.scalars(
        select(JudgementRow.seconds)
        .join(ItemRow, ItemRow.id == JudgementRow.item)
        .where(JudgementRow.account == account, ItemRow.project == project)
        .order_by(JudgementRow.created.desc())
        .limit(_RECENT)
    ).all()
    practice = _count(session, ItemRow.project == project, ItemRow.kind == "practice")
    seconds_left = median(recent) * left if recent else None
    return AnnotatorProgress(done, left, mine.get(("practice", DONE), 0), practice, seconds_left)


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


def _own_counts(session: Session, project: int, account: int) -> dict[tuple[str, str], int]:
    rows = session.execute(
        select(ItemRow.kind, AssignmentRow.state, func.count())
        .join(AssignmentRow, AssignmentRow.item == ItemRow.id)
        .where(AssignmentRow.account == account, ItemRow.project == project)
        .group_by(ItemRow.kind, AssignmentRow.state)
    )
    return {(kind, state): count for kind, state, count in rows}


def _vacant_for(session: Session, project: int, account: int) -> int:
    """Items that need more people and that the account has not had: all of them, less its own."""
    query = select(func.count()).select_from(ItemRow).join(AssignmentRow, AssignmentRow.item == ItemRow.id)
    own = session.scalar(query.where(ItemRow.project == project, is_vacant(), AssignmentRow.account == account)) or 0
    return _count(session, ItemRow.project == project, is_vacant()) - own


def _count(session: Session, *conditions: ColumnElement[bool]) -> int:
    return session.scalar(select(func.count()).select_from(ItemRow).where(*conditions)) or 0
