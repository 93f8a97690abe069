"""How far judges agree: κ and α of answers, labels and ratings, mean and minimum agreement; and each judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import json_form
from crosslens.statistics import JudgeAgreement, cohen_kappa, judge_agreement, krippendorff_alpha
from crosslens.web.judging.results.table import (
    CHECK,
    DISTRACTOR,
    PERSON,
    PRACTICE,
    REAL,
    FloatArray,
    answer_matrix,
    label_matrix,
    labels_of,
    matrix,
)

_PEOPLE: dict[str, Any] = {
    "account": pl.String,
    "judged": pl.Int64,
    "seconds": pl.Float64,
    **{f"{kind}_{what}": pl.Int64 for kind in (CHECK, DISTRACTOR, PRACTICE) for what in ("right", "given")},
    "agreement": pl.Float64,
    "first": pl.Datetime("us", "UTC"),
    "last": pl.Datetime("us", "UTC"),
}


@dataclass(frozen=True)
class Reliability:
    """Krippendorff's α and Cohen's κ (of more than two judges, the mean over all pairs); NaN where not defined."""

    alpha: float
    kappa: float


@dataclass(frozen=True)
class AgreementShares:
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
    by_item: AgreementShares
    """Share of an item's judges who say that it fits (as IMP counts) or, without ``fits``, its most frequent answer."""
    by_person: AgreementShares
    """Share of a person's items on which they give the answer of most others."""
    fits: str | None = None
    """In a survey of pairs, the label that says so."""
    scores: JudgeAgreement | None = None
    ordinal: float = float("nan")
    """Krippendorff's α of the scores as ranks."""

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        content = {
            **{name: getattr(self, name) for name in ("items", "repeated", "judgements", "judges", "fits", "ordinal")},
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
    fits: str | None = None,
) -> ProjectAgreement:
    """Of one table of judgements, all of people or all of models.

    ``grades`` are the numbers of labels that have an order (a judgement's score is its lowest one); without them the
    scores are the ratings. ``fits`` is the label by which people say that a pair fits, in a survey of pairs.
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
        by_item=item_agreement(table, fits),
        by_person=person_agreement(table),
        fits=fits,
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


def item_agreement(table: pl.DataFrame, fits: str | None = None) -> AgreementShares:
    """Of each item, the share of judges who give the label ``fits``; without it, the most frequent of several answers.

    Five people who all call a pair bad agree with each other, but none of them that it fits: 0 in IMP's Table 1.
    """
    shares = {}
    for (item,), part in table.group_by(["item"], maintain_order=True):
        given = [frozenset(labels) for labels in part["labels"].to_list()]
        if fits is not None:
            shares[str(item)] = sum(fits in answer for answer in given) / len(given)
        elif len(given) > 1:
            shares[str(item)] = Counter(given).most_common(1)[0][1] / len(given)
    return AgreementShares(shares)


def person_agreement(table: pl.DataFrame) -> AgreementShares:
    """Of each person, the share of items with the answer of most others; where these are split, an item is left out."""
    right: dict[str, list[bool]] = {}
    for _, part in table.group_by(["item"], maintain_order=True):
        given = {a: frozenset(labels) for a, labels in part.select("account", "labels").iter_rows()}
        for account, answer in given.items():
            if (reference := _most_others(given, account)) is not None:
                right.setdefault(account, []).append(answer == reference)
    return AgreementShares({account: sum(answers) / len(answers) for account, answers in right.items()})


def _most_others(given: Mapping[str, frozenset[str]], account: str) -> frozenset[str] | None:
    votes = Counter(answer for other, answer in given.items() if other != account).most_common(2)
    if not votes or (len(votes) == 2 and votes[0][1] == votes[1][1]):
        return None
    return votes[0][0]


def people_table(
    table: pl.DataFrame, expected: Mapping[str, Sequence[str]] | None = None, source: str = PERSON
) -> pl.DataFrame:
    """One row per judge, in the order of names.

    ``judged`` counts real items; ``seconds`` is the median time of one; ``check_right`` of ``check_given`` attention
    checks have the expected answer, and so for distractors and practice items; ``agreement`` is the share of real
    items answered as most others did.
    """
    known = expected or {}
    own = table.filter(pl.col("source") == source)
    agreement = person_agreement(own.filter(pl.col("kind") == REAL)).each
    rows = []
    for (account,), part in own.sort("account", "created", maintain_order=True).group_by(
        ["account"], maintain_order=True
    ):
        real = part.filter(pl.col("kind") == REAL)
        known_answers = [count for kind in (CHECK, DISTRACTOR, PRACTICE) for count in _right(part, kind, known)]
        times = (part["created"].min(), part["created"].max())
        rows.append(
            (account, real.height, real["seconds"].median(), *known_answers, agreement.get(str(account)), *times)
        )
    return pl.DataFrame(rows, schema=_PEOPLE, orient="row")


def _right(part: pl.DataFrame, kind: str, known: Mapping[str, Sequence[str]]) -> tuple[int, int]:
    """How many answers of a kind are the expected ones, of how many that have an expected one."""
    answers = [
        set(known[item]) == set(labels)
        for item, labels in part.filter(pl.col("kind") == kind).select("item", "labels").iter_rows()
        if item in known
    ]
    return sum(answers), len(answers)


def _reliability(judges: FloatArray) -> Reliability:
    if not judges.size:
        return Reliability(float("nan"), float("nan"))
    return Reliability(krippendorff_alpha(judges, "nominal"), cohen_kappa(judges))


def _shares_dict(shares: AgreementShares) -> dict[str, Any]:
    return {"mean": shares.mean, "minimum": shares.minimum, "least": shares.least, "each": dict(shares.each)}
