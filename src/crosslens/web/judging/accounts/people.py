"""Accounts of people and of models."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from sqlalchemy import delete, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from crosslens.core import ConflictError, CrosslensError
from crosslens.web.judging.accounts.passwords import check_password, hash_password
from crosslens.web.judging.database.audit import add_entry
from crosslens.web.judging.database.engine import Database
from crosslens.web.judging.database.projects import open_account
from crosslens.web.judging.database.tables import AccountRow, LoginSessionRow, PasswordResetRow

LONGEST_NAME = 80


@dataclass(frozen=True)
class Account:
    """Somebody who is logged in, or could be."""

    id: int
    name: str
    is_owner: bool


def create_account(database: Database, name: str, password: str | None, *, is_owner: bool = False) -> Account:
    """A new account; one without password belongs to a model, and nobody can log in to it."""
    hashed = None if password is None else hash_password(check_password(password))
    with database.writing() as session:
        return add_account(database, session, name, hashed, is_owner=is_owner)


def create_first_owner(database: Database, name: str, password: str) -> Account:
    """The account of whoever uses the set-up link first; everybody after that is refused."""
    check_name(name)
    hashed = hash_password(check_password(password))
    with database.writing(alone=True) as session:
        if owner_count(session):
            raise ConflictError("the first account has been made already", fix="log in, or ask for an invitation")
        return add_account(database, session, name, hashed, is_owner=True, by_themselves=True)


def add_account(
    database: Database,
    session: Session,
    name: str,
    hashed: str | None,
    *,
    is_owner: bool = False,
    by_themselves: bool = False,
) -> Account:
    """A new account within a transaction, with the hash of its password."""
    shown = check_name(name)
    row = AccountRow(
        name=shown, name_key=name_key(shown), password_hash=hashed, is_owner=is_owner, created=database.now()
    )
    session.add(row)
    try:
        session.flush()
    except IntegrityError as error:
        raise ConflictError(
            f"the name {shown!r} is already used", fix="choose another name", code="name-taken"
        ) from error
    kind = "owner" if is_owner else "model" if hashed is None else "person"
    add_entry(database, session, "account made", row.id if by_themselves else None, subject=row.id, detail=kind)
    return as_account(row)


def model_account(database: Database, name: str) -> Account:
    """The account under which a model's judgements are kept; created when it is first used."""
    shown = check_name(name)
    with database.writing(alone=True) as session:
        row = session.scalar(select(AccountRow).where(AccountRow.name_key == name_key(shown)))
        if row is None:
            return add_account(database, session, shown, None)
        if row.password_hash is not None or row.closed is not None:
            raise ConflictError(f"{shown!r} is the name of a person", fix="name the model otherwise", code="name-taken")
        return as_account(row)


def account_by_name(database: Database, name: str) -> Account | None:
    """The account with that name, whatever its capitals."""
    with database.reading() as session:
        row = session.scalar(select(AccountRow).where(AccountRow.name_key == name_key(name)))
        return None if row is None else as_account(row)


def has_owner(database: Database) -> bool:
    """Whether anybody may create projects."""
    with database.reading() as session:
        return bool(owner_count(session))


def owner_count(session: Session) -> int:
    """How many accounts may create projects."""
    owners = select(func.count()).select_from(AccountRow).where(AccountRow.is_owner, AccountRow.closed.is_(None))
    return session.scalar(owners) or 0


def set_password(database: Database, account: int, password: str, *, verified: str | None = None) -> None:
    """Change one's password; whoever is logged in is logged out, and links to a new password end.

    ``verified`` is what was stored when the old password was checked: nothing happens where another one is by now.
    """
    hashed = hash_password(check_password(password))
    with database.writing() as session:
        row = open_account(session, account)
        if verified not in (None, row.password_hash):
            raise ConflictError("the password was changed meanwhile", fix="log in again", code="changed")
        row.password_hash = hashed
        log_out_everywhere(session, account)
        add_entry(database, session, "password changed", account, subject=account)


def log_out_everywhere(session: Session, account: int) -> int:
    """End all sessions of an account and links to a new password; returns how many sessions there were."""
    session.execute(delete(PasswordResetRow).where(PasswordResetRow.account == account))
    ended = delete(LoginSessionRow).where(LoginSessionRow.account == account).returning(LoginSessionRow.token_hash)
    return len(session.scalars(ended).all())


def check_name(name: str) -> str:
    """The name as it is shown."""
    shown = " ".join(unicodedata.normalize("NFC", name).split())
    if not 1 <= len(shown) <= LONGEST_NAME or not shown.isprintable():
        raise CrosslensError(
            f"a name has 1 to {LONGEST_NAME} printable characters", fix="choose another name", code="bad-name"
        )
    return shown


def name_key(name: str) -> str:
    """Names that look alike have the same key."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def as_account(row: AccountRow) -> Account:
    """A row as a value."""
    return Account(row.id, row.name, row.is_owner)
