"""A sweep from start to end: the trainings that are left, figures over seeds, each combination against the one it is
compared with, and how that is shown and written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
import polars as pl

from crosslens.core import (
    ABSENT,
    Bars,
    Cell,
    Chart,
    Figure,
    Lines,
    Link,
    Presented,
    Row,
    Section,
    Series,
    Table,
    Text,
    UsageError,
)
from crosslens.engine import Progress, shown_progress
from crosslens.metrics import (
    bounds_of,
    facts_of,
    family_of,
    format_count,
    measure,
    metric_figure,
    parse_metrics,
    unit_of,
    unit_sentence,
)
from crosslens.statistics import (
    Estimate,
    PairedRepetitions,
    PairedTest,
    correct,
    corrected_words,
    mean_over_repetitions,
    paired_permutation,
    paired_repetitions,
    same_tests,
)
from crosslens.storage import (
    FORMAT_VERSION,
    Layout,
    atomic_folder,
    for_spreadsheets,
    hold_output,
    json_form,
    tidy_output,
    write_header,
    write_text,
)
from crosslens.train.evaluation import check_metrics
from crosslens.train.stored.model_folder import CURVES, TEST_RUN
from crosslens.train.sweep.plan import Combination, DataOfRecipes, SweepPlan, SweepState, check_plan
from crosslens.train.sweep.running import Failure, SweepWatch, TrainingOptions, TrainingOutcome, run_trainings
from crosslens.values import IMAGE_TO_TEXT, TEXT_TO_IMAGE, MetricValues, Run, match_ids, split_name

FRACTION = "fraction"


def _chart(sweep: Sweep, name: str) -> Chart:
    """Against the share of training data where that varies, otherwise a bar per combination."""
    unit = " (%)" if unit_of(name) == "share" else ""
    metric = f"Test {name}{unit}" + ("" if facts_of(name).higher_is_better else ", lower is better")
    seeds = format_count(len(sweep.plan.seeds), "seed")
    subtitle = f"{sweep.plan.name} · means over {seeds}, {100 * sweep.level:g}% t intervals over seeds"
    if FRACTION not in sweep.plan.varied:
        groups = tuple(_label(sweep, row, sweep.plan.varied) for row in sweep.rows)
        series = Series(metric, tuple(_mean_figure(name, row.test.get(name)) for row in sweep.rows))
        return Bars(title=f"{metric} by setting", about=subtitle, groups=groups, series=(series,), heading="setting")
    others = [varied for varied in sweep.plan.varied if varied != FRACTION]
    shares = sorted({row.combination.recipe.settings.fraction for row in sweep.rows})
    lines: dict[str, dict[float, Figure]] = {}
    for row in sweep.rows:
        points = lines.setdefault(_label(sweep, row, others), {})
        points[row.combination.recipe.settings.fraction] = _mean_figure(name, row.test.get(name))
    return Lines(
        title=f"{metric} against training data", about=subtitle, across=tuple(100 * share for share in shares),
        series=tuple(
            Series(label, tuple(points.get(share, Figure(None)) for share in shares)) for label, points in lines.items()
        ),
        axis="share of the training images (%)", logarithmic=True,
    )  # fmt: skip


def _label(sweep: Sweep, row: SweepRow, names: Sequence[str]) -> str:
    return ", ".join(row.combination.values[name] for name in names) or sweep.plan.name


def _mean_figure(name: str, figure: SweepFigure | None) -> Figure:
    return Figure(None) if figure is None else metric_figure(name, figure.mean.mean, *figure.mean.interval)


def _table(sweep: Sweep) -> Table:
    """Metric by metric, a row per combination."""
    titles, several = [*sweep.plan.varied] or ["recipe"], len(sweep.metrics) > 1
    measured = {row.validation_metric for row in sweep.rows}
    rows: list[tuple[Cell, ...]] = []
    for name in sweep.metrics or ("",):
        for row in sweep.rows:
            key = [row.combination.values.get(title, row.combination.recipe.name) for title in titles]
            key = [f"{name}{_arrow(name)}", *key] if several else key
            seeds = f"{row.n} of {row.n + len(row.failures)}" if row.failures else str(row.n)
            best = _mean_figure(row.validation_metric, row.validation)
            if len(measured) > 1:
                best = replace(best, unit=f" {row.validation_metric}")
            figure = row.test.get(name)
            cells: list[Cell] = [*key, seeds, best, _mean_figure(name, figure)]
            tested = figure.difference if figure else None
            if tested is not None:
                over_seeds, queries = tested.over_seeds, tested.over_queries
                difference = over_seeds.difference, over_seeds.low, over_seeds.high
                cells += [metric_figure(name, *difference, signed=True), Figure.p(tested.adjusted_p)]
                cells.append(None if queries is None else Figure.p(queries.p_value))
            elif sweep.comparisons:
                cells += [None] * 3
            rows.append(tuple(cells))
    test = "test" if several else f"test {''.join(sweep.metrics)}{''.join(map(_arrow, sweep.metrics))}"
    titles = ["metric", *titles] if several else titles
    validation = f"validation {measured.pop()}" if len(measured) == 1 else "validation"
    header = [*titles, "seeds", validation, test]
    header += ["difference", "p", "p over queries"] if sweep.comparisons else []
    align = "l" * len(titles) + "r" * (len(header) - len(titles))
    return Table(tuple(header), tuple(rows), align, names=len(titles))


def _arrow(name: str) -> str:
    return "" if not name or facts_of(name).higher_is_better else " ↓"


def _notes(sweep: Sweep) -> Iterator[str]:
    """What the columns mean, and what so few seeds can say."""
    units = unit_sentence([*sweep.metrics, *(row.validation_metric for row in sweep.rows)])
    if len(sweep.plan.seeds) == 1:
        yield f"One seed: there are no intervals over seeds. {units}"
    else:
        yield f"Means over seeds; in brackets: {100 * sweep.level:g}% t intervals over seeds. {units}"
    if not sweep.comparisons:
        return
    compared = next(entry for entry in sweep.plan.variables if len(entry.values) > 1)
    counted = corrected_words(sweep.correction, sum(entry.same_as is None for entry in sweep.comparisons))
    yield (
        f"Difference: against {compared.name}={compared.values[0]} with the same other settings, seed by seed. "
        f"p: paired t test over seeds, two-sided, {counted}."
    )
    fewest = min((entry.over_seeds for entry in sweep.comparisons), key=lambda entry: entry.n)
    if fewest.n < 2:
        yield "A test over seeds needs two seeds or more."
    else:
        yield (
            f"The t test takes differences to be normally distributed; without that, by flipping signs, "
            f"{format_count(fewest.n, 'seed')} cannot give p below {fewest.smallest_p:.2g}."
        )
    if any(entry.over_queries is not None for entry in sweep.comparisons):
        yield (
            "p over queries: paired permutation test over test images, of the queries' values averaged over seeds, not "
            "corrected. It says whether these trained models differ, not whether trainings with other seeds would."
        )


PERMUTATIONS = 10_000


@dataclass(frozen=True)
class SweepDifference:
    """A combination minus its baseline: over the seeds that both have, and over the queries of the test split."""

    over_seeds: PairedRepetitions
    over_queries: PairedTest | None
    """Of every query's values, averaged over the seeds; None for a metric that is no mean over queries."""
    adjusted_p: float = float("nan")
    """``over_seeds.p_value``, corrected for all comparisons of the sweep."""
    same_as: str | None = None
    """The metric whose differences over seeds are the same, up to a factor: one test, counted once."""

    def as_dict(self) -> dict[str, Any]:
        seeds, queries = self.over_seeds, self.over_queries
        return {
            "difference": seeds.difference, "low": seeds.low, "high": seeds.high, "p": seeds.p_value,
            "adjusted_p": self.adjusted_p, "same_as": self.same_as, "sign_flip_p": seeds.sign_flip_p, "seeds": seeds.n,
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
        mean = {"mean": self.mean.mean, "low": self.mean.low, "high": self.mean.high, "n": len(self.values)}
        tested = {} if self.difference is None else {"against_baseline": self.difference}
        return json_form({**mean, "values": self.values, **tested})


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
        return tuple(outcome for outcome in self.outcomes if outcome.failure is not None)

    @property
    def comparisons(self) -> tuple[SweepDifference, ...]:
        """All differences that were tested."""
        figures = (figure for row in self.rows for figure in row.test.values())
        return tuple(figure.difference for figure in figures if figure.difference is not None)

    @property
    def title(self) -> str:
        return f"Sweep of {self.plan.name}"

    def sections(self) -> Iterator[Section]:
        """A chart per metric, the table, what its columns mean, the trainings that failed, and every training."""
        constant = [f"{entry.name}={entry.values[0]}" for entry in self.plan.variables if len(entry.values) == 1]
        title = ", ".join([self.plan.name, *constant, format_count(len(self.outcomes), "training")])
        charts = Row(tuple(_chart(self, name) for name in self.metrics))
        failures = [
            f"failed: {self.plan.combinations[outcome.training.combination].label}, seed {outcome.training.seed}: "
            f"{outcome.failure.problem}"
            for outcome in self.outcomes
            if outcome.failure is not None
        ]
        varied, rows = self.plan.varied, []
        for training in self.as_dict()["trainings"]:
            test, validation = training["test"] or {}, training["validation"] or {}
            cells: list[Cell] = [training["settings"][name] for name in varied]
            cells += [str(training["seed"]), ", ".join(str(metric_figure(*entry)) for entry in validation.items())]
            cells += [metric_figure(name, test[name]) if name in test else ABSENT for name in self.metrics]
            curves = Link(training["folder"], f"{quote(training['folder'])}/{CURVES}")
            rows.append((*cells, training["failure"] or curves))
        header = (*varied, "seed", "validation", *(f"test {name}" for name in self.metrics), "folder, or failure")
        align = "l" * len(varied) + "rr" + "r" * len(self.metrics) + "l"
        trainings = Table(header, tuple(rows), align, title="Every training, with its curves", folded=True)
        notes = Text(tuple(_notes(self)), note=True)
        yield Section(title, (charts, _table(self), notes, Text(tuple(failures)), trainings))

    def as_dict(self) -> dict[str, Any]:
        trainings = []
        for outcome in self.outcomes:
            training, card, row = outcome.training, outcome.card or {}, self.rows[outcome.training.combination]
            trainings.append({
                "settings": dict(row.combination.values), "seed": training.seed, "folder": training.folder,
                "best_step": card.get("best_step"), "steps": card.get("steps"),
                "validation": card.get("validation"),
                "test": {name: figure.values[training.seed] for name, figure in row.test.items()} if card else None,
                "failure": outcome.failure and outcome.failure.problem,
            })  # fmt: skip
        return json_form({
            "recipe": self.plan.name, "settings": {entry.name: list(entry.values) for entry in self.plan.variables},
            "seeds": list(self.plan.seeds), "level": self.level, "correction": self.correction,
            "rows": [
                {
                    "settings": dict(row.combination.values), "n": row.n, "failed": len(row.failures),
                    "baseline": None if (at := row.combination.baseline) is None
                    else dict(self.rows[at].combination.values),
                    "validation": {row.validation_metric: row.validation}, "test": row.test,
                }
                for row in self.rows
            ],
            "trainings": trainings,
        })  # fmt: skip


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
    requests = parse_metrics(metrics)
    results = [_Results({}, {}, {}) for _ in plan.combinations]
    for outcome in outcomes:
        cards, values, failures = results[outcome.training.combination]
        seed = outcome.training.seed
        if outcome.failure is not None:
            failures[seed] = outcome.failure
        if outcome.card is None:
            continue
        cards[seed], values[seed] = outcome.card, {}
        run = Run.load(output / outcome.training.folder / TEST_RUN)
        clusters = {split_name(name)[0]: stored.clusters for name, stored in run.values.items()}
        for request in requests:
            names = request.names((IMAGE_TO_TEXT, TEXT_TO_IMAGE))
            if all(name in run.values for name in names):
                values[seed] |= {name: run[name] for name in names}
            else:  # computed from the ranks that a trained model keeps
                values[seed] |= measure(run.rankings, clusters, [request], resamples=0)
    rows = [
        _row(combination, result, None if (at := combination.baseline) is None else results[at], level)
        for combination, result in zip(plan.combinations, results, strict=True)
    ]
    tested = [
        (number, name, figure.difference)
        for number, row in enumerate(rows)
        for name, figure in row.test.items()
        if figure.difference is not None
    ]
    same: list[int] = []
    for row_number in dict.fromkeys(number for number, *_ in tested):
        of_row = [difference.over_seeds for number, _, difference in tested if number == row_number]
        same += [len(same) + position for position in same_tests(of_row)]
    adjusted = correct([difference.over_seeds.p_value for *_, difference in tested], correction, same)
    figures = [dict(row.test) for row in rows]
    for position, ((number, name, difference), p) in enumerate(zip(tested, adjusted, strict=True)):
        same_as = tested[same[position]][1] if same[position] != position else None
        corrected_difference = replace(difference, adjusted_p=float(p), same_as=same_as)
        figures[number][name] = replace(figures[number][name], difference=corrected_difference)
    corrected = tuple(replace(row, test=test) for row, test in zip(rows, figures, strict=True))
    return Sweep(plan, corrected, tuple(outcomes), level, correction)


class _Results(NamedTuple):
    """The finished trainings of one combination, by seed."""

    cards: dict[int, Mapping[str, Any]]
    values: dict[int, dict[str, MetricValues]]
    failures: dict[int, Failure]


def _row(combination: Combination, results: _Results, baseline: _Results | None, level: float) -> SweepRow:
    metric, theirs = combination.recipe.settings.metric, baseline.values if baseline else {}
    validation = {seed: float(card["validation"][metric]) for seed, card in results.cards.items()}
    figures = {}
    for name in next(iter(results.values.values()), {}):
        values = {seed: float(measured[name].mean) for seed, measured in results.values.items()}
        figures[name] = SweepFigure(values, mean_over_repetitions(list(values.values()), level))
        pairs = [(results.values[seed][name], theirs[seed][name]) for seed in values if seed in theirs]
        if pairs:
            over_seeds = paired_repetitions([ours.mean for ours, _ in pairs], [other.mean for _, other in pairs], level)
            first, over_queries = pairs[0][0], None
            if first.statistic == "mean" and not facts_of(name).pooled:
                # Averaged over the seeds: is the difference more than the choice of test images?
                ours, others = (
                    np.mean([values.values[match_ids(first.query_ids, values.query_ids)] for values in side], axis=0)
                    for side in zip(*pairs, strict=True)
                )
                over_queries = paired_permutation(
                    ours, others, first.clusters, permutations=PERMUTATIONS, level=level, bounds=bounds_of(name)
                )
            figures[name] = replace(figures[name], difference=SweepDifference(over_seeds, over_queries))
    mean = mean_over_repetitions(list(validation.values()), level)
    return SweepRow(combination, metric, SweepFigure(validation, mean), figures, results.failures)


_DIFFERENCE = {
    "difference": "difference",
    "low": "difference_low",
    "high": "difference_high",
    "p": "p",
    "adjusted_p": "adjusted_p",
    "sign_flip_p": "sign_flip_p",
}
"""What is known of a difference → its column."""


KIND = "sweep"
SWEEP_FILE = "sweep.json"
SWEEP_LAYOUT = Layout("a sweep", SWEEP_FILE, ())


def sweep_state(
    plan: SweepPlan, output: str | Path, *, metrics: str | Iterable[str] = "Rsum", overwrite: bool = False
) -> SweepState:
    """Check the plan, and say which trainings are done and which are left; nothing is written."""
    output, plan = Path(output), plan.measuring(graded_metrics(metrics))
    SWEEP_LAYOUT.holds(output)
    return check_plan(plan, DataOfRecipes(plan.data), output, overwrite=overwrite)


def run_sweep(
    plan: SweepPlan,
    output: str | Path,
    *,
    metrics: str | Iterable[str] = "Rsum",
    jobs: int = 1,
    level: float = 0.95,
    correction: str = "holm",
    overwrite: bool = False,
    plugins: Sequence[str] = (),
    progress: Progress | None = None,
    watch: SweepWatch | None = None,
) -> Sweep:
    """Train whatever of the plan is not done yet, ``jobs`` trainings side by side, and return the table.

    Each training is a folder below ``output``, which a training of the same settings resumes or returns; one that lacks
    a metric of graded relevance is measured again, not trained. A training that fails is reported in the table, and
    tried again by the next call. ``plugins`` are files that the processes load, ``watch`` is called with every outcome.
    """
    output = Path(output)
    if jobs < 1:
        raise UsageError(f"jobs is {jobs}", fix="jobs must be at least 1", option="jobs")
    plan = plan.measuring(graded_metrics(metrics))
    correct([], correction)
    with hold_output(output):
        SWEEP_LAYOUT.holds(output)
        data = DataOfRecipes(plan.data)
        state = check_plan(plan, data, output, overwrite=overwrite)
        if not (output / SWEEP_FILE).exists():  # mark it as a sweep's before anything is put into it, in one step
            with atomic_folder(output, SWEEP_LAYOUT) as begun:
                write_header(begun / SWEEP_FILE, {"format": f"crosslens/{KIND}", "version": FORMAT_VERSION})
        for folder, card in state.finished.items():
            tidy_output(output / folder, card["key"])
        remaining = [training for training in plan.trainings if training.folder in state.steps]
        options = TrainingOptions(output, overwrite)
        trained = run_trainings(
            remaining, state.steps, data, options,
            jobs=jobs, plugins=plugins, progress=shown_progress(progress), watch=watch,
        ) if remaining else []  # fmt: skip
        new = {outcome.training.folder: outcome for outcome in trained}
        outcomes = [
            new.get(training.folder) or TrainingOutcome(training, state.finished[training.folder])
            for training in plan.trainings
        ]
        return sweep_table(plan, outcomes, output, metrics, level=level, correction=correction)


def write_sweep_files(sweep: Sweep, output: str | Path) -> list[Path]:
    """Write the tables and the page, and then everything as JSON, into the sweep's folder."""
    output = Path(output)
    table = []  # a row per combination and figure
    for row in sweep.rows:
        figures = {f"validation {row.validation_metric}": row.validation} | {
            f"test {name}": figure for name, figure in row.test.items()
        }
        for name, figure in figures.items():
            mean = figure.mean
            counts = {"figure": name, "n": len(figure.values), "failed": len(row.failures)}
            columns: dict[str, Any] = {**counts, "mean": mean.mean, "low": mean.low, "high": mean.high}
            tested = figure.difference.as_dict() if figure.difference else {}
            columns |= {column: tested.get(name) for name, column in _DIFFERENCE.items()}
            columns["p_over_queries"] = (tested.get("over_queries") or {}).get("p")
            table.append({**row.combination.values, **columns})
    trainings = []
    for training in sweep.as_dict()["trainings"]:
        measured = {
            f"{split} {name}": value
            for split in ("validation", "test")
            for name, value in (training.pop(split) or {}).items()
        }
        trainings.append({**training.pop("settings"), **training, **measured})

    def csv(rows: Sequence[dict[str, Any]]) -> str:
        """A row that lacks a column has nothing there, nor where a number is not known."""
        return for_spreadsheets(pl.DataFrame(list(map(json_form, rows)), infer_schema_length=None)).write_csv()

    files = {
        "table.csv": csv(table),
        "trainings.csv": csv(trainings),
        "table.tex": sweep.content(".tex").decode(),
        "sweep.html": sweep.content(".html").decode(),
    }
    with hold_output(output):
        for name, content in files.items():
            write_text(output / name, content)
        header = {"format": f"crosslens/{KIND}", "version": FORMAT_VERSION, **json_form(sweep.as_dict())}
        write_header(output / SWEEP_FILE, header, files)
    return [output / name for name in (*files, SWEEP_FILE)]
