"""The options of hard negatives: which cases, and how they are judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from crosslens.core import Options, UsageError, argument, option

if TYPE_CHECKING:
    from crosslens.analyze.hard_negatives.cases import HardNegatives
    from crosslens.core import Dataset, Progress


@dataclass(frozen=True)
class CaseOptions(Options):
    """Which hard negatives: how their files are read, or what makes them from a dataset's captions."""

    dataset: Dataset | None = option(None, "The captions to perturb.", hidden=True)
    perturbations: str | Sequence[str] | None = option(
        None,
        "Perturbations that make its captions wrong: antonym,size.",
        metavar="NAMES",
        flags=("--perturb",),
        joins=",",
    )
    together: bool = option(False, "One case per caption, with all perturbations as its wrong captions.")
    form: str | None = option(
        None, "sugar_crepe, aro, aro_order, winoground or cases. [default: by its content]", metavar="NAME"
    )
    crop: bool = option(True, "ARO: the box a case is about, or all.", flags=("--crop/--no-crop",))
    by: Sequence[str] = option((), "Group by this; may be repeated.", metavar="COLUMN")

    def load(self, source: str | Path | HardNegatives | None, seed: int, progress: Progress | None) -> HardNegatives:
        """The cases of a source, or those made by perturbation."""
        from crosslens.analyze.hard_negatives.cases import HardNegatives
        from crosslens.analyze.hard_negatives.perturbed import perturbed_negatives
        from crosslens.analyze.hard_negatives.reading import load_hard_negatives

        self._check(source, read=isinstance(source, HardNegatives))
        if source is None:
            assert self.dataset is not None
            assert self.perturbations is not None
            return perturbed_negatives(
                self.dataset, self.perturbations, together=self.together, seed=seed, progress=progress
            )
        if isinstance(source, HardNegatives):
            return source
        return load_hard_negatives(source, self.form, crop=self.crop, by=self.by, seed=seed, progress=progress)

    def _check(self, source: object, *, read: bool) -> None:
        """Raise for sources that exclude each other, and for options without effect."""
        if source is not None and self.perturbations:
            raise UsageError("hard negatives from files and from perturbations", fix="pass one or the other")
        if source is None and not (self.dataset is not None and self.perturbations):
            raise UsageError("no hard negatives", fix="pass their files, or a dataset and perturbations")
        file_options = {"form": self.form is not None, "by": bool(self.by), "crop": not self.crop}
        context, unused = ("perturbations", file_options) if source is None else ("files", {"together": self.together})
        if read:
            context, unused = "cases that are already read", {**file_options, **unused}
        for name, passed in unused.items():
            if passed:
                raise UsageError(
                    f"{argument(name)} has no effect with {context}", fix=f"leave out {argument(name)}", option=name
                )


@dataclass(frozen=True)
class JudgingOptions(Options):
    """When a case counts as right, and how intervals are made."""

    skip_missing: bool = option(False, "Leave out cases without an image or a score, instead of stopping.")
    tolerance: float = option(0.0, "Scores that differ by no more than this are tied.", metavar="X")
    resamples: int = option(
        1000, "Resamples for the intervals; 0 for none.", metavar="N", minimum=0, maximum=10_000_000
    )
    level: float = option(0.95, "Confidence level of the intervals.", metavar="SHARE")
    seed: int = option(0, "Seed of perturbations and intervals.", metavar="N")
