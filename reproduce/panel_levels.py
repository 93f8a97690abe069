"""The levels of one dataset's captions by the votes of its panel: easy, medium, hard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import crosslens as cl
from crosslens.analyze import Calibration, Difficulty, calibrate
from panel import NAMES, Array, Data, Judged, panel

LEVELS = ("easy", "medium", "hard")
WEAKEST = "tiny"
SEED = 0


@dataclass(frozen=True)
class Study:
    """One dataset's panel and its levels."""

    key: str
    dataset: cl.Dataset
    judged: Mapping[str, Judged]

    @property
    def name(self) -> str:
        """As tables call it."""
        return NAMES[self.key]

    @cached_property
    def calibrations(self) -> dict[str, Calibration]:
        """Every member's threshold, by mismatches within batches of 256."""
        return self.calibrated(256)

    def calibrated(self, batch: int | None) -> dict[str, Calibration]:
        """Thresholds by mismatches within batches, or by all of them."""
        way: dict[str, Any] = {"negatives": "all"} if batch is None else {"batch_size": batch}
        return {
            member: calibrate(judged.calibrated_on.dataset, judged.calibration, model=member, **way)
            for member, judged in self.judged.items()
        }

    def levels(self, without: Sequence[str] = (), calibrations: Mapping[str, Calibration] | None = None) -> Difficulty:
        """The levels by the votes of all members but some."""
        chosen = calibrations or self.calibrations
        return cl.difficulty(
            self.dataset,
            scores={member: judged.scores for member, judged in self.judged.items() if member not in without},
            thresholds={member: chosen[member].threshold for member in self.judged},
        )

    @cached_property
    def difficulty(self) -> Difficulty:
        """The levels that the tables below the shares use: the weakest member has no vote."""
        return self.levels(without=(WEAKEST,))

    def own_scores(self, member: str) -> Array:
        """A member's score of every caption with its image."""
        columns = np.arange(len(self.dataset.caption_ids))
        return self.judged[member].scores[self.dataset.caption_image, columns].astype(np.float64)

    @cached_property
    def runs(self) -> dict[str, cl.Run]:
        """Rankings of every member."""
        metrics = ["Hit@1", "Hit@5", "Hit@10"]
        return {
            member: cl.evaluate(self.dataset, scores=judged.scores, metrics=metrics, resamples=0, name=member)
            for member, judged in self.judged.items()
        }


def studies_of(data: Data) -> list[Study]:
    """Both datasets."""
    return [Study(key, split.test.dataset, panel(data, key)) for key, split in data.splits.items()]
