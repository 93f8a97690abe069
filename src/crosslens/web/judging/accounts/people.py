"""Accounts of people and of models."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from sqlalchemy import func, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from crosslens.core import ConflictError, CrosslensError
from crosslens.web.judging.accounts.passwords import check_password, hash_password
from crosslens.web.judging.database.engine import Database
from crosslens.web.judging.database.tables import AccountRow, LoginSessionRow

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


def add_account(database: Database, session: Session, name: str, hashed: str | None, *, is_owner: bool) -> Account:
    """The same, within a transaction and with the hash of the password."""
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
    return as_account(row)


def model_account(database: Database, name: str) -> Account:
    """The account under which a model's judgements are kept; created when it is first used."""
    shown = check_name(name)
    with database.writing() as session:
        row = session.scalar(select(AccountRow).where(AccountRow.name_key == name_key(shown)))
        if row is None:
            return add_account(database, session, shown, None, is_owner=False)
        if row.password_hash is not None:
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
        return bool(session.scalar(select(func.count()).select_from(AccountRow).where(AccountRow.is_owner)))


def set_password(database: Database, account: int, password: str) -> None:
    """Change a password; whoever is logged in with the old one is logged out."""
    hashed = hash_password(check_password(password))
    with database.writing() as session:
        session.execute(update(AccountRow).where(AccountRow.id == account).values(password_hash=hashed))
        for row in session.scalars(select(LoginSessionRow).where(LoginSessionRow.account == account)):
            session.delete(row)


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
