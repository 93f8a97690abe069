"""The judgements of a project as results take them: the table, the items, what was adjudicated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl
from sqlalchemy import select

from crosslens.core import ConflictError, CrosslensError, is_finite_number
from crosslens.web.judging.database.answers import judgements
from crosslens.web.judging.database.audit import add_entry
from crosslens.web.judging.database.engine import Database
from crosslens.web.judging.database.projects import JudgingProject, StoredItem, items, locked_project, project_by_id
from crosslens.web.judging.database.tables import AdjudicationRow, ItemRow
from crosslens.web.judging.results.table import DISTRACTOR, judgement_table
from crosslens.web.judging.tasks.answers import Answer, check_answer
from crosslens.web.judging.tasks.content import EXPORTED_AS
from crosslens.web.judging.tasks.form import label_grades, read_form
from crosslens.web.judging.tasks.kinds import PAIRS


@dataclass(frozen=True, eq=False)
class ProjectAnswers:
    """A project with its items by id, all judgements, and the owner's decisions."""

    project: JudgingProject
    items: Mapping[str, StoredItem]
    table: pl.DataFrame
    adjudicated: Mapping[str, Answer]

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the labels, in the order of the form."""
        return tuple(label.name for label in self.project.form.labels)

    @property
    def titles(self) -> dict[str, str]:
        """Label → what people see."""
        return {label.name: label.title for label in self.project.form.labels}

    @property
    def verdicts(self) -> tuple[str, str] | None:
        """Of a survey of pairs, the label that says that a pair fits, and the one that says that it does not."""
        grades = label_grades(self.project.form) if self.project.task == PAIRS.name else {}
        ordered = sorted(grades, key=lambda label: grades[label])
        return (ordered[-1], ordered[0]) if ordered else None

    @cached_property
    def expected(self) -> dict[str, list[str]]:
        """The known answers, by item; a true negative in a survey of pairs does not fit, also where nobody said so."""
        negative = [] if self.verdicts is None else [self.verdicts[1]]
        known = {name: (item.expected or {}).get("labels") or (negative if item.kind == DISTRACTOR else [])
                 for name, item in self.items.items()}  # fmt: skip
        return {name: list(labels) for name, labels in known.items() if labels}

    @cached_property
    def pairs(self) -> dict[str, tuple[str, str]]:
        """Image and caption of the items that count and name both."""
        named = {name: (item.content.about.get("image"), item.content.about.get("caption"))
                 for name, item in self.items.items() if item.kind == "real"}  # fmt: skip
        return {name: (str(image), str(caption)) for name, (image, caption) in named.items() if image and caption}

    @cached_property
    def metrics(self) -> dict[str, dict[str, float]]:
        """The numbers that came with the items: name → by item."""
        numbers: dict[str, dict[str, float]] = {}
        for name, item in self.items.items():
            stored: Mapping[str, Any] = item.content.about.get("metrics") or {}
            for metric, value in stored.items():
                if is_finite_number(value):
                    numbers.setdefault(metric, {})[name] = float(value)
        return numbers

    @cached_property
    def causes(self) -> dict[str, dict[str, bool | None]]:
        """The causes that were derived for items: by item, cause → whether it holds, None where that is open."""
        return {name: dict(causes) for name, item in self.items.items() if (causes := item.content.about.get("causes"))}

    @cached_property
    def queries(self) -> dict[str, str]:
        """The query of each item; items of one query are resampled together."""
        return {name: str(query) for name, item in self.items.items() if (query := item.content.about.get("query"))}


def project_of(database: Database, project: int) -> JudgingProject:
    """The project; raises where it does not exist."""
    stored = project_by_id(database, project)
    if stored is None:
        raise CrosslensError(f"project {project} does not exist", code="no-project", subject=str(project))
    return stored


def load_answers(database: Database, project: int) -> ProjectAnswers:
    """Everything that was judged in a project."""
    judged = judgements(database, project)
    stored = items(database, project)
    names = _names(stored)
    rows = [
        {
            "item": names[entry.item], "account": entry.account, "labels": list(entry.labels), "rating": entry.rating,
            "text": entry.text, "seconds": entry.seconds, "kind": entry.kind, "source": entry.source,
            "created": entry.created,
        }
        for entry in judged
    ]  # fmt: skip
    adjudicated = {names[item]: answer for item, answer in _adjudicated(database, project).items()}
    by_name = {names[item.id]: item for item in stored}
    return ProjectAnswers(project_of(database, project), by_name, judgement_table(rows), adjudicated)


def _names(stored: Sequence[StoredItem]) -> dict[int, str]:
    """What items are called in results and exports: their number, or what an export that was imported called them."""
    given = {item.id: str(item.content.about.get(EXPORTED_AS, item.id)) for item in stored}
    return given if len(set(given.values())) == len(given) else {item.id: str(item.id) for item in stored}


def adjudicate(database: Database, project: int, item: int, account: int, answer: Answer) -> Answer:
    """Store the owner's decision about an item, instead of an earlier one; returns it as it was stored."""
    with database.writing() as session:
        form = read_form(locked_project(session, project).labels)
        row = session.get(ItemRow, item)
        if row is None or row.project != project:
            raise CrosslensError(
                f"item {item} is not in project {project}", code="no-item", subject=str(item), fix="choose another item"
            )
        checked = check_answer(form, answer)
        decision = session.get(AdjudicationRow, item) or AdjudicationRow(item=item)
        decision.account, decision.created = account, database.now()
        decision.labels, decision.rating, decision.text = list(checked.labels), checked.rating, checked.text
        session.add(decision)
        add_entry(database, session, "item decided", account, project=project, detail=f"item {item}")
        return checked


def withdraw_decision(database: Database, project: int, item: int, by: int | None = None) -> None:
    """Remove the owner's decision about an item."""
    with database.writing() as session:
        locked_project(session, project)
        row, decision = session.get(ItemRow, item), session.get(AdjudicationRow, item)
        if row is None or row.project != project or decision is None:
            raise ConflictError(f"nothing was decided about item {item}", fix="reload the page", code="no-decision")
        session.delete(decision)
        add_entry(database, session, "decision taken back", by, project=project, detail=f"item {item}")


def _adjudicated(database: Database, project: int) -> dict[int, Answer]:
    query = (
        select(AdjudicationRow)
        .join(ItemRow, ItemRow.id == AdjudicationRow.item)
        .where(ItemRow.project == project)
        .order_by(AdjudicationRow.item)
    )
    with database.reading() as session:
        return {row.item: Answer(tuple(row.labels), row.rating, row.text) for row in session.scalars(query)}
