"""Taking back what was given: memberships, sessions, passwords, whole accounts. Holds from the next request on."""

from __future__ import annotations

import secrets
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import and_, delete, func, or_, select
from sqlalchemy.orm import Session

from crosslens.core import ConflictError, CrosslensError
from crosslens.web.judging.accounts.passwords import check_password, hash_password
from crosslens.web.judging.accounts.people import Account, as_account, log_out_everywhere, name_key, owner_count
from crosslens.web.judging.accounts.tokens import new_token, token_hash
from crosslens.web.judging.database.assigning import release
from crosslens.web.judging.database.audit import add_entry
from crosslens.web.judging.database.engine import Database
from crosslens.web.judging.database.projects import locked_project, open_account
from crosslens.web.judging.database.tables import (
    OWNER,
    AccountRow,
    AssignmentRow,
    ItemRow,
    JudgementRow,
    LoginSessionRow,
    MembershipRow,
    PasswordResetRow,
    ProjectRow,
)

RESET_DAYS = 2
"""How long a link to a new password is valid."""


@dataclass(frozen=True)
class AccountLine:
    """An account as its owner sees it; ``kind`` is owner, person, model or closed."""

    id: int
    name: str
    kind: str
    projects: tuple[str, ...]
    judgements: int
    sessions: int
    created: datetime

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "account": self.id, "name": self.name, "kind": self.kind, "projects": list(self.projects),
            "judgements": self.judgements, "sessions": self.sessions,
            "created": self.created.isoformat(timespec="seconds"),
        }  # fmt: skip


def list_accounts(database: Database) -> list[AccountLine]:
    """All accounts, by name; closed ones last."""
    now = database.now()
    of = (
        select(MembershipRow.account, ProjectRow.name)
        .join(ProjectRow, ProjectRow.id == MembershipRow.project)
        .order_by(ProjectRow.id)
    )
    judged = select(JudgementRow.account, func.count()).group_by(JudgementRow.account)
    logged_in = select(LoginSessionRow.account).where(LoginSessionRow.expires > now)
    with database.reading() as session:
        projects = defaultdict(list)
        for account, project in session.execute(of):
            projects[account].append(project)
        judgements = dict(session.execute(judged).all())
        sessions = Counter(session.scalars(logged_in))
        rows = session.scalars(select(AccountRow).order_by(AccountRow.closed.is_not(None), AccountRow.name_key))
        return [
            AccountLine(
                row.id, row.name, _kind(row), tuple(projects[row.id]), judgements.get(row.id, 0), sessions[row.id],
                row.created,
            )
            for row in rows
        ]  # fmt: skip


def _kind(row: AccountRow) -> str:
    if row.closed is not None:
        return "closed"
    return "owner" if row.is_owner else "model" if row.password_hash is None else "person"


def remove_member(database: Database, project: int, account: int, by: int | None = None) -> None:
    """End a membership: judgements stay, items that were open go to others."""
    with database.writing(alone=True) as session:
        locked_project(session, project)
        role = session.scalar(
            delete(MembershipRow)
            .where(MembershipRow.project == project, MembershipRow.account == account)
            .returning(MembershipRow.role)
        )
        if role is None:
            raise CrosslensError("this account is not a member of the project", fix="look at the list", code="gone")
        if role == OWNER:
            _keep_an_owner(session, project)
        items = select(ItemRow.id).where(ItemRow.project == project)
        release(session, AssignmentRow.account == account, AssignmentRow.item.in_(items))
        add_entry(database, session, "member removed", by, project=project, subject=account, detail=role)


def _keep_an_owner(session: Session, project: int) -> None:
    """Refuse what has left a project without anybody who owns it."""
    of_project = and_(MembershipRow.project == project, MembershipRow.role == OWNER)
    owners = (
        select(func.count(AccountRow.id.distinct()))
        .outerjoin(MembershipRow, and_(MembershipRow.account == AccountRow.id, of_project))
        .where(AccountRow.closed.is_(None), or_(AccountRow.is_owner, MembershipRow.account.is_not(None)))
    )
    if not session.scalar(owners):
        raise ConflictError(
            f"the last owner of project {project} cannot be removed", fix="invite another owner first",
            code="last-owner",
        )  # fmt: skip


