"""How far projects have come, and their results in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from crosslens.core import PAGE_WIDTH, Grid, percent
from crosslens.web.judging.accounts.invitations import create_invitation
from crosslens.web.judging.commands import project_named
from crosslens.web.judging.database.engine import Database
from crosslens.web.judging.database.progress import ProjectProgress, project_progress
from crosslens.web.judging.database.projects import JudgingProject, projects
from crosslens.web.judging.results.automatic import CauseAgreement
from crosslens.web.judging.results.stored import load_answers
from crosslens.web.judging.results.summary import ProjectResults
from crosslens.web.judging.results.table import CHECK, DISTRACTOR


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


def invitation_path(database: Database, project: str | None, *, role: str, uses: int, days: float) -> str:
    """The path of a new link to the project of this number or name; without one, for an owner of the server."""
    number = None if project is None else project_named(database, project).id
    return f"/join/{create_invitation(database, number, role=role, uses=uses, days=days)}"


def results_text(results: ProjectResults, width: int | None = None) -> str:
    """Agreement, shares of labels, ratings, people, models, and what is automatic beside them, as tables."""
    answers, agreement = results.answers, results.agreement
    head = (
        f"{answers.project.name}: {agreement.judgements:,} judgements of {agreement.items:,} items by "
        f"{agreement.judges:,} people; {agreement.repeated:,} items judged by several"
    )
    labels = [
        (_title(results, label), f"{count:,}", percent(share), _interval(low, high),
         *(_number(value) for value in _reliability(results, label)))
        for label, count, share, low, high in results.shares.iter_rows()
    ]  # fmt: skip
    people = [
        (row["account"], f"{row['judged']:,}", _number(row["seconds"], 1), percent(row["agreement"]),
         *(_right(row[f"{kind}_right"], row[f"{kind}_given"]) for kind in _KNOWN))
        for row in results.people.iter_rows(named=True)
    ]  # fmt: skip
    models = [
        (model.model, f"{model.compared:,}", percent(model.same), percent(model.person), _number(model.kappa))
        for model in results.models
    ]
    tables = [
        Grid(("label", "given", "%", "95 %", "α", "κ"), tuple(labels), "lrrlrr"),
        *_ratings(results),
        Grid(("person", "items", "seconds", "agrees, %", *_KNOWN.values()), tuple(people), "lrrrrr"),
        Grid(("model", "items", "as decided, %", "a person, %", "κ"), tuple(models), "lrrrr"),
    ]
    parts = [head, _agreement_lines(results), *_texts(tables, width)]
    rated, shared = _correlations(results)
    if rated.rows:
        parts += ["Metrics against the mean rating: Pearson's r and Spearman's ρ", *_texts([rated], width)]
    if shared.rows:
        parts += ["Metrics against the share of judges who gave a label: Spearman's ρ", *_texts([shared], width)]
    if (derived := results.derived_causes) is not None:
        counts, kappas = _texts(_causes(results, derived), width)
        parts += [f"People's causes (rows) against derived ones, over {derived.items:,} decided items", counts]
        parts += ["Items where it is not open whether the derived cause holds: both say so, only people, only derived",
                  kappas]  # fmt: skip
    return "\n\n".join(parts)


_KNOWN = {CHECK: "checks right", DISTRACTOR: "true negatives right"}


def _texts(tables: Sequence[Grid], width: int | None) -> list[str]:
    return [table.text(width or PAGE_WIDTH) for table in tables if table.rows]


def _agreement_lines(results: ProjectResults) -> str:
    agreement = results.agreement
    counted = "agreement of items" if agreement.fits is None else "agreement that a pair fits"
    lines = [
        f"Whole answers: Krippendorff's α {_number(agreement.answers.alpha)}, Cohen's κ "
        f"{_number(agreement.answers.kappa)}; {counted} {percent(agreement.by_item.mean)} % on average, "
        f"{percent(agreement.by_item.minimum)} % at least; {len(results.disagreements):,} disagreements"
    ]
    right, given = results.known_answers[DISTRACTOR]
    if given:
        lines.append(f"True negatives: {right:,} of {given:,} judgements right ({percent(right / given)} %)")
    if (scores := agreement.scores) is not None:
        lines.append(
            f"Scores: α {_number(agreement.ordinal)} (ordinal), {_number(scores.alpha)} (interval); one judge "
            f"against the others r {_number(scores.one_against_others['pearson'])}, reliability of the mean "
            f"{_number(scores.reliability)}, human ceiling {_number(scores.ceiling())}"
        )
    mean = results.mean_rating
    if isfinite(mean.mean):
        lines.append(f"Ratings: mean {_number(mean.mean, 2)} {_ends(mean.low, mean.high)}")
    return "\n".join(lines)


def _ratings(results: ProjectResults) -> list[Grid]:
    counts = results.ratings
    if counts is None or not counts["count"].sum():
        return []
    shares = ("%", *map(percent, counts["share"]))
    rows = (("judgements", *(f"{count:,}" for count in counts["count"])), shares)
    return [Grid(("rating", *map(str, counts["rating"])), rows, "l" + "r" * counts.height)]


def _correlations(results: ProjectResults) -> tuple[Grid, Grid]:
    """With ratings, and with labels."""
    by_metric: dict[str, dict[str, dict[str, Any]]] = {}
    for row in results.correlations().iter_rows(named=True):
        if row["spearman"] is not None:
            by_metric.setdefault(row["metric"], {})[row["judged"]] = row
    rated = tuple(
        (
            metric,
            f"{rows['rating']['items']:,}",
            *(_with_interval(rows["rating"], name) for name in ("pearson", "spearman")),
        )
        for metric, rows in by_metric.items()
        if "rating" in rows
    )
    labels = [label for label in results.answers.labels if any(label in rows for rows in by_metric.values())]
    shared = tuple(
        (metric, *(_number(rows[label]["spearman"], 2) if label in rows else "–" for label in labels))
        for metric, rows in by_metric.items()
    )
    header = ("metric", *(_title(results, label) for label in labels))
    return Grid(("metric", "items", "r", "ρ"), rated, "lrll"), Grid(header, shared, "l" + "r" * len(labels))


def _causes(results: ProjectResults, derived: CauseAgreement) -> list[Grid]:
    counts = tuple((_title(results, row[0]), *(f"{count:,}" for count in row[1:])) for row in derived.table.iter_rows())
    kappas = tuple(
        (
            _title(results, row["label"]),
            row["cause"],
            *(f"{row[name]:,}" for name in ("items", "both", "people", "derived")),
            _with_interval(row, "kappa"),
        )
        for row in derived.kappa.to_dicts()
    )
    header = ("label", "cause", "items", "both", "people", "derived", "κ [95 %]")
    return [
        Grid(("label", "items", *derived.causes), counts, "l" + "r" * (1 + len(derived.causes))),
        Grid(header, kappas, "llrrrrl"),
    ]


def _title(results: ProjectResults, label: str) -> str:
    return results.answers.titles.get(label, label)


def _right(right: int, given: int) -> str:
    return f"{right} of {given}" if given else "–"


def _with_interval(row: Mapping[str, Any], name: str) -> str:
    return f"{_number(row[name], 2)} {_ends(row[f'{name}_low'], row[f'{name}_high'])}".strip()


def _ends(low: float | None, high: float | None) -> str:
    return f"[{_number(low, 2)}, {_number(high, 2)}]" if low is not None and isfinite(low) else ""


def _reliability(results: ProjectResults, label: str) -> tuple[float, float]:
    figures = results.agreement.labels[label]
    return figures.alpha, figures.kappa


def _number(value: float | None, digits: int = 3) -> str:
    return f"{value:.{digits}f}" if value is not None and isfinite(value) else "–"


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"[{100 * low:.1f}, {100 * high:.1f}]"
