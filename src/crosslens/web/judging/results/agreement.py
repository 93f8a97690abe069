"""How far judges agree: κ and α of whole answers, of each label and of ratings; mean and minimum agreement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import json_form
from crosslens.statistics import JudgeAgreement, cohen_kappa, judge_agreement, krippendorff_alpha
from crosslens.web.judging.results.table import FloatArray, answer_matrix, label_matrix, labels_of, matrix


@dataclass(frozen=True)
class Reliability:
    """Krippendorff's α and Cohen's κ (of more than two judges, the mean over all pairs); NaN where not defined."""

    alpha: float
    kappa: float


@dataclass(frozen=True)
class Shares:
    """Of each item or person, the share of answers that agree; their mean, and the least with what it belongs to."""

    each: Mapping[str, float] = field(default_factory=dict)

    @property
    def mean(self) -> float:
        """The mean share."""
        return float(np.mean(list(self.each.values()))) if self.each else float("nan")

    @property
    def minimum(self) -> float:
        """The least share."""
        return min(self.each.values(), default=float("nan"))

    @property
    def least(self) -> str | None:
        """What has the least share."""
        return min(self.each, key=lambda name: self.each[name], default=None)


@dataclass(frozen=True)
class ProjectAgreement:
    """How far the judges of a project agree; ``scores`` only where there are ratings or labels with numbers."""

    items: int
    repeated: int
    """Items that at least two judged."""
    judgements: int
    judges: int
    answers: Reliability
    """Of whole answers, all labels together."""
    labels: Mapping[str, Reliability]
    by_item: Shares
    """Share of an item's judges who give its expected label, or else its most frequent answer (as IMP counts)."""
    by_person: Shares
    """Share of a person's items on which they give the expected answer, or else that of most others."""
    scores: JudgeAgreement | None = None
    ordinal: float = float("nan")
    """Krippendorff's α of the scores as ranks."""

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        content = {
            **{name: getattr(self, name) for name in ("items", "repeated", "judgements", "judges", "ordinal")},
            "answers": asdict(self.answers),
            "labels": {label: asdict(figures) for label, figures in self.labels.items()},
            "by_item": _shares_dict(self.by_item),
            "by_person": _shares_dict(self.by_person),
            "scores": None if self.scores is None else asdict(self.scores) | {"ceiling": self.scores.ceiling()},
        }
        return dict(json_form(content))


def measure_project(
    table: pl.DataFrame,
    labels: Sequence[str] = (),
    *,
    grades: Mapping[str, float] | None = None,
    expected: Mapping[str, Sequence[str]] | None = None,
) -> ProjectAgreement:
    """Of one table of judgements, all of people or all of models.

    ``grades`` are the numbers of labels that have an order (a judgement's score is its lowest one); without them the
    scores are the ratings. ``expected`` are the known answers of items, where there are any.
    """
    answers = answer_matrix(table) if table.height else np.empty((0, 0))
    scores = score_matrix(table, grades)
    several = np.isfinite(scores).sum(axis=1, initial=0) > 1 if scores.size else np.zeros(0, bool)
    return ProjectAgreement(
        items=len(answers),
        repeated=int((np.isfinite(answers).sum(axis=1) > 1).sum()) if answers.size else 0,
        judgements=table.height,
        judges=table["account"].n_unique(),
        answers=_reliability(answers),
        labels={label: _reliability(label_matrix(table, label)) for label in labels_of(table, labels)},
        by_item=item_agreement(table, expected),
        by_person=person_agreement(table, expected),
        scores=judge_agreement(scores) if several.any() else None,
        ordinal=krippendorff_alpha(scores, "ordinal") if several.any() else float("nan"),
    )


def score_matrix(table: pl.DataFrame, grades: Mapping[str, float] | None = None) -> FloatArray:
    """Items × judges: the number of each judgement, from its labels or else its rating; NaN where it has none."""
    if not table.height:
        return np.empty((0, 0))
    return matrix(table, judgement_scores(table, grades))


def judgement_scores(table: pl.DataFrame, grades: Mapping[str, float] | None = None) -> pl.Series:
    """One number per judgement: the lowest grade of its labels, or its rating where labels have no grades; or null."""
    if not grades:
        return table["rating"]
    scores = [
        min((grades[label] for label in labels if label in grades), default=None)
        for labels in table["labels"].to_list()
    ]
    return pl.Series("score", scores, dtype=pl.Float64)


def item_agreement(table: pl.DataFrame, expected: Mapping[str, Sequence[str]] | None = None) -> Shares:
    """Of each item with two judges or an expected answer, the share of judges who give that answer or the commonest."""
    known = expected or {}
    shares = {}
    for (item,), part in table.group_by(["item"], maintain_order=True):
        given = [frozenset(labels) for labels in part["labels"].to_list()]
        wanted = known.get(str(item))
        if wanted is not None:
            shares[str(item)] = sum(frozenset(wanted) == answer for answer in given) / len(given)
        elif len(given) > 1:
            shares[str(item)] = Counter(given).most_common(1)[0][1] / len(given)
    return Shares(shares)


def person_agreement(table: pl.DataFrame, expected: Mapping[str, Sequence[str]] | None = None) -> Shares:
    """Of each person, the share of items with the expected answer, or else that of most others.

    Items without an expected answer on which the others are split evenly say nothing about a person.
    """
    known = expected or {}
    right: dict[str, list[bool]] = {}
    for (item,), part in table.group_by(["item"], maintain_order=True):
        given = {a: frozenset(labels) for a, labels in part.select("account", "labels").iter_rows()}
        for account, answer in given.items():
            wanted = known.get(str(item))
            reference = frozenset(wanted) if wanted is not None else _most_others(given, account)
            if reference is not None:
                right.setdefault(account, []).append(answer == reference)
    return Shares({account: sum(answers) / len(answers) for account, answers in right.items()})


def _most_others(given: Mapping[str, frozenset[str]], account: str) -> frozenset[str] | None:
    votes = Counter(answer for other, answer in given.items() if other != account).most_common(2)
    if not votes or (len(votes) == 2 and votes[0][1] == votes[1][1]):
        return None
    return votes[0][0]


def _reliability(judges: FloatArray) -> Reliability:
    if not judges.size:
        return Reliability(float("nan"), float("nan"))
    return Reliability(krippendorff_alpha(judges, "nominal"), cohen_kappa(judges))


def _shares_dict(shares: Shares) -> dict[str, Any]:
    return {"mean": shares.mean, "minimum": shares.minimum, "least": shares.least, "each": dict(shares.each)}
