"""What came out of a sweep: figures over seeds, and each combination against the one it is compared with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import (
    IMAGE_TO_TEXT,
    TEXT_TO_IMAGE,
    MetricValues,
    Presented,
    Run,
    Section,
    json_form,
    match_ids,
    split_name,
)
from crosslens.metrics import bounds_of, facts_of, family_of, measure, parse_metrics
from crosslens.statistics import (
    Estimate,
    PairedRepetitions,
    PairedTest,
    correct,
    mean_over_repetitions,
    paired_permutation,
    paired_repetitions,
)
from crosslens.train.evaluation import check_metrics
from crosslens.train.stored.model_folder import TEST_RUN
from crosslens.train.sweep.grid import Combination
from crosslens.train.sweep.plan import SweepPlan
from crosslens.train.sweep.running import Failure, TrainingOutcome
from crosslens.train.sweep.sections import sweep_sections

PERMUTATIONS = 10_000


@dataclass(frozen=True)
class SweepDifference:
    """A combination minus its baseline: over the seeds that both have, and over the queries of the test split."""

    over_seeds: PairedRepetitions
    over_queries: PairedTest | None
    """Of every query's values, averaged over the seeds; None for a metric that is no mean over queries."""
    adjusted_p: float = float("nan")
    """``over_seeds.p_value``, corrected for all comparisons of the sweep."""

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        seeds, queries = self.over_seeds, self.over_queries
        return {
            "difference": seeds.difference, "low": seeds.low, "high": seeds.high, "p": seeds.p_value,
            "adjusted_p": self.adjusted_p, "sign_flip_p": seeds.sign_flip_p, "seeds": seeds.n,
            "over_queries": queries and {
                "difference": queries.difference, "low": queries.low, "high": queries.high, "p": queries.p_value,
                "queries": queries.n,
            },
        }  # fmt: skip


@dataclass(frozen=True)
class SweepFigure:
    """A figure of one combination: its value for every seed, their mean with a t interval."""

    values: Mapping[int, float]
    mean: Estimate
    difference: SweepDifference | None = None

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        own = {"mean": self.mean.mean, "low": self.mean.low, "high": self.mean.high, "n": len(self.values)}
        tested = {} if self.difference is None else {"against_baseline": self.difference.as_dict()}
        return {**own, "values": {str(seed): value for seed, value in self.values.items()}, **tested}


@dataclass(frozen=True)
class SweepRow:
    """One combination of the table."""

    combination: Combination
    validation_metric: str
    validation: SweepFigure
    test: Mapping[str, SweepFigure]
    failures: Mapping[int, Failure]
    """Seed → why its training failed."""

    @property
    def n(self) -> int:
        """Seeds with a result."""
        return len(self.validation.values)


