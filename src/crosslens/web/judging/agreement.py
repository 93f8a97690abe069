"""The table of judgements, and how far judges agree with each other, with models and with what is computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import InputError
from crosslens.statistics import (
    COEFFICIENTS,
    JudgeAgreement,
    cohen_kappa,
    correlations,
    judge_agreement,
    kappa_estimate,
    krippendorff_alpha,
)
from crosslens.storage import FloatArray, IntArray, json_form
from crosslens.web.judging.tasks import Answer

PERSON, MODEL = "person", "model"
"""Who judged: results of people and of models are never mixed."""
REAL, PRACTICE, CHECK, DISTRACTOR = "real", "practice", "check", "distractor"
"""Kinds of items: those that count, those with known answers to learn from, attention checks, true negatives."""

JUDGEMENT_COLUMNS: dict[str, Any] = {
    "item": pl.String,
    "account": pl.String,
    "labels": pl.List(pl.String),
    "rating": pl.Float64,
    "text": pl.String,
    "seconds": pl.Float64,
    "kind": pl.String,
    "source": pl.String,
    "created": pl.Datetime("us", "UTC"),
}
"""One row per judgement. ``labels`` may be empty; ``rating``, ``text`` and ``seconds`` may be null."""


def judgement_table(rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """The table of these judgements; an account that judges an item twice raises."""
    content = [{name: row.get(name) for name in JUDGEMENT_COLUMNS} for row in rows]
    table = pl.DataFrame(content, schema=JUDGEMENT_COLUMNS, orient="row").with_columns(
        pl.col("labels").fill_null([]), pl.col("kind").fill_null(REAL), pl.col("source").fill_null(PERSON)
    )
    repeated = table.filter(pl.struct("item", "account").is_duplicated())
    if repeated.height:
        item, account = repeated.row(0)[:2]
        raise InputError(
            f"{account!r} judged item {item!r} twice", expected="each item at most once per judge", fix="keep one"
        )
    return table


def judged_by(table: pl.DataFrame, source: str = PERSON, kinds: Sequence[str] = (REAL,)) -> pl.DataFrame:
    """The judgements of people, or of models, on items of these kinds."""
    return table.filter((pl.col("source") == source) & pl.col("kind").is_in(list(kinds)))


def labels_of(table: pl.DataFrame, labels: Sequence[str] = ()) -> tuple[str, ...]:
    """The labels of a project in its order, then any others that occur."""
    used = table["labels"].explode().drop_nulls().unique().sort().to_list()
    return (*labels, *(label for label in used if label not in labels))


def label_matrix(table: pl.DataFrame, label: str) -> FloatArray:
    """Items × judges: 1 where the judge gave the label, 0 where not, NaN where the item was not judged."""
    return matrix(table, table["labels"].list.contains(label).cast(pl.Float64))


def answer_matrix(table: pl.DataFrame) -> FloatArray:
    """Items × judges: the number of the whole answer, all labels together; NaN where there is none."""
    answers = table["labels"].list.unique().list.sort().list.join("\x1f")
    return matrix(table, answers.rank("dense").cast(pl.Float64))


def matrix(table: pl.DataFrame, values: pl.Series) -> FloatArray:
    """Items × judges of one value per judgement, items and judges in their order of appearance."""
    rows, columns = codes(table["item"]), codes(table["account"])
    cells = np.full((rows.max(initial=-1) + 1, columns.max(initial=-1) + 1), np.nan)
    cells[rows, columns] = values.fill_null(float("nan")).to_numpy()
    return cells


def codes(names: pl.Series) -> IntArray:
    """The number of each name, in their order of appearance."""
    order = {name: number for number, name in enumerate(names.unique(maintain_order=True))}
    return np.array([order[name] for name in names], np.int64)


ALL, MAJORITY, ADJUDICATED, UNDECIDED = "all", "majority", "adjudicated", "undecided"
"""Who decided: every judge says the same; more than half do; the owner did; nobody has yet."""

_DECIDED: dict[str, Any] = {
    "item": pl.String,
    "labels": pl.List(pl.String),
    "rating": pl.Float64,
    "text": pl.String,
    "judges": pl.Int64,
    "by": pl.String,
}


def decide(table: pl.DataFrame, adjudicated: Mapping[str, Answer] | None = None) -> pl.DataFrame:
    """One row per judged or adjudicated item: its labels, mean rating, text, number of judges, and who decided.

    A label holds where more than half of the judges gave it. An item is undecided where a label has exactly half of
    them, or where no label has more than half and they did not all leave it without one; an adjudicated answer wins
    over any number of judges. The text is that of all judges who wrote one, if they wrote the same.
    """
    final = dict(adjudicated or {})
    rows = []
    for (item,), part in table.group_by(["item"], maintain_order=True):
        answers = part["labels"].to_list()
        votes, half = Counter(label for choice in answers for label in dict.fromkeys(choice)), len(answers) / 2
        labels, by = [label for label, count in votes.items() if count > half] or None, MAJORITY
        if len({frozenset(choice) for choice in answers}) == 1:
            labels, by = list(answers[0]), ALL
        elif not labels or half in votes.values():
            labels, by = None, UNDECIDED
        texts = {text for text in part["text"] if text}
        rating, text = part["rating"].mean(), texts.pop() if len(texts) == 1 else None
        if (answer := final.pop(str(item), None)) is not None:
            labels, by, text = list(answer.labels), ADJUDICATED, answer.text or text
            rating = rating if answer.rating is None else answer.rating
        rows.append((item, labels, rating, text, part.height, by))
    rows += [(item, list(answer.labels), answer.rating, answer.text or None, 0, ADJUDICATED)
             for item, answer in final.items()]  # fmt: skip
    return pl.DataFrame(rows, schema=_DECIDED, orient="row")


@dataclass(frozen=True)
class Disagreement:
    """An item that its judges answered differently; ``share`` of the pairs of judges disagree on their labels."""

    item: str
    answers: Mapping[str, Answer]
    share: float
    spread: float
    """The highest rating less the lowest."""
    adjudicated: Answer | None = None


def disagreements(table: pl.DataFrame, adjudicated: Mapping[str, Answer] | None = None) -> tuple[Disagreement, ...]:
    """The items on whose labels judges differ, each with what everyone said: open ones first, the most disputed first.

    An item that was adjudicated is listed with its answer, behind the open ones.
    """
    final = adjudicated or {}
    listed = []
    for (item,), part in table.group_by(["item"], maintain_order=True):
        answers = {
            account: Answer(tuple(labels), None if rating is None else int(rating), text or "")
            for account, labels, rating, text in part.select("account", "labels", "rating", "text").iter_rows()
        }
        pairs = [set(a.labels) != set(b.labels) for a, b in combinations(answers.values(), 2)]
        if any(pairs):
            ratings = [answer.rating for answer in answers.values() if answer.rating is not None]
            spread = max(ratings) - min(ratings) if ratings else 0.0
            share = sum(pairs) / len(pairs)
            listed.append(Disagreement(str(item), answers, share, spread, final.get(str(item))))
    return tuple(sorted(listed, key=lambda case: (case.adjudicated is not None, -case.share, -case.spread)))


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
        return float(np.mean(list(self.each.values()))) if self.each else float("nan")

    @property
    def minimum(self) -> float:
        return min(self.each.values(), default=float("nan"))

    @property
    def least(self) -> str | None:
        return min(self.each, key=lambda name: self.each[name], default=None)

    def as_dict(self) -> dict[str, Any]:
        return {"mean": self.mean, "minimum": self.minimum, "least": self.least, "each": dict(self.each)}


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
    """Share of an item's judges who say that it fits (as IMP counts) or, without ``fits``, its most frequent answer of
    several."""
    by_person: AgreementShares
    """Share of a person's items on which they give the answer of most others."""
    fits: str | None = None
    """In a survey of pairs, the label that says so."""
    scores: JudgeAgreement | None = None
    ordinal: float = float("nan")
    """Krippendorff's α of the scores as ranks."""
    most_judges: int = 0
    """Of one item."""

    def as_dict(self) -> dict[str, Any]:
        content = {
            **{name: getattr(self, name) for name in ("items", "repeated", "judgements", "judges", "fits", "ordinal")},
            **{name: getattr(self, name) for name in ("answers", "labels", "by_item", "by_person")},
            "scores": (scores := self.scores)
            and {**vars(scores), "ceiling": scores.ceiling(), "ceiling_interval": scores.ceiling_interval()},
        }
        return json_form(content)


