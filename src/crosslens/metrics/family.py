"""Metric families, their registry, and a metric as a small value that prints as it is written: ``SR[m=20]@5``."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from inspect import cleandoc
from math import isfinite
from typing import Any, Literal, TypeVar

from crosslens.core import Figure, Registry, UnknownNameError, UsageError, decimal
from crosslens.similarity import SIMILARITIES
from crosslens.values import ASSUMED_FACTS, BOTH, MetricFacts, Statistic, Unit, split_name, stored_facts

RSUM_CUTOFFS = (1, 5, 10)
"""Those whose hits Rsum adds up."""

_SHAPE = re.compile(
    r"(?P<family>[A-Za-z][\w-]*(?:@[A-Za-z]\w*)?)"  # mAP@R carries an @ in its name
    r"(?:\[(?P<options>[^\[\]]*)\])?"
    r"(?:@(?P<cutoff>[^\[\]@]*))?"
)
_OPTION = re.compile(r"(?:(?P<key>[A-Za-z][\w-]*)\s*=\s*)?(?P<value>[^\s=,]+)")


@dataclass(frozen=True)
class MetricSpec:
    """``family[options]@cutoff``; options are flags (``floor``), names (``cider``) or settings (``m=20``)."""

    family: str
    options: tuple[str, ...] = ()
    cutoff: int | None = None

    def has(self, flag: str) -> bool:
        return flag in self.options

    def setting(self, key: str) -> str | None:
        """The value after ``key=``, or None."""
        return next((option.partition("=")[2] for option in self.options if option.startswith(f"{key}=")), None)

    @property
    def k(self) -> int:
        """The cutoff of a metric that must have one."""
        if self.cutoff is None:
            raise UsageError(f"{self} has no cutoff", fix=f"write {self}@10, for example")
        return self.cutoff

    def __str__(self) -> str:
        options = f"[{', '.join(self.options)}]" if self.options else ""
        return f"{self.family}{options}" + ("" if self.cutoff is None else f"@{self.cutoff}")


def read_spec(text: str) -> MetricSpec:
    """Read the written form; whether options and cutoff fit the family is not checked here."""
    match = _SHAPE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"cannot read the metric {text!r}", fix="write Family[options]@cutoff, such as Hit@5 or MedR")
    cutoff, options = match["cutoff"], []
    for part in () if match["options"] is None else match["options"].split(","):
        option = _OPTION.fullmatch(part.strip())
        if option is None:
            raise UsageError(
                f"cannot read the option {part.strip()!r} of the metric {text!r}",
                fix="separate options by commas: a word, or key=value, such as [spice, m=20]",
            )
        options.append(f"{option['key']}={option['value']}" if option["key"] else option["value"])
    if cutoff is not None and not _is_positive(cutoff):
        raise UsageError(
            f"the cutoff of {text!r:.80} is {cutoff!r:.40}" if cutoff else f"the cutoff of {text!r:.80} is missing",
            fix=f"write a whole number from 1, of at most {_MOST_DIGITS} digits, after the @, such as @10",
        )
    return MetricSpec(match["family"], tuple(options), None if cutoff is None else int(cutoff))


_MOST_DIGITS = 9
"""No gallery is larger than the number of so many digits."""


def _is_positive(digits: str) -> bool:
    # isdecimal alone would also take digits of other scripts.
    return digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS and int(digits) > 0


Cutoff = Literal["required", "optional", "none"]
Function = Callable[[Any, MetricSpec], Any]
"""From the :class:`RelevantRanks` of a ranking, or its :class:`GradedRanking`, to one value per query; a metric across
directions is given, and returns, a mapping from directions."""
F = TypeVar("F", bound=Function)


@dataclass(frozen=True)
class Option:
    """An option that may be written in a metric's brackets.

    ``kind``: a ``flag`` is written by its name, a ``name`` is any word (``cider``), a ``setting`` is ``name=value``.
    ``statistic`` replaces the family's when the option is written; ``pooled`` says that the figure is then taken over
    every (query, relevant item) pair instead of over queries. An option with a ``default`` is always part of the name.
    A setting may have to be a ``whole_number``; an option may need another one, or exclude others.
    """

    name: str
    summary: str
    kind: Literal["flag", "name", "setting"] = "flag"
    statistic: Statistic | None = None
    pooled: bool = False
    default: str | None = None
    whole_number: bool = False
    needs: str | None = None
    excludes: tuple[str, ...] = ()

    @property
    def written(self) -> str:
        """How it is written in the brackets: ``floor``, ``m=…``, ``φ``."""
        return f"{self.name}=…" if self.kind == "setting" else self.name

    @property
    def explained(self) -> str:
        """What it does, and its default."""
        return self.summary if self.default is None else f"{self.summary} ({self.default} unless given)"

    def matches_number(self, written: str) -> bool:
        """Whether ``written`` is the bare number of a setting: ``SR[cider, 5]`` is short for ``SR[cider, m=5]``."""
        return self.whole_number and written.isdecimal()

    def matches(self, written: str) -> bool:
        if self.matches_number(written):
            return True
        key, is_setting, _ = written.partition("=")
        if self.kind == "name":
            return not is_setting
        return key.casefold() == self.name.casefold() and bool(is_setting) == (self.kind == "setting")

    def canonical(self, written: str) -> str:
        """What :meth:`matches`, as it is declared: whatever its case, and a bare number with the setting's name."""
        if self.kind == "setting":
            return f"{self.name}={written.rpartition('=')[2]}"
        return self.name if self.kind == "flag" else SIMILARITIES.canonical(written)


