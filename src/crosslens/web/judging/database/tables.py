"""The tables. Constraints, not code, guarantee that nobody judges an item twice."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    DateTime,
    Dialect,
    Double,
    ForeignKey,
    Index,
    String,
    Text,
    TypeDecorator,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

OPEN, DONE = "open", "done"
OWNER, ANNOTATOR = "owner", "annotator"
PERSON, MODEL = "person", "model"
_NEVER_REUSED = {"sqlite_autoincrement": True}
"""SQLite gives the id of a deleted row to a new one unless this is set: an old form would answer another item."""


_VACANT = text("vacancies > 0")


class UtcTime(TypeDecorator[datetime]):
    """A moment, stored without time zone as UTC, because SQLite knows none."""

    impl = DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.replace(tzinfo=UTC)


class JudgingTable(DeclarativeBase):
    """What the tables share."""

    type_annotation_map = {  # noqa: RUF012
        dict[str, Any]: JSON, list[str]: JSON, datetime: UtcTime, str: Text, float: Double,
    }  # fmt: skip


VERSION = "tables_1"
"""Another one whenever a table changes after a release."""


class VersionRow(JudgingTable):
    """Which version of the tables a database has; called as Alembic calls it, by which such changes can be made."""

    __tablename__ = "alembic_version"
    version_num: Mapped[str] = mapped_column(String(32), primary_key=True)


class AccountRow(JudgingTable):
    """A person, or a model (without password)."""

    __tablename__ = "account"
    __table_args__ = _NEVER_REUSED
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    name_key: Mapped[str] = mapped_column(unique=True)
    """The name in the form in which names are compared."""
    password_hash: Mapped[str | None]
    is_owner: Mapped[bool] = mapped_column(default=False)
    """True for those who may create projects and see all of them."""
    created: Mapped[datetime]
    closed: Mapped[datetime | None]
    """When the account was closed: from then on its name is a pseudonym, and nobody can log in."""


class ProjectRow(JudgingTable):
    """Items, a question about them, and how they are given out."""

    __tablename__ = "project"
    __table_args__ = _NEVER_REUSED
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    task: Mapped[str]
    labels: Mapped[dict[str, Any]]
    """The answer form (``tasks.py``)."""
    guidelines: Mapped[str]
    overlap: Mapped[int]
    seed: Mapped[int] = mapped_column(BigInteger)
    settings: Mapped[dict[str, Any]]
    """``expires`` (seconds), ``check_every`` and ``per_person`` (items)."""
    created: Mapped[datetime]


class MembershipRow(JudgingTable):
    """Who takes part in which project, as what."""

    __tablename__ = "membership"
    project: Mapped[int] = mapped_column(ForeignKey("project.id"), primary_key=True)
    account: Mapped[int] = mapped_column(ForeignKey("account.id"), primary_key=True, index=True)
    role: Mapped[str] = mapped_column(String(20))
    created: Mapped[datetime]


class InvitationRow(JudgingTable):
    """A link that lets people in; only a hash of its token is kept. Without project: a link for an owner's account."""

    __tablename__ = "invitation"
    token_hash: Mapped[str] = mapped_column(primary_key=True)
    project: Mapped[int | None] = mapped_column(ForeignKey("project.id"))
    role: Mapped[str] = mapped_column(String(20))
    expires: Mapped[datetime]
    uses: Mapped[int] = mapped_column(default=1)
    used: Mapped[int] = mapped_column(default=0)
    created: Mapped[datetime]


class ItemRow(JudgingTable):
    """What is judged."""

    __tablename__ = "item"
    __table_args__ = (
        UniqueConstraint("project", "position"),
        # Only items that somebody may still get: stays small and is read in order.
        Index("item_vacant", "project", "position", sqlite_where=_VACANT, postgresql_where=_VACANT),
        Index("item_kind", "project", "kind", "position"),
        _NEVER_REUSED,
    )
    id: Mapped[int] = mapped_column(primary_key=True)
    project: Mapped[int] = mapped_column(ForeignKey("project.id"))
    position: Mapped[int]
    content: Mapped[dict[str, Any]]
    kind: Mapped[str] = mapped_column(String(20))
    expected: Mapped[dict[str, Any] | None]
    vacancies: Mapped[int]
    """How many more people are to get the item; 0 for practice items and attention checks, which everybody gets."""


class ItemPictureRow(JudgingTable):
    """A picture that an item shows: who may see it is looked up here, by a hash of dataset and image."""

    __tablename__ = "item_picture"
    item: Mapped[int] = mapped_column(ForeignKey("item.id"), primary_key=True)
    picture: Mapped[str] = mapped_column(String(64), primary_key=True, index=True)