def measure_project(
    table: pl.DataFrame, labels: Sequence[str] = (), *, grades: Mapping[str, float] | None = None,
    fits: str | None = None, images: Mapping[str, str] | None = None,
) -> ProjectAgreement:  # fmt: skip
    """Of one table of judgements, all of people or all of models.

    ``grades`` are the numbers of labels that have an order (a judgement's score is its lowest one); without them the
    scores are the ratings. ``fits`` is the label by which people say that a pair fits, in a survey of pairs. Intervals
    resample the ``images`` of items, or the items themselves.
    """
    answers, scores = answer_matrix(table), matrix(table, judgement_scores(table, grades))
    judges = np.isfinite(answers).sum(axis=1)
    several = (np.isfinite(scores).sum(axis=1) > 1).any()
    clusters = _groups([(images or {}).get(item, item) for item in table["item"].unique(maintain_order=True)])
    # Five people who all call a pair bad agree with each other, but none of them that it fits: 0 in IMP's Table 1.
    by_item = {}
    for (item,), part in table.group_by(["item"], maintain_order=True):
        label_sets = [frozenset(labels_given) for labels_given in part["labels"].to_list()]
        if fits is not None:
            by_item[str(item)] = sum(fits in answer for answer in label_sets) / len(label_sets)
        elif len(label_sets) > 1:
            by_item[str(item)] = Counter(label_sets).most_common(1)[0][1] / len(label_sets)
    return ProjectAgreement(
        items=len(answers),
        repeated=int((judges > 1).sum()),
        most_judges=int(judges.max(initial=0)),
        judgements=table.height,
        judges=table["account"].n_unique(),
        answers=_reliability(answers),
        labels={label: _reliability(label_matrix(table, label)) for label in labels_of(table, labels)},
        by_item=AgreementShares(by_item),
        by_person=person_agreement(table),
        fits=fits,
        scores=judge_agreement(scores, clusters=clusters) if several else None,
        ordinal=krippendorff_alpha(scores, "ordinal") if several else float("nan"),
    )


