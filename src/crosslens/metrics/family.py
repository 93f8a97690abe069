"""The registry of metric families, and the one decorator that adds to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import cleandoc
from typing import Literal, TypeVar

from crosslens.core.errors import UnknownNameError, UsageError
from crosslens.core.metric_values import Statistic
from crosslens.core.registry import Registry
from crosslens.metrics.places import FloatArray, Places
from crosslens.metrics.spec import MetricSpec

Cutoff = Literal["required", "optional", "none"]
Function = Callable[[Places, MetricSpec], FloatArray]
AcrossFunction = Callable[[Mapping[str, Places], MetricSpec], Mapping[str, FloatArray]]
F = TypeVar("F", Function, AcrossFunction)


@dataclass(frozen=True)
class Option:
    """One thing that may stand in a metric's brackets.

    ``kind``: a ``flag`` stands by its own name, a ``name`` is any word (``cider``), a ``setting`` is ``name=value``.
    ``statistic`` replaces the family's when the option is given; ``pooled`` says that the figure is then taken over
    every (query, relevant item) pair instead of over queries.
    """

    name: str
    summary: str
    kind: Literal["flag", "name", "setting"] = "flag"
    statistic: Statistic | None = None
    pooled: bool = False

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
    function: Function | AcrossFunction
    cutoff: Cutoff
    options: tuple[Option, ...]
    statistic: Statistic
    higher_is_better: bool
    range: tuple[float, float]
    across: bool
    definition: str
    source: str

    def statistic_of(self, spec: MetricSpec) -> Statistic:
        """What turns the values of this metric into its figure."""
        chosen = [option.statistic for option in self._given(spec) if option.statistic]
        return chosen[0] if chosen else self.statistic

    def pooled(self, spec: MetricSpec) -> bool:
        """Whether the figure is taken over pairs instead of queries."""
        return any(option.pooled for option in self._given(spec))

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
        return MetricSpec(spec.family, tuple(places[place] for place in sorted(places)), spec.cutoff)

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
) -> Callable[[F], F]:
    """Enrol a metric. The function gets the places of the relevant items and the metric as asked for, and returns one
    value per query (per pair, in :meth:`Places.each` order, under a ``pooled`` option); queries without a relevant item
    are taken out afterwards. With ``across`` it gets the places of both directions and returns values for each.
    """

    def enrol(function: F) -> F:
        family = Family(name, function, cutoff, options, statistic, higher_is_better, range, across, definition, source)
        # The registry takes its summary from the docstring, which is the function's, not the class's.
        object.__setattr__(family, "__doc__", cleandoc(function.__doc__ or ""))
        METRICS.register(name)(family)
        return function

    return enrol


def family_of(spec: MetricSpec) -> Family:
    """The family a metric belongs to."""
    return METRICS[spec.family].value
