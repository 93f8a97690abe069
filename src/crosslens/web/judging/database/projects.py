"""Projects, their members and their items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import Row, case, func, select, update
from sqlalchemy.orm import Session, aliased

from crosslens.core import CrosslensError, InputError
from crosslens.storage import json_form
from crosslens.web.judging.database.engine import Database, Transaction
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
    KINDS,
    SHARED_KINDS,
    AnswerForm,
    ItemContent,
    NewItem,
    ShownPicture,
    ShownText,
    picture_keys,
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
        return self.by if self.account is None else f"{self.by} (account {self.account})"

    @property
    def about(self) -> str:
        number = self.subject_account
        return self.subject if number is None else f"{self.subject} (account {number})"

    def as_dict(self) -> dict[str, Any]:
        content = vars(self) | {"time": self.time.isoformat(timespec="seconds"), "subject": self.subject or None}
        del content["project_name"]
        return content


def note_export(database: Database, project: int, file: str, by: int | None = None) -> None:
    """Note that the judgements of a project were written to a file."""
    with database.writing() as session:
        session.note("judgements exported", by, project=project, detail=file)


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
                subject_name or "", of_subject, row.detail,
            )
            for row, name, of, subject_name, number, of_subject in session.execute(query)
        ]  # fmt: skip


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


@dataclass(frozen=True, kw_only=True)
class StoredItem(NewItem):
    """An item of a project."""

    id: int
    project: int


def create_project(
    database: Database, name: str, task: str, *, form: AnswerForm | None = None, guidelines: str | None = None,
    overlap: int = 1, seed: int = 0, settings: ProjectSettings | None = None, owner: int | None = None,
) -> JudgingProject:  # fmt: skip
    """A new project; ``form`` and ``guidelines`` default to those of the task, ``owner`` becomes a member."""
    kind = task_kind(task)
    settings = settings or ProjectSettings()
    _check_numbers(overlap, settings)
    if not name.strip():
        raise InputError("the project has no name")
    with database.writing() as session:
        row = ProjectRow(
            name=name.strip(), task=task, labels=json_form(form or kind.form),
            guidelines=kind.guidelines if guidelines is None else guidelines, overlap=overlap, seed=seed,
            settings=asdict(settings), created=session.now,
        )  # fmt: skip
        session.add(row)
        session.flush()
        if owner is not None:
            session.add(MembershipRow(project=row.id, account=owner, role=OWNER, created=session.now))
        session.note("project made", owner, project=row.id, detail=f"{row.name} ({task})")
        return as_project(row)


def add_items(session: Session, project: ProjectRow, items: Sequence[NewItem]) -> list[int]:
    """Add items to a project that the transaction has locked; returns their ids.

    Practice items keep their order, before the others, which are shown in an order drawn from the project's seed. Items
    that could not be shown or compared are refused.
    """
    labels = {label.name for label in read_form(project.labels).labels}
    for number, item in enumerate(items, start=1):
        if item.kind not in KINDS:
            raise InputError(f"unknown kind of item {item.kind!r}", row=number, expected="one of " + ", ".join(KINDS))
        if not item.content.pictures and not item.content.texts:
            raise InputError("an item has neither picture nor text", row=number)
        answer = (item.expected or {}).get("labels") or ()
        if item.kind in ("practice", "check") and not answer:
            raise InputError(f"a {item.kind} item has no known answer", row=number, fix="give its expected labels")
        if unknown := sorted(set(answer) - labels):
            raise InputError(f"expected label {unknown[0]!r} is not a label of the project", row=number)
    largest = session.scalar(select(func.max(ItemRow.position)).where(ItemRow.project == project.id))
    first = 0 if largest is None else largest + 1
    practice = sum(item.kind == "practice" for item in items)
    in_turn = iter(range(first, first + practice))
    shuffled = iter(shuffled_positions(project.seed, first + practice, len(items) - practice))
    rows = [
        ItemRow(
            project=project.id,
            position=next(in_turn if item.kind == "practice" else shuffled),
            content=json_form(item.content),
            kind=item.kind,
            expected=None if item.expected is None else dict(item.expected),
            vacancies=project.overlap if item.kind in SHARED_KINDS else 0,
        )
        for item in items
    ]
    session.add_all(rows)
    session.flush()
    session.add_all(ItemPictureRow(item=row.id, picture=key) for row in rows for key in picture_keys(row.content))
    return [row.id for row in rows]


def change_project(
    database: Database, project: int, overlap: int, guidelines: str | None = None, by: int | None = None
) -> None:
    """Give each item to ``overlap`` people from now on, and replace the guidelines where there are new ones.

    Judgements that exist already are kept.
    """
    with database.writing() as session:
        row = locked_project(session, project)
        if overlap != row.overlap:
            _check_numbers(overlap, as_project(row).settings)
            session.execute(
                update(ItemRow)
                .where(ItemRow.project == project, ItemRow.kind.in_(SHARED_KINDS))
                .values(vacancies=ItemRow.vacancies + (overlap - row.overlap))
            )
            detail = f"people per item: {row.overlap} → {overlap}"
            session.note("settings changed", by, project=project, detail=detail)
            row.overlap = overlap
        if guidelines is not None and guidelines != row.guidelines:
            row.guidelines = guidelines
            session.note("settings changed", by, project=project, detail="guidelines")


def join(database: Database, project: int, account: int, role: str = ANNOTATOR) -> None:
    """Make an account a member; an owner stays one."""
    with database.writing() as session:
        join_within(session, project, account, role)
        session.note("member added", account, project=project, subject=account, detail=role)


def join_within(session: Transaction, project: int, account: int, role: str) -> None:
    """:func:`join` as a part of a transaction, without its entry in the log."""
    locked_project(session, project)
    open_account(session, account)
    row = session.get(MembershipRow, (project, account))
    if row is None:
        session.add(MembershipRow(project=project, account=account, role=role, created=session.now))
    elif role == OWNER:
        row.role = OWNER


def open_account(session: Session, account: int) -> AccountRow:
    """The account, which nobody closes before the transaction ends; one that was closed is refused."""
    row = session.get(AccountRow, account, with_for_update={"key_share": True}, populate_existing=True)
    if row is None or row.closed is not None:
        raise CrosslensError("this account has been closed", code="gone")
    return row


def members(database: Database, project: int) -> list[tuple[int, str, str]]:
    """Account id, name and role of all members, by name."""
    with database.reading() as session:
        query = select(AccountRow.id, AccountRow.name, MembershipRow.role).join(
            MembershipRow, MembershipRow.account == AccountRow.id
        )
        rows = session.execute(query.where(MembershipRow.project == project).order_by(AccountRow.name_key))
        return [(account, name, role) for account, name, role in rows]


def projects(database: Database, account: int | None = None) -> list[JudgingProject]:
    """All projects, or those an account is a member of, oldest first."""
    query = select(ProjectRow).order_by(ProjectRow.id)
    if account is not None:
        query = query.join(MembershipRow, MembershipRow.project == ProjectRow.id).where(
            MembershipRow.account == account
        )
    with database.reading() as session:
        return [as_project(row) for row in session.scalars(query)]


def items(session: Session, project: int) -> list[StoredItem]:
    """The items of a project in the order in which they were added."""
    return [*map(as_item, session.scalars(select(ItemRow).where(ItemRow.project == project).order_by(ItemRow.id)))]


def locked_project(session: Session, project: int) -> ProjectRow:
    """The project; other transactions that lock it wait until this one ends."""
    row = session.get(ProjectRow, project, with_for_update={"key_share": True})
    if row is None:
        raise CrosslensError(f"project {project} does not exist", code="no-project", subject=str(project))
    return row


def as_project(row: ProjectRow | Row[Any]) -> JudgingProject:
    """The project in a row."""
    settings = ProjectSettings(**{name: value for name, value in row.settings.items() if name in _SETTINGS})
    form = read_form(row.labels)
    return JudgingProject(row.id, row.name, row.task, form, row.guidelines, row.overlap, row.seed, settings)


def as_item(row: ItemRow | Row[Any]) -> StoredItem:
    """The item in a row."""
    content = ItemContent(
        tuple(ShownPicture(**picture) for picture in row.content.get("pictures", ())),
        tuple(ShownText(**text) for text in row.content.get("texts", ())),
        dict(row.content.get("about", {})),
    )
    return StoredItem(id=row.id, project=row.project, kind=row.kind, content=content, expected=row.expected)


def _check_numbers(overlap: int, settings: ProjectSettings) -> None:
    for name, value in {"overlap": overlap, **asdict(settings)}.items():
        if name in ("overlap", "expires", "check_every", "per_person") and value is not None and value < 1:
            raise CrosslensError(f"{name} is {value}, but must be at least 1", option=name, code="too-small")