@dataclass(frozen=True)
class Sweep(Presented):
    """The table of a sweep."""

    plan: SweepPlan
    rows: tuple[SweepRow, ...]
    outcomes: tuple[TrainingOutcome, ...]
    level: float = 0.95
    correction: str = "holm"

    @property
    def metrics(self) -> tuple[str, ...]:
        """The test figures of the table."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row.test))

    @property
    def failures(self) -> tuple[TrainingOutcome, ...]:
        """The trainings that failed."""
        return tuple(outcome for outcome in self.outcomes if outcome.failure is not None)

    @property
    def comparisons(self) -> tuple[SweepDifference, ...]:
        """All differences that were tested."""
        figures = (figure for row in self.rows for figure in row.test.values())
        return tuple(figure.difference for figure in figures if figure.difference is not None)

    @property
    def title(self) -> str:
        """The heading of the page."""
        return f"Sweep of {self.plan.name}"

    def sections(self, **options: Any) -> Iterator[Section]:
        """Charts, the table, what its columns mean, and every training."""
        return sweep_sections(self)

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "recipe": self.plan.name, "settings": {entry.name: list(entry.values) for entry in self.plan.variables},
            "seeds": list(self.plan.seeds), "level": self.level, "correction": self.correction,
            "rows": [self._row(row) for row in self.rows],
            "trainings": [self._training(outcome) for outcome in self.outcomes],
        }  # fmt: skip

    def _row(self, row: SweepRow) -> dict[str, Any]:
        baseline = row.combination.baseline
        return {
            "settings": dict(row.combination.values), "n": row.n, "failed": len(row.failures),
            "baseline": None if baseline is None else dict(self.rows[baseline].combination.values),
            "validation": {row.validation_metric: row.validation.as_dict()},
            "test": {name: figure.as_dict() for name, figure in row.test.items()},
        }  # fmt: skip

    def _training(self, outcome: TrainingOutcome) -> dict[str, Any]:
        training, card = outcome.training, outcome.card or {}
        row = self.rows[training.combination]
        return {
            "settings": dict(row.combination.values), "seed": training.seed, "folder": training.folder,
            "best_step": card.get("best_step"), "steps": card.get("steps"),
            "validation": card.get("validation"),
            "test": {name: figure.values[training.seed] for name, figure in row.test.items()} if card else None,
            "failure": outcome.failure and outcome.failure.problem,
        }  # fmt: skip


def graded_metrics(metrics: str | Iterable[str]) -> str:
    """Those that the trainings must measure: graded relevance is not among what a trained model keeps, ranks are."""
    requests = parse_metrics(metrics)
    check_metrics(requests)
    return " ".join(str(request) for request in requests if family_of(request.spec).graded)


def sweep_table(
    plan: SweepPlan, outcomes: Sequence[TrainingOutcome], output: Path, metrics: str | Iterable[str] = "Rsum",
    *, level: float = 0.95, correction: str = "holm",
) -> Sweep:  # fmt: skip
    """The table of all outcomes: means over seeds, and paired tests against the baselines."""
    requested = [metrics] if isinstance(metrics, str) else list(metrics)
    results = [_Results(plan.combinations[number], number, outcomes, output, requested)
               for number in range(len(plan.combinations))]  # fmt: skip
    rows = [result.row(None if (at := result.combination.baseline) is None else results[at], level)
            for result in results]  # fmt: skip
    return Sweep(plan, _corrected(rows, correction), tuple(outcomes), level, correction)


class _Results:
    """The finished trainings of one combination."""

    def __init__(
        self, combination: Combination, number: int, outcomes: Sequence[TrainingOutcome], output: Path,
        metrics: Sequence[str],
    ) -> None:  # fmt: skip
        self.combination = combination
        own = {outcome.training.seed: outcome for outcome in outcomes if outcome.training.combination == number}
        self.failures = {seed: outcome.failure for seed, outcome in own.items() if outcome.failure is not None}
        self.cards = {seed: outcome.card for seed, outcome in own.items() if outcome.card is not None}
        self.values = {
            seed: _test_values(output / own[seed].training.folder / TEST_RUN, metrics) for seed in self.cards
        }

    def row(self, baseline: _Results | None, level: float) -> SweepRow:
        metric = self.combination.recipe.settings.metric
        validation = {seed: float(card["validation"][metric]) for seed, card in self.cards.items()}
        names = next(iter(self.values.values()), {})
        return SweepRow(
            self.combination, metric, SweepFigure(validation, _mean(validation, level)),
            {name: self._figure(name, baseline, level) for name in names}, self.failures,
        )  # fmt: skip

    def _figure(self, name: str, baseline: _Results | None, level: float) -> SweepFigure:
        values = {seed: float(figures[name].mean) for seed, figures in self.values.items()}
        difference = None if baseline is None else self._difference(name, baseline, level)
        return SweepFigure(values, _mean(values, level), difference)

    def _difference(self, name: str, baseline: _Results, level: float) -> SweepDifference | None:
        pairs = [(self.values[seed][name], baseline.values[seed][name]) for seed in self.values
                 if seed in baseline.values]  # fmt: skip
        if not pairs:
            return None
        over_seeds = paired_repetitions([ours.mean for ours, _ in pairs], [theirs.mean for _, theirs in pairs], level)
        return SweepDifference(over_seeds, _over_queries(name, pairs, level))


def _mean(values: Mapping[int, float], level: float) -> Estimate:
    return mean_over_repetitions(list(values.values()), level)


def _test_values(folder: Path, metrics: Sequence[str]) -> dict[str, MetricValues]:
    """Metrics of the run that a trained model keeps; of ranks, those that it does not hold are computed from them."""
    run = Run.load(folder)
    values: dict[str, MetricValues] = {}
    for request in parse_metrics(metrics):
        names = request.names((IMAGE_TO_TEXT, TEXT_TO_IMAGE))
        if not all(name in run.values for name in names):
            clusters = {split_name(name)[0]: stored.clusters for name, stored in run.values.items()}
            values |= measure(run.rankings, clusters, [str(request)], resamples=0)
        else:
            values |= {name: run[name] for name in names}
    return values


def _over_queries(name: str, pairs: Sequence[tuple[MetricValues, MetricValues]], level: float) -> PairedTest | None:
    """Test the queries' values, averaged over the seeds: is the difference more than the choice of test images?"""
    first = pairs[0][0]
    if first.statistic != "mean" or facts_of(name).pooled:
        return None
    sides = [
        np.mean([values.values[match_ids(first.query_ids, values.query_ids)] for values in side], axis=0)
        for side in zip(*pairs, strict=True)
    ]
    return paired_permutation(
        sides[0], sides[1], first.clusters, permutations=PERMUTATIONS, level=level, bounds=bounds_of(name)
    )


