"""Projects, their members and their items."""

from __future__ import annotations

import getpass
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import Row, case, func, select, update
from sqlalchemy.orm import Session, aliased

from crosslens.core import CrosslensError, InputError
from crosslens.web.judging.database.engine import Database
from crosslens.web.judging.database.tables import (
    ANNOTATOR,
    OWNER,
    AccountRow,
    AuditRow,
    ItemPictureRow,
    ItemRow,
    MembershipRow,
    ProjectRow,
)
from crosslens.web.judging.tasks import (
    SHARED_KINDS,
    AnswerForm,
    ItemContent,
    NewItem,
    check_items,
    picture_keys,
    read_content,
    read_form,
    shuffled_positions,
    task_kind,
)

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
        return _with_account(self.by, self.account)

    @property
    def about(self) -> str:
        return _with_account(self.subject, self.subject_account)

    def as_dict(self) -> dict[str, Any]:
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


@dataclass(frozen=True)
class ProjectSettings:
    """How items are given out."""

    expires: int = 3_600
    """Seconds after which an item that was given out and not judged may go to somebody else."""
    check_every: int = 10
    """Among how many items there is one attention check."""
    per_person: int | None = None
    """How many items one person judges at most, practice items and attention checks not counted."""
    with_truth: bool = False
    """Whether an imported failure shows the true image beside the retrieved one."""
    revision: int = 0
    """How often the numbers of items were replaced after they had been added."""


_SETTINGS = frozenset(entry.name for entry in fields(ProjectSettings))


@dataclass(frozen=True)
class JudgingProject:
    """A project as pages and commands see it."""

    id: int
    name: str
    task: str
    form: AnswerForm
    guidelines: str
    overlap: int
    seed: int
    settings: ProjectSettings


@dataclass(frozen=True)
class StoredItem:
    """An item as pages and commands see it."""

    id: int
    project: int
    kind: str
    content: ItemContent
    expected: dict[str, Any] | None


def create_project(
    database: Database,
    name: str,
    task: str,
    *,
    form: AnswerForm | None = None,
    guidelines: str | None = None,
    overlap: int = 1,
    seed: int = 0,
    settings: ProjectSettings | None = None,
    owner: int | None = None,
) -> JudgingProject:
    """A new project; ``form`` and ``guidelines`` default to those of the task, ``owner`` becomes a member."""
    kind = task_kind(task)
    settings = settings or ProjectSettings()
    _check_numbers(overlap, settings)
    if not name.strip():
        raise InputError("the project has no name")
    with database.writing() as session:
        row = ProjectRow(
            name=name.strip(),
            task=task,
            labels=(form or kind.form).as_dict(),
            guidelines=kind.guidelines if guidelines is None else guidelines,
            overlap=overlap,
            seed=seed,
            settings=asdict(settings),
            created=database.now(),
        )
        session.add(row)
        session.flush()
        if owner is not None:
            session.add(MembershipRow(project=row.id, account=owner, role=OWNER, created=database.now()))
        add_entry(database, session, "project made", owner, project=row.id, detail=f"{row.name} ({task})")
        return as_project(row)


def add_items(database: Database, project: int, items: Sequence[NewItem]) -> list[int]:
    """Add items; all but practice items are shown in an order drawn from the project's seed. Returns their ids."""
    with database.writing() as session:
        return add_items_within(session, locked_project(session, project), items)


def add_items_within(session: Session, project: ProjectRow, items: Sequence[NewItem]) -> list[int]:
    """The same, within a transaction that has locked the project."""
    check_items(items, [label.name for label in read_form(project.labels).labels])
    largest = session.scalar(select(func.max(ItemRow.position)).where(ItemRow.project == project.id))
    first = 0 if largest is None else largest + 1
    positions = _positions(project.seed, first, items)
    rows = [
        ItemRow(
            project=project.id,
            position=position,
            content=item.content.as_dict(),
            kind=item.kind,
            expected=None if item.expected is None else dict(item.expected),
            vacancies=project.overlap if item.kind in SHARED_KINDS else 0,
        )
        for item, position in zip(items, positions, strict=True)
    ]
    session.add_all(rows)
    session.flush()
    session.add_all(ItemPictureRow(item=row.id, picture=key) for row in rows for key in picture_keys(row.content))
    return [row.id for row in rows]


def replace_about(session: Session, project: ProjectRow, about: Mapping[int, Mapping[str, Any]]) -> None:
    """Replace what is known of items, by id, besides what they show; the transaction has locked the project."""
    for item, facts in about.items():
        stored = session.get_one(ItemRow, item)
        stored.content = {**stored.content, "about": dict(facts)}
    project.settings = {**project.settings, "revision": as_project(project).settings.revision + 1}


def set_overlap(database: Database, project: int, overlap: int, by: int | None = None) -> None:
    """Give each item to ``overlap`` people from now on; judgements that exist already are kept."""
    with database.writing() as session:
        row = locked_project(session, project)
        if overlap == row.overlap:
            return
        _check_numbers(overlap, as_project(row).settings)
        session.execute(
            update(ItemRow)
            .where(ItemRow.project == project, ItemRow.kind.in_(SHARED_KINDS))
            .values(vacancies=ItemRow.vacancies + (overlap - row.overlap))
        )
        detail = f"people per item: {row.overlap} → {overlap}"
        add_entry(database, session, "settings changed", by, project=project, detail=detail)
        row.overlap = overlap


