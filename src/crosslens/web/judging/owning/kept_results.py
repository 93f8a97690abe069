"""Results of projects, computed once for as long as nobody judges."""

from __future__ import annotations

from sqlalchemy import func, select

from crosslens.web.judging.database.engine import Database
from crosslens.web.judging.database.tables import (
    AccountRow,
    AdjudicationRow,
    ItemRow,
    JudgementHistoryRow,
    JudgementRow,
    ProjectRow,
)
from crosslens.web.judging.results.stored import load_answers
from crosslens.web.judging.results.summary import ProjectResults
from crosslens.web.kept import Kept

_MOST = 8


class KeptResults:
    """The results of the projects that were looked at last."""

    def __init__(self) -> None:
        self._kept: Kept[ProjectResults] = Kept(_MOST)

    def of(self, database: Database, project: int) -> ProjectResults:
        """The results as they are now."""
        key = (project, *_state(database, project))
        return self._kept.get(key, lambda: ProjectResults(load_answers(database, project)))


def _state(database: Database, project: int) -> tuple[object, ...]:
    """Changes with every judgement, undo, decision, import, change of settings, and name that is gone."""
    mine = select(ItemRow.id).where(ItemRow.project == project)
    queries = [
        select(ProjectRow.overlap, ProjectRow.guidelines, ProjectRow.settings).where(ProjectRow.id == project),
        select(func.count(), func.max(ItemRow.id)).where(ItemRow.project == project),
        select(func.count(), func.max(JudgementRow.id)).where(JudgementRow.item.in_(mine)),
        select(func.count(), func.max(JudgementHistoryRow.id)).where(JudgementHistoryRow.item.in_(mine)),
        select(func.count(), func.max(AdjudicationRow.created)).where(AdjudicationRow.item.in_(mine)),
        select(func.count(AccountRow.closed)),
    ]
    with database.reading() as session:
        return tuple(str(value) for query in queries for value in session.execute(query).one())
