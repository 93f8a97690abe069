"""One model's way through the variants: found finished, or encoded, ranked and kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crosslens.core.dataset import Dataset
from crosslens.core.errors import UsageError
from crosslens.core.fingerprint import fingerprint
from crosslens.core.progress import Progress
from crosslens.core.relevance import IMAGE_TO_TEXT, TEXT_TO_IMAGE
from crosslens.metrics import parse_metrics
from crosslens.pipeline.evaluate import evaluate
from crosslens.pipeline.robustness.outcome import Outcome, asking_direction, load_outcome, outcome_of, save_outcome
from crosslens.pipeline.robustness.place import Place
from crosslens.pipeline.robustness.variants import ORIGINAL, Variant
from crosslens.pipeline.robustness.vectors import Vectors
from crosslens.pipeline.sources import TEXT_TO_TEXT, scores_from

DEFAULT_METRICS = ("Hit@1", "Hit@5", "Hit@10", "MRR", "MedR")
BOTH_DIRECTIONS = (IMAGE_TO_TEXT, TEXT_TO_IMAGE)


@dataclass(frozen=True)
class Setting:
    """What all runs of a study share."""

    directions: tuple[str, ...]
    metrics: tuple[str, ...]
    score: str | None
    text: str
    query: int
    resamples: int
    level: float
    seed: int

    @staticmethod
    def of(
        directions: Sequence[str] | None, metrics: Any, score: str | None, image_text: Any,
        query: int, resamples: int, level: float, seed: int,
    ) -> Setting:  # fmt: skip
        """The usual directions and metrics, where none are named."""
        usual = (TEXT_TO_TEXT,) if image_text is not None else BOTH_DIRECTIONS
        ways = tuple(directions or usual)
        if image_text is not None and ways != usual:
            raise UsageError("text-only retrieval has one direction, t2t", fix="leave the directions out")
        for one in ways:
            if one not in BOTH_DIRECTIONS and image_text is None:
                raise UsageError(
                    f"{one} is of text-only retrieval" if one == TEXT_TO_TEXT else f"unknown direction {one!r}",
                    fix="use i2t or t2i; for text-only retrieval say what stands for the images (--image-text)",
                )
        sums = ("Rsum",) if set(BOTH_DIRECTIONS) <= set(ways) else ()
        chosen = parse_metrics((*DEFAULT_METRICS, *sums) if metrics is None else metrics)
        text = "" if image_text is None else str(getattr(image_text, "name", image_text))
        return Setting(ways, tuple(map(str, chosen)), score, text, query, resamples, level, seed)

    def key(self, dataset: Dataset, options: Mapping[str, Any] | None = None) -> str:
        """The same for two studies whose runs can stand in one folder; ``options`` are of the perturbations."""
        perturbing = {"perturbing": repr(sorted(options.items()))} if options else {}
        return fingerprint("robustness", {"dataset": dataset.fingerprint, **vars(self), **perturbing})


@dataclass(frozen=True)
class Work:
    """One model's way through the variants."""

    dataset: Dataset
    vectors: Vectors
    setting: Setting
    place: Place | None
    threads: int | None
    command: Sequence[str] | None
    progress: Progress

    def outcome(self, variant: Variant | None) -> Outcome:
        """Found finished, or encoded, ranked and kept."""
        label = ORIGINAL if variant is None else variant.label
        direction, name = asking_direction(self.setting.directions), self.vectors.name
        known = self.vectors.key(variant)
        key = None if known is None else fingerprint("outcome", {"vectors": known, **vars(self.setting)})
        if self.place is not None:
            folder, file = self.place.run_folder(name, label), self.place.outcome_file(name, label)
            stored = load_outcome(folder, file, key, direction)
            if stored is not None:
                return stored
        progress = _Named(self.progress, f"{name}, {label}")
        images, captions = self.vectors.of(variant, progress)
        dataset, one = self.dataset if variant is None else variant.dataset, self.setting
        run = evaluate(
            dataset, images=images, captions=captions, directions=one.directions, metrics=one.metrics, score=one.score,
            resamples=one.resamples, level=one.level, seed=one.seed, threads=self.threads, name=f"{name}, {label}",
            output=None if self.place is None else folder, overwrite=True, command=self.command, progress=progress,
        )  # fmt: skip
        source, _ = scores_from(dataset, images, captions, None, one.score)
        found = outcome_of(run, direction, dataset, source.restricted(slice(None), slice(None)))
        if self.place is not None:
            save_outcome(found, file, key or "")
        return found


class _Named:
    """Progress that says which model and variant it is of."""

    def __init__(self, progress: Progress, name: str) -> None:
        self._progress, self._name = progress, name

    def start(self, label: str, total: int) -> None:
        self._progress.start(f"{self._name}: {label}", total)

    def advance(self, steps: int = 1) -> None:
        self._progress.advance(steps)

    def finish(self) -> None:
        self._progress.finish()
