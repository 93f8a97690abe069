"""A model as a judge: how far it agrees with what people decided, and with each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import json_form
from crosslens.statistics import cohen_kappa, correlations
from crosslens.web.judging.results.agreement import judgement_scores, person_agreement
from crosslens.web.judging.results.decisions import UNDECIDED
from crosslens.web.judging.results.table import answer_matrix, label_matrix


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

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return dict(json_form(asdict(self)))


def model_agreement(
    models: pl.DataFrame,
    people: pl.DataFrame,
    decided: pl.DataFrame,
    labels: Sequence[str] = (),
    *,
    grades: Mapping[str, float] | None = None,
) -> tuple[ModelAgreement, ...]:
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
    person = person_agreement(people).mean
    return tuple(
        _one_model(str(name), part, final, means, person, labels, grades)
        for (name,), part in models.sort("account", maintain_order=True).group_by(["account"], maintain_order=True)
    )


def _one_model(
    name: str, own: pl.DataFrame, final: pl.DataFrame, means: Mapping[str, float | None], person: float,
    labels: Sequence[str], grades: Mapping[str, float] | None,
) -> ModelAgreement:  # fmt: skip
    both = own.join(final.select("item", decided="labels"), on="item", how="inner", maintain_order="left")
    same = [set(given) == set(decided) for given, decided in both.select("labels", "decided").iter_rows()]
    columns = ["item", "account", "labels"]
    against = pl.concat(
        [both.select(columns), both.select("item", pl.lit("\x00people").alias("account"), labels="decided")]
    )
    kappas = {label: cohen_kappa(label_matrix(against, label)) if both.height else float("nan") for label in labels}
    scores = [
        (score, means[item])
        for item, score in zip(own["item"], judgement_scores(own, grades), strict=True)
        if score is not None and means.get(item) is not None
    ]
    fit = correlations(*np.array(scores, np.float64).reshape(-1, 2).T).figures["pearson"]
    return ModelAgreement(
        name, own.height, both.height, sum(same) / len(same) if same else float("nan"), person,
        cohen_kappa(answer_matrix(against)) if both.height else float("nan"), kappas, fit,
    )  # fmt: skip
