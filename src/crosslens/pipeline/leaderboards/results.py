"""A leaderboard as a value: a cell per model, dataset and metric, each tested against the best of its column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from math import isfinite, nan
from typing import Any

from crosslens.core import Presented, Section, UnknownNameError, json_form
from crosslens.metrics import facts_of
from crosslens.pipeline.leaderboards.sections import board_sections


@dataclass(frozen=True)
class Standing:
    """One figure of a model on a dataset, and how far it is from the best model there.

    ``difference`` is this model − the best, with its paired interval; NaN for the best itself and where there was
    nothing to test. ``significant`` is None then.
    """

    model: str
    dataset: str
    metric: str
    mean: float
    low: float
    high: float
    n: int
    best: bool = False
    difference: float = nan
    difference_low: float = nan
    difference_high: float = nan
    p_value: float = nan
    adjusted_p: float = nan
    significant: bool | None = None


@dataclass(frozen=True)
class Leaderboard(Presented):
    """Models × datasets × metrics; a cell that nobody evaluated is not there.

    ``tests`` is the number of comparisons that p-values are corrected for: all pairs of models in every column, since
    which model is the best was decided by looking at all of them.
    """

    models: tuple[str, ...]
    datasets: tuple[str, ...]
    metrics: tuple[str, ...]
    cells: Mapping[tuple[str, str, str], Standing]
    """By model, dataset and metric."""
    correction: str
    permutations: int
    seed: int
    level: float
    tests: int
    notes: tuple[str, ...] = field(default=())

    @property
    def title(self) -> str:
        return "Leaderboard"

    def cell(self, model: str, dataset: str, metric: str) -> Standing | None:
        """The standing of a model; None where it was not evaluated."""
        for kind, name, known in (
            ("model", model, self.models), ("dataset", dataset, self.datasets), ("metric", metric, self.metrics),
        ):  # fmt: skip
            if name not in known:
                raise UnknownNameError(f"{kind} in this leaderboard", name, known)
        return self.cells.get((model, dataset, metric))

    def best(self, dataset: str, metric: str) -> tuple[str, ...]:
        """The models with the best figure: several where they are equal, none where nobody has the metric."""
        return tuple(model for model in self.models if (cell := self.cell(model, dataset, metric)) and cell.best)

    def sections(self, **options: Any) -> Iterator[Section]:
        """A table per metric, or one of all metrics."""
        return board_sections(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Leaderboard:
        """Read the JSON form."""
        cells: dict[tuple[str, str, str], Standing] = {}
        for stored in content["cells"]:
            numbers: dict[str, Any] = {name: nan if value is None else value for name, value in stored.items()}
            cell = Standing(**numbers | {"significant": stored["significant"]})
            cells[cell.model, cell.dataset, cell.metric] = cell
        return cls(
            tuple(content["models"]), tuple(content["datasets"]), tuple(content["metrics"]), cells,
            content["correction"], content["permutations"], content["seed"], content["level"], content["tests"],
            tuple(content["notes"]),
        )  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: fractions, never percent; None where there is no number."""
        return {
            "models": list(self.models),
            "datasets": list(self.datasets),
            "metrics": {name: asdict(facts_of(name)) for name in self.metrics},
            "cells": [json_form(asdict(cell)) for cell in self.cells.values()],
            "test": "paired permutation over images, two-sided, all pairs of models; a cell has its own with the best",
            "tests": self.tests,
            "correction": self.correction,
            "permutations": self.permutations,
            "seed": self.seed,
            "level": self.level,
            "notes": list(self.notes),
        }

    @property
    def tested(self) -> bool:
        """Whether any difference was tested."""
        return any(isfinite(cell.p_value) for cell in self.cells.values())
