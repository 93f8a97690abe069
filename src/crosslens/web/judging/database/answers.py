"""Judgements as rows, for agreement, adjudication and export."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select

from crosslens.web.judging.database.engine import Database
from crosslens.web.judging.database.tables import AccountRow, ItemRow, JudgementRow


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
    query = (
        select(
            JudgementRow.item,
            AccountRow.name,
            JudgementRow.labels,
            JudgementRow.rating,
            JudgementRow.text,
            ItemRow.kind,
            JudgementRow.source,
            JudgementRow.created,
            JudgementRow.seconds,
            ItemRow.expected,
        )
        .join(ItemRow, ItemRow.id == JudgementRow.item)
        .join(AccountRow, AccountRow.id == JudgementRow.account)
        .where(ItemRow.project == project)
        .order_by(JudgementRow.id)
    )
    with database.reading() as session:
        return [
            JudgementEntry(item, account, tuple(labels), *rest)
            for item, account, labels, *rest in session.execute(query)
        ]
