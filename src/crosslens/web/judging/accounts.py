"""Random tokens that are given away once and kept as hashes only."""

from __future__ import annotations

import hashlib
import re
import secrets
import threading
import unicodedata
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from sqlalchemy import and_, bindparam, delete, func, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from crosslens.core import ConflictError, CrosslensError
from crosslens.web.judging.database.assigning import release
from crosslens.web.judging.database.engine import Database
from crosslens.web.judging.database.projects import (
    JudgingProject,
    add_entry,
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


def new_token() -> str:
    """A token that nobody can guess."""
    return secrets.token_urlsafe(32)


def token_hash(token: str) -> str:
    """What is stored of a token. It is random already: a slow hash would add nothing."""
    return hashlib.sha256(token.encode()).hexdigest() if _TOKEN.fullmatch(token) else ""


SHORTEST_PASSWORD = 10
LONGEST_PASSWORD = 200
_HASHER = PasswordHasher()
_TURNS = threading.Semaphore(4)
"""A hash takes 64 MiB of memory: many logins at once must not use it all up."""
_NOBODY = _HASHER.hash("the password of an account that does not exist")
"""Compared with where there is no account, so that the time taken does not tell which names exist."""


def check_password(password: str) -> str:
    """Refuse passwords that are too short to be kept."""
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise CrosslensError(
            f"a password has {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters",
            fix="choose another password",
            code="bad-password",
        )
    return password


def hash_password(password: str) -> str:
    """What is stored of a password."""
    with _TURNS:
        return _HASHER.hash(password)


def is_password(stored: str | None, password: str) -> bool:
    """Whether this is the password; takes as long where nothing is stored."""
    with _TURNS:
        try:
            return _HASHER.verify(stored or _NOBODY, password[: LONGEST_PASSWORD + 1]) and stored is not None
        except (VerificationError, InvalidHashError):
            return False


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
