"""What the commands of judging do: open the database, find a project by its number or name, make one, ask a model."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from crosslens.core import ConflictError, Figure, InputError, UnknownNameError, UsageError, argument, percent
from crosslens.data import read_records
from crosslens.encode import Endpoint, RecordedAnswers
from crosslens.engine import Progress
from crosslens.storage import SettingsFile, json_form, read_text_file, write_text
from crosslens.values import Dataset
from crosslens.web.judging.accounts import model_account
from crosslens.web.judging.agreement import ProjectAgreement
from crosslens.web.judging.database.assigning import ProjectProgress, project_progress
from crosslens.web.judging.database.engine import Database, open_database
from crosslens.web.judging.database.judgements import ModelRequests, judgements, record_judgement
from crosslens.web.judging.database.projects import JudgingProject, ProjectSettings, create_project, items, projects
from crosslens.web.judging.database.tables import MODEL, ModelRequestsRow
from crosslens.web.judging.importing import pair_items
from crosslens.web.judging.model_judges import AskingOutcome, ModelJudge, Pictures, ask_and_keep
from crosslens.web.judging.options import AskingOptions, JudgingFolder, ProjectOptions
from crosslens.web.judging.results import ProjectResults, load_answers
from crosslens.web.judging.tasks import Answer, ItemContent, TaskKind, read_form, task_kind

_PAIR = ("image", "caption", "text")


def judging_database(options: JudgingFolder, *, create: bool = False) -> Database:
    """The database of a served folder; unless it is to be created, it must exist."""
    address = options.address
    if isinstance(address, Path) and not create and not address.exists():
        raise InputError(
            "no judging projects", file=address, expected="a folder with a judging project",
            fix=f"check {argument('folder')}, or make a project: crosslens judging new",
        )  # fmt: skip
    return open_database(address)


def project_named(database: Database, name: str) -> JudgingProject:
    """The project of this number, or of this name."""
    existing = projects(database)
    by_number = {str(project.id): project for project in existing}
    if name in by_number:
        return by_number[name]
    same = [project for project in existing if project.name == name]
    if len(same) > 1:
        numbers = ", ".join(str(project.id) for project in same)
        raise UsageError(f"{len(same)} projects are named {name!r}", fix=f"use a number: {numbers}")
    if not same:
        raise UnknownNameError("project", name, [*by_number, *(project.name for project in existing)])
    return same[0]


@dataclass(frozen=True)
class ProjectLine:
    """A project and how far it has come."""

    project: JudgingProject
    progress: ProjectProgress
    agreement: ProjectAgreement

    @property
    def line(self) -> str:
        """In words; how far people agree, where several judged the same items."""
        counted = f"{self.project.task}: {self.progress.done:,} of {self.progress.needed:,} judgements"
        if not self.agreement.repeated:
            return counted
        alpha, share = Figure(self.agreement.answers.alpha, digits=3), percent(self.agreement.by_item.mean)
        return f"{counted}; agreement: α {alpha}, {share} % on average"

    def as_dict(self) -> dict[str, Any]:
        progress = {"judgements": self.progress.done, "open": self.progress.open, "needed": self.progress.needed}
        agreement = {"alpha": self.agreement.answers.alpha, "by_item": self.agreement.by_item.mean}
        content = {"project": self.project.id, "name": self.project.name, "task": self.project.task, **progress}
        return {**content, "agreement": json_form(agreement) if self.agreement.repeated else None}


def list_projects(database: Database) -> list[ProjectLine]:
    """All projects, oldest first."""
    return [
        ProjectLine(project, project_progress(database, project.id), results_of(database, project.id).agreement)
        for project in projects(database)
    ]


def results_of(
    database: Database, project: int, picture_file: Callable[[str, str], str] | None = None
) -> ProjectResults:
    """The results of a project; with what finds the file of a dataset's image, also the pictures of its pairs."""
    answers = load_answers(database, project)
    pictures = [picture for item in answers.items.values() for picture in item.content.pictures]
    return ProjectResults(
        answers,
        {}
        if picture_file is None
        else {picture.image: picture_file(picture.dataset, picture.image) for picture in pictures},
    )


def new_project(database: Database, name: str, options: ProjectOptions) -> JudgingProject:
    """A project with the task's labels and guidelines, or those in files."""
    form = None
    if options.labels is not None:
        form = read_form(SettingsFile.parse(read_text_file(options.labels), options.labels))
    guidelines = None if options.guidelines is None else read_text_file(options.guidelines)
    settings = ProjectSettings(
        check_every=options.check_every, per_person=options.per_person, with_truth=options.with_truth
    )
    return create_project(
        database, name, options.task, form=form, guidelines=guidelines, overlap=options.overlap, seed=options.seed,
        settings=settings,
    )  # fmt: skip


@dataclass(frozen=True)
class JudgedByModel:
    """What a model was asked and said."""

    model: str
    outcome: AskingOutcome
    judged_before: int
    """Items that it had judged before."""
    names: Sequence[str]
    """The items that were asked about, by their number."""
    usage: ModelRequests
    """Requests and tokens."""

    def as_dict(self) -> dict[str, Any]:
        unusable = {self.names[number]: problem for number, problem in self.outcome.unusable.items()}
        return json_form(
            {
                "model": self.model, "answered": self.outcome.answered, "known": self.judged_before,
                "left": self.outcome.left, "requests": self.outcome.requests, "unusable": unusable,
                "tokens": self.usage.tokens, "cost": self.usage.cost,
            }
        )  # fmt: skip