@dataclass(frozen=True, eq=False)
class Family:
    """All metrics of one name: how they are computed, and everything a reader should know about them."""

    name: str
    function: Function
    cutoff: Cutoff
    options: tuple[Option, ...]
    statistic: Statistic
    higher_is_better: bool
    range: tuple[float, float]
    across: bool
    definition: str
    source: str
    graded: bool = False
    unit: Unit | None = None

    def statistic_of(self, spec: MetricSpec) -> Statistic:
        """What turns the values of this metric into its figure."""
        statistics = [option.statistic for option in self._written(spec) if option.statistic]
        return statistics[0] if statistics else self.statistic

    def pooled(self, spec: MetricSpec) -> bool:
        """Whether the figure is taken over pairs instead of queries."""
        return any(option.pooled for option in self._written(spec))

    def facts(self, spec: MetricSpec) -> MetricFacts:
        """What a run stores about this metric."""
        by_range: Unit = "share" if self.range == (0, 1) else "points" if isfinite(self.range[1]) else "rank"
        return MetricFacts(self.higher_is_better, self.unit or by_range, self.pooled(spec))

    def value_of(self, spec: MetricSpec, name: str) -> str | None:
        """What is written for an option: the word of a free name, the value of a setting; None if it is not written."""
        for written in spec.options:
            option = self._option(spec, written)
            if option.name == name:
                return written.partition("=")[2] if option.kind == "setting" else written
        return None

    def bounds(self, *, one_direction: bool = True) -> tuple[float, float]:
        """The lowest and the highest value of a query, infinite where there is none.

        The directions of a sum over both share its range equally.
        """
        return (self.range[0] / 2, self.range[1] / 2) if self.across and one_direction else self.range

    def checked(self, spec: MetricSpec) -> MetricSpec:
        """The metric with its options in the declared order; an option or cutoff that does not fit raises."""
        if self.cutoff == "none" and spec.cutoff is not None:
            raise UsageError(f"{self.name} takes no cutoff", fix=f"write {self.name} without @{spec.cutoff}")
        if self.cutoff == "required" and spec.cutoff is None:
            raise UsageError(f"{spec} needs a cutoff", fix=f"write {spec}@10, for example")
        values: dict[str, str] = {}
        for written in spec.options:
            option = self._option(spec, written)
            if option.name in values:
                raise UsageError(f"{spec} gives {option.name!r} twice", fix="keep one of the two")
            values[option.name] = option.canonical(written)
        for option in (option for option in self.options if option.name in values):
            if option.needs is not None and option.needs not in values:
                fix = f"write {self.name}[…, {option.needs}, {values[option.name]}], or leave it out"
                raise UsageError(f"{spec}: {option.name} requires {option.needs}", fix=fix)
            clash = [name for name in option.excludes if name in values]
            if clash:
                raise UsageError(f"{spec}: {option.name} cannot be combined with {clash[0]}", fix="choose one of them")
            value = values[option.name].partition("=")[2]
            if option.whole_number and not _is_positive(value):
                fix = f"write a whole number from 1, such as {option.name}=20"
                raise UsageError(f"{option.name} of {spec} is {value!r}", fix=fix)
        options = []
        for option in self.options:
            is_setting = option.default and option.kind == "setting"
            default = f"{option.name}={option.default}" if is_setting else option.default
            options.append(values.get(option.name, default))
        return MetricSpec(self.name, tuple(text for text in options if text is not None), spec.cutoff)

    def _option(self, spec: MetricSpec, written: str) -> Option:
        # Flags and settings first: a free name must not swallow them.
        for option in sorted(self.options, key=lambda option: option.kind == "name"):
            if option.matches(written):
                return option
        spellings = [option.written for option in self.options]
        near = UnknownNameError("option", written, spellings).fix if spellings else f"{self.name} has no options"
        raise UsageError(f"unknown option {written!r} of {spec}", fix=near)

    def _written(self, spec: MetricSpec) -> list[Option]:
        return [option for option in self.options if any(option.matches(written) for written in spec.options)]


METRICS: Registry[Family] = Registry("metric", "metrics", ("crosslens.metrics.families",))


