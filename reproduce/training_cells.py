"""One training of the study on Flickr8k, and the figures that are kept of all of them in one file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosslens.engine import SilentProgress
from crosslens.storage import fingerprint
from crosslens.train import TrainingRecipe
from crosslens.train.sweep.plan import DataOfRecipes, PlannedTraining
from crosslens.train.sweep.running import TrainingOptions, TrainingOutcome, run_trainings

MEASURED = "mAP@R MedR[all] Nsum Nsum[spice] Nsum[spice,non-gt] NCS[cider]@10 NCS[spice]@1 NCS[spice]@5 NCS[spice]@10"
"""Beside the trainer's own metrics, on the test images."""


@dataclass(frozen=True)
class Cell:
    """One training: a recipe with its seed and share of the data, and its name, which is also its folder's."""

    recipe: TrainingRecipe
    name: str

    @property
    def seed(self) -> int:
        """Of the training."""
        return self.recipe.settings.seed

    @property
    def key(self) -> str:
        """Of all that decides about the weights."""
        return fingerprint("training", json.loads(json.dumps(self.recipe.identity())))[:16]


def cells_of(recipe: TrainingRecipe, seeds: Iterable[int], fraction: float = 1.0) -> list[Cell]:
    """The trainings of a row."""
    chosen = [recipe.with_settings({"seed": seed, "fraction": fraction}) for seed in seeds]
    return [Cell(seeded, f"{recipe.name}/{fraction:g}/seed-{seeded.settings.seed}") for seeded in chosen]


class Figures:
    """The figures of finished trainings: a line of JSON for each, in the order of their names."""

    def __init__(self, file: Path) -> None:
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        self._file, self._records = file, {record["training"]: record for record in map(json.loads, lines)}

    def of(self, cell: Cell) -> Mapping[str, Any] | None:
        """Those of a training; None where there are none of these settings."""
        record = self._records.get(cell.name)
        return record if record is not None and record["key"] == cell.key else None

    def add(self, cell: Cell, card: Mapping[str, Any]) -> None:
        """Keep those of a finished training."""
        self._records[cell.name] = {
            "training": cell.name, "key": cell.key,
            **{name: card[name] for name in ("steps", "best_step", "parameters")},
            **{split: _rounded(card[split]) for split in ("validation", "test")},
        }  # fmt: skip
        lines = (json.dumps(self._records[name], ensure_ascii=False) for name in sorted(self._records))
        unfinished = self._file.with_suffix(".part")
        unfinished.write_text("\n".join(lines) + "\n", encoding="utf-8")
        unfinished.replace(self._file)

    def values(self, cells: Sequence[Cell], metric: str, split: str = "test") -> list[float]:
        """The metric of each finished training that was measured by it."""
        records = [record for record in map(self.of, cells) if record is not None]
        return [float(record[split][metric]) for record in records if metric in record[split]]


def _rounded(figures: Mapping[str, float]) -> dict[str, float]:
    return {name: float(f"{value:.7g}") for name, value in figures.items()}


def train_cells(
    cells: Sequence[Cell], figures: Figures, work: Path, data: Path, *, device: str | None, jobs: int,
    say: Callable[[str], None],
) -> None:  # fmt: skip
    """Train them, several side by side, or continue; one that fails does not stop the others."""
    settings = {"device": device, "test_metrics": MEASURED, "threads": 1 if jobs > 1 else None}
    planned = [
        PlannedTraining(number, cell.seed, cell.recipe.with_settings(settings), cell.name)
        for number, cell in enumerate(cells)
    ]

    def watch(outcome: TrainingOutcome, done: int, total: int) -> None:
        cell = cells[outcome.training.combination]
        if outcome.failure is not None:
            say(f"{done} of {total}: {cell.name} failed: {outcome.failure.problem}")
        elif outcome.card is not None:
            figures.add(cell, outcome.card)
            say(f"{done} of {total}: {cell.name}  Rsum {outcome.card['test']['Rsum']:.1f}")

    run_trainings(
        planned, {cell.name: 1 for cell in cells}, DataOfRecipes(data), TrainingOptions(work, overwrite=True),
        jobs=jobs, plugins=(), progress=SilentProgress(), watch=watch,
    )  # fmt: skip
