"""Accounts: names and passwords, sessions, invitations, links to a new password, and the end of an account.

Of passwords, and of the tokens in cookies and links, only hashes are kept.
"""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import re
import secrets
import unicodedata
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from sqlalchemy import ColumnElement, and_, bindparam, case, delete, func, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from crosslens.core import ConflictError, CrosslensError, UnknownNameError
from crosslens.web.judging.database.assigning import release
from crosslens.web.judging.database.engine import Database, Transaction
from crosslens.web.judging.database.projects import (
    JudgingProject,
    as_project,
    join_within,
    locked_project,
    open_account,
)
from crosslens.web.judging.database.tables import (
    ANNOTATOR,
    OWNER,
    AccountRow,
    AssignmentRow,
    InvitationRow,
    ItemPictureRow,
    ItemRow,
    JudgementRow,
    LoginSessionRow,
    MembershipRow,
    PasswordResetRow,
    ProjectRow,
)
from crosslens.web.judging.tasks import picture_key

_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
T = TypeVar("T")


def new_token() -> str:
    """A token that nobody can guess."""
    return secrets.token_urlsafe(32)


def token_hash(token: str) -> str:
    """What is stored of a token. It is random already: a slow hash would add nothing."""
    return hashlib.sha256(token.encode()).hexdigest() if _TOKEN.fullmatch(token) else ""


SHORTEST_PASSWORD = 10
LONGEST_PASSWORD = 200
_HASHER = PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)
"""As OWASP recommends. What the library would choose takes seven times as long, and its four threads wait for each
other twelve times in each hash, on a busy machine every time for the slowest."""
UNUSABLE_PASSWORD = _HASHER.hash(new_token())
"""The hash of a password that nobody knows. Compared with where there is no account, too, so that the time taken does
not tell which names exist."""
_HASHING = ThreadPoolExecutor(4, thread_name_prefix="passwords")


async def in_turn(work: Callable[[], T]) -> T:
    """The result of work that hashes a password, in threads of its own and in the order of the calls.

    A hash is slow and takes much memory by intention. Of many who join at once, a few are looked at; the others wait
    here, and not in the threads that answer those who judge.
    """
    return await asyncio.get_running_loop().run_in_executor(_HASHING, contextvars.copy_context().run, work)


def hash_password(password: str) -> str:
    """What is stored of a password; one that is too short or too long is refused."""
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise CrosslensError(
            f"a password has {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters",
            fix="choose another password",
            code="bad-password",
        )
    return _HASHER.hash(password)


def is_password(stored: str | None, password: str) -> bool:
    """Whether this is the password; takes as long where nothing is stored."""
    try:
        return _HASHER.verify(stored or UNUSABLE_PASSWORD, password[: LONGEST_PASSWORD + 1]) and stored is not None
    except (VerificationError, InvalidHashError):
        return False


LONGEST_NAME = 80


@dataclass(frozen=True)
class Account:
    """Somebody who is logged in, or could be."""

    id: int
    name: str
    is_owner: bool

    @staticmethod
    def of(row: AccountRow) -> Account:
        return Account(row.id, row.name, row.is_owner)


def create_first_owner(database: Database, name: str, password: str) -> str:
    """Make the account of whoever uses the set-up link first, everybody after that is refused; returns their session.

    Whoever sets a password is logged in by the same transaction: it need not be hashed again, and nothing overtakes it.
    """
    check_name(name)
    hashed = hash_password(password)
    with database.writing(alone=True) as session:
        if owner_count(session):
            raise ConflictError("the first account has been made already", fix="log in, or ask for an invitation")
        owner = add_account(session, name, hashed, is_owner=True, by_themselves=True)
        return _new_session(session, owner.id)


