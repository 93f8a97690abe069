"""Invitation links: for one or several people, valid for some days. The link itself is stored nowhere."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from crosslens.core import CrosslensError
from crosslens.web.judging.accounts.passwords import check_password, hash_password
from crosslens.web.judging.accounts.people import Account, add_account, check_name
from crosslens.web.judging.accounts.tokens import new_token, token_hash
from crosslens.web.judging.database.audit import add_entry
from crosslens.web.judging.database.engine import Database
from crosslens.web.judging.database.projects import join_within, locked_project, open_account
from crosslens.web.judging.database.tables import (
    ANNOTATOR,
    OWNER,
    InvitationRow,
    MembershipRow,
    ProjectRow,
)

MOST_DAYS, MOST_USES = 365, 10_000


@dataclass(frozen=True)
class Invitation:
    """What a valid link leads to; without project: the account of somebody who may create projects."""

    project: int | None
    project_name: str
    role: str
    expires: datetime


def create_invitation(
    database: Database,
    project: int | None,
    *,
    role: str = ANNOTATOR,
    uses: int = 1,
    days: float = 7,
    by: int | None = None,
) -> str:
    """The token of a new link (``/join/TOKEN``); without project it makes an account that may create projects."""
    if role not in (ANNOTATOR, OWNER) or (project is None and role != OWNER):
        raise CrosslensError(f"{role!r} is not a role that a link can give", code="bad-role", option="role")
    if not 1 <= uses <= MOST_USES:
        raise CrosslensError(f"uses is {uses}, but must be from 1 to {MOST_USES}", option="uses", code="out-of-range")
    if not 0 < days <= MOST_DAYS:
        raise CrosslensError(f"days is {days}, but must be from 0 to {MOST_DAYS}", option="days", code="out-of-range")
    token, now = new_token(), database.now()
    with database.writing() as session:
        if project is not None:
            locked_project(session, project)
        session.add(
            InvitationRow(
                token_hash=token_hash(token),
                project=project,
                role=role,
                expires=now + timedelta(days=days),
                uses=uses,
                used=0,
                created=now,
            )
        )
        detail = f"{_reference(token_hash(token))}: {role}; people: {uses}; days: {days:g}"
        add_entry(database, session, "invitation made", by, project=project, detail=detail)
    return token


@dataclass(frozen=True)
class OpenInvitation:
    """A link that still lets people in; ``id`` names it without being it."""

    id: str
    role: str
    uses: int
    used: int
    created: datetime
    expires: datetime

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        times = {"created": self.created.isoformat(), "expires": self.expires.isoformat()}
        return {"id": self.id, "role": self.role, "uses": self.uses, "used": self.used, **times}


def open_invitations(database: Database, project: int | None) -> list[OpenInvitation]:
    """The links to a project (to none: for owners of the server) that still let people in, oldest first."""
    query = select(InvitationRow).where(
        InvitationRow.project == project,
        InvitationRow.expires > database.now(),
        InvitationRow.used < InvitationRow.uses,
    )
    with database.reading() as session:
        return [
            OpenInvitation(_reference(row.token_hash), row.role, row.uses, row.used, row.created, row.expires)
            for row in session.scalars(query.order_by(InvitationRow.created, InvitationRow.token_hash))
        ]


def revoke_invitation(database: Database, project: int | None, reference: str, by: int | None = None) -> None:
    """End a link; people who have used it stay in."""
    with database.writing() as session:
        of_project = session.scalars(select(InvitationRow).where(InvitationRow.project == project).with_for_update())
        row = next((row for row in of_project if _reference(row.token_hash) == reference), None)
        if row is None:
            raise CrosslensError(f"there is no invitation {reference!r}", fix="look at the list again", code="gone")
        session.delete(row)
        add_entry(database, session, "invitation revoked", by, project=project, detail=reference)


def _reference(hashed: str) -> str:
    """A name for a link in lists; the link cannot be computed from it."""
    return hashed[:12]


def invitation(database: Database, token: str) -> Invitation | None:
    """What the link leads to; None where it is unknown, expired or used up."""
    query = (
        select(InvitationRow, ProjectRow.name)
        .outerjoin(ProjectRow, ProjectRow.id == InvitationRow.project)
        .where(
            InvitationRow.token_hash == token_hash(token),
            InvitationRow.expires > database.now(),
            InvitationRow.used < InvitationRow.uses,
        )
    )
    with database.reading() as session:
        row = session.execute(query).one_or_none()
        return None if row is None else Invitation(row[0].project, row[1] or "", row[0].role, row[0].expires)


def accept_invitation(database: Database, token: str, account: int) -> int | None:
    """Let an existing account in; returns the project. Who is in already uses nothing up."""
    with database.writing() as session:
        row = _valid(database, session, token)
        if row.project is None:
            open_account(session, account).is_owner = True
        else:
            member = session.get(MembershipRow, (row.project, account))
            if member is not None and member.role in (OWNER, row.role):
                return row.project
            join_within(database, session, row.project, account, row.role)
        row.used += 1
        _note_use(database, session, row, account)
        return row.project


def accept_with_new_account(database: Database, token: str, name: str, password: str) -> Account:
    """Make an account and let it in, both or neither."""
    check_name(name)
    if invitation(database, token) is None:
        raise _invalid()
    hashed = hash_password(check_password(password))
    with database.writing() as session:
        row = _valid(database, session, token)
        account = add_account(database, session, name, hashed, is_owner=row.project is None, by_themselves=True)
        if row.project is not None:
            join_within(database, session, row.project, account.id, row.role)
        row.used += 1
        _note_use(database, session, row, account.id)
        return account


def _note_use(database: Database, session: Session, row: InvitationRow, account: int) -> None:
    detail = f"{_reference(row.token_hash)}: {row.role}"
    add_entry(database, session, "invitation used", account, project=row.project, subject=account, detail=detail)


def _valid(database: Database, session: Session, token: str) -> InvitationRow:
    row = session.get(InvitationRow, token_hash(token), with_for_update=True)
    if row is None or row.expires <= database.now() or row.used >= row.uses:
        raise _invalid()
    return row


def _invalid() -> CrosslensError:
    return CrosslensError(
        "this link is not valid: it has been used or has expired",
        fix="ask the owner of the project for a new one",
        code="gone",
    )
