"""The models that requirements are checked on: a run, the models of a robustness study, or the runs of an audit."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.audits.requirement_grammar import Requirement, parse_requirement
from crosslens.audits.results import RUNS
from crosslens.comparisons import compare
from crosslens.core import (
    Cell,
    CrosslensError,
    InputError,
    Presented,
    Section,
    Table,
    Text,
    UnknownNameError,
    UsageError,
    ValueType,
    argument,
)
from crosslens.data import read_text
from crosslens.metrics import facts_of, format_count, format_figure, matching_names, metric_figure, unit_sentence
from crosslens.pipeline import ORIGINAL, ROBUSTNESS_FILE, Robustness, folder_name
from crosslens.storage import HEADER_FILE, SettingsFile, json_form, read_header
from crosslens.values import RUN_FILE, MetricValues, Run, split_name

ROBUSTNESS = "robustness"
"""The folder below an audit with a study per run."""


@dataclass(frozen=True)
class CheckedModel:
    """A model's results: its run, and where it was perturbed, the study and its name there."""

    name: str
    run: Run
    study: Robustness | None = None
    study_model: str = ""


def read_checked(folder: str | Path, robustness: str | Path | None = None) -> list[CheckedModel]:
    """The models in a run folder, in the folder of a robustness study, or in that of an audit.

    ``robustness`` is the study of a run folder, which cannot know it.
    """
    folder = Path(folder)
    if robustness is not None:
        if not (folder / RUN_FILE).exists():
            raise UsageError(
                f"{argument('robustness')} is for a run folder, and {folder} is none",
                fix=f"leave {argument('robustness')} out, or name a run folder",
            )
        return [_with_study(Run.load(folder), Robustness.load(robustness), Path(robustness))]
    if (folder / RUN_FILE).exists():
        run = Run.load(folder)
        return [CheckedModel(run.name, run)]
    if (folder / ROBUSTNESS_FILE).exists():
        study = Robustness.load(folder)
        models = []
        for model in study.models:
            home = folder / folder_name(model) / ORIGINAL
            if not (home / RUN_FILE).exists():
                raise InputError(
                    "the run on the unchanged captions is missing",
                    file=home,
                    fix="run the same robustness command again",
                )
            models.append(CheckedModel(model, Run.load(home), study, model))
        return models
    if (folder / HEADER_FILE).exists():
        read_header(folder / HEADER_FILE, "audit")  # raises for any other kind of folder
        models = []
        for file in sorted((folder / RUNS).glob(f"*/{RUN_FILE}")):
            name, run = file.parent.name, Run.load(file.parent)
            home = folder / ROBUSTNESS / name
            has_study = (home / ROBUSTNESS_FILE).exists()
            models.append(_with_study(run, Robustness.load(home), home, name) if has_study else CheckedModel(name, run))
        if not models:
            raise InputError("the audit has no runs", file=folder / RUNS, fix="run the audit again")
        return models
    raise InputError(
        "no results here" if folder.is_dir() else "no such folder",
        file=folder,
        expected="a run folder, as evaluate -o writes it, or the folder of a robustness study or an audit",
        fix="check the path",
    )


def _with_study(run: Run, study: Robustness, folder: Path, name: str | None = None) -> CheckedModel:
    """Which model of the study the run is: the only one, or the one of its name."""
    candidates = [model for model in study.models if model in (run.name, name)]
    matches: Sequence[str] = study.models if len(study.models) == 1 else candidates
    if len(matches) != 1:
        raise InputError(
            f"none of its models is called {run.name!r}: {', '.join(study.models)}",
            file=folder,
            expected="a study of the run's model",
            fix=f"check {argument('robustness')}, or name the run as in the study",
        )
    return CheckedModel(name or run.name, run, study, matches[0])


@dataclass(frozen=True)
class RequiredFigure:
    """One number with its interval: of a run, or of one of its groups or seeds, which ``part`` names."""

    value: float
    low: float
    high: float
    part: str = ""

    @staticmethod
    def of(values: MetricValues, part: str = "") -> RequiredFigure:
        return RequiredFigure(values.mean, values.low, values.high, part)


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

    groups: Callable[[Run, str, str], Mapping[str, Mapping[str, MetricValues]]]
    """From a run, a column and a metric to the metric's values by full name and group."""
    baseline: str | Path | None = None
    smallest_group: int = 1
    permutations: int = 1000
    """Of the test behind a gap, whose interval alone is used."""
    seed: int = 0


