"""What a report is made from, and what its sections ask of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from crosslens.core import Dataset, Run
from crosslens.metrics import dataset_name
from crosslens.pipeline import Finding, StageResult

SIZE_BUDGET = 5_000_000
"""Bytes that a report takes at most; its pictures are made smaller, or fewer, to fit."""
QUERIES = 6
"""Queries of each kind that a report shows."""


@dataclass(frozen=True, eq=False)
class ReportInputs:
    """Runs by name, what the stages of an audit computed, and the datasets behind them.

    ``datasets`` are those of the runs by name; ``dataset`` is enough where there is one. ``pictures`` are the paths of
    picture files: by dataset, then by image. ``sources`` say where runs are, for the commands that repeat them.
    """

    title: str
    runs: Mapping[str, Run]
    results: Sequence[StageResult] = ()
    findings: Sequence[Finding] = ()
    dataset: Dataset | None = None
    datasets: Mapping[str, Dataset] = field(default_factory=dict)
    pictures: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    command: str = ""
    size: int = SIZE_BUDGET
    queries: int = QUERIES

    def stage(self, name: str) -> list[StageResult]:
        """What a stage computed: of every run, in their order, or of every dataset."""
        order = {run: number for number, run in enumerate(self.runs)}
        results = [result for result in self.results if result.stage == name]
        return sorted(results, key=lambda result: order.get(result.model, -1))

    def dataset_of(self, run: Run) -> Dataset | None:
        """The dataset of a run, where it is known."""
        named = self.datasets.get(dataset_name(run))
        alone = len({dataset_name(other) for other in self.runs.values()}) == 1
        return named or (self.dataset if alone else None)

    def by_dataset(self) -> dict[str, dict[str, Run]]:
        """The runs of each dataset; those that do not say which belong together."""
        grouped: dict[str, dict[str, Run]] = {}
        for name, run in self.runs.items():
            grouped.setdefault(dataset_name(run), {})[name] = run
        return grouped
