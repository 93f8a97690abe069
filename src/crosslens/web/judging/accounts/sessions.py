"""Logging in and out. A browser holds a random token, the database its hash."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Select, and_, delete, select

from crosslens.core import CrosslensError
from crosslens.web.access import AttemptLimit
from crosslens.web.judging.accounts.passwords import is_password
from crosslens.web.judging.accounts.people import Account, as_account, name_key
from crosslens.web.judging.accounts.tokens import new_token, token_hash
from crosslens.web.judging.database.engine import Database
from crosslens.web.judging.database.projects import JudgingProject, as_project
from crosslens.web.judging.database.tables import AccountRow, LoginSessionRow, MembershipRow, ProjectRow

SESSION_SECONDS = 14 * 24 * 3600


class LoginLimits:
    """How many wrong passwords are taken: few from one address, some more for one name from all addresses."""

    def __init__(self, by_address: AttemptLimit | None = None, by_name: AttemptLimit | None = None) -> None:
        self._by_address = by_address or AttemptLimit(tries=10, seconds=60)
        self._by_name = by_name or AttemptLimit(tries=30, seconds=900)

    def check(self, name: str, address: str) -> None:
        """Refuse a login after too many failures."""
        if self._by_address.must_wait(address) or self._by_name.must_wait(name_key(name)[:200]):
            raise CrosslensError("too many wrong passwords", fix="wait a few minutes", code="too-many")

    def add_failure(self, name: str, address: str) -> None:
        """Remember a wrong password."""
        self._by_address.add_failure(address)
        self._by_name.add_failure(name_key(name)[:200])


def log_in(database: Database, limits: LoginLimits, name: str, password: str, address: str) -> str:
    """The token of a new session for the right password."""
    limits.check(name, address)
    account = account_with_password(database, name, password)
    if account is None:
        limits.add_failure(name, address)
        raise CrosslensError("the name or the password is wrong", code="wrong-password")
    return open_session(database, account.id)


def account_with_password(database: Database, name: str, password: str) -> Account | None:
    """The account, if this is its password."""
    with database.reading() as session:
        row = session.scalar(select(AccountRow).where(AccountRow.name_key == name_key(name)))
        stored = None if row is None else row.password_hash
        account = None if row is None else as_account(row)
    return account if is_password(stored, password) else None


def open_session(database: Database, account: int) -> str:
    """Log an account in; returns the token for its cookie."""
    token = new_token()
    now = database.now()
    with database.writing() as session:
        session.execute(delete(LoginSessionRow).where(LoginSessionRow.expires < now))
        expires = now + timedelta(seconds=SESSION_SECONDS)
        session.add(LoginSessionRow(token_hash=token_hash(token), account=account, created=now, expires=expires))
    return token


def session_account(database: Database, token: str) -> Account | None:
    """Whose session it is; None for a token that is unknown, has expired or was logged out."""
    with database.reading() as session:
        row = session.execute(_logged_in(database, token)).one_or_none()
        return None if row is None else as_account(row[0])


@dataclass(frozen=True)
class Visit:
    """Who asks for a page of a project; no ``project``: it does not exist, no ``role``: the account is no member."""

    account: Account
    project: JudgingProject | None
    role: str | None


def session_visit(database: Database, token: str, project: int) -> Visit | None:
    """Whose session it is, and what they are in the project: in one query, as every page of a project asks for it."""
    query = (
        _logged_in(database, token)
        .add_columns(ProjectRow, MembershipRow.role)
        .outerjoin(ProjectRow, ProjectRow.id == project)
        .outerjoin(MembershipRow, and_(MembershipRow.project == project, MembershipRow.account == AccountRow.id))
    )
    with database.reading() as session:
        row = session.execute(query).one_or_none()
        if row is None:
            return None
        return Visit(as_account(row[0]), None if row[1] is None else as_project(row[1]), row[2])


def _logged_in(database: Database, token: str) -> Select[AccountRow]:
    return (
        select(AccountRow)
        .join(LoginSessionRow, LoginSessionRow.account == AccountRow.id)
        .where(LoginSessionRow.token_hash == token_hash(token), LoginSessionRow.expires > database.now())
    )


def log_out(database: Database, token: str) -> None:
    """End a session."""
    with database.writing() as session:
        session.execute(delete(LoginSessionRow).where(LoginSessionRow.token_hash == token_hash(token)))