def end_sessions(database: Database, account: int, by: int | None = None) -> int:
    """Log an account out everywhere; returns how many sessions there were."""
    with database.writing() as session:
        open_account(session, account)
        ended = log_out_everywhere(session, account)
        add_entry(database, session, "sessions ended", by, subject=account, detail=f"sessions: {ended}")
        return ended


def make_reset_link(database: Database, account: int, by: int | None = None) -> str:
    """The token of a link (``/reset/TOKEN``) by which somebody chooses a new password, once.

    The old password and all sessions end now: whoever else knew it is out.
    """
    token, unknown = new_token(), hash_password(new_token())
    with database.writing() as session:
        row = open_account(session, account)
        if row.password_hash is None:
            raise ConflictError(f"{row.name!r} is a model, and has no password", fix="choose a person", code="model")
        row.password_hash = unknown
        log_out_everywhere(session, account)
        expires = database.now() + timedelta(days=RESET_DAYS)
        session.add(PasswordResetRow(token_hash=token_hash(token), account=account, expires=expires))
        add_entry(database, session, "password reset", by, subject=account, detail=f"link for {RESET_DAYS} days")
    return token


def reset_account(database: Database, token: str) -> Account | None:
    """Whose new password the link is for; None where it is unknown, used or expired."""
    query = (
        select(AccountRow)
        .join(PasswordResetRow, PasswordResetRow.account == AccountRow.id)
        .where(PasswordResetRow.token_hash == token_hash(token), PasswordResetRow.expires > database.now())
    )
    with database.reading() as session:
        row = session.scalar(query)
        return None if row is None else as_account(row)


def reset_password(database: Database, token: str, password: str) -> Account:
    """Use a link to a new password: once, also where it is sent twice at the same moment."""
    hashed = hash_password(check_password(password))
    with database.writing() as session:
        used = delete(PasswordResetRow).where(
            PasswordResetRow.token_hash == token_hash(token), PasswordResetRow.expires > database.now()
        )
        account = session.scalar(used.returning(PasswordResetRow.account))
        if account is None:
            raise CrosslensError(
                "this link is not valid: it has been used or has expired", fix="ask an owner for a new one", code="gone"
            )
        row = open_account(session, account)
        row.password_hash = hashed
        log_out_everywhere(session, account)
        add_entry(database, session, "password changed", account, subject=account, detail="by link")
        return as_account(row)


def close_account(database: Database, account: int, by: int | None = None) -> str:
    """Close an account for ever: its judgements stay under a pseudonym, which is returned; its name is gone.

    Memberships, sessions, links and the password go; items that were open go to others.
    """
    pseudonym = f"judge-{secrets.token_hex(4)}"
    with database.writing(alone=True) as session:
        # The account's row comes last: somebody who is judging refers to it while holding what is taken away here.
        joined = select(MembershipRow.project).where(MembershipRow.account == account).order_by(MembershipRow.project)
        for project in session.scalars(joined).all():
            locked_project(session, project)
        ended = delete(MembershipRow).where(MembershipRow.account == account)
        roles = session.execute(ended.returning(MembershipRow.project, MembershipRow.role)).all()
        release(session, AssignmentRow.account == account)
        row = open_account(session, account)
        was_owner, row.is_owner, row.closed = row.is_owner, False, database.now()
        row.name, row.name_key, row.password_hash = pseudonym, name_key(pseudonym), None
        if was_owner and not owner_count(session):
            raise ConflictError(
                "the last owner cannot be removed", fix="make another account an owner first", code="last-owner"
            )
        for project in (project for project, role in roles if role == OWNER):
            _keep_an_owner(session, project)
        log_out_everywhere(session, account)
        add_entry(database, session, "account closed", by, subject=account)
    database.forget_deleted()
    return pseudonym