def add_account(
    session: Transaction, name: str, hashed: str | None, *, is_owner: bool = False, by_themselves: bool = False
) -> Account:
    """A new account with the hash of its password; one without belongs to a model, and nobody can log in to it."""
    checked_name = check_name(name)
    row = AccountRow(
        name=checked_name, name_key=name_key(checked_name), password_hash=hashed, is_owner=is_owner, created=session.now
    )
    session.add(row)
    try:
        session.flush()
    except IntegrityError as error:
        raise ConflictError(
            f"the name {checked_name!r} is already used", fix="choose another name", code="name-taken"
        ) from error
    kind = "owner" if is_owner else "model" if hashed is None else "person"
    session.note("account made", row.id if by_themselves else None, subject=row.id, detail=kind)
    return Account.of(row)


def model_account(database: Database, name: str) -> Account:
    """The account under which a model's judgements are kept; created when it is first used."""
    checked_name = check_name(name)
    with database.writing(alone=True) as session:
        row = row_of_name(session, checked_name)
        if row is None:
            return add_account(session, checked_name, None)
        if row.password_hash is not None or row.closed is not None:
            raise ConflictError(
                f"{checked_name!r} is the name of a person", fix="name the model otherwise", code="name-taken"
            )
        return Account.of(row)


def row_of_name(session: Session, name: str) -> AccountRow | None:
    """The account with that name, whatever its capitals."""
    return session.scalar(select(AccountRow).where(AccountRow.name_key == name_key(name)))


def account_named(database: Database, name: str) -> Account:
    """The account with that name, whatever its capitals; an unknown one raises."""
    with database.reading() as session:
        if (row := row_of_name(session, name)) is None:
            raise UnknownNameError("account", name, [*session.scalars(select(AccountRow.name).order_by(*_IN_ORDER))])
        return Account.of(row)


_IN_ORDER = (AccountRow.closed.is_not(None), AccountRow.name_key)
"""By name, closed accounts last."""


def owner_count(session: Session) -> int:
    """How many accounts may create projects."""
    owners = select(func.count()).select_from(AccountRow).where(AccountRow.is_owner, AccountRow.closed.is_(None))
    return session.scalar(owners) or 0


def set_password(database: Database, account: int, password: str, *, verified: str | None = None) -> str:
    """Change one's password; returns a new session. All others end, and links to a new password, too.

    ``verified`` is what was stored when the old password was checked: nothing happens where another one is by now.
    """
    hashed = hash_password(password)
    with database.writing() as session:
        row = open_account(session, account)
        if verified not in (None, row.password_hash):
            raise ConflictError("the password was changed meanwhile", fix="log in again", code="changed")
        row.password_hash = hashed
        log_out_everywhere(session, account)
        session.note("password changed", account, subject=account)
        return _new_session(session, account)


def log_out_everywhere(session: Session, account: int) -> int:
    """End all sessions of an account and links to a new password; returns how many sessions there were."""
    session.execute(delete(PasswordResetRow).where(PasswordResetRow.account == account))
    ended = delete(LoginSessionRow).where(LoginSessionRow.account == account).returning(LoginSessionRow.token_hash)
    return len(session.scalars(ended).all())


def check_name(name: str) -> str:
    """The name as it is shown."""
    tidy = " ".join(unicodedata.normalize("NFC", name).split())
    if not 1 <= len(tidy) <= LONGEST_NAME or not tidy.isprintable():
        raise CrosslensError(
            f"a name has 1 to {LONGEST_NAME} printable characters", fix="choose another name", code="bad-name"
        )
    return tidy


