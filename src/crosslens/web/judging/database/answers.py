"""Judgements as rows, for agreement, adjudication and export."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Select, select

from crosslens.web.judging.database.engine import Database
from crosslens.web.judging.database.tables import AccountRow, ItemRow, JudgementHistoryRow, JudgementRow


@dataclass(frozen=True)
class JudgementEntry:
    """A judgement with what is needed to analyse it."""

    item: int
    account: str
    labels: tuple[str, ...]
    rating: int | None
    text: str
    kind: str
    source: str
    created: datetime
    seconds: float
    expected: dict[str, Any] | None


def judgements(database: Database, project: int) -> list[JudgementEntry]:
    """All judgements of a project, oldest first."""
    return _entries(database, _selection(JudgementRow, project))


def judgements_taken_back(database: Database, project: int) -> list[JudgementEntry]:
    """What people undid, oldest first."""
    return _entries(database, _selection(JudgementHistoryRow, project))


def _selection(table: type[JudgementRow] | type[JudgementHistoryRow], project: int) -> Select[Any]:
    return (
        select(
            table.item,
            AccountRow.name,
            table.labels,
            table.rating,
            table.text,
            ItemRow.kind,
            table.source,
            table.created,
            table.seconds,
            ItemRow.expected,
        )
        .join(ItemRow, ItemRow.id == table.item)
        .join(AccountRow, AccountRow.id == table.account)
        .where(ItemRow.project == project)
        .order_by(table.id)
    )


def _entries(database: Database, query: Select[Any]) -> list[JudgementEntry]:
    with database.reading() as session:
        return [
            JudgementEntry(item, account, tuple(labels), *rest)
            for item, account, labels, *rest in session.execute(query)
        ]
