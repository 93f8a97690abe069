"""The settings of analyses, as flags and recipes know them too: importing them loads no arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from crosslens.core import Options, UsageError, argument, option

if TYPE_CHECKING:
    from crosslens.analyze.hard_negatives.cases import HardNegatives
    from crosslens.engine import Progress
    from crosslens.values import Dataset


@dataclass(frozen=True)
class DiscriminabilityOptions(Options):
    """What decides dis(t) besides the model, and which values are kept."""

    k: int = option(20, "How many nearest images a description is compared with.", minimum=2)
    eta: float = option(0.8, "The share of entropies, 0 to ln k, that is kept; larger keeps more.", metavar="SHARE")
    temperature: float | None = option(None, "Of the softmax. [default: 1 / the encoder's logit scale]", metavar="T")

    def __post_init__(self) -> None:
        super().__post_init__()
        entropy_band(self.k, self.eta)
        if self.temperature is not None:
            check_temperature(self.temperature)


def entropy_band(k: int, eta: float) -> tuple[float, float]:
    """[(1−η)/2 · ln k, (1+η)/2 · ln k]: what is kept. A larger η keeps more."""
    if not 0 < eta <= 1:
        raise UsageError(
            f"eta = {eta}", fix="choose it above 0, up to 1: the share of ln k that the band covers", option="eta"
        )
    return (1 - eta) / 2 * math.log(k), (1 + eta) / 2 * math.log(k)


def check_temperature(temperature: float) -> None:
    """Raise unless it is a number above 0."""
    if not (temperature > 0 and math.isfinite(temperature)):
        problem = f"temperature = {temperature}"
        raise UsageError(problem, fix="choose a number above 0, such as 0.01 (CLIP's) or 1", option="temperature")


@dataclass(frozen=True)
class CaseOptions(Options):
    """Which hard negatives: how their files are read, or what makes them from a dataset's captions."""

    dataset: Dataset | None = option(None, "The captions to perturb.", hidden=True)
    perturbations: str | Sequence[str] | None = option(
        None, "Perturbations that make its captions wrong: antonym,size.", flags=("--perturb",), joins=","
    )
    together: bool = option(False, "One case per caption, with all perturbations as its wrong captions.")
    form: str | None = option(None, "sugar_crepe, aro, aro_order, winoground or cases. [default: by its content]")
    crop: bool = option(True, "ARO: the box a case is about, or all.", flags=("--crop/--no-crop",))
    by: Sequence[str] = option((), "Group by this; may be repeated.")

    def load(self, source: str | Path | HardNegatives | None, seed: int, progress: Progress | None) -> HardNegatives:
        """The cases of a source, or those made by perturbation."""
        from crosslens.analyze.hard_negatives.cases import HardNegatives, perturbed_negatives
        from crosslens.analyze.hard_negatives.reading import load_hard_negatives

        if source is not None and self.perturbations:
            raise UsageError("hard negatives from files and from perturbations", fix="pass one or the other")
        if source is None and not (self.dataset is not None and self.perturbations):
            raise UsageError("no hard negatives", fix="pass their files, or a dataset and perturbations")
        file_options = {"form": self.form is not None, "by": bool(self.by), "crop": not self.crop}
        context, unused = ("perturbations", file_options) if source is None else ("files", {"together": self.together})
        if isinstance(source, HardNegatives):
            context, unused = "cases that are already read", {**file_options, **unused}
        for name, passed in unused.items():
            if passed:
                raise UsageError(
                    f"{argument(name)} has no effect with {context}", fix=f"leave out {argument(name)}", option=name
                )
        if source is None:
            assert self.dataset is not None
            assert self.perturbations is not None
            return perturbed_negatives(
                self.dataset, self.perturbations, together=self.together, seed=seed, progress=progress
            )
        if isinstance(source, HardNegatives):
            return source
        return load_hard_negatives(source, self.form, crop=self.crop, by=self.by, seed=seed, progress=progress)


@dataclass(frozen=True)
class JudgingOptions(Options):
    """When a case counts as right, and how intervals are made."""

    skip_missing: bool = option(False, "Leave out cases without an image or a score, instead of stopping.")
    tolerance: float = option(0.0, "Scores that differ by no more than this are tied.", metavar="X")
    resamples: int = option(1000, "Resamples for the intervals; 0 for none.", minimum=0, maximum=10_000_000)
    level: float = option(0.95, "Confidence level of the intervals.")
    seed: int = option(0, "Seed of perturbations and intervals.")


@dataclass(frozen=True)
class ClusterOptions(Options):
    """How images are clustered."""

    min_cluster_size: int = option(10, "Clusters: the fewest images of one.", minimum=2)
    umap_neighbours: int = option(15, "Clusters: neighbours of an image that the map preserves.", minimum=2)
    purity_by: str | None = option(None, "Clusters: how pure they are by this column of the images, such as category.")


@dataclass(frozen=True)
class LabelSettings(Options):
    """What :func:`crosslens.analyze.assess_label_quality` lists."""

    threshold: float = option(
        1 / 3, "Keyword filter: share of words that other texts of the image have.", metavar="SHARE"
    )
    far: float = option(0.05, "Far: ranked behind this share of the images in every run.", metavar="SHARE")
    shortest: int = option(3, "A caption of fewer words says too little.")
    bits: int = option(12, "Pictures are compared if hashes differ in at most N of 192 bits; -1: never.")
    cosine: float = option(0.99, "Pictures are compared from this cosine of vectors on; 2: never.")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, least, most in (("threshold", 0, 1), ("far", 0, 1), ("cosine", -1, 2), ("bits", -1, 192)):
            value = getattr(self, name)
            if not least <= value <= most:  # NaN too
                raise UsageError(f"{name} = {value}", fix=f"choose a number from {least} to {most}", option=name)
        if self.shortest < 0:
            raise UsageError(f"shortest = {self.shortest}", fix="choose 0 words or more", option="shortest")


DIFFICULTY = "difficulty"
"""The column that holds the level of a pair."""
DEFAULT_LEVELS = "easy=all medium=rest hard=none"
"""IMP 4.2: easy where every model says that the pair matches, hard where none does."""
IN_BATCH, ALL_NEGATIVES = "in-batch", "all"
WEB_THRESHOLDS = (0.28, 0.3)
"""Of CLIP ViT-B/32's cosine: LAION-5B's English part and LAION-400M (Schuhmann et al.)."""


@dataclass(frozen=True)
class CalibrationOptions(Options):
    """Which pairs count as mismatches when a threshold is computed."""

    negatives: str = option(
        IN_BATCH,
        "Mismatches of a calibration set: in-batch (within random batches) or all.",
        choices=(IN_BATCH, ALL_NEGATIVES),
    )
    batch_size: int = option(256, "Pairs in a batch, for in-batch.", minimum=2)
    seed: int = option(0, "Seed of the batches and of the panels of --stability.")