def name_key(name: str) -> str:
    """Names that look alike have the same key."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


SESSION_SECONDS = 14 * 24 * 3600


def log_in(database: Database, name: str, password: str) -> str:
    """The token of a new session for the right password; pages ask within the limit of wrong ones."""
    verified = account_with_password(database, name, password)
    if verified is None:
        raise CrosslensError("the name or the password is wrong", code="wrong-password")
    return open_session(database, verified[0].id, verified=verified[1])


def account_with_password(database: Database, name: str, password: str) -> tuple[Account, str] | None:
    """The account and what is stored of its password, if this is the password."""
    with database.reading() as session:
        row = row_of_name(session, name)
        stored = None if row is None or row.password_hash is None else (Account.of(row), row.password_hash)
    return stored if is_password(stored[1] if stored else None, password) else None


def open_session(database: Database, account: int, *, verified: str | None = None) -> str:
    """Log an account in; returns the token for its cookie.

    An account that was closed, or whose password is not the ``verified`` one any more, stays out: also where that
    happened while the password was being checked.
    """
    with database.writing() as session:
        row = session.get(AccountRow, account, with_for_update={"read": True})
        if row is None or row.closed is not None or verified not in (None, row.password_hash):
            raise CrosslensError("the name or the password is wrong", code="wrong-password")
        return _new_session(session, account)


def _new_session(session: Transaction, account: int) -> str:
    token = new_token()
    session.execute(delete(LoginSessionRow).where(LoginSessionRow.expires < session.now))
    expires = session.now + timedelta(seconds=SESSION_SECONDS)
    session.add(LoginSessionRow(token_hash=token_hash(token), account=account, created=session.now, expires=expires))
    session.note("logged in", account)
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
_MEMBER = (
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
class Member:
    """Who asks for a page of a project; an owner of the server need not have a ``role`` in it."""

    account: Account
    project: JudgingProject
    role: str | None

    @property
    def is_owner(self) -> bool:
        return self.role == OWNER or self.account.is_owner


def session_member(database: Database, token: str, project: int) -> tuple[Account, Member | None] | None:
    """Whose session it is, and as what they may see the project: in one query, as every page of a project asks."""
    with database.reading_rows() as connection:
        row = connection.execute(_MEMBER, {**_whose(database, token), "project": project}).one_or_none()
    if row is None:
        return None
    account = Account(*row[:3])
    may_see = row.id is not None and (row.role is not None or account.is_owner)
    return account, Member(account, as_project(row), row.role) if may_see else None


def may_see_picture(database: Database, token: str, dataset: str, image: str) -> bool:
    """Whether this is the session of an owner, or of a member of a project that shows the picture."""
    values = {**_whose(database, token), "picture": picture_key(dataset, image)}
    with database.reading_rows() as connection:
        return connection.scalar(_SEES_PICTURE, values) is not None


def _whose(database: Database, token: str) -> dict[str, Any]:
    return {"token": token_hash(token), "now": database.now()}


def log_out(database: Database, token: str) -> None:
    """End a session."""
    with database.writing() as session:
        session.execute(delete(LoginSessionRow).where(LoginSessionRow.token_hash == token_hash(token)))


MOST_DAYS, MOST_USES = 365, 10_000


def create_invitation(
    database: Database, project: int | None, *, role: str = ANNOTATOR, uses: int = 1, days: float = 7,
    by: int | None = None,
) -> str:  # fmt: skip
    """The token of a new link (``/join/TOKEN``); without project it makes an account that may create projects."""
    if role not in (ANNOTATOR, OWNER) or (project is None and role != OWNER):
        raise CrosslensError(f"{role!r} is not a role that a link can give", code="bad-role", option="role")
    if not 1 <= uses <= MOST_USES:
        raise CrosslensError(f"uses is {uses}, but must be from 1 to {MOST_USES}", option="uses", code="out-of-range")
    if not 0 < days <= MOST_DAYS:
        raise CrosslensError(f"days is {days}, but must be from 0 to {MOST_DAYS}", option="days", code="out-of-range")
    token = new_token()
    with database.writing() as session:
        if project is not None:
            locked_project(session, project)
        row = InvitationRow(token_hash=token_hash(token), project=project, role=role, uses=uses, used=0,
                            created=session.now, expires=session.now + timedelta(days=days))  # fmt: skip
        session.add(row)
        detail = f"{_reference(row)}: {role}; people: {uses}; days: {days:g}"
        session.note("invitation made", by, project=project, detail=detail)
    return token


@dataclass(frozen=True)
class OpenInvitation:
    """A link that still lets people in, to a project or (None) to be an owner; ``id`` names it without being it."""

    id: str
    role: str
    uses: int
    used: int
    created: datetime
    expires: datetime
    project: int | None
    project_name: str

    def as_dict(self) -> dict[str, Any]:
        times = {"created": self.created.isoformat(), "expires": self.expires.isoformat()}
        return {"id": self.id, "role": self.role, "uses": self.uses, "used": self.used, **times}


def open_invitations(database: Database, project: int | None) -> list[OpenInvitation]:
    """The links to a project (to none: for owners of the server) that still let people in, oldest first."""
    return _open_invitations(database, InvitationRow.project == project)


def invitation(database: Database, token: str) -> OpenInvitation | None:
    """What the link leads to; None where it is unknown, expired or used up."""
    return next(iter(_open_invitations(database, InvitationRow.token_hash == token_hash(token))), None)


def _open_invitations(database: Database, condition: ColumnElement[bool]) -> list[OpenInvitation]:
    query = (
        select(InvitationRow, ProjectRow.name)
        .outerjoin(ProjectRow, ProjectRow.id == InvitationRow.project)
        .where(condition, InvitationRow.expires > database.now(), InvitationRow.used < InvitationRow.uses)
        .order_by(InvitationRow.created, InvitationRow.token_hash)
    )
    with database.reading() as session:
        return [
            OpenInvitation(
                _reference(row), row.role, row.uses, row.used, row.created, row.expires, row.project, name or ""
            )
            for row, name in session.execute(query)
        ]


def revoke_invitation(database: Database, project: int | None, reference: str, by: int | None = None) -> None:
    """End a link; people who have used it stay in."""
    with database.writing() as session:
        of_project = session.scalars(select(InvitationRow).where(InvitationRow.project == project).with_for_update())
        row = next((row for row in of_project if _reference(row) == reference), None)
        if row is None:
            raise CrosslensError(f"there is no invitation {reference!r}", fix="look at the list again", code="gone")
        session.delete(row)
        session.note("invitation revoked", by, project=project, detail=reference)


def _reference(row: InvitationRow) -> str:
    """A name for a link in lists; the link cannot be computed from it."""
    return row.token_hash[:12]


def accept_invitation(database: Database, token: str, account: int) -> int | None:
    """Let an existing account in; returns the project. Who is in already uses nothing up."""
    with database.writing() as session:
        row = _valid(session, token)
        if row.project is None:
            open_account(session, account).is_owner = True
        else:
            member = session.get(MembershipRow, (row.project, account))
            if member is not None and member.role in (OWNER, row.role):
                return row.project
            join_within(session, row.project, account, row.role)
        _use(session, row, account)
        return row.project


def accept_with_new_account(database: Database, token: str, name: str, password: str) -> str:
    """Make an account and let it in, both or neither; returns its session."""
    check_name(name)
    if invitation(database, token) is None:
        raise _not_valid("ask the owner of the project for a new one")
    hashed = hash_password(password)
    with database.writing() as session:
        row = _valid(session, token)
        account = add_account(session, name, hashed, is_owner=row.project is None, by_themselves=True)
        if row.project is not None:
            join_within(session, row.project, account.id, row.role)
        _use(session, row, account.id)
        return _new_session(session, account.id)


def _use(session: Transaction, row: InvitationRow, account: int) -> None:
    row.used += 1
    detail = f"{_reference(row)}: {row.role}"
    session.note("invitation used", account, project=row.project, subject=account, detail=detail)


def _valid(session: Transaction, token: str) -> InvitationRow:
    row = session.get(InvitationRow, token_hash(token), with_for_update=True)
    if row is None or row.expires <= session.now or row.used >= row.uses:
        raise _not_valid("ask the owner of the project for a new one")
    return row


def _not_valid(fix: str) -> CrosslensError:
    return CrosslensError("this link is not valid: it has been used or has expired", fix=fix, code="gone")


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
        content = {"account": self.id, **vars(self), "projects": list(self.projects)}
        del content["id"]
        return content | {"created": self.created.isoformat(timespec="seconds")}


def list_accounts(database: Database) -> list[AccountLine]:
    """All accounts, by name; closed ones last."""
    kind = case(
        (AccountRow.closed.is_not(None), "closed"), (AccountRow.is_owner, OWNER),
        (AccountRow.password_hash.is_(None), "model"), else_="person",
    )  # fmt: skip
    judgements = select(func.count()).where(JudgementRow.account == AccountRow.id)
    sessions = select(func.count()).where(
        LoginSessionRow.account == AccountRow.id, LoginSessionRow.expires > database.now()
    )
    members = select(MembershipRow.account, ProjectRow.name).join(ProjectRow, ProjectRow.id == MembershipRow.project)
    counts = (count.scalar_subquery() for count in (judgements, sessions))
    accounts = select(AccountRow.id, AccountRow.name, kind, *counts, AccountRow.created).order_by(*_IN_ORDER)
    with database.reading() as session:
        projects = defaultdict(list)
        for account, project in session.execute(members.order_by(ProjectRow.id)):
            projects[account].append(project)
        return [
            AccountLine(account, name, kind, tuple(projects[account]), *rest)
            for account, name, kind, *rest in session.execute(accounts)
        ]


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
        session.note("member removed", by, project=project, subject=account, detail=role)


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
            f"the last owner of project {project} cannot be removed",
            fix="invite another owner first",
            code="last-owner",
        )


def end_sessions(database: Database, account: int, by: int | None = None) -> int:
    """Log an account out everywhere; returns how many sessions there were."""
    with database.writing() as session:
        open_account(session, account)
        ended = log_out_everywhere(session, account)
        session.note("sessions ended", by, subject=account, detail=f"sessions: {ended}")
        return ended


def make_reset_link(database: Database, account: int, by: int | None = None) -> str:
    """The token of a link (``/reset/TOKEN``) by which somebody chooses a new password, once.

    The old password and all sessions end now: whoever else knew it is out.
    """
    token = new_token()
    with database.writing() as session:
        row = open_account(session, account)
        if row.password_hash is None:
            raise ConflictError(f"{row.name!r} is a model, and has no password", fix="choose a person", code="model")
        row.password_hash = UNUSABLE_PASSWORD
        log_out_everywhere(session, account)
        expires = session.now + timedelta(days=RESET_DAYS)
        session.add(PasswordResetRow(token_hash=token_hash(token), account=account, expires=expires))
        session.note("password reset", by, subject=account, detail=f"link for {RESET_DAYS} days")
    return token


def reset_account(database: Database, token: str) -> Account | None:
    """Whose new password the link is for; None where it is unknown, used or expired."""
    query = (
        select(AccountRow.id, AccountRow.name, AccountRow.is_owner)
        .join(PasswordResetRow, PasswordResetRow.account == AccountRow.id)
        .where(PasswordResetRow.token_hash == token_hash(token), PasswordResetRow.expires > database.now())
    )
    with database.reading_rows() as connection:
        row = connection.execute(query).one_or_none()
        return None if row is None else Account(*row)


def reset_password(database: Database, token: str, password: str) -> str:
    """Use a link to a new password: once, also where it is sent twice at the same moment; returns a session."""
    hashed = hash_password(password)
    with database.writing() as session:
        used = delete(PasswordResetRow).where(
            PasswordResetRow.token_hash == token_hash(token), PasswordResetRow.expires > session.now
        )
        account = session.scalar(used.returning(PasswordResetRow.account))
        if account is None:
            raise _not_valid("ask an owner for a new one")
        open_account(session, account).password_hash = hashed
        log_out_everywhere(session, account)
        session.note("password changed", account, subject=account, detail="by link")
        return _new_session(session, account)


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
        was_owner, row.is_owner, row.closed = row.is_owner, False, session.now
        row.name, row.name_key, row.password_hash = pseudonym, name_key(pseudonym), None
        if was_owner and not owner_count(session):
            raise ConflictError(
                "the last owner cannot be removed", fix="make another account an owner first", code="last-owner"
            )
        for project in (project for project, role in roles if role == OWNER):
            _keep_an_owner(session, project)
        log_out_everywhere(session, account)
        session.note("account closed", by, subject=account)
    database.forget_deleted()
    return pseudonym
