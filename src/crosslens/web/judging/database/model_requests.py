"""What asking a model took: requests, tokens and what they cost, added up over all runs of the command."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select

from crosslens.core import Tokens
from crosslens.web.judging.database.engine import Database
from crosslens.web.judging.database.tables import AccountRow, ModelRequestsRow


@dataclass(frozen=True)
class ModelRequests:
    """Requests to a model and their tokens; no ``cost`` where no price was given."""

    requests: int
    tokens: Tokens
    cost: float | None


def add_requests(database: Database, project: int, account: int, asked: ModelRequests) -> None:
    """Keep what one run of the command took."""
    tokens = asked.tokens
    with database.writing() as session:
        session.add(
            ModelRequestsRow(
                project=project, account=account, requests=asked.requests, sent=tokens.sent,
                received=tokens.received, uncounted=tokens.uncounted, cost=asked.cost, created=database.now(),
            )
        )  # fmt: skip


def requests_by_model(database: Database, project: int) -> dict[str, ModelRequests]:
    """Model → what asking it about the project took in all."""
    row = ModelRequestsRow
    query = (
        select(
            AccountRow.name,
            func.sum(row.requests),
            func.sum(row.sent),
            func.sum(row.received),
            func.sum(row.uncounted),
            func.sum(row.cost),
        )
        .join(AccountRow, AccountRow.id == row.account)
        .where(row.project == project)
        .group_by(AccountRow.name)
    )
    with database.reading() as session:
        return {
            name: ModelRequests(int(requests), Tokens(int(sent), int(received), int(uncounted)), cost)
            for name, requests, sent, received, uncounted, cost in session.execute(query)
        }