def judgement_scores(table: pl.DataFrame, grades: Mapping[str, float] | None = None) -> pl.Series:
    """One number per judgement: the lowest grade of its labels, or its rating where labels have no grades; or null."""
    if not grades:
        return table["rating"]
    scores = [
        min((grades[label] for label in labels if label in grades), default=None)
        for labels in table["labels"].to_list()
    ]
    return pl.Series("score", scores, dtype=pl.Float64)


def person_agreement(table: pl.DataFrame) -> AgreementShares:
    """Of each person, the share of items with the answer of most others; where these are split, an item is left out."""
    right: dict[str, list[bool]] = {}
    for _, part in table.group_by(["item"], maintain_order=True):
        answers_of = {a: frozenset(labels) for a, labels in part.select("account", "labels").iter_rows()}
        for account, answer in answers_of.items():
            votes = Counter(label_set for other, label_set in answers_of.items() if other != account).most_common(2)
            if votes and (len(votes) == 1 or votes[0][1] > votes[1][1]):
                right.setdefault(account, []).append(answer == votes[0][0])
    return AgreementShares({account: sum(answers) / len(answers) for account, answers in right.items()})


def people_table(table: pl.DataFrame, expected: Mapping[str, Sequence[str]] | None = None) -> pl.DataFrame:
    """One row per person, in the order of names.

    ``judged`` counts real items; ``seconds`` is the median time of one; ``check_right`` of ``check_given`` attention
    checks have the expected answer, and so for distractors and practice items; ``agreement`` is the share of real
    items answered as most others did.
    """
    answers = expected or {}
    of_people = table.filter(pl.col("source") == PERSON)
    agreement = person_agreement(of_people.filter(pl.col("kind") == REAL)).each
    rows = []
    by_name = of_people.sort("account", "created", maintain_order=True).group_by(["account"], maintain_order=True)
    for (account,), part in by_name:
        real, counts = part.filter(pl.col("kind") == REAL), []
        for kind in (CHECK, DISTRACTOR, PRACTICE):
            answered = part.filter(pl.col("kind") == kind).select("item", "labels").iter_rows()
            right = [set(answers[item]) == set(labels) for item, labels in answered if item in answers]
            counts += [sum(right), len(right)]
        times = (part["created"].min(), part["created"].max())
        rows.append((account, real.height, real["seconds"].median(), *counts, agreement.get(str(account)), *times))
    return pl.DataFrame(rows, schema=_PEOPLE, orient="row")