@contextmanager
def _errors_in(requirement: Requirement, part: str) -> Iterator[None]:
    """Say where in the requirement the mistake is."""
    try:
        yield
    except CrosslensError as error:
        raise requirement.fail(part, error.problem, error.fix or "check the requirement") from error


def measure_requirement(requirement: Requirement, model: CheckedModel, sources: Sources) -> list[Measured]:
    """The figures of a requirement, by metric: a metric without a direction is one for each direction."""
    if requirement.kind == "drop":
        return _drops(requirement, model)
    with _errors_in(requirement, "metric"):
        names = matching_names(requirement.metric, model.run)
        if not names:
            available = {*model.run, *(split_name(name)[1] for name in model.run)}
            raise UnknownNameError(f"metric in {model.run.name!r}", requirement.metric, available)
    if requirement.kind == "metric":
        return [
            Measured(name, name, (RequiredFigure.of(model.run[name]),), facts_of(name).higher_is_better)
            for name in names
        ]
    if requirement.kind == "gap":
        return _gaps(requirement, model, names, sources)
    return _groups(requirement, model.run, names, sources)


def _drops(requirement: Requirement, model: CheckedModel) -> list[Measured]:
    """The drop of every seed; less is better, whatever the metric."""
    study, perturbation = model.study, requirement.subject
    if study is None:
        raise requirement.fail(
            "subject",
            f"a drop requires a robustness study of {model.name!r}",
            f"pass {argument('robustness')} with the study's folder, or check the folder of the study itself",
        )
    drops = study.drops.filter(pl.col("model") == model.study_model)
    with _errors_in(requirement, "subject"):
        perturbations = drops["perturbation"].unique(maintain_order=True).to_list()
        if perturbation not in perturbations:
            raise UnknownNameError("perturbation in this study", perturbation, perturbations)
    with _errors_in(requirement, "metric"):
        metrics = drops["metric"].unique(maintain_order=True).to_list()
        names = matching_names(requirement.metric or study.headline, metrics)
        if not names:
            raise UnknownNameError("metric in this study", requirement.metric or study.headline, metrics)
    results = []
    for name in names:
        table = drops.filter((pl.col("perturbation") == perturbation) & (pl.col("metric") == name)).sort("seed")
        rows = table.with_columns(pl.col("drop", "low", "high").fill_null(float("nan"))).to_dicts()
        figures = tuple(
            RequiredFigure(row["drop"], row["low"], row["high"], f"seed {row['seed']}" if len(rows) > 1 else "")
            for row in rows
        )
        results.append(Measured(f"drop of {name} by {perturbation}", name, figures, False, is_difference=True))
    return results


def _gaps(requirement: Requirement, model: CheckedModel, names: list[str], sources: Sources) -> list[Measured]:
    """This run − the other on the same queries, with the interval of the paired difference."""
    folder = requirement.subject or sources.baseline
    if folder is None:
        fix = f"pass {argument('baseline')}, or name the run: gap({requirement.metric}, runs/other)"
        raise requirement.fail("metric", "a gap requires a run to compare with", fix)
    with _errors_in(requirement, "subject" if requirement.subject else "metric"):
        models = read_checked(folder)
        same = [other for other in models if other.name == model.name] or models
        if len(same) != 1:  # neither the only one there, nor the one of the same name
            run_names = ", ".join(other.name for other in models)
            raise InputError(
                f"several runs, and none is called {model.name!r}: {run_names}", file=folder,
                expected="one run to compare with", fix="name a run folder",
            )  # fmt: skip
        other = same[0].run
        comparison = compare(
            other, model.run, metrics=names, correction="none", permutations=sources.permutations, seed=sources.seed
        )
    return [
        Measured(
            f"{name} − that of {other.name}", name, (RequiredFigure(result.difference, result.low, result.high),),
            result.higher_is_better, is_difference=True,
        )
        for name, result in ((name, comparison[name]) for name in names)
    ]  # fmt: skip


