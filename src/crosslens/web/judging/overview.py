"""How far projects have come, and their results in words."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

from crosslens.core import PAGE_WIDTH, Grid, percent
from crosslens.web.judging.accounts.invitations import create_invitation
from crosslens.web.judging.commands import project_named
from crosslens.web.judging.database.engine import Database
from crosslens.web.judging.database.progress import ProjectProgress, project_progress
from crosslens.web.judging.database.projects import JudgingProject, projects
from crosslens.web.judging.results.stored import load_answers
from crosslens.web.judging.results.summary import ProjectResults


@dataclass(frozen=True)
class ProjectLine:
    """A project and how far it has come."""

    project: JudgingProject
    progress: ProjectProgress

    @property
    def line(self) -> str:
        """In a few words."""
        return f"{self.project.task}: {self.progress.done:,} of {self.progress.needed:,} judgements"

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "project": self.project.id, "name": self.project.name, "task": self.project.task,
            "judgements": self.progress.done, "open": self.progress.open, "needed": self.progress.needed,
        }  # fmt: skip


def list_projects(database: Database) -> list[ProjectLine]:
    """All projects, oldest first."""
    return [ProjectLine(project, project_progress(database, project.id)) for project in projects(database)]


def results_of(database: Database, project: int) -> ProjectResults:
    """The results of a project."""
    return ProjectResults(load_answers(database, project))


def invitation_path(database: Database, project: str, *, role: str, uses: int, days: float) -> str:
    """The path of a new link to the project of this number or name."""
    number = project_named(database, project).id
    return f"/join/{create_invitation(database, number, role=role, uses=uses, days=days)}"


def results_text(results: ProjectResults, width: int | None = None) -> str:
    """Agreement, shares of labels, people and models as tables."""
    answers, agreement = results.answers, results.agreement
    head = (
        f"{answers.project.name}: {agreement.judgements:,} judgements of {agreement.items:,} items by "
        f"{agreement.judges:,} people; {agreement.repeated:,} items judged by several"
    )
    parts = [head, _agreement_line(results)]
    rows = [
        (answers.titles.get(label, label), f"{count:,}", percent(share), _interval(low, high),
         *(_number(value) for value in _reliability(results, label)))
        for label, count, share, low, high in results.shares.iter_rows()
    ]  # fmt: skip
    parts.append(Grid(("label", "given", "%", "95 %", "α", "κ"), tuple(rows), "lrrlrr").text(width or PAGE_WIDTH))
    people = [
        (row["account"], f"{row['judged']:,}", _number(row["seconds"], 1),
         f"{row['check_right']} of {row['check_given']}", percent(row["agreement"]))
        for row in results.people.iter_rows(named=True)
    ]  # fmt: skip
    if people:
        header = ("person", "items", "seconds", "checks right", "agrees, %")
        parts.append(Grid(header, tuple(people), "lrrrr").text(width or PAGE_WIDTH))
    models = [
        (model.model, f"{model.compared:,}", percent(model.same), percent(model.person), _number(model.kappa))
        for model in results.models
    ]
    if models:
        header = ("model", "items", "as decided, %", "a person, %", "κ")
        parts.append(Grid(header, tuple(models), "lrrrr").text(width or PAGE_WIDTH))
    return "\n\n".join(parts)


def _agreement_line(results: ProjectResults) -> str:
    agreement = results.agreement
    text = (
        f"Whole answers: Krippendorff's α {_number(agreement.answers.alpha)}, Cohen's κ "
        f"{_number(agreement.answers.kappa)}; agreement of items {percent(agreement.by_item.mean)} % on average, "
        f"{percent(agreement.by_item.minimum)} % at least; {len(results.disagreements):,} disagreements"
    )
    if (scores := agreement.scores) is not None:
        text += (
            f"\nScores: α {_number(agreement.ordinal)} (ordinal), {_number(scores.alpha)} (interval); one judge "
            f"against the others r {_number(scores.one_against_others['pearson'])}, reliability of the mean "
            f"{_number(scores.reliability)}, human ceiling {_number(scores.ceiling())}"
        )
    return text


def _reliability(results: ProjectResults, label: str) -> tuple[float, float]:
    figures = results.agreement.labels[label]
    return figures.alpha, figures.kappa


def _number(value: float | None, digits: int = 3) -> str:
    return f"{value:.{digits}f}" if value is not None and isfinite(value) else "–"


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"[{100 * low:.1f}, {100 * high:.1f}]"