def _reliability(judges: FloatArray) -> Reliability:
    if not judges.size:
        return Reliability(float("nan"), float("nan"))
    return Reliability(krippendorff_alpha(judges, "nominal"), cohen_kappa(judges))


@dataclass(frozen=True)
class ModelAgreement:
    """One model against people, over the items that both judged and people decided.

    ``same`` is the share of items with exactly the decided labels; ``person`` is the same of a person against the
    others, on average: what a model has to reach. ``kappa`` is that of whole answers against the decision.
    """

    model: str
    judged: int
    compared: int
    same: float
    person: float
    kappa: float
    labels: Mapping[str, float]
    """Cohen's κ of each label."""
    score: float
    """Pearson's r between the model's scores and people's means; NaN without ratings or grades."""


def model_agreement(
    models: pl.DataFrame, people: pl.DataFrame, decided: pl.DataFrame, labels: Sequence[str] = (), *,
    grades: Mapping[str, float] | None = None,
) -> tuple[ModelAgreement, ...]:  # fmt: skip
    """Each model that judged, by name; ``decided`` is what people decided (see :func:`decide`)."""
    if not models.height:
        return ()
    final = decided.filter(pl.col("by") != UNDECIDED)
    means = dict(
        people.select("item", score=judgement_scores(people, grades))
        .group_by("item")
        .agg(pl.col("score").mean())
        .rows()
    )
    person, results = person_agreement(people).mean, []
    for (name,), of_model in models.sort("account", maintain_order=True).group_by(["account"], maintain_order=True):
        both = of_model.join(final.select("item", decided="labels"), on="item", how="inner", maintain_order="left")
        same = [set(answer) == set(decided) for answer, decided in both.select("labels", "decided").iter_rows()]
        people_said = both.select("item", pl.lit("\x00people").alias("account"), labels="decided")
        against = pl.concat([both.select("item", "account", "labels"), people_said])
        scores = [
            (score, means[item])
            for item, score in zip(of_model["item"], judgement_scores(of_model, grades), strict=True)
            if score is not None and means.get(item) is not None
        ]
        fit = correlations(*np.array(scores, np.float64).reshape(-1, 2).T).figures["pearson"]
        share, kappa, kappas = float("nan"), float("nan"), dict.fromkeys(labels, float("nan"))
        if same:
            share, kappa = sum(same) / len(same), cohen_kappa(answer_matrix(against))
            kappas = {label: cohen_kappa(label_matrix(against, label)) for label in labels}
        results.append(ModelAgreement(str(name), of_model.height, len(same), share, person, kappa, kappas, fit))
    return tuple(results)


_CORRELATIONS: dict[str, Any] = {
    "judged": pl.String,
    "metric": pl.String,
    "items": pl.Int64,
    **{f"{name}{end}": pl.Float64 for name in COEFFICIENTS for end in ("", "_low", "_high")},
}

