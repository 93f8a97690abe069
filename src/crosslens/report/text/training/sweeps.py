"""A sweep as text: a row per combination of settings, with intervals and tests over seeds."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from math import isfinite

import polars as pl

from crosslens.core import PAGE_WIDTH, RENDERERS, Grid
from crosslens.metrics import facts_of, format_count, format_figure, format_interval, unit_sentence, with_intervals
from crosslens.report.text.comparison import CORRECTIONS, p_value
from crosslens.report.text.runs import difference_cells
from crosslens.train import Sweep, SweepFigure, SweepRow

_DECIMALS = 10_000
"""p-values are shown to as many decimals as so many permutations allow."""


@RENDERERS.register("Sweep")
def sweep_text(sweep: Sweep, width: int | None = PAGE_WIDTH) -> str:
    """The table, what its columns mean, and the trainings that failed."""
    notes = [line for note in sweep_notes(sweep) for line in textwrap.wrap(note, width or PAGE_WIDTH)]
    parts = [sweep_title(sweep), sweep_grid(sweep, joined=True).text(width), "\n".join(notes)]
    failed = [line for text in failure_lines(sweep) for line in textwrap.wrap(text, width or PAGE_WIDTH)]
    return "\n\n".join([*parts, *(["\n".join(failed)] if failed else [])])


def sweep_title(sweep: Sweep) -> str:
    """The recipe, the settings that are the same throughout, and how many trainings there are."""
    constant = [f"{entry.name}={entry.values[0]}" for entry in sweep.plan.variables if len(entry.values) == 1]
    return ", ".join([sweep.plan.name, *constant, format_count(len(sweep.outcomes), "training")])


def sweep_grid(sweep: Sweep, *, joined: bool = False) -> Grid:
    """The table: metric by metric, a row per combination.

    ``joined`` puts metric and settings into the first column, which a table that is wrapped repeats.
    """
    titles, several = [*sweep.plan.varied] or ["recipe"], len(sweep.metrics) > 1
    keys = [[row.combination.values.get(name, row.combination.recipe.name) for name in titles] for row in sweep.rows]
    if several:
        titles = ["metric", *titles]
        keys = [[f"{name}{_arrow(name)}", *key] for name in sweep.metrics for key in keys]
    if joined:
        titles, keys = [", ".join(titles)], [[", ".join(key)] for key in keys]
    blocks = [_block(sweep, name) for name in sweep.metrics or ("",)]
    cells = [row for block in blocks for row in zip(*block, strict=True)]
    name = "test" if several else f"test {''.join(sweep.metrics)}{''.join(map(_arrow, sweep.metrics))}"
    header = [*titles, "seeds", _validation_title(sweep), name]
    align = "l" * len(titles) + "rll"
    if sweep.comparisons:
        header += ["difference", "p", "p over queries"]
        align += "lrr"
    width = len(header) - len(titles)
    rows = tuple((*key, *row[:width]) for key, row in zip(keys, cells, strict=True))
    return Grid(tuple(header), rows, align)


def _block(sweep: Sweep, name: str) -> list[list[str]]:
    """The columns of one metric beside the settings."""
    figures = [row.test.get(name) for row in sweep.rows]
    return [
        [_seeds(row) for row in sweep.rows],
        _validation(sweep.rows),
        _figures(name, figures),
        *_tests(name, figures),
    ]


def _seeds(row: SweepRow) -> str:
    total = row.n + len(row.failures)
    return f"{row.n} of {total}" if row.failures else str(total)


def _validation_title(sweep: Sweep) -> str:
    names = {row.validation_metric for row in sweep.rows}
    return f"validation {names.pop()}" if len(names) == 1 else "validation"


def _validation(rows: Sequence[SweepRow]) -> list[str]:
    several = len({row.validation_metric for row in rows}) > 1
    cells = [_figures(row.validation_metric, [row.validation])[0] for row in rows]
    return [f"{cell} {row.validation_metric}" for cell, row in zip(cells, rows, strict=True)] if several else cells


def _figures(name: str, figures: Sequence[SweepFigure | None]) -> list[str]:
    means = [format_figure(name, figure.mean.mean) if figure else "–" for figure in figures]
    return with_intervals(means, [format_interval(name, *figure.mean.interval) if figure else "" for figure in figures])


def _tests(name: str, figures: Sequence[SweepFigure | None]) -> list[list[str]]:
    """The differences with their intervals, and the two p-values of each; nothing for the baselines."""
    tested = [figure.difference if figure else None for figure in figures]
    shown = iter(difference_cells(
        (name, entry.over_seeds.difference, entry.over_seeds.low, entry.over_seeds.high) for entry in tested if entry
    ))  # fmt: skip
    return [
        [next(shown) if entry else "" for entry in tested],
        [p_value(entry.adjusted_p, _DECIMALS) if entry else "" for entry in tested],
        [p_value(entry.over_queries.p_value, _DECIMALS) if entry and entry.over_queries else "" for entry in tested],
    ]


def _arrow(name: str) -> str:
    return "" if not name or facts_of(name).higher_is_better else " ↓"


def sweep_notes(sweep: Sweep) -> list[str]:
    """What the columns mean, and what so few seeds can say."""
    share = f"{100 * sweep.level:g}%"
    names = [*sweep.metrics, *(row.validation_metric for row in sweep.rows)]
    notes = [f"Means over seeds; in brackets: {share} t intervals over seeds. {unit_sentence(names)}"]
    if len(sweep.plan.seeds) == 1:
        notes = [f"One seed: there are no intervals over seeds. {unit_sentence(names)}"]
    if sweep.comparisons:
        notes += _notes_on_tests(sweep)
    return notes


def _notes_on_tests(sweep: Sweep) -> list[str]:
    compared = next(entry for entry in sweep.plan.variables if len(entry.values) > 1)
    tests, seeds = sweep.comparisons, [entry.over_seeds for entry in sweep.comparisons]
    number = "" if sweep.correction == "none" else f" for {format_count(len(tests), 'test')}"
    fewest = min(seeds, key=lambda entry: entry.n)
    notes = [
        f"Difference: against {compared.name}={compared.values[0]} with the same other settings, seed by seed. "
        f"p: paired t test over seeds, two-sided, {CORRECTIONS[sweep.correction]}{number}.",
    ]
    if fewest.n < 2:
        notes.append("A test over seeds needs two seeds or more.")
    else:
        notes.append(
            f"The t test takes differences to be normally distributed; without that, by flipping signs, "
            f"{format_count(fewest.n, 'seed')} cannot give p below {fewest.smallest_p:.2g}."
        )
    if any(entry.over_queries is not None for entry in tests):
        notes.append(
            "p over queries: paired permutation test over test images, of the queries' values averaged over seeds, not "
            "corrected. It says whether these trained models differ, not whether trainings with other seeds would."
        )
    return notes


def failure_lines(sweep: Sweep) -> list[str]:
    """A line per training that failed."""
    lines = []
    for outcome in sweep.failures:
        failure = outcome.failure
        assert failure is not None
        combination = sweep.plan.combinations[outcome.training.combination]
        lines.append(f"failed: {combination.label}, seed {outcome.training.seed}: {failure.problem}")
    return lines


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


def _csv(rows: Sequence[dict[str, object]]) -> str:
    clean = [{name: _cell(value) for name, value in row.items()} for row in rows]
    columns = list(dict.fromkeys(name for row in clean for name in row))
    return pl.DataFrame(
        [{name: row.get(name) for name in columns} for row in clean], infer_schema_length=None
    ).write_csv()


def _cell(value: object) -> object:
    return None if isinstance(value, float) and not isfinite(value) else value
