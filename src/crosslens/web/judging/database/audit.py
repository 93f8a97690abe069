"""The audit log: who did what, written in the transaction that did it."""

from __future__ import annotations

import getpass
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import case, select
from sqlalchemy.orm import Session, aliased

from crosslens.web.judging.database.engine import Database
from crosslens.web.judging.database.tables import AccountRow, AuditRow, ProjectRow

COMMAND_LINE = "command line"


@dataclass(frozen=True)
class AuditEntry:
    """Something that was done; ``by`` and ``subject`` are names as they are now: pseudonyms of closed accounts.

    People choose their names: ``account`` tells somebody from the command line, and from those of a similar name. A
    pseudonym has no number: who knew the number would know the name.
    """

    time: datetime
    by: str
    account: int | None
    action: str
    project: int | None
    project_name: str
    subject: str
    subject_account: int | None
    detail: str

    @property
    def who(self) -> str:
        """Who did it, unmistakably."""
        return _with_account(self.by, self.account)

    @property
    def about(self) -> str:
        """Whom it is about; empty for nobody."""
        return _with_account(self.subject, self.subject_account)

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "time": self.time.isoformat(timespec="seconds"), "by": self.by, "account": self.account,
            "action": self.action, "project": self.project, "subject": self.subject or None,
            "subject_account": self.subject_account, "detail": self.detail,
        }  # fmt: skip


def add_entry(
    database: Database,
    session: Session,
    action: str,
    by: int | None,
    *,
    project: int | None = None,
    subject: int | None = None,
    detail: str = "",
) -> None:
    """Note what the transaction does; ``by`` nobody: the command line. ``detail`` names no people."""
    session.add(
        AuditRow(
            created=database.now(), actor=by, machine_user=_machine_user() if by is None else "", action=action,
            project=project, subject=subject, detail=detail,
        )
    )  # fmt: skip


def note_export(database: Database, project: int, file: str, by: int | None = None) -> None:
    """Note that the judgements of a project were written to a file."""
    with database.writing() as session:
        add_entry(database, session, "judgements exported", by, project=project, detail=file)


def audit_log(database: Database, project: int | None = None, *, limit: int = 200, before: int = 0) -> list[AuditEntry]:
    """The newest entries, or those of a project, after the first ``before``."""
    actor, subject = aliased(AccountRow), aliased(AccountRow)
    numbers = (case((who.closed.is_(None), who.id)) for who in (actor, subject))
    query = (
        select(AuditRow, actor.name, ProjectRow.name, subject.name, *numbers)
        .outerjoin(actor, actor.id == AuditRow.actor)
        .outerjoin(ProjectRow, ProjectRow.id == AuditRow.project)
        .outerjoin(subject, subject.id == AuditRow.subject)
        .order_by(AuditRow.id.desc())
        .limit(limit)
        .offset(before)
    )
    if project is not None:
        query = query.where(AuditRow.project == project)
    with database.reading() as session:
        return [
            AuditEntry(
                row.created, name or f"{COMMAND_LINE} ({row.machine_user})", number, row.action, row.project, of or "",
                about or "", of_subject, row.detail,
            )
            for row, name, of, about, number, of_subject in session.execute(query)
        ]  # fmt: skip


def _with_account(name: str, account: int | None) -> str:
    return name if account is None else f"{name} (account {account})"


def _machine_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in some containers
        return "unknown"