class AssignmentRow(JudgingTable):
    """An item given to somebody."""

    __tablename__ = "assignment"
    __table_args__ = (
        UniqueConstraint("account", "item"),
        Index("assignment_open", "state", "created"),
        _NEVER_REUSED,
    )
    id: Mapped[int] = mapped_column(primary_key=True)
    item: Mapped[int] = mapped_column(ForeignKey("item.id"), index=True)
    account: Mapped[int] = mapped_column(ForeignKey("account.id"))
    state: Mapped[str] = mapped_column(String(10))
    created: Mapped[datetime]


class AnswerColumns:
    """What somebody answered, and when."""

    account: Mapped[int] = mapped_column(ForeignKey("account.id"))
    labels: Mapped[list[str]]
    rating: Mapped[int | None]
    text: Mapped[str]
    created: Mapped[datetime]


class JudgementColumns(AnswerColumns):
    """An answer to an assignment: how long it took, and whether a person or a model gave it."""

    seconds: Mapped[float]
    source: Mapped[str] = mapped_column(String(10))


class JudgementRow(JudgementColumns, JudgingTable):
    """The answer to an assignment."""

    __tablename__ = "judgement"
    __table_args__ = (
        UniqueConstraint("item", "account"),
        Index("judgement_account", "account", "created"),
        _NEVER_REUSED,
    )
    id: Mapped[int] = mapped_column(primary_key=True)
    assignment: Mapped[int] = mapped_column(ForeignKey("assignment.id"), unique=True)
    item: Mapped[int] = mapped_column(ForeignKey("item.id"))


class JudgementHistoryRow(JudgementColumns, JudgingTable):
    """A judgement that its author took back."""

    __tablename__ = "judgement_history"
    id: Mapped[int] = mapped_column(primary_key=True)
    assignment: Mapped[int] = mapped_column(index=True)
    item: Mapped[int] = mapped_column(ForeignKey("item.id"), index=True)
    undone: Mapped[datetime]


class AdjudicationRow(AnswerColumns, JudgingTable):
    """An owner's decision where people disagreed."""

    __tablename__ = "adjudication"
    item: Mapped[int] = mapped_column(ForeignKey("item.id"), primary_key=True)


class ModelRequestsRow(JudgingTable):
    """What one run of the command that asks a model took."""

    __tablename__ = "model_requests"
    id: Mapped[int] = mapped_column(primary_key=True)
    project: Mapped[int] = mapped_column(ForeignKey("project.id"), index=True)
    account: Mapped[int] = mapped_column(ForeignKey("account.id"))
    requests: Mapped[int] = mapped_column(BigInteger)
    sent: Mapped[int] = mapped_column(BigInteger)
    """Tokens, as the endpoint counts them."""
    received: Mapped[int] = mapped_column(BigInteger)
    uncounted: Mapped[int] = mapped_column(BigInteger)
    """Answers without a count."""
    cost: Mapped[float | None]
    created: Mapped[datetime]


class LoginSessionRow(JudgingTable):
    """Somebody who is logged in; only a hash of the cookie is kept."""

    __tablename__ = "login_session"
    token_hash: Mapped[str] = mapped_column(primary_key=True)
    account: Mapped[int] = mapped_column(ForeignKey("account.id"), index=True)
    created: Mapped[datetime]
    expires: Mapped[datetime]


class PasswordResetRow(JudgingTable):
    """A link by which somebody chooses a new password, once; only a hash of its token is kept."""

    __tablename__ = "password_reset"
    token_hash: Mapped[str] = mapped_column(primary_key=True)
    account: Mapped[int] = mapped_column(ForeignKey("account.id"), index=True)
    expires: Mapped[datetime]


class AuditRow(JudgingTable):
    """Who did what. People are named by their accounts only, so that a closed account has no name here either."""

    __tablename__ = "audit"
    __table_args__ = _NEVER_REUSED
    id: Mapped[int] = mapped_column(primary_key=True)
    created: Mapped[datetime]
    actor: Mapped[int | None] = mapped_column(ForeignKey("account.id"))
    """None for the command line."""
    machine_user: Mapped[str]
    """Who typed the command, as the operating system knows them; empty for pages."""
    action: Mapped[str] = mapped_column(String(40))
    project: Mapped[int | None] = mapped_column(ForeignKey("project.id"), index=True)
    subject: Mapped[int | None] = mapped_column(ForeignKey("account.id"))
    """Whose account or membership it is about."""
    detail: Mapped[str]
