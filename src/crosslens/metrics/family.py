"""The registry of metric families, and the one decorator that adds to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import cleandoc
from typing import TYPE_CHECKING, Literal, TypeVar

from crosslens.core.errors import UnknownNameError, UsageError
from crosslens.core.metric_values import Statistic
from crosslens.core.registry import Registry
from crosslens.metrics.places import FloatArray, Places
from crosslens.metrics.spec import MetricSpec

if TYPE_CHECKING:
    from crosslens.metrics.graded import Graded

Cutoff = Literal["required", "optional", "none"]
Unit = Literal["share", "places", "points", "number"]
Function = Callable[[Places, MetricSpec], FloatArray]
AcrossFunction = Callable[[Mapping[str, Places], MetricSpec], Mapping[str, FloatArray]]
GradedFunction = Callable[["Graded", MetricSpec], FloatArray]
GradedAcrossFunction = Callable[[Mapping[str, "Graded"], MetricSpec], Mapping[str, FloatArray]]
AnyFunction = Function | AcrossFunction | GradedFunction | GradedAcrossFunction
F = TypeVar("F", Function, AcrossFunction, GradedFunction, GradedAcrossFunction)


@dataclass(frozen=True)
class Option:
    """One thing that may stand in a metric's brackets.

    ``kind``: a ``flag`` stands by its own name, a ``name`` is any word (``cider``), a ``setting`` is ``name=value``.
    ``statistic`` replaces the family's when the option is given; ``pooled`` says that the figure is then taken over
    every (query, relevant item) pair instead of over queries. An option with a ``default`` always stands in the name.
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
        """How it stands in the brackets: ``floor``, ``m=…``, ``φ``."""
        return f"{self.name}=…" if self.kind == "setting" else self.name

    @property
    def explained(self) -> str:
        """What it does, and what holds without it."""
        return self.summary if self.default is None else f"{self.summary} ({self.default} unless given)"

    @property
    def written_default(self) -> tuple[str, ...]:
        """What stands in the metric's name where the person wrote nothing."""
        if self.default is None:
            return ()
        return (f"{self.name}={self.default}" if self.kind == "setting" else self.default,)

    def matches(self, written: str) -> bool:
        """Whether this is the option somebody wrote."""
        key, is_setting, _ = written.partition("=")
        if self.kind == "name":
            return not is_setting
        return key == self.name and bool(is_setting) == (self.kind == "setting")


@dataclass(frozen=True, eq=False)
class Family:
    """All metrics of one name: how they are computed, and everything a reader should know about them."""

    name: str
    function: AnyFunction
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
        chosen = [option.statistic for option in self._given(spec) if option.statistic]
        return chosen[0] if chosen else self.statistic

    def pooled(self, spec: MetricSpec) -> bool:
        """Whether the figure is taken over pairs instead of queries."""
        return any(option.pooled for option in self._given(spec))

    def value_of(self, spec: MetricSpec, name: str) -> str | None:
        """What was written for an option: the word of a free name, the value of a setting; None where nothing was."""
        for written in spec.options:
            option = self.options[self._place(spec, written)]
            if option.name == name:
                return written.partition("=")[2] if option.kind == "setting" else written
        return None

    @property
    def is_fraction(self) -> bool:
        """Whether people read it in percent."""
        return self.range == (0, 1)

    def checked(self, spec: MetricSpec) -> MetricSpec:
        """The same metric with its options in the declared order; an option or cutoff that does not fit raises."""
        if self.cutoff == "none" and spec.cutoff is not None:
            raise UsageError(f"{self.name} takes no cutoff", fix=f"write {self.name} without @{spec.cutoff}")
        if self.cutoff == "required" and spec.cutoff is None:
            raise UsageError(f"{spec} needs a cutoff", fix=f"write {spec}@10, say")
        places: dict[int, str] = {}
        for written in spec.options:
            place = self._place(spec, written)
            if place in places:
                raise UsageError(f"{spec} gives {self.options[place].name!r} twice", fix="keep one of the two")
            places[place] = written
        self._check_options(spec, {self.options[place].name: written for place, written in places.items()})
        filled = (places.get(place, *one.written_default) for place, one in enumerate(self.options)
                  if place in places or one.default is not None)  # fmt: skip
        return MetricSpec(spec.family, tuple(filled), spec.cutoff)

    def _check_options(self, spec: MetricSpec, given: Mapping[str, str]) -> None:
        """Options that stand in each other's way, and settings that are no numbers."""
        for option in (one for one in self.options if one.name in given):
            if option.needs is not None and option.needs not in given:
                fix = f"write {self.name}[…, {option.needs}, {given[option.name]}], or leave it out"
                raise UsageError(f"{spec}: {option.name} goes with {option.needs} only", fix=fix)
            clash = [one for one in option.excludes if one in given]
            if clash:
                raise UsageError(f"{spec}: {option.name} and {clash[0]} do not go together", fix="choose one of them")
            value = given[option.name].partition("=")[2]
            if option.whole_number and not (value.isascii() and value.isdecimal() and int(value) > 0):
                fix = f"write a whole number from 1, such as {option.name}=20"
                raise UsageError(f"{option.name} of {spec} is {value!r}", fix=fix)

    def _place(self, spec: MetricSpec, written: str) -> int:
        # Flags and settings first: a free name must not swallow them.
        order = sorted(range(len(self.options)), key=lambda place: self.options[place].kind == "name")
        for place in order:
            if self.options[place].matches(written):
                return place
        known = [f"{one.name}=…" if one.kind == "setting" else one.name for one in self.options]
        near = UnknownNameError("option", written, known).fix if known else f"{self.name} has no options"
        raise UsageError(f"unknown option {written!r} of {spec}", fix=near)

    def _given(self, spec: MetricSpec) -> list[Option]:
        return [option for option in self.options if any(option.matches(one) for one in spec.options)]


METRICS: Registry[Family] = Registry("metric", "metrics")


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
    """Enrol a metric. The function gets the places of the relevant items and the metric as asked for, and returns one
    value per query (per pair, in :meth:`Places.each` order, under a ``pooled`` option); queries without a relevant item
    are taken out afterwards. With ``across`` it gets the places of both directions and returns values for each. With
    ``graded`` it gets, instead of places, a :class:`~crosslens.metrics.graded.Graded`, which knows the values of items.
    """

    def enrol(function: F) -> F:
        family = Family(
            name, function, cutoff, options, statistic, higher_is_better, range, across, definition, source, graded,
            unit,
        )  # fmt: skip
        # The registry takes its summary from the docstring, which is the function's, not the class's.
        object.__setattr__(family, "__doc__", cleandoc(function.__doc__ or ""))
        METRICS.register(name)(family)
        return function

    return enrol


def family_of(spec: MetricSpec) -> Family:
    """The family a metric belongs to."""
    return METRICS[spec.family].value
