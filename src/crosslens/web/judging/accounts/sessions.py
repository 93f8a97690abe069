"""Logging in and out. A browser holds a random token, the database its hash."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import and_, bindparam, delete, or_, select

from crosslens.core import CrosslensError
from crosslens.web.judging.accounts.passwords import is_password
from crosslens.web.judging.accounts.people import Account, as_account, name_key
from crosslens.web.judging.accounts.tokens import new_token, token_hash
from crosslens.web.judging.database.audit import add_entry
from crosslens.web.judging.database.engine import Database
from crosslens.web.judging.database.projects import JudgingProject, as_project
from crosslens.web.judging.database.tables import (
    AccountRow,
    ItemPictureRow,
    ItemRow,
    LoginSessionRow,
    MembershipRow,
    ProjectRow,
)
from crosslens.web.judging.tasks.content import picture_key

SESSION_SECONDS = 14 * 24 * 3600


def log_in(database: Database, name: str, password: str) -> str:
    """The token of a new session for the right password; pages ask within the limit of wrong ones."""
    known = account_with_password(database, name, password)
    if known is None:
        raise CrosslensError("the name or the password is wrong", code="wrong-password")
    return open_session(database, known[0].id, verified=known[1])


def account_with_password(database: Database, name: str, password: str) -> tuple[Account, str] | None:
    """The account and what is stored of its password, if this is the password."""
    with database.reading() as session:
        row = session.scalar(select(AccountRow).where(AccountRow.name_key == name_key(name)))
        known = None if row is None or row.password_hash is None else (as_account(row), row.password_hash)
    return known if is_password(known[1] if known else None, password) else None


def open_session(database: Database, account: int, *, verified: str | None = None) -> str:
    """Log an account in; returns the token for its cookie.

    An account that was closed, or whose password is not the ``verified`` one any more, stays out: also where that
    happened while the password was being checked.
    """
    token = new_token()
    now = database.now()
    with database.writing() as session:
        row = session.get(AccountRow, account, with_for_update={"read": True})
        if row is None or row.closed is not None or verified not in (None, row.password_hash):
            raise CrosslensError("the name or the password is wrong", code="wrong-password")
        session.execute(delete(LoginSessionRow).where(LoginSessionRow.expires < now))
        expires = now + timedelta(seconds=SESSION_SECONDS)
        session.add(LoginSessionRow(token_hash=token_hash(token), account=account, created=now, expires=expires))
        add_entry(database, session, "logged in", account)
    return token


_LOGGED_IN = (
    select(AccountRow.id.label("account"), AccountRow.name.label("account_name"), AccountRow.is_owner)
    .join(LoginSessionRow, LoginSessionRow.account == AccountRow.id)
    .where(
        LoginSessionRow.token_hash == bindparam("token"),
        LoginSessionRow.expires > bindparam("now"),
        AccountRow.closed.is_(None),
    )
)
"""Whose session it is; put together once, as every request asks."""
_VISIT = (
    _LOGGED_IN.add_columns(ProjectRow, MembershipRow.role)
    .outerjoin(ProjectRow, ProjectRow.id == bindparam("project"))
    .outerjoin(
        MembershipRow, and_(MembershipRow.project == bindparam("project"), MembershipRow.account == AccountRow.id)
    )
)
_SEES_PICTURE = _LOGGED_IN.with_only_columns(AccountRow.id).where(
    or_(
        AccountRow.is_owner,
        select(ItemPictureRow.item)
        .join(ItemRow, ItemRow.id == ItemPictureRow.item)
        .join(MembershipRow, MembershipRow.project == ItemRow.project)
        .where(ItemPictureRow.picture == bindparam("picture"), MembershipRow.account == AccountRow.id)
        .correlate(AccountRow)
        .exists(),
    )
)


def session_account(database: Database, token: str) -> Account | None:
    """Whose session it is; None for a token that is unknown, has expired or was logged out."""
    with database.reading_rows() as connection:
        row = connection.execute(_LOGGED_IN, _whose(database, token)).one_or_none()
    return None if row is None else Account(*row)


@dataclass(frozen=True)
class Visit:
    """Who asks for a page of a project; no ``project``: it does not exist, no ``role``: the account is no member."""

    account: Account
    project: JudgingProject | None
    role: str | None


def session_visit(database: Database, token: str, project: int) -> Visit | None:
    """Whose session it is, and what they are in the project: in one query, as every page of a project asks for it."""
    with database.reading_rows() as connection:
        row = connection.execute(_VISIT, {**_whose(database, token), "project": project}).one_or_none()
    if row is None:
        return None
    return Visit(Account(*row[:3]), None if row.id is None else as_project(row), row.role)


def may_see_picture(database: Database, token: str, dataset: str, image: str) -> bool:
    """Whether this is the session of an owner, or of a member of a project that shows the picture."""
    asked = {**_whose(database, token), "picture": picture_key(dataset, image)}
    with database.reading_rows() as connection:
        return connection.scalar(_SEES_PICTURE, asked) is not None


def _whose(database: Database, token: str) -> dict[str, Any]:
    return {"token": token_hash(token), "now": database.now()}


def log_out(database: Database, token: str) -> None:
    """End a session."""
    with database.writing() as session:
        session.execute(delete(LoginSessionRow).where(LoginSessionRow.token_hash == token_hash(token)))