def metric(
    name: str,
    *,
    definition: str,
    source: str = "",
    cutoff: Cutoff = "none",
    options: tuple[Option, ...] = (),
    statistic: Statistic = "mean",
    higher_is_better: bool = True,
    range: tuple[float, float] = (0, 1),
    across: bool = False,
    graded: bool = False,
    unit: Unit | None = None,
) -> Callable[[F], F]:
    """Register a metric: a function of the :class:`RelevantRanks` and the :class:`MetricSpec` to one value per query.

    Under a ``pooled`` option it returns one value per pair, in the order of :meth:`RelevantRanks.each`. Queries without
    a relevant item are excluded afterwards.

    Args:
        name: As it is written: ``Hit`` of ``Hit@5``.
        definition: What it is, in one line.
        source: Who defined it.
        cutoff: Whether a name has ``@K``: ``none``, ``optional`` or ``required``.
        options: What may stand in brackets after the name.
        statistic: How values of queries become the figure: ``mean`` or ``median``.
        higher_is_better: Whether it is.
        range: The lowest and the highest value.
        across: The function gets the ranks of both directions, or of the one that is asked for (``t2i/Rsum``), and
            returns values for each.
        graded: The function gets a :class:`~crosslens.metrics.graded.GradedRanking`, which knows the gains of items.
        unit: How values are written, where that does not follow from the range.
    """

    def register(function: F) -> F:
        family = Family(
            name, function, cutoff, options, statistic, higher_is_better, range, across, definition, source, graded,
            unit,
        )  # fmt: skip
        # The registry takes its summary from the docstring, which is the function's, not the class's.
        object.__setattr__(family, "__doc__", cleandoc(function.__doc__ or ""))
        METRICS.register(name)(family)
        return function

    return register


def family_of(spec: MetricSpec) -> Family:
    """The family a metric belongs to."""
    return METRICS[spec.family].value


_UNITS: Mapping[Unit, str] = {
    "rank": "as a rank",
    "points": "as a sum of percentages",
    "number": "as a plain number",
}
_FINER = 3
"""Decimals that a plain number has beyond a percentage: the papers print four."""
_MISSING = "–"


def spec_of(name: str) -> MetricSpec | None:
    """The metric behind the name of a result (``t2i/Hit@5``); None if it is from a plug-in that is not installed."""
    try:
        spec = read_spec(split_name(name)[1])
    except UsageError:
        return None
    is_registered = spec.family in METRICS and METRICS.canonical(spec.family) == spec.family
    return spec if is_registered else None


def facts_of(name: str) -> MetricFacts:
    """What is known of the metric ``name``: from its registration, else from a run that was loaded, else assumed."""
    spec = spec_of(name)
    return family_of(spec).facts(spec) if spec is not None else stored_facts(name) or ASSUMED_FACTS


def bounds_of(name: str) -> tuple[float, float] | None:
    """Between which values a query's lies, infinite where there is no bound; None if the metric is not registered."""
    spec = spec_of(name)
    return None if spec is None else family_of(spec).bounds(one_direction=split_name(name)[0] != BOTH)


def unit_of(name: str) -> Unit:
    """How people read a metric: a ``share`` in percent, a ``rank``, ``points`` of a sum, or a plain ``number``."""
    return facts_of(name).unit


def format_figure(name: str, value: float, decimals: int = 1, *, signed: bool = False) -> str:
    """One number of the metric ``name``: a share in percent, anything else as it is; ``signed`` for a difference."""
    if not math.isfinite(value):
        return _MISSING
    kind = unit_of(name)
    decimals += _FINER if kind == "number" else 0
    text = decimal(100 * value if kind == "share" else value, decimals, signed=signed)
    return text.removesuffix("." + "0" * decimals) if kind == "rank" else text


def metric_figure(
    name: str, value: float | None, low: float = math.nan, high: float = math.nan, *, signed: bool = False
) -> Figure:
    """A value of the metric ``name`` with its interval: a share in percent, anything else as it is."""
    kind = unit_of(name)
    digits = 1 + (_FINER if kind == "number" else 0)
    return Figure(
        value, low, high, 100.0 if kind == "share" else 1.0, digits=digits, signed=signed, plain=kind == "rank"
    )


def unit_sentence(names: Iterable[str]) -> str:
    """In what these metrics are given: ``In percent, MedR as a rank.``"""
    by_unit: dict[Unit, dict[str, None]] = {}
    for name in names:
        by_unit.setdefault(unit_of(name), {})[split_name(name)[1]] = None
    parts = ["in percent"] if "share" in by_unit else []
    parts += [f"{', '.join(by_unit[kind])} {_UNITS[kind]}" for kind in _UNITS if kind in by_unit]
    sentence = ", ".join(parts)
    return f"{sentence[:1].upper()}{sentence[1:]}."


def format_count(number: int, noun: str) -> str:
    """``1 query``, ``5,000 images``: a count that agrees with its noun."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun.endswith("y") else f"{number:,} {noun}s"
