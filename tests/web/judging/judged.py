"""Tables of judgements for tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import polars as pl

from crosslens.web.judging.agreement import judgement_table
from crosslens.web.judging.database.projects import JudgingProject, ProjectSettings
from crosslens.web.judging.results import ProjectAnswers, ProjectResults
from crosslens.web.judging.tasks import AnswerForm, AnswerLabel, RatingScale

LABELS = ("object class", "colour", "count", "action", "size", "details", "successful alternative")


def stored_answers(rows: Iterable[Sequence[Any]]) -> pl.DataFrame:
    """From (item, account, labels[, rating[, kind[, seconds]]])."""
    names = ("item", "account", "labels", "rating", "kind", "seconds")
    return judgement_table([dict(zip(names, row, strict=False)) for row in rows])


def results_of(table: pl.DataFrame, labels: Sequence[str] = LABELS) -> ProjectResults:
    """The results of a project with these labels, of which the last stands alone, and ratings from 1 to 10."""
    choices = [AnswerLabel(name, name, str(key), alone=name == labels[-1]) for key, name in enumerate(labels)]
    form = AnswerForm("What is wrong?", tuple(choices), several=True, rating=RatingScale(1, 10))
    project = JudgingProject(1, "p", "failures", form, "", 2, 0, ProjectSettings())
    return ProjectResults(ProjectAnswers(project, {}, table, {}))


def drawn(seed: int, items: int = 30, judges: int = 4, missing: float = 0.3) -> pl.DataFrame:
    """Judges who mostly see the same two labels, with ratings."""
    random = np.random.default_rng(seed)
    rows = []
    for item in range(items):
        truth = set(random.choice(LABELS, random.integers(1, 3), replace=False))
        base = random.integers(1, 11)
        for judge in range(judges):
            if random.random() < missing:
                continue
            labels = truth if random.random() < 0.7 else {random.choice(LABELS)}
            rating = float(np.clip(base + random.integers(-2, 3), 1, 10))
            rows.append((f"i{item}", f"p{judge}", sorted(map(str, labels)), rating, "real", 3.0 + judge))
    return stored_answers(rows)
