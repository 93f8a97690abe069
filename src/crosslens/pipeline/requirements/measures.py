"""The figures that a requirement is about: each with its interval, in the metric's own unit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from crosslens.core import CrosslensError, MetricValues, Run, UnknownNameError, argument, split_name
from crosslens.metrics import facts_of, matching_names
from crosslens.pipeline.comparison import compare
from crosslens.pipeline.requirements.grammar import Requirement
from crosslens.pipeline.requirements.models import CheckedModel, read_baseline

GroupValues = Callable[[Run, str, str], Mapping[str, Mapping[str, MetricValues]]]
"""From a run, a column and a metric to the metric's values by full name and group."""

NO_GROUP = "(none)"
"""The name of the queries without a value, which are no group."""


@dataclass(frozen=True)
class RequiredFigure:
    """One number with its interval: of a run, or of one of its groups or seeds, which ``part`` names."""

    value: float
    low: float
    high: float
    part: str = ""


@dataclass(frozen=True)
class Measured:
    """What a requirement is about, for one metric of one model: all its figures, of which every one has to keep it."""

    label: str
    metric: str
    figures: tuple[RequiredFigure, ...]
    higher_is_better: bool
    is_difference: bool = False
    """A drop or a gap: of a share, in points."""


@dataclass(frozen=True)
class Sources:
    """What the figures are taken from, besides the model itself."""

    groups: GroupValues
    baseline: str | Path | None = None
    smallest_group: int = 1
    permutations: int = 1000
    """Of the test behind a gap, whose interval alone is used."""
    seed: int = 0


@contextmanager
def _about(requirement: Requirement, part: str) -> Iterator[None]:
    """Say where in the requirement the mistake is."""
    try:
        yield
    except CrosslensError as error:
        raise requirement.fail(part, error.problem, error.fix or "check the requirement") from error


def measure_requirement(requirement: Requirement, model: CheckedModel, sources: Sources) -> list[Measured]:
    """The figures of a requirement, by metric: a metric without a direction is one for each direction."""
    if requirement.kind == "drop":
        return _drops(requirement, model)
    with _about(requirement, "metric"):
        names = _names(requirement.metric, model.run)
    if requirement.kind == "metric":
        return [Measured(name, name, (_figure(model.run[name]),), _higher(name)) for name in names]
    if requirement.kind == "gap":
        return _gaps(requirement, model, names, sources)
    return _groups(requirement, model.run, names, sources)


def _names(metric: str, run: Run) -> list[str]:
    names = matching_names(metric, run)
    if not names:
        known = {*run, *(split_name(name)[1] for name in run)}
        raise UnknownNameError(f"metric in {run.name!r}", metric, known)
    return names


def _higher(metric: str) -> bool:
    return facts_of(metric).higher_is_better


def _figure(values: MetricValues, part: str = "") -> RequiredFigure:
    return RequiredFigure(values.mean, values.low, values.high, part)


def _drops(requirement: Requirement, model: CheckedModel) -> list[Measured]:
    """The drop of every seed; less is better, whatever the metric."""
    study, perturbation = model.study, requirement.subject
    if study is None:
        raise requirement.fail(
            "subject", f"a drop requires a robustness study of {model.name!r}",
            f"pass {argument('robustness')} with the study's folder, or check the folder of the study itself",
        )  # fmt: skip
    own = study.drops.filter(pl.col("model") == model.study_model)
    with _about(requirement, "subject"):
        known = own["perturbation"].unique(maintain_order=True).to_list()
        if perturbation not in known:
            raise UnknownNameError("perturbation in this study", perturbation, known)
    with _about(requirement, "metric"):
        metrics = own["metric"].unique(maintain_order=True).to_list()
        names = matching_names(requirement.metric or study.headline, metrics)
        if not names:
            raise UnknownNameError("metric in this study", requirement.metric or study.headline, metrics)
    measured = []
    for name in names:
        rows = own.filter((pl.col("perturbation") == perturbation) & (pl.col("metric") == name)).sort("seed").to_dicts()
        figures = tuple(
            RequiredFigure(_number(row["drop"]), _number(row["low"]), _number(row["high"]),
                   f"seed {row['seed']}" if len(rows) > 1 else "")
            for row in rows
        )  # fmt: skip
        measured.append(Measured(f"drop of {name} by {perturbation}", name, figures, False, is_difference=True))
    return measured


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def _gaps(requirement: Requirement, model: CheckedModel, names: list[str], sources: Sources) -> list[Measured]:
    """This run − the other on the same queries, with the interval of the paired difference."""
    folder = requirement.subject or sources.baseline
    if folder is None:
        fix = f"pass {argument('baseline')}, or name the run: gap({requirement.metric}, runs/other)"
        raise requirement.fail("metric", "a gap requires a run to compare with", fix)
    with _about(requirement, "subject" if requirement.subject else "metric"):
        other = read_baseline(folder, model.name)
        comparison = compare(
            other, model.run, metrics=names, correction="none", permutations=sources.permutations, seed=sources.seed
        )
    return [
        Measured(
            f"{name} − that of {other.name}", name, (RequiredFigure(result.difference, result.low, result.high),),
            result.higher_is_better, is_difference=True,
        )
        for name, result in zip(names, comparison.results, strict=True)
    ]  # fmt: skip


def _groups(requirement: Requirement, run: Run, names: list[str], sources: Sources) -> list[Measured]:
    column = requirement.subject
    with _about(requirement, "subject"):
        by_name = sources.groups(run, column, requirement.metric)
    measured = []
    for name in (name for name in names if name in by_name):
        groups = {group: values for group, values in by_name[name].items() if values.n}
        if requirement.kind == "group":
            with _about(requirement, "value"):
                if requirement.value not in groups:
                    raise UnknownNameError(f"value of {column}", requirement.value, groups)
            label, chosen = f"{name} where {column} is {requirement.value}", {requirement.value}
        else:
            label = f"worst {name} by {column}"
            chosen = {group for group, values in groups.items() if values.n >= sources.smallest_group} - {NO_GROUP}
            if not chosen:
                fix = f"lower {argument('smallest_group')}, or choose another column"
                problem = f"no group of {column} has {sources.smallest_group} queries or more"
                raise requirement.fail("subject", problem, fix)
        figures = tuple(_figure(groups[group], group) for group in groups if group in chosen)
        measured.append(Measured(label, name, figures, _higher(name)))
    if not measured:
        raise requirement.fail("metric", f"{requirement.metric} has no values by {column}", "choose another column")
    return measured


def threshold(requirement: Requirement, measured: Measured) -> float:
    """The bound in the metric's own unit: 60% of a share is 0.6, and 5 points of a share are 0.05."""
    unit = facts_of(measured.metric).unit
    if unit != "share":
        if requirement.percent:
            problem = f"{measured.metric} is no share, so its bound has no percent"
            raise requirement.fail("bound", problem, f"write {requirement.bound:g}")
        return requirement.bound
    if measured.is_difference or requirement.percent:
        return requirement.bound / 100
    if abs(requirement.bound) > 1:
        problem = f"{measured.metric} is a share from 0 to 1, and the bound is {requirement.bound:g}"
        raise requirement.fail("bound", problem, f"write {requirement.bound:g}% or {requirement.bound / 100:g}")
    return requirement.bound
