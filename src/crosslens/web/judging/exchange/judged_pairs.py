"""Judgements as relevance: each judge's score of a pair, and the grade that was decided on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from crosslens.core import Dataset, InputError, UnknownNameError, UsageError, argument
from crosslens.web.judging.results.agreement import judgement_scores
from crosslens.web.judging.results.decisions import UNDECIDED, decide
from crosslens.web.judging.tasks.answers import Answer
from crosslens.web.judging.tasks.form import AnswerForm, label_grades

GRADE_RULES = ("majority", "mean", "rating")
PAIR_COLUMNS: dict[str, Any] = {
    "image": pl.String,
    "caption": pl.String,
    "judge": pl.String,
    "score": pl.Float64,
    "grade": pl.Float64,
    "by": pl.String,
}
"""One row per pair and judge; ``grade`` is the pair's, ``by`` says who decided. Rows without a judge are pairs that
only the owner or the dataset's ground truth decided."""


def judged_pairs(
    table: pl.DataFrame,
    pairs: Mapping[str, tuple[str, str]],
    form: AnswerForm,
    rule: str = "majority",
    *,
    grades: Mapping[str, float] | None = None,
    adjudicated: Mapping[str, Answer] | None = None,
) -> pl.DataFrame:
    """The judged pairs (see ``PAIR_COLUMNS``); ``pairs`` names image and caption of each item.

    A judgement's score is the lowest grade of its labels, or its rating with the rule ``rating``. The grade of a pair
    is that of the labels that most judges gave (``majority``; empty where they are split), or the mean of the scores
    (``mean``, ``rating``); an adjudicated answer wins. A pair that several items show has the mean of their grades.
    """
    if rule not in GRADE_RULES:
        raise UnknownNameError("rule for grades", rule, GRADE_RULES)
    by_label = None if rule == "rating" else label_grades(form, grades)
    if by_label is not None and not by_label:
        raise UsageError(
            "the labels of this project have no grades",
            fix=f"pass {argument('grade', 'LABEL=NUMBER')}, or {argument('rule', 'rating')}",
        )
    final = adjudicated or {}
    decided = _grades(table, by_label, rule, final)
    scores = table.select("item", judge="account").with_columns(score=judgement_scores(table, by_label))
    rows: list[tuple[Any, ...]] = []
    for item, (grade, by) in decided.items():
        if item not in pairs:
            continue
        given = scores.filter((pl.col("item") == item) & pl.col("score").is_not_null())
        own: list[tuple[Any, ...]] = given.select("judge", "score").rows() or [(None, None)]
        rows += [(*pairs[item], judge, score, grade, by, item) for judge, score in own]
    return _merged(pl.DataFrame(rows, schema=PAIR_COLUMNS | {"item": pl.String}, orient="row"))


def with_ground_truth(judged: pl.DataFrame, dataset: Dataset, grade: float) -> pl.DataFrame:
    """The judged pairs and the dataset's own, which have this grade unless somebody judged them."""
    known = set(judged.select("image", "caption").iter_rows())
    unknown = judged.filter(~pl.col("image").is_in(list(dataset.image_ids)))
    if unknown.height:
        image = unknown["image"][0]
        raise InputError(
            f"image {image!r} was judged, but is not in {dataset.name}", fix="pass the dataset of the items"
        )
    own = [
        (image, caption, None, None, grade, "ground truth")
        for image, caption in dataset.captions.select("image", "caption").iter_rows()
        if (image, caption) not in known
    ]
    return pl.concat([judged, pl.DataFrame(own, schema=PAIR_COLUMNS, orient="row")])


def _grades(
    table: pl.DataFrame, by_label: Mapping[str, float] | None, rule: str, final: Mapping[str, Answer]
) -> dict[str, tuple[float | None, str]]:
    """Item → its grade and who decided."""
    decided = decide(table, final)
    means: dict[str, float | None] = {}
    if rule != "majority":
        scored = table.select("item", score=judgement_scores(table, by_label))
        means = dict(scored.group_by("item").agg(pl.col("score").mean()).iter_rows())
    grades: dict[str, tuple[float | None, str]] = {}
    for item, labels, by in decided.select("item", "labels", "by").iter_rows():
        grade = _of_labels(labels or (), by_label) if by != UNDECIDED else None
        if rule != "majority":
            answer = final.get(item)
            own = None if answer is None else answer.rating if by_label is None else _of_labels(answer.labels, by_label)
            grade, by = (own, by) if own is not None else (means.get(item), "mean")
        grades[item] = (grade, by)
    return grades


def _of_labels(labels: Sequence[str], by_label: Mapping[str, float] | None) -> float | None:
    return min((by_label[label] for label in labels if label in by_label), default=None) if by_label else None


def _merged(rows: pl.DataFrame) -> pl.DataFrame:
    """One row per pair and judge, with one grade per pair."""
    items = rows.unique("item", maintain_order=True).group_by("image", "caption", maintain_order=True)
    grades = items.agg(pl.col("grade").mean(), pl.col("by").unique(maintain_order=True).str.join(" + "))
    scores = rows.group_by("image", "caption", "judge", maintain_order=True).agg(pl.col("score").mean())
    joined = scores.join(grades, on=["image", "caption"], how="left", maintain_order="left").select(*PAIR_COLUMNS)
    several = joined.filter(pl.col("judge").is_not_null()).select("image", "caption").unique()
    judged = joined.filter(pl.col("judge").is_not_null())
    alone = joined.filter(pl.col("judge").is_null()).join(several, on=["image", "caption"], how="anti")
    return pl.concat([judged, alone])