def _groups(requirement: Requirement, run: Run, names: list[str], sources: Sources) -> list[Measured]:
    column = requirement.subject
    with _errors_in(requirement, "subject"):
        by_name = sources.groups(run, column, requirement.metric)
    results = []
    for name in (name for name in names if name in by_name):
        groups = {group: values for group, values in by_name[name].items() if values.n}
        if requirement.kind == "group":
            with _errors_in(requirement, "value"):
                if requirement.value not in groups:
                    raise UnknownNameError(f"value of {column}", requirement.value, groups)
            label, selected = f"{name} where {column} is {requirement.value}", {requirement.value}
        else:
            label = f"worst {name} by {column}"
            # Queries without a value are no group.
            selected = {group for group, values in groups.items() if values.n >= sources.smallest_group} - {"(none)"}
            if not selected:
                fix = f"lower {argument('smallest_group')}, or choose another column"
                problem = f"no group of {column} has {sources.smallest_group} queries or more"
                raise requirement.fail("subject", problem, fix)
        figures = tuple(RequiredFigure.of(groups[group], group) for group in groups if group in selected)
        results.append(Measured(label, name, figures, facts_of(name).higher_is_better))
    if not results:
        raise requirement.fail("metric", f"{requirement.metric} has no values by {column}", "choose another column")
    return results


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


_ORDERED = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
_DIGITS = 12
"""Decimals that count: 0.6 − 0.55 is 5 points, whatever the last bits of a float say."""
_MISSED = {">=": "below", ">": "not above", "<=": "above", "<": "not below"}
_KEY = "require"


@dataclass(frozen=True)
class RequirementResult:
    """A requirement on one metric of one model; figures and bound are in the metric's own unit, never in percent.

    ``part`` names the group or the seed that decided, where there were several.
    """

    requirement: str
    model: str
    measure: str
    metric: str
    value: float
    low: float
    high: float
    comparison: str
    bound: float
    met: bool
    reason: str
    part: str = ""
    is_difference: bool = False


@dataclass(frozen=True)
class RequirementCheck(Presented):
    """All verdicts; prints as a table. With ``confident`` the whole interval had to keep the bound."""

    results: tuple[RequirementResult, ...]
    confident: bool

    @property
    def met(self) -> bool:
        """Whether every requirement is fulfilled."""
        return all(result.met for result in self.results)

    title = "Requirements"

    def sections(self) -> Iterator[Section]:
        models = ("model",) if len({result.model for result in self.results}) > 1 else ()
        rows: list[tuple[Cell, ...]] = []
        for result in self.results:
            sign, signed = {">=": "≥", "<=": "≤"}.get(result.comparison, result.comparison), result.is_difference
            required = f"{sign} {metric_figure(result.metric, result.bound, signed=signed)}"
            value = metric_figure(result.metric, result.value, result.low, result.high, signed=signed)
            verdict = "met" if result.met else "NOT MET"
            model_cell = (result.model,) if models else ()
            rows.append((*model_cell, result.measure, required, value, verdict, result.reason))
        header = (*models, "measure", "required", "value", "verdict", "reason")
        count, unmet = format_count(len(self.results), "requirement"), sum(not result.met for result in self.results)
        sentences = [
            f"{count}: {unmet:,} not met." if unmet else f"{count}: all met.",
            "The whole interval had to keep the bound." if self.confident else "",
            unit_sentence(result.metric for result in self.results),
            "Differences of shares are in points." if any(result.is_difference for result in self.results) else "",
        ]
        summary = Text.of(" ".join(filter(None, sentences)))
        yield Section("", (Table(header, tuple(rows), "l" * len(models) + "llrll"), summary))

    def as_dict(self) -> dict[str, Any]:
        return json_form({"met": self.met, "confident": self.confident, "results": self.results})


def check_requirements(
    models: Sequence[CheckedModel],
    requirements: Iterable[str | Requirement],
    sources: Sources,
    *,
    confident: bool = False,
) -> RequirementCheck:
    """Check every requirement on every model.

    All are read and measured before anything is decided: a mistake in the last one is an error, not a verdict.
    """
    parsed = [parse_requirement(entry) if isinstance(entry, str) else entry for entry in requirements]
    if not parsed:
        raise UsageError("no requirements", fix='name one, such as "t2i/Hit@1 >= 0.6"', option="require")
    results = [
        _decided(requirement, model, measured, confident=confident)
        for requirement in parsed
        for model in models
        for measured in measure_requirement(requirement, model, sources)
    ]
    return RequirementCheck(tuple(results), confident)


