"""Are the requirements fulfilled? One verdict per requirement, model and metric, with its reason."""

from __future__ import annotations

import operator
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from crosslens.core import Cell, CrosslensError, InputError, Presented, Section, Table, Text, UsageError, json_form
from crosslens.data import read_text
from crosslens.metrics import format_count, format_figure, metric_figure, unit_sentence
from crosslens.pipeline.requirements.grammar import Requirement, parse_requirement
from crosslens.pipeline.requirements.measures import Measured, RequiredFigure, Sources, measure_requirement, threshold
from crosslens.pipeline.requirements.models import CheckedModel

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

    @property
    def unmet(self) -> tuple[RequirementResult, ...]:
        """What is not fulfilled."""
        return tuple(result for result in self.results if not result.met)

    @property
    def title(self) -> str:
        """The heading of the page."""
        return "Requirements"

    def sections(self, **options: Any) -> Iterator[Section]:
        """A row per requirement: what was required, what was measured, and the verdict with its reason."""
        models = ("model",) if len({result.model for result in self.results}) > 1 else ()
        rows: list[tuple[Cell, ...]] = []
        for result in self.results:
            sign, signed = {">=": "≥", "<=": "≤"}.get(result.comparison, result.comparison), result.is_difference
            required = f"{sign} {metric_figure(result.metric, result.bound, signed=signed)}"
            value = metric_figure(result.metric, result.value, result.low, result.high, signed=signed)
            verdict = "met" if result.met else "NOT MET"
            named = (result.model,) if models else ()
            rows.append((*named, result.measure, required, value, verdict, result.reason))
        header = (*models, "measure", "required", "value", "verdict", "reason")
        count = format_count(len(self.results), "requirement")
        sentences = [
            f"{count}: all met." if self.met else f"{count}: {len(self.unmet):,} not met.",
            "The whole interval had to keep the bound." if self.confident else "",
            unit_sentence(result.metric for result in self.results),
            "Differences of shares are in points." if any(result.is_difference for result in self.results) else "",
        ]
        said = Text.of(" ".join(filter(None, sentences)))
        yield Section("", (Table(header, tuple(rows), "l" * len(models) + "llrll"), said))

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: fractions, never percent."""
        results = [json_form(asdict(result)) for result in self.results]
        return {"met": self.met, "confident": self.confident, "results": results}


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
    read = [parse_requirement(entry) if isinstance(entry, str) else entry for entry in requirements]
    if not read:
        raise UsageError("no requirements", fix='name one, such as "t2i/Hit@1 >= 0.6"', option="require")
    results = [
        _decided(requirement, model, measured, confident=confident)
        for requirement in read
        for model in models
        for measured in measure_requirement(requirement, model, sources)
    ]
    return RequirementCheck(tuple(results), confident)


def read_requirements(file: str | Path) -> list[Requirement]:
    """The requirements in a TOML file: ``require = ["t2i/Hit@1 >= 0.6", …]``."""
    try:
        content: Mapping[str, Any] = tomllib.loads(read_text(Path(file)))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"not TOML: {error}", file=file, fix=f'write {_KEY} = ["t2i/Hit@1 >= 0.6"]') from error
    unknown = next((key for key in content if key != _KEY), None)
    if unknown is not None:
        raise InputError(f"unknown key {unknown!r}", file=file, expected=f"the key {_KEY}", fix="remove it")
    entries = content.get(_KEY)
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, str) for entry in entries):
        fix = f'write {_KEY} = ["t2i/Hit@1 >= 0.6"]'
        raise InputError(f"{_KEY} is not a list of texts", file=file, expected="one or more requirements", fix=fix)
    read = []
    for number, entry in enumerate(entries, 1):
        try:
            read.append(parse_requirement(entry))
        except CrosslensError as error:
            raise InputError(error.problem, file=file, row=f"requirement {number}", fix=error.fix) from error
    return read


def _decided(
    requirement: Requirement, model: CheckedModel, measured: Measured, *, confident: bool
) -> RequirementResult:
    bound = threshold(requirement, measured)
    missing = next((figure for figure in measured.figures if not isfinite(figure.value)), None)
    if missing is not None or not measured.figures:
        raise requirement.fail(
            "metric", f"{measured.label} of {model.name!r} has no value", "leave it out, or evaluate the model again"
        )
    figure = _decisive(requirement.comparison, measured, confident=confident)
    met, reason = _verdict(requirement.comparison, bound, figure, measured, confident=confident)
    return RequirementResult(
        requirement.text or str(requirement), model.name, measured.label, measured.metric, figure.value, figure.low,
        figure.high, requirement.comparison, bound, met, reason,
        figure.part if len(measured.figures) > 1 else "", measured.is_difference,
    )  # fmt: skip


def _decisive(comparison: str, measured: Measured, *, confident: bool) -> RequiredFigure:
    """The figure that every other one is at least as good as: the worst group, or the seed with the largest drop.

    Where confidence is asked for, the one whose interval reaches farthest to the bad side, if that is the side that
    the bound is on: a small group with a good figure may be the one that is not certain.
    """
    sign = 1 if measured.higher_is_better else -1
    bad_end = comparison.startswith(">") == measured.higher_is_better
    if confident and bad_end:
        unbounded = [figure for figure in measured.figures if not isfinite(_end(figure, comparison))]
        candidates = unbounded or measured.figures
        return min(candidates, key=lambda figure: sign * (figure.value if unbounded else _end(figure, comparison)))
    return min(measured.figures, key=lambda figure: sign * figure.value)


def _end(figure: RequiredFigure, comparison: str) -> float:
    """The end of the interval that is nearest to breaking the bound."""
    return figure.low if comparison.startswith(">") else figure.high


def _holds(number: float, comparison: str, bound: float) -> bool:
    return bool(_ORDERED[comparison](round(number, _DIGITS), round(bound, _DIGITS)))


def _shown(measured: Measured, number: float, bound: float) -> tuple[str, str]:
    """A figure and its bound with as many decimals as it takes to tell them apart."""
    texts = ("", "")
    for decimals in range(1, 7):
        texts = (
            format_figure(measured.metric, number, decimals, signed=measured.is_difference),
            format_figure(measured.metric, bound, decimals, signed=measured.is_difference),
        )
        if texts[0] != texts[1] or number == bound:
            break
    return texts


def _verdict(
    comparison: str, bound: float, figure: RequiredFigure, measured: Measured, *, confident: bool
) -> tuple[bool, str]:
    """Whether the bound is kept, and why."""
    group = f"{figure.part}: " if figure.part and len(measured.figures) > 1 else ""
    value, limit = _shown(measured, figure.value, bound)
    if not _holds(figure.value, comparison, bound):
        return False, f"{group}{value} is {_MISSED[comparison]} {limit}"
    if not confident:
        return True, f"{group}{value} {comparison} {limit}"
    end = _end(figure, comparison)
    if not isfinite(end):
        return False, f"{group}there is no interval to be confident by"
    value, limit = _shown(measured, end, bound)
    if not _holds(end, comparison, bound):
        verb = "begins at" if comparison.startswith(">") else "ends at"
        return False, f"{group}the interval {verb} {value}, {_MISSED[comparison]} {limit}"
    return True, f"{group}the whole interval {comparison} {limit}"


def github_annotations(check: RequirementCheck) -> list[str]:
    """A line per requirement as a GitHub workflow command: an error where it is not met, else a notice."""
    lines = []
    for result in check.results:
        title = _property(f"{result.model}: {result.requirement}")
        text = _data(f"{result.measure}: {result.reason}")
        lines.append(f"::{'notice' if result.met else 'error'} title={title}::{text}")
    return lines


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
