"""How a sweep is shown: learning curves or bars, a row per combination with tests over seeds, every training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import quote

from crosslens.core import ABSENT, Bars, Cell, Chart, Figure, Lines, Link, Row, Section, Series, Table, Text
from crosslens.metrics import facts_of, format_count, metric_figure, unit_of, unit_sentence
from crosslens.statistics import CORRECTION_WORDS
from crosslens.train.stored.model_folder import CURVES

if TYPE_CHECKING:
    from crosslens.train.sweep.results import Sweep, SweepFigure, SweepRow

FRACTION = "fraction"


def sweep_sections(sweep: Sweep) -> Iterator[Section]:
    """A chart per metric, the table, what its columns mean, the trainings that failed, and every training."""
    constant = [f"{entry.name}={entry.values[0]}" for entry in sweep.plan.variables if len(entry.values) == 1]
    title = ", ".join([sweep.plan.name, *constant, format_count(len(sweep.outcomes), "training")])
    charts = Row(tuple(_chart(sweep, name) for name in sweep.metrics))
    notes, failures = Text(tuple(_notes(sweep)), note=True), Text(tuple(_failures(sweep)))
    yield Section(title, (charts, _table(sweep), notes, failures, _trainings(sweep)))


def _chart(sweep: Sweep, name: str) -> Chart:
    """Against the share of training data where that varies, otherwise a bar per combination."""
    unit = " (%)" if unit_of(name) == "share" else ""
    metric = f"Test {name}{unit}" + ("" if facts_of(name).higher_is_better else ", lower is better")
    seeds = format_count(len(sweep.plan.seeds), "seed")
    about = f"{sweep.plan.name} · means over {seeds}, {100 * sweep.level:g}% t intervals over seeds"
    if FRACTION not in sweep.plan.varied:
        groups = tuple(_label(sweep, row, sweep.plan.varied) for row in sweep.rows)
        series = Series(metric, tuple(_mean(name, row.test.get(name)) for row in sweep.rows))
        return Bars(title=f"{metric} by setting", about=about, groups=groups, series=(series,), heading="setting")
    others = [varied for varied in sweep.plan.varied if varied != FRACTION]
    shares = sorted({row.combination.recipe.settings.fraction for row in sweep.rows})
    lines: dict[str, dict[float, Figure]] = {}
    for row in sweep.rows:
        points = lines.setdefault(_label(sweep, row, others), {})
        points[row.combination.recipe.settings.fraction] = _mean(name, row.test.get(name))
    return Lines(
        title=f"{metric} against training data", about=about, across=tuple(100 * share for share in shares),
        series=tuple(
            Series(label, tuple(points.get(share, Figure(None)) for share in shares)) for label, points in lines.items()
        ),
        axis="share of the training images (%)", logarithmic=True,
    )  # fmt: skip


def _label(sweep: Sweep, row: SweepRow, names: Sequence[str]) -> str:
    return ", ".join(row.combination.values[name] for name in names) or sweep.plan.name


def _mean(name: str, figure: SweepFigure | None) -> Figure:
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
            best = _mean(row.validation_metric, row.validation)
            if len(measured) > 1:
                best = replace(best, unit=f" {row.validation_metric}")
            figure = row.test.get(name)
            cells: tuple[Cell, ...] = (*key, seeds, best, _mean(name, figure))
            rows.append((*cells, *_tests(name, figure)) if sweep.comparisons else cells)
    shown = "test" if several else f"test {''.join(sweep.metrics)}{''.join(map(_arrow, sweep.metrics))}"
    titles = ["metric", *titles] if several else titles
    validation = f"validation {measured.pop()}" if len(measured) == 1 else "validation"
    header = [*titles, "seeds", validation, shown]
    header += ["difference", "p", "p over queries"] if sweep.comparisons else []
    align = "l" * len(titles) + "r" * (len(header) - len(titles))
    return Table(tuple(header), tuple(rows), align, names=len(titles))


def _tests(name: str, figure: SweepFigure | None) -> tuple[Cell, ...]:
    """The difference with its interval, and its two p-values; nothing for a baseline."""
    tested = figure.difference if figure else None
    if tested is None:
        return None, None, None
    seeds, queries = tested.over_seeds, tested.over_queries
    difference = metric_figure(name, seeds.difference, seeds.low, seeds.high, signed=True)
    return difference, Figure.p(tested.adjusted_p), None if queries is None else Figure.p(queries.p_value)


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
    number = "" if sweep.correction == "none" else f" for {format_count(len(sweep.comparisons), 'test')}"
    yield (
        f"Difference: against {compared.name}={compared.values[0]} with the same other settings, seed by seed. "
        f"p: paired t test over seeds, two-sided, {CORRECTION_WORDS[sweep.correction]}{number}."
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


def _failures(sweep: Sweep) -> Iterator[str]:
    for outcome in sweep.failures:
        assert outcome.failure is not None
        combination = sweep.plan.combinations[outcome.training.combination]
        yield f"failed: {combination.label}, seed {outcome.training.seed}: {outcome.failure.problem}"


def _trainings(sweep: Sweep) -> Table:
    """Every training; its folder leads to the page of its curves."""
    varied, rows = list(sweep.plan.varied), []
    for training in sweep.as_dict()["trainings"]:
        test, validation = training["test"] or {}, training["validation"] or {}
        cells: list[Cell] = [training["settings"][name] for name in varied]
        cells += [str(training["seed"]), ", ".join(str(metric_figure(*entry)) for entry in validation.items())]
        cells += [metric_figure(name, test[name]) if name in test else ABSENT for name in sweep.metrics]
        curves = Link(training["folder"], f"{quote(training['folder'])}/{CURVES}")
        rows.append((*cells, training["failure"] or curves))
    header = (*varied, "seed", "validation", *(f"test {name}" for name in sweep.metrics), "folder, or failure")
    align = "l" * len(varied) + "rr" + "r" * len(sweep.metrics) + "l"
    return Table(header, tuple(rows), align, title="Every training, with its curves", folded=True)