def _corrected(rows: Sequence[SweepRow], correction: str) -> tuple[SweepRow, ...]:
    """The rows with p-values adjusted for the number of comparisons in the whole table."""
    tested = [
        (number, name, figure.difference)
        for number, row in enumerate(rows)
        for name, figure in row.test.items()
        if figure.difference is not None
    ]
    adjusted = correct([difference.over_seeds.p_value for *_, difference in tested], correction)
    figures = [dict(row.test) for row in rows]
    for (number, name, difference), p in zip(tested, adjusted, strict=True):
        figures[number][name] = replace(figures[number][name], difference=replace(difference, adjusted_p=float(p)))
    return tuple(replace(row, test=own) for row, own in zip(rows, figures, strict=True))


def sweep_csv(sweep: Sweep) -> str:
    """The table for programs: a row per combination and figure, numbers as they are."""
    rows = []
    for row in sweep.rows:
        figures = {f"validation {row.validation_metric}": row.validation} | {
            f"test {name}": figure for name, figure in row.test.items()
        }
        for name, figure in figures.items():
            own = {"figure": name, "n": len(figure.values), "failed": len(row.failures), "mean": figure.mean.mean,
                   "low": figure.mean.low, "high": figure.mean.high}  # fmt: skip
            rows.append({**row.combination.values, **own, **_tested(figure)})
    return _csv(rows)


def trainings_csv(sweep: Sweep) -> str:
    """A row per training."""
    rows = []
    for training in sweep.as_dict()["trainings"]:
        figures = {
            f"{split} {name}": value
            for split in ("validation", "test")
            for name, value in (training.pop(split) or {}).items()
        }
        rows.append({**training.pop("settings"), **training, **figures})
    return _csv(rows)


def _tested(figure: SweepFigure) -> dict[str, float | None]:
    names = ("difference", "low", "high", "p", "adjusted_p", "sign_flip_p")
    tested = figure.difference.as_dict() if figure.difference else {}
    queries = tested.get("over_queries") or {}
    renamed = {name: f"difference_{name}" if name in ("low", "high") else name for name in names}
    return {renamed[name]: tested.get(name) for name in names} | {"p_over_queries": queries.get("p")}


def _csv(rows: Sequence[dict[str, Any]]) -> str:
    """A row that lacks a column has nothing there, nor where a number is not known."""
    columns = dict.fromkeys(name for row in rows for name in row)
    filled = [{name: row.get(name) for name in columns} for row in map(json_form, rows)]
    return pl.DataFrame(filled, infer_schema_length=None).write_csv()