@dataclass(frozen=True)
class ModelSource:
    """The model that is asked: its endpoint, the name that its judgements have, and where answers are recorded."""

    endpoint: Endpoint
    name: str
    record: RecordedAnswers | None = None
    replay_only: bool = False

    def judge(self, task: JudgingProject | TaskKind, pictures: Pictures, options: AskingOptions) -> ModelJudge:
        form, guidelines = task.form, task.guidelines
        return ModelJudge(self.endpoint, form, guidelines, pictures, options, self.record, self.replay_only)


def judge_project(
    database: Database, project: JudgingProject, source: ModelSource, pictures: Pictures,
    options: AskingOptions, progress: Progress | None = None,
) -> JudgedByModel:  # fmt: skip
    """Ask the model about every item of a project that it has not judged yet; its judgements are kept as a model's."""
    account = model_account(database, source.name)
    with database.reading() as session:
        judged_items = {row["item"] for row in judgements(session, project.id) if row["account"] == account.name}
        open_items = [item for item in items(session, project.id) if item.id not in judged_items]

    def keep(number: int, answer: Answer, seconds: float) -> None:
        record_judgement(database, open_items[number].id, account.id, answer, source=MODEL, seconds=seconds)

    contents = [item.content for item in open_items]
    names = [str(item.id) for item in open_items]
    judge = source.judge(project, pictures, options)
    try:
        outcome = ask_and_keep(judge, contents, keep, progress)
    finally:
        if judge.requests.requests:
            spent = judge.requests
            with database.writing() as session:
                session.add(
                    ModelRequestsRow(
                        project=project.id, account=account.id, requests=spent.requests, **asdict(spent.tokens),
                        cost=spent.cost, created=session.now,
                    )
                )  # fmt: skip
    return JudgedByModel(account.name, outcome, len(judged_items), names, judge.requests)


def judge_table(
    table: Path, output: Path, dataset: Dataset, task: str, source: ModelSource, pictures: Pictures,
    options: AskingOptions, progress: Progress | None = None, *, overwrite: bool = False,
) -> JudgedByModel:  # fmt: skip
    """Ask the model about the pairs of a table; the answers are written as JSON lines, also where asking fails.

    Pairs that the file has answers about already are not asked about again, unless ``overwrite``.
    """
    kind = task_kind(task)
    contents = [item.content for item in pair_items(table, dataset, shown_as=dataset.name)]
    rows: dict[int, Mapping[str, Any]] = {}
    if output.exists() and not overwrite:
        labels = {label.name for label in kind.form.labels}
        numbers = {tuple(pair_row(content).values()): number for number, content in enumerate(contents)}
        for row in read_records(output).rows:
            number = numbers.get(tuple(row.get(name) for name in _PAIR))
            row_labels = row.get("labels")
            is_own = row.get("judge") == source.name and isinstance(row_labels, list) and set(row_labels) <= labels
            if number is None or not is_own:
                raise ConflictError(
                    f"{output} holds other answers than those of {source.name} about this table",
                    fix=f"choose another output, or pass {argument('overwrite', True)}",
                )
            rows[number] = row
    answered, todo = len(rows), [number for number in range(len(contents)) if number not in rows]

    def keep(number: int, answer: Answer, _: float) -> None:
        facts = {"labels": list(answer.labels), "rating": answer.rating, "correction": answer.text}
        rows[todo[number]] = {**pair_row(contents[todo[number]]), "judge": source.name, "source": MODEL, **facts}

    judge = source.judge(kind, pictures, options)
    is_done = False
    try:
        outcome = ask_and_keep(judge, [contents[number] for number in todo], keep, progress)
        is_done = True
    finally:
        if rows or is_done:
            lines = (json.dumps(rows[number], ensure_ascii=False) + "\n" for number in sorted(rows))
            write_text(output, "".join(lines))
    return JudgedByModel(source.name, outcome, answered, [f"row {number}" for number in todo], judge.requests)


def project_prompt(database: Database, project: JudgingProject, source: ModelSource, pictures: Pictures) -> str:
    """The request about the first item of a project, as a person reads it."""
    with database.reading() as session:
        contents = [item.content for item in items(session, project.id)]
    return source.judge(project, pictures, AskingOptions()).first_prompt(contents)


def table_prompt(table: Path, dataset: Dataset, task: str, source: ModelSource, pictures: Pictures) -> str:
    """The request about the first row of a table, as a person reads it."""
    contents = [item.content for item in pair_items(table, dataset, shown_as=dataset.name)]
    return source.judge(task_kind(task), pictures, AskingOptions()).first_prompt(contents)


def pair_row(content: ItemContent) -> dict[str, Any]:
    """What is judged: the image, the caption's id where it has one, and its text."""
    facts = content.about
    return {"image": facts["image"], "caption": facts["caption"], "text": content.texts[0].text}