def set_guidelines(database: Database, project: int, guidelines: str, by: int | None = None) -> None:
    """Replace the guidelines."""
    with database.writing() as session:
        row = locked_project(session, project)
        if guidelines != row.guidelines:
            row.guidelines = guidelines
            add_entry(database, session, "settings changed", by, project=project, detail="guidelines")


def join(database: Database, project: int, account: int, role: str = ANNOTATOR) -> None:
    """Make an account a member; an owner stays one."""
    with database.writing() as session:
        join_within(database, session, project, account, role)
        add_entry(database, session, "member added", account, project=project, subject=account, detail=role)


def join_within(database: Database, session: Session, project: int, account: int, role: str) -> None:
    """The same, within a transaction."""
    locked_project(session, project)
    open_account(session, account)
    row = session.get(MembershipRow, (project, account))
    if row is None:
        session.add(MembershipRow(project=project, account=account, role=role, created=database.now()))
    elif role == OWNER:
        row.role = OWNER


def open_account(session: Session, account: int) -> AccountRow:
    """The account, which nobody closes before the transaction ends; one that was closed is refused."""
    row = session.get(AccountRow, account, with_for_update={"key_share": True}, populate_existing=True)
    if row is None or row.closed is not None:
        raise CrosslensError("this account has been closed", code="gone")
    return row


def role_in(database: Database, project: int, account: int) -> str | None:
    """``owner``, ``annotator``, or None for an account that is not a member."""
    with database.reading() as session:
        return session.scalar(
            select(MembershipRow.role).where(MembershipRow.project == project, MembershipRow.account == account)
        )


def members(database: Database, project: int) -> list[tuple[int, str, str]]:
    """Account id, name and role of all members, by name."""
    with database.reading() as session:
        query = select(AccountRow.id, AccountRow.name, MembershipRow.role).join(
            MembershipRow, MembershipRow.account == AccountRow.id
        )
        rows = session.execute(query.where(MembershipRow.project == project).order_by(AccountRow.name_key))
        return [(account, name, role) for account, name, role in rows]


def project_by_id(database: Database, project: int) -> JudgingProject | None:
    """The project, or None."""
    with database.reading() as session:
        row = session.get(ProjectRow, project)
        return None if row is None else as_project(row)


def projects(database: Database, account: int | None = None) -> list[JudgingProject]:
    """All projects, or those an account is a member of, oldest first."""
    query = select(ProjectRow).order_by(ProjectRow.id)
    if account is not None:
        query = query.join(MembershipRow, MembershipRow.project == ProjectRow.id).where(
            MembershipRow.account == account
        )
    with database.reading() as session:
        return [as_project(row) for row in session.scalars(query)]


def items(database: Database, project: int) -> list[StoredItem]:
    """The items of a project in the order in which they were added."""
    with database.reading() as session:
        return items_within(session, project)


def items_within(session: Session, project: int) -> list[StoredItem]:
    """The same, within a transaction."""
    return [
        as_item(row) for row in session.scalars(select(ItemRow).where(ItemRow.project == project).order_by(ItemRow.id))
    ]


def locked_project(session: Session, project: int) -> ProjectRow:
    """The project; other transactions that lock it wait until this one ends."""
    row = session.get(ProjectRow, project, with_for_update={"key_share": True})
    if row is None:
        raise CrosslensError(f"project {project} does not exist", code="no-project", subject=str(project))
    return row


def as_project(row: ProjectRow | Row[Any]) -> JudgingProject:
    """A row as a value."""
    settings = ProjectSettings(**{name: value for name, value in row.settings.items() if name in _SETTINGS})
    form = read_form(row.labels)
    return JudgingProject(row.id, row.name, row.task, form, row.guidelines, row.overlap, row.seed, settings)


def as_item(row: ItemRow | Row[Any]) -> StoredItem:
    """A row as a value."""
    return StoredItem(row.id, row.project, row.kind, read_content(row.content), row.expected)


def _positions(seed: int, first: int, items: Sequence[NewItem]) -> list[int]:
    """Practice items keep their order, before the others."""
    practice = [index for index, item in enumerate(items) if item.kind == "practice"]
    others = [index for index, item in enumerate(items) if item.kind != "practice"]
    shuffled = shuffled_positions(seed, first + len(practice), len(others))
    position = dict(zip(practice, range(first, first + len(practice)), strict=True))
    position.update(zip(others, shuffled, strict=True))
    return [position[index] for index in range(len(items))]


def _check_numbers(overlap: int, settings: ProjectSettings) -> None:
    for name, value, least in (
        ("overlap", overlap, 1),
        ("expires", settings.expires, 1),
        ("check_every", settings.check_every, 1),
        ("per_person", settings.per_person, 1),
    ):
        if value is not None and value < least:
            raise CrosslensError(f"{name} is {value}, but must be at least {least}", option=name, code="too-small")