_DERIVED = {"object_class": "object", "details": "detail"}
"""Labels of the task failures whose derived cause has another name."""
_CAUSES: dict[str, Any] = {
    **dict.fromkeys(("label", "cause"), pl.String),
    **dict.fromkeys(("items", "both", "people", "derived", "neither"), pl.Int64),
    **dict.fromkeys(("kappa", "kappa_low", "kappa_high"), pl.Float64),
}


@dataclass(frozen=True, eq=False)
class CauseAgreement:
    """What people decided against the causes that were derived, over the ``items`` that have both.

    ``table``  a row per label, and the number of its items with each derived cause; an item may have several of both
    ``kappa``  a row per label that has a derived counterpart: of the items where that is not open, how many have
               ``both``, only that of ``people``, only the ``derived`` one or ``neither``; Cohen's κ, and its interval
    """

    items: int
    table: pl.DataFrame
    kappa: pl.DataFrame

    @property
    def causes(self) -> list[str]:
        return self.table.columns[2:]


def compare_causes(
    decided: pl.DataFrame, labels: Sequence[str], causes: Mapping[str, Mapping[str, bool | None]],
    images: Mapping[str, str] | None = None,
) -> CauseAgreement | None:  # fmt: skip
    """Decided labels (see :func:`decide`) against derived causes, by item; None where no decided item has any.

    Intervals resample the ``images`` of items, or the items themselves.
    """
    label_sets = {
        item: set(items)
        for item, items, by in decided.select("item", "labels", "by").iter_rows()
        if by != UNDECIDED and item in causes
    }
    if not label_sets:
        return None
    names = list(dict.fromkeys(name for item in label_sets for name in causes[item]))
    rows, kappas = [], []
    for label in labels:
        items = [item for item in label_sets if label in label_sets[item]]
        rows.append((label, len(items), *(sum(causes[item].get(name) is True for item in items) for name in names)))
        if (cause := _DERIVED.get(label, label)) in names:
            decidable = [item for item in label_sets if causes[item].get(cause) is not None]
            pairs = [(label in label_sets[item], bool(causes[item][cause])) for item in decidable]
            cells = [pairs.count(cell) for cell in ((True, True), (True, False), (False, True), (False, False))]
            groups = _groups([(images or {}).get(item, item) for item in decidable])
            kappa = kappa_estimate([people for people, _ in pairs], [derived for _, derived in pairs], groups)
            kappas.append((label, cause, len(pairs), *cells, *kappa.cells))
    schema = {"label": pl.String, "items": pl.Int64, **dict.fromkeys(names, pl.Int64)}
    table = pl.DataFrame(rows, schema=schema, orient="row")
    return CauseAgreement(len(label_sets), table, pl.DataFrame(kappas, schema=_CAUSES, orient="row"))


def metric_correlations(
    quantities: Mapping[str, Mapping[str, float]], metrics: Mapping[str, Mapping[str, float]],
    images: Mapping[str, str] | None = None, *, resamples: int = 1000,
) -> pl.DataFrame:  # fmt: skip
    """Pearson, Spearman and Kendall of each judged quantity with each metric, over the items that have both.

    ``quantities`` and ``metrics`` map names to numbers by item. Intervals resample the ``images`` of items, or the
    items themselves. A metric that fewer than three items have is left out.
    """
    rows = []
    for quantity, values in quantities.items():
        for metric, numbers in metrics.items():
            both = [item for item in values if np.isfinite(values[item]) and np.isfinite(numbers.get(item, np.nan))]
            if len(both) < 3:
                continue
            groups = _groups([(images or {}).get(item, item) for item in both])
            judgements, computed = (
                np.array([numbers_of[item] for item in both], np.float64) for numbers_of in (values, numbers)
            )
            fit = correlations(judgements, computed, groups, resamples=resamples, threads=1)
            ends = [end for name in COEFFICIENTS for end in fit.estimate(name).cells]
            rows.append((quantity, metric, len(both), *ends))
    return pl.DataFrame(rows, schema=_CORRELATIONS, orient="row")


def _groups(names: Sequence[str]) -> IntArray:
    return np.unique(np.array(names, dtype=object).astype(str), return_inverse=True)[1].astype(np.int64)