def read_requirements(file: str | Path) -> list[Requirement]:
    """The requirements in a TOML file: ``require = ["t2i/Hit@1 >= 0.6", …]``."""
    settings = SettingsFile.parse(read_text(Path(file)), file)
    settings.refuse_unknown((), settings.content, (_KEY,))
    entries = ValueType.of(tuple[str, ...]).convert(settings.content.get(_KEY))
    if not entries:
        fix = f'write {_KEY} = ["t2i/Hit@1 >= 0.6"]'
        raise settings.fail((_KEY,), f"{_KEY} is not a list of texts", "one or more requirements", fix)
    requirements = []
    for number, entry in enumerate(entries, 1):
        try:
            requirements.append(parse_requirement(entry))
        except CrosslensError as error:
            raise InputError(error.problem, file=file, row=f"requirement {number}", fix=error.fix) from error
    return requirements


def _decided(
    requirement: Requirement, model: CheckedModel, measured: Measured, *, confident: bool
) -> RequirementResult:
    bound = threshold(requirement, measured)
    missing = next((figure for figure in measured.figures if not isfinite(figure.value)), None)
    if missing is not None or not measured.figures:
        raise requirement.fail(
            "metric", f"{measured.label} of {model.name!r} has no value", "leave it out, or evaluate the model again"
        )
    # The figure that decides: the worst group, or the seed with the largest drop. Where confidence is asked for, the
    # one whose interval reaches farthest to the bad side, if that is the side that the bound is on: a small group with
    # a good figure may be the one that is not certain.
    comparison, sign = requirement.comparison, 1 if measured.higher_is_better else -1
    figure = min(measured.figures, key=lambda figure: sign * figure.value)
    if confident and comparison.startswith(">") == measured.higher_is_better:
        unbounded = [figure for figure in measured.figures if not isfinite(_end(figure, comparison))]
        figure = min(
            unbounded or measured.figures,
            key=lambda figure: sign * (figure.value if unbounded else _end(figure, comparison)),
        )
    value, limit = _formatted(measured, figure.value, bound)
    met = _holds(figure.value, comparison, bound)
    reason = f"{value} {comparison} {limit}" if met else f"{value} is {_MISSED[comparison]} {limit}"
    end = _end(figure, comparison)
    if met and confident and not isfinite(end):
        met, reason = False, "there is no interval to be confident by"
    elif met and confident:
        value, limit = _formatted(measured, end, bound)
        met, reason = _holds(end, comparison, bound), f"the whole interval {comparison} {limit}"
        if not met:
            verb = "begins at" if comparison.startswith(">") else "ends at"
            reason = f"the interval {verb} {value}, {_MISSED[comparison]} {limit}"
    part = figure.part if len(measured.figures) > 1 else ""
    return RequirementResult(
        requirement.text or str(requirement), model.name, measured.label, measured.metric, figure.value, figure.low,
        figure.high, comparison, bound, met, f"{part}: {reason}" if part else reason, part, measured.is_difference,
    )  # fmt: skip


def _end(figure: RequiredFigure, comparison: str) -> float:
    """The end of the interval that is nearest to breaking the bound."""
    return figure.low if comparison.startswith(">") else figure.high


def _holds(number: float, comparison: str, bound: float) -> bool:
    return bool(_ORDERED[comparison](round(number, _DIGITS), round(bound, _DIGITS)))


def _formatted(measured: Measured, number: float, bound: float) -> tuple[str, str]:
    """A figure and its bound with as many decimals as it takes to tell them apart."""
    first = second = ""
    for decimals in range(1, 7):
        first, second = (
            format_figure(measured.metric, value, decimals, signed=measured.is_difference) for value in (number, bound)
        )
        if first != second or number == bound:
            break
    return first, second


def github_annotations(check: RequirementCheck) -> list[str]:
    """A line per requirement as a GitHub workflow command: an error where it is not met, else a notice."""
    lines = []
    for result in check.results:
        title, text = f"{result.model}: {result.requirement}", f"{result.measure}: {result.reason}"
        title, text = (part.translate({37: "%25", 13: "%0D", 10: "%0A"}) for part in (title, text))
        title = title.replace(":", "%3A").replace(",", "%2C")
        lines.append(f"::{'notice' if result.met else 'error'} title={title}::{text}")
    return lines
