"""Everything that is known about a project at one look: for its pages, and for ``judging status --json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import polars as pl

from crosslens.core import json_form
from crosslens.statistics import Estimate
from crosslens.web.judging.results.agreement import ProjectAgreement, measure_project, people_table
from crosslens.web.judging.results.automatic import (
    CauseAgreement,
    compare_causes,
    label_shares_of_items,
    metric_correlations,
)
from crosslens.web.judging.results.decisions import Disagreement, decide, disagreements
from crosslens.web.judging.results.models import ModelAgreement, model_agreement
from crosslens.web.judging.results.shares import (
    cause_numbers,
    co_occurrence,
    label_rules,
    label_shares,
    rating_counts,
    rating_mean,
)
from crosslens.web.judging.results.stored import ProjectAnswers
from crosslens.web.judging.results.table import CHECK, DISTRACTOR, MODEL, PRACTICE, judged_by
from crosslens.web.judging.tasks.form import label_grades


@dataclass(frozen=True, eq=False)
class ProjectResults:
    """The results of people's judgements of real items; models are apart, in ``models``. Computed when asked for."""

    answers: ProjectAnswers
    _people: pl.DataFrame = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_people", judged_by(self.answers.table))

    @property
    def judged(self) -> pl.DataFrame:
        """People's judgements of real items."""
        return self._people

    @property
    def causes(self) -> list[str]:
        """The labels that say what is wrong: all that may stand beside others."""
        form = self.answers.project.form
        return [label.name for label in form.labels if not label.alone] if form.several else []

    @property
    def grades(self) -> dict[str, float] | None:
        """The numbers of labels, where there are no ratings."""
        form = self.answers.project.form
        return None if form.rating is not None else label_grades(form) or None

    @cached_property
    def agreement(self) -> ProjectAgreement:
        """How far people agree."""
        fits = None if self.answers.verdicts is None else self.answers.verdicts[0]
        return measure_project(self.judged, self.answers.labels, grades=self.grades, fits=fits)

    @cached_property
    def known_answers(self) -> dict[str, tuple[int, int]]:
        """Of attention checks, true negatives and practice items: how many judgements are right, of how many."""
        return {kind: (int(self.people[f"{kind}_right"].sum()), int(self.people[f"{kind}_given"].sum()))
                for kind in (CHECK, DISTRACTOR, PRACTICE)}  # fmt: skip

    @cached_property
    def decided(self) -> pl.DataFrame:
        """One row per item: what was decided, and by whom."""
        real = {item: answer for item, answer in self.answers.adjudicated.items()
                if item in self.answers.items and self.answers.items[item].kind == "real"}  # fmt: skip
        return decide(self.judged, real)

    @cached_property
    def shares(self) -> pl.DataFrame:
        """How often each label was given."""
        return label_shares(self.judged, self.answers.labels)

    @cached_property
    def ratings(self) -> pl.DataFrame | None:
        """How often each rating was given; None where there are no ratings."""
        scale = self.answers.project.form.rating
        return None if scale is None else rating_counts(self.judged, range(scale.low, scale.high + 1))

    @cached_property
    def mean_rating(self) -> Estimate:
        """The mean rating, with its interval over items."""
        return rating_mean(self.judged)

    @cached_property
    def numbers_of_causes(self) -> pl.DataFrame | None:
        """How many items have no cause, one, two, …; None where labels are no causes."""
        return cause_numbers(self.decided, self.causes) if self.causes else None

    @cached_property
    def derived_causes(self) -> CauseAgreement | None:
        """People's causes against those that were derived; None where no judged item came with any."""
        return compare_causes(self.decided, self.answers.labels, self.answers.causes, self.answers.queries)

    @cached_property
    def together(self) -> pl.DataFrame:
        """Labels that hold together."""
        return co_occurrence(self.decided, self.answers.labels)

    @cached_property
    def rules(self) -> pl.DataFrame:
        """Rules between labels, where an item can have several."""
        return label_rules(self.decided, self.answers.labels)

    @cached_property
    def people(self) -> pl.DataFrame:
        """Each person."""
        return people_table(self.answers.table, self.answers.expected)

    @cached_property
    def disagreements(self) -> tuple[Disagreement, ...]:
        """What to adjudicate."""
        return disagreements(self.judged, self.answers.adjudicated)

    @cached_property
    def models(self) -> tuple[ModelAgreement, ...]:
        """Each model against people."""
        judged = judged_by(self.answers.table, MODEL)
        return model_agreement(judged, self.judged, self.decided, self.answers.labels, grades=self.grades)

    @cached_property
    def _quantities(self) -> dict[str, dict[str, float]]:
        """What is correlated: the mean rating of items and, of each label, the share of judges who gave it."""
        ratings = dict(self.decided.filter(pl.col("rating").is_not_null()).select("item", "rating").iter_rows())
        shares = label_shares_of_items(self.judged, self.answers.labels)
        return ({"rating": ratings} if ratings else {}) | shares

    @cached_property
    def _with_items(self) -> pl.DataFrame:
        return metric_correlations(self._quantities, self.answers.metrics, self.answers.queries)

    def correlations(self, further: Mapping[str, Mapping[str, float]] | None = None) -> pl.DataFrame:
        """What people said against the numbers that came with the items, and ``further`` ones, such as a run's."""
        if not further:
            return self._with_items
        added = metric_correlations(self._quantities, further, self.answers.queries)
        order = {name: number for number, name in enumerate(self._quantities)}
        both = pl.concat([self._with_items, added])
        return both.sort(pl.col("judged").replace_strict(order, return_dtype=pl.Int64), maintain_order=True)

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        tables = {
            "labels": self.shares,
            "people": self.people.drop("first", "last"),
            "correlations": self.correlations(),
        }
        optional = {"ratings": self.ratings, "causes": self.numbers_of_causes}
        tables |= {name: table for name, table in optional.items() if table is not None}
        if self.causes:
            tables |= {"together": self.together, "rules": self.rules}
        content: dict[str, Any] = {}
        if self.ratings is not None:
            rated = self.judged["rating"].count()
            content["rating"] = {**asdict(self.mean_rating), "judgements": rated}
        if self.derived_causes is not None:
            content["derived_causes"] = self.derived_causes.as_dict()
        return dict(
            json_form(
                {
                    **content,
                    "agreement": self.agreement.as_dict(),
                    "known_answers": {kind: {"right": right, "given": given}
                                      for kind, (right, given) in self.known_answers.items()},
                    "decided": _counts(self.decided["by"].to_list()),
                    **{name: table.to_dicts() for name, table in tables.items()},
                    "models": [model.as_dict() for model in self.models],
                }
            )
        )  # fmt: skip


def _counts(values: Sequence[str]) -> dict[str, int]:
    return {value: values.count(value) for value in dict.fromkeys(values)}
